// Tables for people and for programs. Every text passes through core/escape.h here, so that the stages hand over names
// as they are.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "model/table.h"

namespace culprit {
class JsonWriter;
}

namespace culprit::report {

/// How a terminal table is drawn.
enum class Look {
  plain,     ///< names at the left, columns as narrow as they can be
  profiler,  ///< dashed rules, names at the right edge of their column, columns of at least 12, whatever their headings
};

struct TerminalOptions {
  Look look = Look::plain;
  bool color = false;            ///< emphasise titles and headings
  std::size_t name_width = 100;  ///< longer names are cut and end in "..."
  /// Look::plain: lines are at most so wide where words allow it, 0 = as wide as they get. Columns of details go first,
  /// then names are cut and texts broken between words.
  std::size_t width = 0;
  bool keep_ends = false;  ///< they are cut in their middle instead
};

/// Tables one below the other with their titles and notes.
std::string render_terminal(std::span<const model::Table> tables, const TerminalOptions& options);

/// GitHub tables. Names longer than `name_width` are shortened and stand in full in a footnote.
std::string render_markdown(std::span<const model::Table> tables, std::size_t name_width = 80);

/// RFC 4180 with a heading of keys; times in ns, shares as fractions. Tables with the same columns share one heading
/// and get a first column "table"; others follow after an empty line. Notes are left out.
std::string render_csv(std::span<const model::Table> tables);

/// A member "tables", or `name`: an array of {"table", "title", "rows": [{key: value}], "notes"}; times in ns, names in
/// full, empty cells null.
void write_tables(JsonWriter& json, std::string_view name, std::span<const model::Table> tables);
inline void write_tables(JsonWriter& json, std::span<const model::Table> tables) {
  write_tables(json, "tables", tables);
}
/// A member with the rows of one table.
void write_rows(JsonWriter& json, std::string_view name, const model::Table& table);
/// One cell; null when nothing was measured.
void write_cell(JsonWriter& json, const model::Cell& cell);
/// The cells of one row, as members of the object that is open.
void write_row(JsonWriter& json, const model::Table& table, std::size_t row);

/// One cell as people read it ("1.132s", "29.86%"), not escaped; empty when nothing was measured.
std::string cell_text(const model::Column& column, const model::Cell& cell);

}  // namespace culprit::report
