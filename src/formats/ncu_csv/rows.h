// The rows of the tables in a text that also holds program output: finds headers, joins quoted line breaks, leaves out
// what is no row.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "core/error.h"
#include "model/kernel_log.h"

namespace culprit::formats::ncu_csv {

/// True when `line` names the columns of a table.
bool is_header(std::string_view line);

struct RowUse {
  std::function<void(std::span<const std::string_view> fields, std::uint64_t line)> header;
  std::function<void(std::span<const std::string_view> fields, std::uint64_t line)> row;
  std::function<void(std::uint64_t line, std::string what, std::string remedy)> damage;
};

struct RowCounts {
  std::uint64_t headers = 0;
  std::uint64_t output_lines = 0;  ///< program output before, between and behind the rows
  std::uint64_t tool_lines = 0;    ///< "==PROF== ..." and the like
  std::string first_error;         ///< first "==ERROR== ..." line
};

/// Calls `use` for every header and row in order. Fails only when memory runs out.
Status walk_rows(std::string_view text, std::string_view file, const RowUse& use, RowCounts& counts);

}  // namespace culprit::formats::ncu_csv
