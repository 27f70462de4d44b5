// A table as columns: what most calls of the library give, ready for data frames, and in the forms of the program.
#pragma once

#include <culprit/api.h>
#include <culprit/column_type.h>

#include <cstddef>
#include <cstdint>
#include <span>
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
  ColumnType type = ColumnType::text;
  int precision = 3;    ///< decimals of a number that people see
  bool detail = false;  ///< the first to go where there is no room
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

struct TextOptions {
  std::size_t width = 80;        ///< lines are at most so wide where words allow it; 0: as wide as they get
  std::size_t name_width = 100;  ///< longer names are cut and end in "..."
  bool color = false;            ///< emphasise titles and headings by escape sequences
};

/// Tables one below the other as the program prints them, with titles and notes. Text of traces is escaped in all
/// forms.
CULPRIT_API std::string to_text(std::span<const Table> tables, const TextOptions& options = {});
/// GitHub's tables; long names stand in full in footnotes.
CULPRIT_API std::string to_markdown(std::span<const Table> tables);
/// RFC 4180 with a heading of keys, without titles and notes. Tables of the same columns share one heading and get a
/// first column "table"; others follow after an empty line.
CULPRIT_API std::string to_csv(std::span<const Table> tables);
/// {"tables": [{"table", "title", "rows": [{key: value}], "notes"}]}; what is not known is null.
CULPRIT_API std::string to_json(std::span<const Table> tables);

inline std::string to_text(const Table& table, const TextOptions& options = {}) {
  return to_text(std::span(&table, 1), options);
}
inline std::string to_markdown(const Table& table) { return to_markdown(std::span(&table, 1)); }
inline std::string to_csv(const Table& table) { return to_csv(std::span(&table, 1)); }
inline std::string to_json(const Table& table) { return to_json(std::span(&table, 1)); }

}  // namespace culprit
