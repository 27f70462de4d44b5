// Tables of the stages, which are rows, as the columns of the public ones, and back.
#pragma once

#include <culprit/table.h>

#include <stop_token>

#include "model/table.h"

namespace culprit::library {

/// A column is text, whole numbers or numbers by what it is of, whatever its cells hold. When a stop is requested the
/// table is empty.
Table columns_of(model::Table table, const std::stop_token& stop = {});

model::Table rows_of(const Table& table);

}  // namespace culprit::library
