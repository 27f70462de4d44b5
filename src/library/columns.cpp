#include "library/columns.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <string_view>
#include <utility>

#include "core/utf8.h"
#include "report/render.h"

namespace culprit::library {

namespace {

enum class Kind { text, whole, number };

/// Of times those that are not one call's or a sum, but fall between or are estimated.
bool is_computed(std::string_view key) {
  constexpr std::array<std::string_view, 6> kComputed = {"average_ns", "mean_ns",  "median_ns",
                                                         "stddev_ns",  "bound_ns", "careful_ns"};
  return std::ranges::find(kComputed, key) != kComputed.end();
}

/// Whatever the cells hold: two tables of the same columns have the same kinds.
Kind kind_of(const model::Column& column) {
  switch (column.type) {
    case ColumnType::text:
    case ColumnType::name:
      return Kind::text;
    case ColumnType::count:
    case ColumnType::bytes:
      return Kind::whole;
    case ColumnType::time:
      return is_computed(column.key) ? Kind::number : Kind::whole;
    case ColumnType::percent:
    case ColumnType::number:
      break;
  }
  return Kind::number;
}

std::vector<std::int64_t> whole_numbers_of(const std::vector<std::vector<model::Cell>>& rows, std::size_t column) {
  std::vector<std::int64_t> values;
  values.reserve(rows.size());
  for (const auto& row : rows) {
    const auto* whole = std::get_if<std::int64_t>(&row[column]);
    const auto* number = std::get_if<double>(&row[column]);
    assert(whole != nullptr || number != nullptr || std::holds_alternative<std::monostate>(row[column]));
    values.push_back(whole != nullptr ? *whole : number != nullptr ? std::llround(*number) : 0);
  }
  return values;
}

/// Valid UTF-8; a number among texts stands there as people read it.
std::vector<std::string> texts_of(const model::Table& table, std::size_t column) {
  std::vector<std::string> values;
  values.reserve(table.rows.size());
  for (const auto& row : table.rows) {
    const auto* text = std::get_if<std::string>(&row[column]);
    values.push_back(text != nullptr ? repair_utf8(*text) : report::cell_text(table.columns[column], row[column]));
  }
  return values;
}

std::vector<double> numbers_of(const std::vector<std::vector<model::Cell>>& rows, std::size_t column) {
  std::vector<double> values;
  values.reserve(rows.size());
  for (const auto& row : rows) {
    const auto* whole = std::get_if<std::int64_t>(&row[column]);
    const auto* number = std::get_if<double>(&row[column]);
    assert(whole != nullptr || number != nullptr || std::holds_alternative<std::monostate>(row[column]));
    values.push_back(whole != nullptr ? static_cast<double>(*whole) : number != nullptr ? *number : 0);
  }
  return values;
}

}  // namespace

Table columns_of(model::Table table, const std::stop_token& stop) {
  Table out;
  out.key = std::move(table.key);
  out.title = std::move(table.title);
  out.notes = std::move(table.notes);
  out.rows = table.rows.size();
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    if (stop.stop_requested()) return {};
    const model::Column& from = table.columns[c];
    Column column{from.key, from.title, {}, {}, from.type, from.precision, from.detail};
    for (const auto& row : table.rows) column.known.push_back(!std::holds_alternative<std::monostate>(row[c]));
    switch (kind_of(from)) {
      case Kind::text:
        column.values = texts_of(table, c);
        break;
      case Kind::whole:
        column.values = whole_numbers_of(table.rows, c);
        break;
      case Kind::number:
        column.values = numbers_of(table.rows, c);
        break;
    }
    out.columns.push_back(std::move(column));
  }
  return out;
}

model::Table rows_of(const Table& table) {
  model::Table out;
  out.key = table.key;
  out.title = table.title;
  out.notes = table.notes;
  out.rows.resize(table.rows);
  for (const Column& column : table.columns) {
    out.columns.push_back({column.title, column.key, column.type, column.precision, column.detail});
    std::visit(
        [&](const auto& values) {
          for (std::size_t r = 0; r < table.rows; ++r) {
            const bool known = r < values.size() && r < column.known.size() && column.known[r];
            model::Cell& cell = out.rows[r].emplace_back();
            if (known) cell = values[r];
          }
        },
        column.values);
  }
  return out;
}

}  // namespace culprit::library
