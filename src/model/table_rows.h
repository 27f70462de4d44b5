// How tables are filled: a column is declared together with what gives its cells, so that headings and cells cannot
// part. scripts/lint refuses rows and columns that are put together anywhere else.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <ranges>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/units.h"
#include "model/table.h"

namespace culprit::model {

inline Cell cell_of(Cell cell) { return cell; }

/// Text, an integer or a number as it is; an optional that holds nothing is an empty cell.
template <class Value>
requires(!std::is_same_v<std::remove_cvref_t<Value>, Cell>) Cell cell_of(const Value& value) {
  if constexpr (std::is_integral_v<Value>)
    return static_cast<std::int64_t>(value);
  else if constexpr (std::is_floating_point_v<Value>)
    return static_cast<double>(value);
  else if constexpr (requires { value.has_value(); })
    return value ? cell_of(*value) : Cell();
  else
    return std::string(value);
}

/// Empty for what is negative: a number of a rank, process or device that nobody knows.
inline Cell known_cell(std::int64_t number) { return number >= 0 ? Cell(number) : Cell(); }
/// Empty for NaN and infinity.
inline Cell number_cell(double number) { return std::isfinite(number) ? Cell(number) : Cell(); }
/// The same, rounded.
inline Cell whole_cell(double number) {
  return std::isfinite(number) ? Cell(std::int64_t{std::llround(number)}) : Cell();
}
/// Empty for no text.
inline Cell text_cell(std::string text) { return text.empty() ? Cell() : Cell(std::move(text)); }
/// A fraction; empty where there is no whole.
inline Cell share_cell(double part, Ns whole) { return whole > 0 ? Cell(part / static_cast<double>(whole)) : Cell(); }
inline Cell share_cell(Ns part, Ns whole) { return share_cell(static_cast<double>(part), whole); }

/// Leaves out columns in which no cell says anything: empty ones and empty texts.
void drop_empty_columns(Table& table);
/// Keeps column i where kept[i].
void keep_columns(Table& table, const std::vector<bool>& kept);

/// Whether a table has a column.
enum class Presence : std::uint8_t {
  always,
  if_known,  ///< left out when all its cells are empty
  never,
};
constexpr Presence present_if(bool wanted) { return wanted ? Presence::always : Presence::never; }

/// A column of a table whose rows are made of `Row`s.
template <class Row>
struct ColumnOf {
  /// `cell` is a function or a member of Row; what it gives goes through cell_of.
  template <class Give>
  ColumnOf(Column about, Give give, Presence when = Presence::always)
      : column(std::move(about)),
        cell([give = std::move(give)](const Row& row) { return cell_of(std::invoke(give, row)); }),
        presence(when) {}

  Column column;
  std::function<Cell(const Row&)> cell;
  Presence presence;
};

template <class Row>
using ColumnsOf = std::vector<ColumnOf<Row>>;

/// One row for each of `rows`, a range of Row, in its order; at most `limit` of them, 0 = all.
template <class Row, std::ranges::input_range Rows>
Table make_table(std::string title, std::string key, const ColumnsOf<Row>& columns, Rows&& rows,
                 std::size_t limit = 0) {
  Table table{std::move(title), std::move(key), {}, {}, {}};
  for (const Row& row : rows) {
    if (limit != 0 && table.rows.size() == limit) break;
    auto& cells = table.rows.emplace_back();
    cells.reserve(columns.size());
    for (const ColumnOf<Row>& column : columns)
      if (column.presence != Presence::never) cells.push_back(column.cell(row));
  }
  std::vector<bool> kept;
  for (const ColumnOf<Row>& column : columns) {
    if (column.presence == Presence::never) continue;
    const std::size_t at = kept.size();
    const auto is_empty = [at](const std::vector<Cell>& cells) {
      return std::holds_alternative<std::monostate>(cells[at]);
    };
    kept.push_back(column.presence == Presence::always || !std::ranges::all_of(table.rows, is_empty));
    table.columns.push_back(column.column);
  }
  keep_columns(table, kept);
  return table;
}

/// A line of a table of names and values.
struct Fact {
  std::string what;
  std::string value;
};

/// Columns "What" and "Value".
Table fact_table(std::string title, std::string key, const std::vector<Fact>& facts);

}  // namespace culprit::model
