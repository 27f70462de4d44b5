#include "core/chunked_vector.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>

namespace culprit {
namespace {

/// Has default values, as the rows of a trace have.
struct Row {
  std::int64_t begin = 1;
  std::int64_t numbers[5] = {2, 3, 4, 5, 6};
};

long pages_touched() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

TEST(ChunkedVector, RowsKeepTheirValuesOverChunks) {
  ChunkedVector<Row> rows;
  const std::size_t n = ChunkedVector<Row>::kChunk + 3;
  for (std::size_t i = 0; i < n; ++i) rows.push_back({.begin = static_cast<std::int64_t>(i)});
  ASSERT_EQ(rows.size(), n);
  for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(rows[i].begin, static_cast<std::int64_t>(i));
  EXPECT_EQ(rows.back().numbers[4], 6);
  rows.clear();
  EXPECT_TRUE(rows.empty());
}

TEST(ChunkedVector, MemoryOfRowsThatAreNotThereIsNotTouched) {
  ChunkedVector<Row> rows;
  const long before = pages_touched();
  rows.push_back({});
  const auto pages_of_chunk = static_cast<long>(rows.bytes()) / sysconf(_SC_PAGESIZE);
  EXPECT_LT(pages_touched() - before, pages_of_chunk / 2);
}

}  // namespace
}  // namespace culprit
