#include "formats/ncu_csv/rows.h"

#include <algorithm>

#include "formats/io/csv_rows.h"

namespace culprit::formats::ncu_csv {

namespace {

constexpr std::size_t kMostJoined = 64;  // lines that one quoted field may span

bool odd_quotes(std::string_view line) { return std::ranges::count(line, '"') % 2 != 0; }

/// A text of rows cut out of the file, with the line where it began.
struct Part {
  std::string text;
  std::uint64_t line = 0;
};

}  // namespace

bool is_header(std::string_view line) {
  if (line.starts_with("\xEF\xBB\xBF")) line.remove_prefix(3);
  const bool quoted = line.starts_with('"');
  if (!quoted && line.find(',') == std::string_view::npos) return false;
  const auto has = [&](std::string_view title) {
    for (std::size_t at = line.find(title); at != std::string_view::npos; at = line.find(title, at + 1)) {
      const char before = at == 0 ? ',' : line[at - 1];
      const std::size_t end = at + title.size();
      const char after = end == line.size() ? ',' : line[end];
      const auto edge = [&](char c) { return quoted ? c == '"' : c == ',' || c == '\r'; };
      if (edge(before) && edge(after)) return true;
    }
    return false;
  };
  if (!has("Kernel Name")) return false;
  return has("Metric Name") || has("ID") || has("Invocations") || has("Process ID");
}

Status walk_rows(std::string_view text, std::string_view file, const RowUse& use, RowCounts& counts) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  bool quoted = false;
  Part part;
  // Lines that are no rows stay in the part as blank lines, which the splitter skips and counts.
  const auto flush = [&]() -> Status {
    if (part.text.empty()) return {};
    bool first = true;
    CsvSink sink;
    sink.row = [&](std::span<const std::string_view> fields, std::uint64_t line) {
      (first ? use.header : use.row)(fields, part.line + line - 1);
      first = false;
    };
    sink.damage = [&](std::uint64_t line, std::string what, std::string remedy) {
      use.damage(part.line + line - 1, std::move(what), std::move(remedy));
    };
    Status status = split_csv(part.text, file, sink);
    part = {};
    return status;
  };
  std::size_t joined = 0;  // lines of the row that is open
  std::uint64_t number = 0;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    ++number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (joined != 0) {
      part.text.append(line).append("\n");
      joined = odd_quotes(line) || joined == kMostJoined ? 0 : joined + 1;
      continue;
    }
    if (is_header(line)) {
      if (Status status = flush(); !status) return status;
      ++counts.headers;
      quoted = line.starts_with('"');
      part.line = number;
      part.text.append(line).append("\n");
      continue;
    }
    const bool in_table = !part.text.empty();
    const bool row = in_table && !line.empty() &&
                     (line[0] == '"' || (!quoted && (line[0] == ',' || (line[0] >= '0' && line[0] <= '9'))));
    if (row) {
      part.text.append(line).append("\n");
      if (odd_quotes(line)) joined = 1;
      continue;
    }
    if (in_table) part.text += '\n';
    if (line.starts_with("==")) {
      ++counts.tool_lines;
      if (line.starts_with("==ERROR==") && counts.first_error.empty()) counts.first_error = line.substr(0, 200);
    } else if (line.find_first_not_of(" \t") != std::string_view::npos) {
      ++counts.output_lines;
    }
  }
  return flush();
}

}  // namespace culprit::formats::ncu_csv
