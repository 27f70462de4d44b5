#include <fmt/format.h>

#include <cmath>

#include "core/units.h"
#include "report/render.h"

namespace culprit::report {

namespace {

double as_double(const model::Cell& cell) {
  if (const auto* integer = std::get_if<std::int64_t>(&cell)) return static_cast<double>(*integer);
  return std::get<double>(cell);
}

}  // namespace

std::string cell_text(const model::Column& column, const model::Cell& cell) {
  if (std::holds_alternative<std::monostate>(cell)) return {};
  if (const auto* text = std::get_if<std::string>(&cell)) return *text;
  const double value = as_double(cell);
  if (!std::isfinite(value)) return "n/a";
  switch (column.type) {
    case model::ColumnType::time:
      return format_duration(value);
    case model::ColumnType::percent:
      return fmt::format("{:.{}f}%", value * 100, column.precision);
    case model::ColumnType::bytes:
      return format_bytes(value);
    case model::ColumnType::count:
    case model::ColumnType::text:
    case model::ColumnType::name:
    case model::ColumnType::number:
      break;
  }
  if (const auto* integer = std::get_if<std::int64_t>(&cell)) return fmt::format("{}", *integer);
  return fmt::format("{:.{}f}", value, column.precision);
}

}  // namespace culprit::report
