// Tables of the stages, which are rows, as the columns of the public ones, and back.
#pragma once

#include <culprit/table.h>

#include "model/table.h"

namespace culprit::library {

/// A column is text or whole numbers where its cells are, else numbers.
Table columns_of(model::Table table);

model::Table rows_of(const Table& table);

}  // namespace culprit::library
