// Counts and sums of every real trace against independent ones.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "formats/io/input.h"
#include "formats/kineto/reader.h"
#include "support/shared_data.h"

namespace culprit::formats::kineto {
namespace {

TEST(Golden, EveryRealTraceAgrees) {
  CULPRIT_NEEDS_SHARED("golden/traces.tsv");
  std::ifstream table(test::shared("golden/traces.tsv"));
  std::string line;
  std::getline(table, line);
  int rows = 0;
  while (std::getline(table, line)) {
    std::vector<std::string> cells;
    std::stringstream row(line);
    for (std::string cell; std::getline(row, cell, '\t');) cells.push_back(cell);
    ASSERT_GE(cells.size(), 7U);
    SCOPED_TRACE(cells[0]);
    auto input = Input::open(test::shared("corpus/" + cells[0]));
    ASSERT_TRUE(input) << to_string(input.error());
    auto trace = read(std::move(*input), {.workers = 2});
    ASSERT_TRUE(trace) << to_string(trace.error());
    EXPECT_EQ(trace->losses.total(Severity::data_loss), trace->losses[LossReason::truncated_tail]);

    std::uint64_t kernels = 0, copies = 0;
    Ns kernel_sum = 0, copy_sum = 0;
    std::set<StringId> names;
    std::vector<std::pair<Ns, Ns>> busy;
    for (std::size_t i = 0; i < trace->slices.size(); ++i) {
      const Slice& s = trace->slices[i];
      const SliceClass c = trace->slice_class(s);
      if (c == SliceClass::kernel) {
        ++kernels;
        kernel_sum += s.duration;
        names.insert(s.name);
      } else if (c == SliceClass::memcpy) {
        ++copies;
        copy_sum += s.duration;
      }
      if (is_gpu_work(c)) busy.emplace_back(s.begin, s.end());
    }
    std::ranges::sort(busy);
    Ns united = 0, end = std::numeric_limits<Ns>::min();
    for (auto [b, e] : busy) {
      if (e <= end) continue;
      united += e - std::max(b, end);
      end = e;
    }
    EXPECT_EQ(kernels, std::stoull(cells[1]));
    EXPECT_EQ(names.size(), std::stoull(cells[2]));
    EXPECT_NEAR(static_cast<double>(kernel_sum) / 1e3, std::stod(cells[3]), 0.001 * static_cast<double>(kernels + 1));
    EXPECT_NEAR(static_cast<double>(united) / 1e3, std::stod(cells[4]),
                0.001 * static_cast<double>(kernels + copies + 1));
    EXPECT_EQ(copies, std::stoull(cells[5]));
    EXPECT_NEAR(static_cast<double>(copy_sum) / 1e3, std::stod(cells[6]), 0.001 * static_cast<double>(copies + 1));
    ++rows;
  }
  EXPECT_GE(rows, 19);
}

}  // namespace
}  // namespace culprit::formats::kineto
