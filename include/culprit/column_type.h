// What a column of a table holds; it decides how people see its values. Programs get the values themselves.
#pragma once

#include <cstdint>

namespace culprit {

enum class ColumnType : std::uint8_t {
  text,
  name,     ///< a function name from a trace: may be long, is shortened for people, never in CSV and JSON
  count,    ///< integer
  time,     ///< nanoseconds; shown as s/ms/us to people, as ns in CSV and JSON
  percent,  ///< fraction 0..1; shown as percent
  number,   ///< plain number with `precision` decimals
  bytes,
};

}  // namespace culprit
