#include <fmt/format.h>

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

std::string cut(const std::string& name, std::size_t width, const TerminalOptions& options) {
  return options.keep_ends ? shorten_middle(name, width) : shorten(name, width);
}

/// What a table needs: its cells as text, and how wide every column would be.
struct Layout {
  std::vector<std::vector<std::string>> texts;
  std::vector<std::size_t> widths;
  std::vector<bool> shown;
};

Layout natural_layout(const model::Table& table, const TerminalOptions& options) {
  const bool profiler = options.look == Look::profiler;
  const std::size_t columns = table.columns.size();
  Layout layout;
  layout.widths.assign(columns, profiler ? kProfilerColumn : 0);
  layout.shown.assign(columns, true);
  for (std::size_t c = 0; c < columns && !profiler; ++c) layout.widths[c] = display_width(table.columns[c].title);
  layout.texts.reserve(table.rows.size());
  for (const auto& row : table.rows) {
    auto& line = layout.texts.emplace_back(columns);
    for (std::size_t c = 0; c < columns && c < row.size(); ++c) {
      line[c] = escape_terminal(cell_text(table.columns[c], row[c]));
      if (table.columns[c].type == model::ColumnType::name) line[c] = cut(line[c], options.name_width, options);
      layout.widths[c] = std::max(layout.widths[c], display_width(line[c]));
    }
  }
  return layout;
}

/// Makes a layout as narrow as `width` where it can: leaves details out, then narrows names and texts, the widest
/// first.
void fit(const model::Table& table, std::size_t width, Layout& layout) {
  constexpr std::size_t kNameRoom = 30;  // names tell little when they are cut to less
  constexpr std::size_t kTextRoom = 18;
  constexpr std::size_t kLeast = 8;
  const std::size_t columns = table.columns.size();
  const auto needed = [&](auto&& width_of) {
    std::size_t sum = 0;
    std::size_t shown = 0;
    for (std::size_t c = 0; c < columns; ++c)
      if (layout.shown[c]) {
        sum += width_of(c);
        ++shown;
      }
    return sum + (shown > 1 ? (shown - 1) * kGap.size() : 0);
  };
  const auto roomy = [&](std::size_t c) {
    if (!is_text(table.columns[c])) return layout.widths[c];
    return std::min(layout.widths[c], table.columns[c].type == model::ColumnType::name ? kNameRoom : kTextRoom);
  };
  for (std::size_t c = columns; c-- > 0 && needed(roomy) > width;)
    if (table.columns[c].detail) layout.shown[c] = false;

  std::size_t most = kLeast;
  for (std::size_t c = 0; c < columns; ++c)
    if (layout.shown[c] && is_text(table.columns[c])) most = std::max(most, layout.widths[c]);
  const auto capped = [&](std::size_t c) {
    return is_text(table.columns[c]) ? std::min(layout.widths[c], most) : layout.widths[c];
  };
  while (most > kLeast && needed(capped) > width) --most;
  for (std::size_t c = 0; c < columns; ++c) layout.widths[c] = capped(c);
}

std::string hidden_columns(const model::Table& table, const Layout& layout) {
  std::string names;
  for (std::size_t c = 0; c < table.columns.size(); ++c)
    if (!layout.shown[c]) names += (names.empty() ? "" : ", ") + table.columns[c].title;
  return names;
}

void append_table(std::string& out, const model::Table& table, const TerminalOptions& options,
                  const Emphasis& emphasis) {
  const bool profiler = options.look == Look::profiler;
  Layout layout = natural_layout(table, options);
  const bool fitted = options.width != 0 && !profiler;
  if (fitted) fit(table, options.width, layout);
  std::vector<std::size_t> shown;
  for (std::size_t c = 0; c < table.columns.size(); ++c)
    if (layout.shown[c]) shown.push_back(c);

  const auto append_text = [&](std::string_view text) {
    const std::string safe = escape_terminal(text);
    const auto lines = fitted ? wrap(safe, options.width) : std::vector{safe};
    for (const std::string& line : lines) out += line + '\n';
  };
  if (!table.title.empty()) {
    out += emphasis.on;
    append_text(table.title);
    out.insert(out.size() - 1, emphasis.off);
  }
  std::string rule;
  for (const std::size_t c : shown) {
    rule.append(layout.widths[c], '-');
    if (profiler || c != shown.back()) rule += kGap;
  }
  const auto append_line = [&](const auto& text_of, const Emphasis& mark) {
    std::string line;
    for (const std::size_t c : shown) {
      append_padded(line, text_of(c), layout.widths[c], profiler || !is_text(table.columns[c]));
      if (profiler || c != shown.back()) line += kGap;
    }
    if (!profiler) trim_end(line);
    out += mark.on;
    out += line;
    out += mark.off;
    out += '\n';
  };
  /// A row whose texts may take several lines.
  const auto append_row = [&](const auto& text_of, const Emphasis& mark) {
    std::vector<std::vector<std::string>> cells(table.columns.size());
    std::size_t lines = 1;
    for (const std::size_t c : shown) {
      const bool name = table.columns[c].type == model::ColumnType::name;
      const bool wide = fitted && display_width(text_of(c)) > layout.widths[c];
      if (!wide)
        cells[c] = {text_of(c)};
      else if (name)
        cells[c] = {cut(text_of(c), layout.widths[c], options)};
      else
        cells[c] = wrap(text_of(c), layout.widths[c]);
      lines = std::max(lines, cells[c].size());
    }
    for (std::size_t l = 0; l < lines; ++l)
      append_line([&](std::size_t c) { return l < cells[c].size() ? cells[c][l] : std::string(); }, mark);
  };
  if (profiler) out += rule + "\n";
  append_row([&](std::size_t c) -> const std::string& { return table.columns[c].title; }, emphasis);
  out += rule + "\n";
  for (const auto& line : layout.texts) append_row([&](std::size_t c) -> const std::string& { return line[c]; }, {});
  if (profiler) out += rule + "\n";
  for (const std::string& note : table.notes) append_text(note);
  if (const std::string hidden = hidden_columns(table, layout); !hidden.empty())
    append_text(fmt::format("Not shown for want of room: {}; --wide shows all", hidden));
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
