// A table as columns: what most calls of the library give, ready for data frames.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace culprit {

/// One column. All columns of a table are equally long.
struct Column {
  std::string key;    ///< snake_case with its unit: "total_ns", "share" (a fraction), "name"
  std::string title;  ///< heading for people
  /// Times are whole nanoseconds, shares fractions.
  std::variant<std::vector<std::string>, std::vector<std::int64_t>, std::vector<double>> values;
  std::vector<bool> known;  ///< false: nothing was measured, and the value says nothing
};

struct Table {
  std::string key;
  std::string title;
  std::vector<Column> columns;
  std::size_t rows = 0;
  std::vector<std::string> notes;  ///< sentences for people: what was left out or assumed

  /// The column of this key, or nullptr.
  [[nodiscard]] const Column* find(const std::string& column) const {
    for (const Column& c : columns)
      if (c.key == column) return &c;
    return nullptr;
  }
};

}  // namespace culprit
