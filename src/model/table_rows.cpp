#include "model/table_rows.h"

namespace culprit::model {

void keep_columns(Table& table, const std::vector<bool>& kept) {
  const auto keep = [&](auto& values) {
    std::size_t to = 0;
    for (std::size_t from = 0; from < values.size(); ++from) {
      if (!kept[from]) continue;
      if (to != from) values[to] = std::move(values[from]);
      ++to;
    }
    values.resize(to);
  };
  if (std::ranges::find(kept, false) == kept.end()) return;
  keep(table.columns);
  for (auto& row : table.rows) keep(row);
}

void drop_empty_columns(Table& table) {
  std::vector<bool> kept;
  for (std::size_t c = 0; c < table.columns.size(); ++c)
    kept.push_back(!std::ranges::all_of(table.rows, [&](const std::vector<Cell>& row) {
      const auto* text = std::get_if<std::string>(&row[c]);
      return std::holds_alternative<std::monostate>(row[c]) || (text != nullptr && text->empty());
    }));
  keep_columns(table, kept);
}

Table fact_table(std::string title, std::string key, const std::vector<Fact>& facts) {
  return make_table<Fact>(std::move(title), std::move(key),
                          {{{"What", "what"}, &Fact::what}, {{"Value", "value", ColumnType::name}, &Fact::value}},
                          facts);
}

}  // namespace culprit::model
