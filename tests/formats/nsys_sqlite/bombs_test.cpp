// Databases that would run code, or that have no end: they are refused, or what would run is named and not read.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <string>

#include "formats/nsys_sqlite/reader.h"
#include "support/cpu_time.h"
#include "support/database_maker.h"
#include "support/temp_file.h"

namespace culprit::formats::nsys_sqlite {
namespace {

using test::run_sql;

constexpr std::string_view kThread = "CREATE TABLE ThreadNames(globalTid INT, nameId INT);";

class NsysBombs : public testing::Test {
 protected:
  bool names_unread(const Trace& trace, std::string_view table) {
    return std::ranges::find(trace.ranks[0].unread_tables, table) != trace.ranks[0].unread_tables.end();
  }
  ~NsysBombs() override { EXPECT_LT(test::cpu_seconds_of_process() - begin_, 20); }

  test::TempDir dir_;
  std::string path_ = dir_.path("bomb.sqlite");
  double begin_ = test::cpu_seconds_of_process();
};

TEST_F(NsysBombs, GeneratedColumnsAreNotRun) {
  run_sql(path_,
          "CREATE TABLE StringIds(id INTEGER, value TEXT);"
          "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INT, end INT GENERATED ALWAYS AS "
          "(length(hex(zeroblob(start)))) VIRTUAL);"
          "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET(start INT, end INT AS (start + 1) STORED);"
          "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 30) "
          "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL(start) SELECT i FROM n;");
  const auto trace = read(path_);
  ASSERT_TRUE(trace);
  EXPECT_TRUE(names_unread(*trace, "CUPTI_ACTIVITY_KIND_KERNEL"));
  EXPECT_TRUE(names_unread(*trace, "CUPTI_ACTIVITY_KIND_MEMSET"));
  EXPECT_EQ(trace->slices.size(), 0U);
}

TEST_F(NsysBombs, ViewsAndVirtualTablesAreNotRun) {
  run_sql(path_,
          "CREATE TABLE StringIds(id INTEGER, value TEXT);"
          "CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS WITH RECURSIVE n(start) AS (SELECT 1 UNION ALL SELECT start + 1 "
          "FROM n) SELECT start, start + 1 AS end FROM n;"
          "CREATE VIRTUAL TABLE CUPTI_ACTIVITY_KIND_MEMCPY USING fts5(start);");
  const auto trace = read(path_);
  ASSERT_TRUE(trace);
  EXPECT_TRUE(names_unread(*trace, "CUPTI_ACTIVITY_KIND_KERNEL"));
  EXPECT_TRUE(names_unread(*trace, "CUPTI_ACTIVITY_KIND_MEMCPY"));
}

TEST_F(NsysBombs, AVirtualTableInDisguiseIsNotRun) {
  run_sql(path_,
          "CREATE TABLE StringIds(id INTEGER, value TEXT); CREATE VIRTUAL TABLE NVTX_EVENTS USING fts5(start);"
          "PRAGMA writable_schema = ON;"
          "UPDATE sqlite_master SET sql = 'create' || substr(sql, 7) WHERE name = 'NVTX_EVENTS';");
  const auto trace = read(path_);
  ASSERT_FALSE(trace);
  EXPECT_NE(trace.error().what.find("no such module"), std::string::npos) << trace.error().what;
}

TEST_F(NsysBombs, RowsCountAgainstTheExpansion) {
  run_sql(path_, std::string(kThread) +
                     "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400000) "
                     "INSERT INTO ThreadNames SELECT i, i FROM n; CREATE TABLE StringIds(id INTEGER, value TEXT);");
  EXPECT_TRUE(read(path_));
  const auto refused = read(path_, Expansion(1));
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().what.find("expands to more than 1 times"), std::string::npos) << refused.error().what;
  EXPECT_NE(refused.error().remedy.find("--max-expansion"), std::string::npos);
}

/// An inner page of a table whose children are all one page.
std::string page_of_pointers(std::size_t size, std::uint32_t child) {
  const auto put = [](std::string& page, std::size_t at, std::uint32_t value, int bytes) {
    for (int i = 0; i < bytes; ++i)
      page[at + static_cast<std::size_t>(i)] = static_cast<char>(value >> 8 * (bytes - 1 - i));
  };
  constexpr std::size_t kCells = 200;
  constexpr std::size_t kHead = 12;
  constexpr std::size_t kCell = 5;
  std::string page(size, '\0');
  page[0] = 5;
  put(page, 3, kCells, 2);
  put(page, 5, static_cast<std::uint32_t>(size - kCells * kCell), 2);
  put(page, 8, child, 4);
  for (std::size_t i = 0; i < kCells; ++i) {
    const std::size_t cell = size - (i + 1) * kCell;
    put(page, kHead + 2 * i, static_cast<std::uint32_t>(cell), 2);
    put(page, cell, child, 4);
    page[cell + 4] = 1;
  }
  return page;
}

// 200^6 rows in 40 KiB: every page of the tree is the child of its parent 200 times.
TEST_F(NsysBombs, ATreeThatRepeatsItself) {
  run_sql(path_, std::string(kThread) +
                     "CREATE TABLE StringIds(id INTEGER, value TEXT); INSERT INTO ThreadNames VALUES(1, 1);");
  std::ifstream in(path_, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(in)), {});
  const std::size_t size = 4096;
  ASSERT_EQ(bytes.size(), 3 * size);  // the schema, ThreadNames, StringIds
  bytes += bytes.substr(size, size);  // page 4: the leaf
  for (std::uint32_t page = 5; page < 10; ++page) bytes += page_of_pointers(size, page - 1);
  bytes.replace(size, size, page_of_pointers(size, 9));
  bytes[31] = 9;  // pages of the file
  std::ofstream(path_, std::ios::binary) << bytes;
  const auto trace = read(path_);
  ASSERT_FALSE(trace);
  EXPECT_NE(trace.error().what.find("expands to more than 200 times"), std::string::npos) << trace.error().what;
}

}  // namespace
}  // namespace culprit::formats::nsys_sqlite
