// CSV and JSON: what programs read.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/escape.h"
#include "core/json_writer.h"
#include "report/render.h"

namespace culprit::report {

namespace {

std::string csv_cell(const model::Cell& cell) {
  if (std::holds_alternative<std::monostate>(cell)) return {};
  if (const auto* text = std::get_if<std::string>(&cell)) return escape_csv(*text);
  if (const auto* integer = std::get_if<std::int64_t>(&cell)) return fmt::format("{}", *integer);
  const double number = std::get<double>(cell);
  return std::isfinite(number) ? fmt::format("{}", number) : std::string();
}

bool same_columns(const model::Table& a, const model::Table& b) {
  return std::ranges::equal(a.columns, b.columns, {}, &model::Column::key, &model::Column::key);
}

}  // namespace

std::string render_csv(std::span<const model::Table> tables) {
  const bool united = tables.size() > 1 && std::ranges::all_of(tables, [&](const model::Table& table) {
                        return same_columns(table, tables.front());
                      });
  std::string out;
  for (std::size_t t = 0; t < tables.size(); ++t) {
    const model::Table& table = tables[t];
    if (t == 0 || !united) {
      if (t != 0) out += '\n';
      std::string heading = united ? "table" : "";
      for (const model::Column& column : table.columns)
        heading += (heading.empty() ? "" : ",") + escape_csv(column.key);
      out += heading + "\n";
    }
    for (const auto& row : table.rows) {
      if (united) out += escape_csv(table.key) + ",";
      for (std::size_t c = 0; c < row.size(); ++c) {
        if (c != 0) out += ',';
        out += csv_cell(row[c]);
      }
      out += '\n';
    }
  }
  return out;
}

void write_cell(JsonWriter& json, const model::Cell& cell) {
  if (const auto* text = std::get_if<std::string>(&cell))
    json.value(*text);
  else if (const auto* integer = std::get_if<std::int64_t>(&cell))
    json.value(*integer);
  else if (const auto* number = std::get_if<double>(&cell))
    json.value(*number);
  else
    json.null();
}

void write_row(JsonWriter& json, const model::Table& table, std::size_t row) {
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    json.key(table.columns[c].key);
    write_cell(json, c < table.rows[row].size() ? table.rows[row][c] : model::Cell());
  }
}

void write_rows(JsonWriter& json, std::string_view name, const model::Table& table) {
  json.begin_array(name);
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    json.begin_object(JsonForm::line);
    write_row(json, table, row);
    json.end_object();
  }
  json.end_array();
}

void write_tables(JsonWriter& json, std::string_view name, std::span<const model::Table> tables) {
  json.begin_array(name);
  for (const model::Table& table : tables) {
    json.begin_object();
    json.member("table", table.key);
    json.member("title", table.title);
    write_rows(json, "rows", table);
    json.member("notes", table.notes);
    json.end_object();
  }
  json.end_array();
}

}  // namespace culprit::report
