#include <fmt/format.h>

#include <iterator>
#include <map>

#include "core/display_width.h"
#include "core/escape.h"
#include "report/render.h"

namespace culprit::report {

namespace {

/// Footnotes are numbered through the whole document; the same name gets the same number.
class Footnotes {
 public:
  std::size_t number_of(const std::string& name) {
    const auto [it, added] = numbers_.try_emplace(name, names_.size() + 1);
    if (added) names_.push_back(name);
    return it->second;
  }
  void append_to(std::string& out) const {
    for (std::size_t i = 0; i < names_.size(); ++i)
      fmt::format_to(std::back_inserter(out), "\n[^{}]: {}\n", i + 1, escape_markdown(names_[i]));
  }

 private:
  std::map<std::string, std::size_t> numbers_;
  std::vector<std::string> names_;
};

}  // namespace

std::string render_markdown(std::span<const model::Table> tables, std::size_t name_width) {
  std::string out;
  Footnotes footnotes;
  for (const model::Table& table : tables) {
    if (!out.empty()) out += '\n';
    if (!table.title.empty()) out += "## " + escape_markdown(table.title) + "\n\n";
    out += '|';
    for (const model::Column& column : table.columns) out += " " + escape_markdown(column.title) + " |";
    out += "\n|";
    for (const model::Column& column : table.columns)
      out += column.type == model::ColumnType::text || column.type == model::ColumnType::name ? " :--- |" : " ---: |";
    out += '\n';
    for (const auto& row : table.rows) {
      out += '|';
      for (std::size_t c = 0; c < table.columns.size() && c < row.size(); ++c) {
        const std::string text = cell_text(table.columns[c], row[c]);
        const bool cut = table.columns[c].type == model::ColumnType::name && display_width(text) > name_width;
        out += " " + escape_markdown(cut ? shorten(text, name_width) : text);
        if (cut) fmt::format_to(std::back_inserter(out), "[^{}]", footnotes.number_of(text));
        out += " |";
      }
      out += '\n';
    }
    for (const std::string& note : table.notes) out += "\n" + escape_markdown(note) + "\n";
  }
  footnotes.append_to(out);
  return out;
}

}  // namespace culprit::report
