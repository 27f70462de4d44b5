#include "formats/nsys_sqlite/reader.h"

#include <sys/stat.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "formats/nsys_sqlite/database.h"
#include "formats/nsys_sqlite/session.h"
#include "formats/nsys_sqlite/tables.h"
#include "trace/builder.h"

namespace culprit::formats::nsys_sqlite {

namespace {

std::uint64_t size_of(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 ? static_cast<std::uint64_t>(std::max<off_t>(status.st_size, 0)) : 0;
}

bool is_nsight_table(const std::string& name) {
  return name == "StringIds" || name.starts_with("CUPTI_ACTIVITY_KIND_") || name.starts_with("TARGET_INFO_") ||
         name == "NVTX_EVENTS";
}

}  // namespace

bool looks_like(std::string_view start) { return start.starts_with(std::string_view("SQLite format 3\0", 16)); }

Result<Trace> read(const std::string& path, Expansion expansion, const std::function<void(std::uint64_t)>& progress,
                   const std::stop_token& stop) {
  expansion.allow(size_of(path));
  auto database = Database::open(path, expansion, stop);
  if (!database) return database.error();
  std::vector<std::string> unread;
  auto tables = database->tables(unread);
  if (!tables) return tables.error();
  if (std::ranges::none_of(*tables, is_nsight_table))
    return input_error("is an SQLite database, but not one of Nsight Systems", path,
                       "export with: nsys export --type sqlite REPORT.nsys-rep");
  Rank rank;
  rank.path = path;
  rank.format = "Nsight Systems SQLite";
  rank.input_bytes = rank.text_bytes = size_of(path);
  const std::uint64_t bytes = rank.input_bytes;
  TraceBuilder builder(std::move(rank));
  Session session(builder, path);
  std::size_t done = 0;
  for (const TableReader& reader : table_readers()) {
    ++done;
    const auto table = std::ranges::find(*tables, reader.table);
    if (table == tables->end()) continue;
    if (Status status = reader.read(*database, session, *table); !status) return status.error();
    tables->erase(table);
    if (progress) progress(bytes * done / table_readers().size());
  }
  unread.insert(unread.end(), tables->begin(), tables->end());
  // Changes that were never merged into the database stand in a file beside it, which an immutable one ignores.
  if (size_of(path + "-wal") != 0) unread.push_back(path + "-wal");
  std::ranges::sort(unread);
  builder.rank().unread_tables = std::move(unread);
  builder.rank().events = builder.trace().slices.size();
  return std::move(builder).finish();
}

}  // namespace culprit::formats::nsys_sqlite
