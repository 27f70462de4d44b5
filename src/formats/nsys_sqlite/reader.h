// Databases of Nsight Systems (`nsys export --type sqlite`).
//
// Their tables are made lazily, have no indexes and differ between versions: every table is looked for by name, read in
// one pass in its own order, and may miss columns. What is not read is named in Rank::unread_tables.
#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <string_view>

#include "core/error.h"
#include "formats/io/expansion.h"
#include "trace/trace.h"

namespace culprit::formats::nsys_sqlite {

/// True for the first bytes of a SQLite database.
bool looks_like(std::string_view start);

/// Reads the database at `path`. Times are relative to the begin of the recording, whose Unix time is the base; ids of
/// host calls and GPU work are made unique over processes. `progress` gets bytes, estimated from the tables done.
/// Errors: no database, damaged anywhere, none of Nsight Systems, more in it than `expansion` allows, or `stop` was
/// requested.
Result<Trace> read(const std::string& path, Expansion expansion = Expansion(),
                   const std::function<void(std::uint64_t)>& progress = {}, const std::stop_token& stop = {});

}  // namespace culprit::formats::nsys_sqlite
