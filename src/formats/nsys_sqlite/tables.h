// The tables of a database of Nsight Systems that become part of a trace, one function per kind.
#pragma once

#include <span>
#include <string_view>

#include "core/error.h"
#include "formats/nsys_sqlite/database.h"
#include "formats/nsys_sqlite/session.h"

namespace culprit::formats::nsys_sqlite {

using ReadTable = Status (*)(Database&, Session&, const std::string& table);

struct TableReader {
  std::string_view table;
  ReadTable read;
};

/// In the order in which they have to be read: names before what uses them.
std::span<const TableReader> table_readers();

}  // namespace culprit::formats::nsys_sqlite
