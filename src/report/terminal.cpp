#include <algorithm>

#include "core/display_width.h"
#include "core/escape.h"
#include "report/render.h"

namespace culprit::report {

namespace {

constexpr std::size_t kProfilerColumn = 12;
constexpr std::string_view kGap = "  ";

bool is_text(const model::Column& column) {
  return column.type == model::ColumnType::text || column.type == model::ColumnType::name;
}

struct Emphasis {
  std::string_view on;
  std::string_view off;
};

void append_padded(std::string& out, std::string_view text, std::size_t width, bool right) {
  const std::size_t used = display_width(text);
  const std::string pad(width > used ? width - used : 0, ' ');
  if (right) out += pad;
  out += text;
  if (!right) out += pad;
}

void trim_end(std::string& line) {
  while (!line.empty() && line.back() == ' ') line.pop_back();
}

void append_table(std::string& out, const model::Table& table, const TerminalOptions& options,
                  const Emphasis& emphasis) {
  const bool profiler = options.look == Look::profiler;
  const std::size_t columns = table.columns.size();
  std::vector<std::vector<std::string>> texts;
  std::vector<std::size_t> widths(columns, profiler ? kProfilerColumn : 0);
  for (std::size_t c = 0; c < columns && !profiler; ++c) widths[c] = display_width(table.columns[c].title);
  texts.reserve(table.rows.size());
  for (const auto& row : table.rows) {
    auto& line = texts.emplace_back(columns);
    for (std::size_t c = 0; c < columns && c < row.size(); ++c) {
      line[c] = escape_terminal(cell_text(table.columns[c], row[c]));
      if (table.columns[c].type == model::ColumnType::name) line[c] = shorten(line[c], options.name_width);
      widths[c] = std::max(widths[c], display_width(line[c]));
    }
  }

  if (!table.title.empty()) {
    out += emphasis.on;
    out += escape_terminal(table.title);
    out += emphasis.off;
    out += '\n';
  }
  std::string rule;
  for (std::size_t c = 0; c < columns; ++c) {
    rule.append(widths[c], '-');
    if (profiler || c + 1 < columns) rule += kGap;
  }
  const auto append_line = [&](const auto& text_of, const Emphasis& mark) {
    std::string line;
    for (std::size_t c = 0; c < columns; ++c) {
      append_padded(line, text_of(c), widths[c], profiler || !is_text(table.columns[c]));
      if (profiler || c + 1 < columns) line += kGap;
    }
    if (!profiler) trim_end(line);
    out += mark.on;
    out += line;
    out += mark.off;
    out += '\n';
  };
  if (profiler) out += rule + "\n";
  append_line([&](std::size_t c) -> const std::string& { return table.columns[c].title; }, emphasis);
  out += rule + "\n";
  for (const auto& line : texts) append_line([&](std::size_t c) -> const std::string& { return line[c]; }, {});
  if (profiler) out += rule + "\n";
  for (const std::string& note : table.notes) out += escape_terminal(note) + "\n";
}

}  // namespace

std::string render_terminal(std::span<const model::Table> tables, const TerminalOptions& options) {
  const Emphasis emphasis = options.color ? Emphasis{"\x1b[1m", "\x1b[0m"} : Emphasis{};
  std::string out;
  for (const model::Table& table : tables) {
    if (!out.empty()) out += '\n';
    append_table(out, table, options, emphasis);
  }
  return out;
}

}  // namespace culprit::report
