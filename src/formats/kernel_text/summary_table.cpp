#include "formats/kernel_text/summary_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/display_width.h"
#include "core/escape.h"
#include "core/text.h"
#include "formats/io/missing_text.h"
#include "formats/kernel_text/lines.h"
#include "formats/kernel_text/summary_value.h"

namespace culprit::formats::kernel_text {

namespace {

using namespace model;

constexpr std::size_t kLeastRule = 3;  // dashes that make a rule

struct Field {
  std::size_t begin = 0;  // in code points
  std::size_t end = 0;
};

/// The dash groups of a rule, or empty when the line is none.
std::vector<Field> read_rule(std::string_view line) {
  std::vector<Field> fields;
  if (line.find_first_not_of("- ") != std::string_view::npos) return {};
  for (std::size_t at = line.find('-'); at != std::string_view::npos;) {
    const std::size_t end = std::min(line.find(' ', at), line.size());
    fields.push_back({at, end});
    at = line.find('-', end);
  }
  if (fields.size() < 2 || fields.front().end - fields.front().begin < kLeastRule) return {};
  return fields;
}

/// Splits at two or more blanks.
std::vector<std::string_view> split_wide(std::string_view line) {
  std::vector<std::string_view> cells;
  line = trim(line);
  while (!line.empty()) {
    const std::size_t gap = line.find("  ");
    cells.push_back(line.substr(0, gap));
    line = gap == std::string_view::npos ? std::string_view{} : trim(line.substr(gap));
  }
  return cells;
}

/// Byte offset of every code point, and the size.
std::vector<std::size_t> code_points(std::string_view line) {
  std::vector<std::size_t> at;
  for (std::size_t i = 0; i < line.size(); ++i)
    if ((static_cast<unsigned char>(line[i]) & 0xC0U) != 0x80U) at.push_back(i);
  at.push_back(line.size());
  return at;
}

/// Cells at the places of the rule; empty when text stands between two places.
std::vector<std::string_view> split_fixed(std::string_view line, const std::vector<Field>& rule) {
  const std::vector<std::size_t> at = code_points(line);
  const std::size_t length = at.size() - 1;
  const auto slice = [&](std::size_t begin, std::size_t end) {
    begin = std::min(begin, length);
    end = std::min(end, length);
    return line.substr(at[begin], at[end] - at[begin]);
  };
  std::vector<std::string_view> cells;
  for (std::size_t i = 0; i < rule.size(); ++i) {
    const std::size_t next = i + 1 < rule.size() ? rule[i + 1].begin : std::max(length, rule[i].end);
    if (!trim(slice(rule[i].end, next)).empty()) return {};
    cells.push_back(trim(slice(rule[i].begin, rule[i].end)));
  }
  return cells;
}

std::vector<std::string_view> split_row(std::string_view line, const std::vector<Field>& rule) {
  auto cells = split_fixed(line, rule);
  if (!cells.empty()) return cells;
  cells = split_wide(line);  // a value wider than its column has pushed the rest aside
  if (cells.size() != rule.size()) cells.clear();
  return cells;
}

/// The kind of a column by its title; text = decided by the first value.
SummaryColumnKind kind_of_title(std::string_view title) {
  if (title.ends_with(" %")) return SummaryColumnKind::percent;
  if (title == "# of Calls") return SummaryColumnKind::count;
  if (title.ends_with("Mem")) return SummaryColumnKind::bytes;
  if (title.ends_with("FLOPs")) return SummaryColumnKind::number;
  if (title.ends_with(" total") || title.ends_with(" time avg")) return SummaryColumnKind::time;
  return SummaryColumnKind::text;
}

bool fits(SummaryColumnKind column, SummaryColumnKind cell) {
  if (column == SummaryColumnKind::number) return cell == SummaryColumnKind::number || cell == SummaryColumnKind::count;
  return column == cell;
}

class SummaryReader {
 public:
  explicit SummaryReader(KernelSummaries& out) : out_(out) {}

  void line(std::string_view line, std::uint64_t number) {
    const std::vector<Field> rule = read_rule(line);
    switch (state_) {
      case State::outside:
        if (!rule.empty()) {
          rule_ = rule;
          state_ = State::header;
        } else if (!trim(line).empty()) {
          outside(trim(line));
        }
        return;
      case State::header:
        return header(line, number, rule);
      case State::second_rule:
        if (rule.size() == rule_.size()) {
          state_ = State::rows;
        } else {
          out_.tables.pop_back();
          bad_row(out_.input, number, "the header of a table is not followed by its rule", "keep the table whole");
          state_ = State::outside;
        }
        return;
      case State::rows:
        if (!rule.empty()) {
          state_ = State::outside;
          closed_ = true;
        } else if (trim(line).empty()) {
          bad_row(out_.input, number, "a table ends without its closing rule", "keep the table whole");
          state_ = State::outside;
        } else {
          row(line, number);
        }
        return;
    }
  }

 private:
  enum class State : std::uint8_t { outside, header, second_rule, rows };

  void outside(std::string_view text) {
    if (closed_ && text.find("time total:") != std::string_view::npos) {
      out_.tables.back().footers.emplace_back(text);
      return;
    }
    if (text.find_first_not_of('=') == std::string_view::npos) return;
    if (text.ends_with(':')) text.remove_suffix(1);
    caption_ = text;
  }

