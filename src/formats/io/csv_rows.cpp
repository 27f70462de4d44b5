#include "formats/io/csv_rows.h"

#include <csv.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <vector>

namespace culprit::formats {

namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr std::size_t kBufferStep = std::size_t{1} << 16;
// Every recovery parses the rest again; a file that needs more of them is not a CSV file.
constexpr int kMostRecoveries = 16;

/// Line ends in `text`: LF, CRLF and CR each count once.
std::uint64_t count_line_ends(std::string_view text) {
  std::uint64_t n = 0;
  for (std::size_t i = text.find_first_of("\r\n"); i != std::string_view::npos; i = text.find_first_of("\r\n", i + 1)) {
    ++n;
    if (text[i] == '\r' && i + 1 < text.size() && text[i + 1] == '\n') ++i;
  }
  return n;
}

/// Position just after `lines` line ends.
std::size_t skip_lines(std::string_view text, std::uint64_t lines) {
  std::size_t at = 0;
  for (; lines > 0; --lines) {
    at = text.find_first_of("\r\n", at);
    if (at == std::string_view::npos) return text.size();
    if (text[at] == '\r' && at + 1 < text.size() && text[at + 1] == '\n') ++at;
    ++at;
  }
  return at;
}

struct RowState {
  const CsvSink* sink = nullptr;
  std::string bytes;              // the fields of the current row, one after another
  std::vector<std::size_t> ends;  // where each ends in `bytes`
  std::vector<std::string_view> fields;
  std::uint64_t line = 1;          // where the current row begins
  std::uint64_t lines_inside = 0;  // line ends inside quoted fields of the current row
  bool after_cr = false;
};

void on_field(void* data, std::size_t size, void* context) {
  auto& state = *static_cast<RowState*>(context);
  const std::string_view field(static_cast<const char*>(data), size);
  if (field.find('\n') != std::string_view::npos || field.find('\r') != std::string_view::npos)
    state.lines_inside += count_line_ends(field);
  state.bytes.append(field);
  state.ends.push_back(state.bytes.size());
}

void on_row(int terminator, void* context) {
  auto& state = *static_cast<RowState*>(context);
  if (state.ends.empty()) {
    // A blank line, or the second half of CRLF.
    if (terminator == '\r' || (terminator == '\n' && !state.after_cr)) ++state.line;
    state.after_cr = terminator == '\r';
    return;
  }
  state.fields.clear();
  std::size_t begin = 0;
  for (const std::size_t end : state.ends) {
    state.fields.emplace_back(state.bytes.data() + begin, end - begin);
    begin = end;
  }
  state.sink->row(state.fields, state.line);
  state.line += state.lines_inside + (terminator < 0 ? 0 : 1);
  state.lines_inside = 0;
  state.after_cr = terminator == '\r';
  state.bytes.clear();
  state.ends.clear();
}

int nothing_is_space(unsigned char) { return 0; }

enum class Parse { whole, open_quote, no_memory };

/// Parses `text`, whose first line is `state.line`. With open_quote, `state.line` is where the row with that quote
/// begins.
Parse parse(std::string_view text, RowState& state) {
  csv_parser parser;
  if (csv_init(&parser, CSV_REPALL_NL) != 0) return Parse::no_memory;
  csv_set_space_func(&parser, nothing_is_space);
  csv_set_blk_size(&parser, kBufferStep);
  const std::size_t used = csv_parse(&parser, text.data(), text.size(), on_field, on_row, &state);
  Parse outcome = used == text.size() ? Parse::whole : Parse::no_memory;
  // Strict only for the end: quotes in odd places are taken as they are, one that is still open is an error.
  csv_set_opts(&parser, CSV_REPALL_NL | CSV_STRICT | CSV_STRICT_FINI);
  if (outcome == Parse::whole && csv_fini(&parser, on_field, on_row, &state) != 0)
    outcome = csv_error(&parser) == CSV_EPARSE ? Parse::open_quote : Parse::no_memory;
  csv_free(&parser);
  return outcome;
}

}  // namespace

Status split_csv(std::string_view text, std::string_view file, const CsvSink& sink) {
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  RowState state;
  state.sink = &sink;
  for (int recoveries = 0;; ++recoveries) {
    const std::uint64_t first_line = state.line;
    const Parse outcome = parse(text, state);
    if (outcome == Parse::no_memory)
      return input_error("not enough memory for one field", fmt::format("{} line {}", file, state.line),
                         "look for a field without end near that line");
    if (outcome == Parse::whole) return {};
    const bool give_up = recoveries == kMostRecoveries;
    sink.damage(state.line,
                give_up ? "more quotes that are never closed; the rest of the file was skipped"
                        : "a quote is never closed; the line was skipped",
                "close the quote, or write the file again");
    if (give_up) return {};
    text.remove_prefix(skip_lines(text, state.line - first_line + 1));
    state.bytes.clear();
    state.ends.clear();
    state.lines_inside = 0;
    state.after_cr = false;
    ++state.line;
  }
}

Result<std::string> read_whole_file(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return input_error(fmt::format("cannot be opened: {}", std::generic_category().message(errno)), path,
                       "check its name and permissions");
  struct stat status {};
  if (::fstat(fd, &status) != 0 || S_ISDIR(status.st_mode)) {
    ::close(fd);
    return input_error("is not a file", path, "name a file");
  }
  std::string bytes;
  // Some bytes more than the size: the read that finds the end then needs no further buffer.
  std::size_t room = static_cast<std::size_t>(std::max<off_t>(status.st_size, 0)) + 4096;
  std::size_t used = 0;
  for (;;) {
    if (used + 4096 > room) room *= 2;
    bytes.resize(room);
    const ssize_t n = ::read(fd, bytes.data() + used, room - used);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      const int code = errno;
      ::close(fd);
      return input_error(fmt::format("cannot be read: {}", std::generic_category().message(code)), path,
                         "check the disk");
    }
    if (n == 0) break;
    used += static_cast<std::size_t>(n);
  }
  ::close(fd);
  bytes.resize(used);
  return bytes;
}

void append_csv_field(std::string& out, std::string_view field) {
  if (field.find_first_of(",\"\r\n") == std::string_view::npos) {
    out += field;
    return;
  }
  out += '"';
  for (const char c : field) {
    if (c == '"') out += '"';
    out += c;
  }
  out += '"';
}

}  // namespace culprit::formats
