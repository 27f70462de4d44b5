// Public tables in the forms of the program.
#include <culprit/table.h>

#include "core/json_writer.h"
#include "library/columns.h"
#include "report/render.h"

namespace culprit {

namespace {

std::vector<model::Table> rows_of(std::span<const Table> tables) {
  std::vector<model::Table> rows;
  for (const Table& table : tables) rows.push_back(library::rows_of(table));
  return rows;
}

}  // namespace

std::string to_text(std::span<const Table> tables, const TextOptions& options) {
  report::TerminalOptions look;
  look.width = options.width;
  look.name_width = options.name_width;
  look.color = options.color;
  return report::render_terminal(rows_of(tables), look);
}

std::string to_markdown(std::span<const Table> tables) { return report::render_markdown(rows_of(tables)); }

std::string to_csv(std::span<const Table> tables) { return report::render_csv(rows_of(tables)); }

std::string to_json(std::span<const Table> tables) {
  std::string text;
  JsonWriter json(text);
  json.begin_object();
  report::write_tables(json, rows_of(tables));
  json.end_object();
  json.finish();
  return text;
}

}  // namespace culprit