  void header(std::string_view line, std::uint64_t number, const std::vector<Field>& rule) {
    const auto titles = split_wide(line);
    if (titles.size() != rule_.size() || titles.front() != "Name") {
      // Not a table of this kind: a rule may also be the first of another one.
      rule_ = rule;
      state_ = rule.empty() ? State::outside : State::header;
      return;
    }
    KernelSummary table;
    table.caption = std::move(caption_);
    caption_.clear();
    closed_ = false;
    table.line = number;
    for (std::size_t i = 1; i < titles.size(); ++i)
      table.columns.push_back({std::string(titles[i]), kind_of_title(titles[i]), rule_[i].end - rule_[i].begin});
    out_.tables.push_back(std::move(table));
    state_ = State::second_rule;
  }

  void row(std::string_view line, std::uint64_t number) {
    KernelSummary& table = out_.tables.back();
    const auto cells = split_row(line, rule_);
    if (cells.empty())
      return bad_row(out_.input, number, fmt::format("the row does not have {} cells", rule_.size()),
                     "look for a cut line");
    SummaryRow row;
    row.name = cells.front();
    row.name_cut = cells.front().ends_with("...");
    for (std::size_t i = 1; i < cells.size(); ++i) {
      SummaryColumn& column = table.columns[i - 1];
      SummaryValue value;
      if (auto cell = parse_summary_cell(cells[i])) {
        if (column.kind == SummaryColumnKind::text && table.rows.empty()) column.kind = cell->kind;
        const bool negative_count = column.kind == SummaryColumnKind::count && cell->value.value < 0;
        if (fits(column.kind, cell->kind) && !negative_count) value = cell->value;
      }
      const bool missing = cells[i] == "--" || is_missing_text(cells[i]);
      if (std::isnan(value.value) && column.kind != SummaryColumnKind::text && !missing)
        bad_cell(out_.input, number, fmt::format("column '{}' holds '{}'", column.title, cells[i].substr(0, 40)),
                 "correct the value or remove the row");
      value.text = cells[i];
      row.values.push_back(std::move(value));
    }
    table.rows.push_back(std::move(row));
    ++out_.input.rows;
  }

  KernelSummaries& out_;
  State state_ = State::outside;
  std::vector<Field> rule_;
  std::string caption_;
  bool closed_ = false;  ///< lines now stand below a table
};

}  // namespace

bool looks_like_summary_table(std::string_view start) {
  if (start.find("---") == std::string_view::npos) return false;  // cheaper than line by line
  bool found = false;
  std::size_t before = 0;
  bool header = false;
  each_line(start, [&](std::string_view line, std::uint64_t) {
    const std::vector<Field> rule = read_rule(line);
    found = found || (header && !rule.empty());
    header = false;
    if (before != 0) {
      const auto titles = split_wide(line);
      header = titles.size() == before && titles.front() == "Name";
    }
    before = rule.size();
  });
  return found;
}

Result<KernelSummaries> parse_summary_tables(std::string_view text, std::string_view file) {
  KernelSummaries summaries;
  summaries.input.file = file;
  SummaryReader reader(summaries);
  each_line(text, [&](std::string_view line, std::uint64_t number) { reader.line(line, number); });
  if (summaries.tables.empty())
    return input_error("holds no profiler table (a rule of dashes, a line with \"Name\", a rule)", std::string(file),
                       "keep header and rules of the table");
  if (summaries.input.rows == 0)
    return input_error("holds a profiler table without any row", std::string(file), "print the table again");
  for (KernelSummary& table : summaries.tables) derive_summary(table);
  return summaries;
}

std::string write_summary_tables(const KernelSummaries& summaries) {
  std::string out;
  const auto right = [&](std::string_view text, std::size_t width) {
    out.append(width - std::min(width, display_width(text)), ' ');
    out += text;
    out += "  ";
  };
  for (const KernelSummary& table : summaries.tables) {
    // The profiler leaves four columns of air beside the longest name, unless it had to cut one.
    std::size_t width = 4;
    bool cut = false;
    std::vector<std::string> names;
    for (const SummaryRow& row : table.rows) {
      names.push_back(escape_terminal(row.name));
      width = std::max(width, display_width(names.back()));
      cut = cut || row.name_cut;
    }
    if (!cut) width += 4;
    const auto rule = [&] {
      out.append(width, '-');
      out += "  ";
      for (const SummaryColumn& column : table.columns) out.append(column.width, '-').append("  ");
      out += '\n';
    };
    if (!out.empty()) out += "\n\n";
    if (!table.caption.empty()) out.append(escape_terminal(table.caption)).append(":\n");
    rule();
    right("Name", width);
    for (const SummaryColumn& column : table.columns) right(escape_terminal(column.title), column.width);
    out += '\n';
    rule();
    for (std::size_t r = 0; r < table.rows.size(); ++r) {
      right(names[r], width);
      for (std::size_t c = 0; c < table.columns.size(); ++c)
        right(escape_terminal(table.rows[r].values[c].text), table.columns[c].width);
      out += '\n';
    }
    rule();
    for (const std::string& footer : table.footers) out.append(escape_terminal(footer)).append("\n");
  }
  return out;
}

}  // namespace culprit::formats::kernel_text
