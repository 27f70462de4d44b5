// Small databases in the look of Nsight Systems, made by statements of the test.
#pragma once

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <string>

namespace culprit::test {

/// Runs `sql` on the database at `path`, which is made when absent.
inline void run_sql(const std::string& path, const std::string& sql) {
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &db), SQLITE_OK);
  char* message = nullptr;
  EXPECT_EQ(sqlite3_exec(db, sql.c_str(), nullptr, nullptr, &message), SQLITE_OK) << (message ? message : "");
  sqlite3_free(message);
  sqlite3_close(db);
}

/// One number that `sql` gives.
inline std::int64_t ask_sql(const std::string& path, const std::string& sql) {
  sqlite3* db = nullptr;
  EXPECT_EQ(
      sqlite3_open_v2(("file:" + path + "?immutable=1").c_str(), &db, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, nullptr),
      SQLITE_OK);
  sqlite3_stmt* statement = nullptr;
  std::int64_t value = -1;
  if (sqlite3_prepare_v2(db, sql.c_str(), -1, &statement, nullptr) == SQLITE_OK &&
      sqlite3_step(statement) == SQLITE_ROW)
    value = sqlite3_column_int64(statement, 0);
  sqlite3_finalize(statement);
  sqlite3_close(db);
  return value;
}

/// The global id of a process or thread.
inline std::string global(std::int64_t pid, std::int64_t tid = 0, std::int64_t machine = 1) {
  return std::to_string(machine << 48 | pid << 24 | tid);
}

}  // namespace culprit::test
