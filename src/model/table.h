// A table as data: what a stage found, before anyone decides how it looks. report/ renders it for a terminal, as
// Markdown, CSV and JSON.
#pragma once

#include <culprit/column_type.h>

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace culprit::model {

using culprit::ColumnType;

struct Column {
  std::string title;  ///< heading for people ("Self CUDA %")
  std::string key;    ///< snake_case key for JSON and CSV, unit included ("total_ns", "share")
  ColumnType type = ColumnType::text;
  int precision = 3;
  bool detail = false;  ///< left out on a terminal that has no room for it, the last one first
};

/// monostate is an empty cell: nothing was measured.
using Cell = std::variant<std::monostate, std::string, std::int64_t, double>;

struct Table {
  std::string title;
  std::string key;  ///< name of the table in JSON
  std::vector<Column> columns;
  std::vector<std::vector<Cell>> rows;
  std::vector<std::string> notes;  ///< sentences below the table
};

}  // namespace culprit::model
