// Splitting CSV text into rows (RFC 4180, by libcsv), with line numbers and with recovery: a quote that is never closed
// costs its own line, not the rest of the file.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "core/error.h"

namespace culprit::formats {

struct CsvSink {
  /// One row; the views are valid during the call only. `line` is where it begins, 1-based.
  std::function<void(std::span<const std::string_view> fields, std::uint64_t line)> row;
  /// A line, or the rest of the file, that could not be split.
  std::function<void(std::uint64_t line, std::string what, std::string remedy)> damage;
};

/// Calls `sink` for every row that is not blank, in order. LF, CRLF and CR end a row; a byte order mark is skipped.
/// Fails only when memory runs out; `file` names the text in that error.
Status split_csv(std::string_view text, std::string_view file, const CsvSink& sink);

/// The whole file as bytes.
Result<std::string> read_whole_file(const std::string& path);

/// One field for writing: quoted when it has to be, nothing else changed.
void append_csv_field(std::string& out, std::string_view field);

}  // namespace culprit::formats
