// CSV and JSON: what programs read.
#include <algorithm>

#include "core/escape.h"
#include "report/render.h"

namespace culprit::report {

namespace {

std::string csv_cell(const model::Cell& cell) {
  if (std::holds_alternative<std::monostate>(cell)) return {};
  if (const auto* text = std::get_if<std::string>(&cell)) return escape_csv(*text);
  std::string number = cell_json(cell);
  return number == "null" ? std::string() : number;
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

std::string render_json(std::span<const model::Table> tables) {
  std::string out = "[";
  for (std::size_t t = 0; t < tables.size(); ++t) {
    const model::Table& table = tables[t];
    out += t == 0 ? "\n" : ",\n";
    out +=
        "{\"table\": \"" + escape_json(table.key) + "\", \"title\": \"" + escape_json(table.title) + "\", \"rows\": [";
    for (std::size_t r = 0; r < table.rows.size(); ++r) {
      out += r == 0 ? "\n  {" : ",\n  {";
      for (std::size_t c = 0; c < table.columns.size(); ++c) {
        if (c != 0) out += ", ";
        out += "\"" + escape_json(table.columns[c].key) +
               "\": " + (c < table.rows[r].size() ? cell_json(table.rows[r][c]) : "null");
      }
      out += '}';
    }
    out += "], \"notes\": [";
    for (std::size_t n = 0; n < table.notes.size(); ++n)
      out += (n == 0 ? "\"" : ", \"") + escape_json(table.notes[n]) + "\"";
    out += "]}";
  }
  return out + (tables.empty() ? "]" : "\n]");
}

}  // namespace culprit::report
