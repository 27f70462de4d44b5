// Any bytes as a database of Nsight Systems: read, or refused with an error that says something. When the first byte is
// odd, the rest is the file; else it is rows for the tables of such a database, which mutation of a file seldom
// reaches.
#include <sqlite3.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "check_trace.h"
#include "formats/nsys_sqlite/reader.h"

namespace {

using namespace culprit;
using fuzz::require;

struct Table {
  std::string_view name;
  int columns;
  std::string_view definition;
};

constexpr std::array kTables = {
    Table{"StringIds", 2, "id INTEGER, value TEXT"},
    Table{"CUPTI_ACTIVITY_KIND_KERNEL", 19,
          "start INT, end INT, deviceId INT, contextId INT, streamId INT, correlationId INT, globalPid INT, "
          "demangledName INT, shortName INT, gridX INT, gridY INT, gridZ INT, blockX INT, blockY INT, blockZ INT, "
          "registersPerThread INT, staticSharedMemory INT, dynamicSharedMemory INT, graphNodeId INT"},
    Table{"CUPTI_ACTIVITY_KIND_RUNTIME", 6,
          "start INT, end INT, eventClass INT, globalTid INT, correlationId INT, nameId INT"},
    Table{"CUPTI_ACTIVITY_KIND_MEMCPY", 11,
          "start INT, end INT, deviceId INT, contextId INT, streamId INT, correlationId INT, globalPid INT, bytes INT, "
          "copyKind INT, srcKind INT, dstKind INT"},
    Table{"CUPTI_ACTIVITY_KIND_MEMSET", 9,
          "start INT, end INT, deviceId INT, contextId INT, streamId INT, correlationId INT, globalPid INT, bytes INT, "
          "memKind INT"},
    Table{"CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", 8,
          "start INT, end INT, deviceId INT, contextId INT, streamId INT, correlationId INT, globalPid INT, syncType "
          "INT"},
    Table{"CUPTI_ACTIVITY_KIND_GRAPH_TRACE", 8,
          "start INT, end INT, deviceId INT, contextId INT, streamId INT, correlationId INT, globalPid INT, graphId "
          "INT"},
    Table{"NVTX_EVENTS", 7, "start INT, end INT, eventType INT, text TEXT, textId INT, globalTid INT, domainId INT"},
    Table{"SCHED_EVENTS", 4, "start INT, cpu INT, isSchedIn INT, globalTid INT"},
    Table{"OSRT_API", 4, "start INT, end INT, globalTid INT, nameId INT"},
    Table{"TARGET_INFO_GPU_METRICS", 3, "typeId INT, metricId INT, metricName TEXT"},
    Table{"GPU_METRICS", 4, "timestamp INT, typeId INT, metricId INT, value INT"},
    Table{"PROCESSES", 3, "globalPid INT, pid INT, name TEXT"},
    Table{"ThreadNames", 2, "nameId INT, globalTid INT"},
    Table{"TARGET_INFO_GPU", 6, "id INT, name TEXT, totalMemory INT, smCount INT, computeMajor INT, computeMinor INT"},
    Table{"TARGET_INFO_SESSION_START_TIME", 1, "utcEpochNs INT"},
};

/// Takes bytes from the front; zeros when there are none left.
class Bytes {
 public:
  explicit Bytes(std::string_view rest) : rest_(rest) {}
  [[nodiscard]] bool empty() const { return rest_.empty(); }
  std::string_view take(std::size_t n) {
    const std::string_view taken = rest_.substr(0, n);
    rest_.remove_prefix(taken.size());
    return taken;
  }
  std::uint8_t byte() { return empty() ? std::uint8_t{0} : static_cast<std::uint8_t>(take(1)[0]); }
  std::int64_t number() {
    std::int64_t n = 0;
    const std::string_view taken = take(sizeof n);
    std::memcpy(&n, taken.data(), taken.size());
    return n;
  }

 private:
  std::string_view rest_;
};

void execute(sqlite3* db, const std::string& sql) {
  require(sqlite3_exec(db, sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK);
}

void bind_cell(sqlite3_stmt* row, int column, Bytes& bytes) {
  const std::uint8_t kind = bytes.byte();
  if (kind < 200) {
    sqlite3_bind_int64(row, column, kind);
  } else if (kind < 215) {
    sqlite3_bind_int64(row, column, bytes.number());
  } else if (kind < 225) {
    sqlite3_bind_double(row, column, static_cast<double>(bytes.number()) / 3);
  } else if (kind < 245) {
    const std::string_view text = bytes.take(bytes.byte());
    sqlite3_bind_text(row, column, text.data(), static_cast<int>(text.size()), SQLITE_TRANSIENT);
  } else {
    sqlite3_bind_null(row, column);
  }
}

/// A database whose first byte says which tables it has, and whose rows follow.
std::string database_of(Bytes bytes) {
  sqlite3* db = nullptr;
  require(sqlite3_open(":memory:", &db) == SQLITE_OK);
  execute(db, "PRAGMA page_size=512;BEGIN");
  const auto missing = static_cast<std::size_t>(bytes.byte());
  for (std::size_t t = 0; t < kTables.size(); ++t)
    if (t != missing)
      execute(db, "CREATE TABLE " + std::string(kTables[t].name) + "(" + std::string(kTables[t].definition) + ")");
  for (int rows = 0; !bytes.empty() && rows < 1000; ++rows) {
    const std::size_t t = bytes.byte() % kTables.size();
    if (t == missing) continue;
    std::string sql = "INSERT INTO " + std::string(kTables[t].name) + " VALUES(?";
    for (int c = 1; c < kTables[t].columns; ++c) sql += ",?";
    sqlite3_stmt* row = nullptr;
    require(sqlite3_prepare_v2(db, (sql + ")").c_str(), -1, &row, nullptr) == SQLITE_OK);
    for (int c = 1; c <= kTables[t].columns; ++c) bind_cell(row, c, bytes);
    sqlite3_step(row);
    sqlite3_finalize(row);
  }
  execute(db, "COMMIT");
  sqlite3_int64 size = 0;
  unsigned char* image = sqlite3_serialize(db, "main", &size, 0);
  require(image != nullptr);
  std::string file(reinterpret_cast<const char*>(image), static_cast<std::size_t>(size));
  sqlite3_free(image);
  sqlite3_close(db);
  return file;
}

/// A file of this process in memory, which SQLite opens by its name.
class ScratchFile {
 public:
  ScratchFile() : file_(mkstemp(path_.data())) { require(file_ >= 0); }
  ~ScratchFile() {
    close(file_);
    unlink(path_.c_str());
  }
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;
  void hold(std::string_view bytes) const {
    require(ftruncate(file_, 0) == 0);
    require(pwrite(file_, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
  }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_ = "/dev/shm/culprit-fuzz-XXXXXX";
  int file_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  static const ScratchFile file;
  const std::string_view rest(reinterpret_cast<const char*>(data + 1), size - 1);
  file.hold(data[0] % 2 == 1 ? std::string(rest) : database_of(Bytes(rest)));
  (void)formats::nsys_sqlite::looks_like(rest);
  const auto trace = formats::nsys_sqlite::read(file.path());
  if (trace)
    fuzz::check(*trace);
  else
    require(!trace.error().what.empty());
  return 0;
}
