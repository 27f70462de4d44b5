#include "library/columns.h"

#include <algorithm>
#include <utility>

namespace culprit::library {

namespace {

template <class T>
std::vector<T> values_of(std::vector<std::vector<model::Cell>>& rows, std::size_t column) {
  std::vector<T> values;
  values.reserve(rows.size());
  for (auto& row : rows) {
    T* value = std::get_if<T>(&row[column]);
    values.push_back(value != nullptr ? std::move(*value) : T());
  }
  return values;
}

std::vector<double> numbers_of(const std::vector<std::vector<model::Cell>>& rows, std::size_t column) {
  std::vector<double> values;
  values.reserve(rows.size());
  for (const auto& row : rows) {
    const auto* whole = std::get_if<std::int64_t>(&row[column]);
    const auto* number = std::get_if<double>(&row[column]);
    values.push_back(whole != nullptr ? static_cast<double>(*whole) : number != nullptr ? *number : 0);
  }
  return values;
}

}  // namespace

Table columns_of(model::Table table) {
  Table out;
  out.key = std::move(table.key);
  out.title = std::move(table.title);
  out.notes = std::move(table.notes);
  out.rows = table.rows.size();
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    const auto any = [&]<class T>(const T*) {
      return std::ranges::any_of(table.rows, [&](const auto& row) { return std::holds_alternative<T>(row[c]); });
    };
    Column column{std::move(table.columns[c].key), std::move(table.columns[c].title), {}, {}};
    for (const auto& row : table.rows) column.known.push_back(!std::holds_alternative<std::monostate>(row[c]));
    if (any(static_cast<const std::string*>(nullptr)))
      column.values = values_of<std::string>(table.rows, c);
    else if (any(static_cast<const double*>(nullptr)))
      column.values = numbers_of(table.rows, c);
    else
      column.values = values_of<std::int64_t>(table.rows, c);
    out.columns.push_back(std::move(column));
  }
  return out;
}

}  // namespace culprit::library
