#include "summary/request_table.h"

#include <gtest/gtest.h>

#include "support/trace_maker.h"
#include "trace/request_times.h"

namespace culprit::summary {
namespace {

using testing_support::TraceMaker;

Trace answered() {
  TraceMaker maker;
  const TrackId requests = maker.thread(7, 70);
  const TrackId thread = maker.thread(7, 71);
  for (int i = 0; i < 4; ++i) {
    const Ns begin = 1'000'000 * i;
    maker.slice(requests, "request", "request", begin, 900'000);
    maker.slice(requests, "request", "output_token", begin + 100'000, 1'000 * (i + 1));
    maker.slice(requests, "request", "queue", begin, 10'000);
    maker.slice(thread, "python", "Scheduler.run", begin, 10'000);
  }
  maker.slice(requests, "request", "upload", 0, 5);
  return std::move(maker.trace());
}

TEST(RequestTable, KindsStandInTheOrderInWhichPeopleAsk) {
  const auto rows = request_times(answered());
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[0].what, "request");
  EXPECT_EQ(rows[1].what, "queue wait");
  EXPECT_EQ(rows[2].what, "time per output token");
  EXPECT_EQ(rows[3].what, "upload");
  EXPECT_EQ(rows[2].times, (std::vector<double>{1000, 2000, 3000, 4000}));
  EXPECT_EQ(rows[2].pid, 7);
}

TEST(RequestTable, HasQuantilesAndRate) {
  const model::Table table = request_table(answered(), 2'000'000'000);
  ASSERT_EQ(table.rows.size(), 4u);
  const auto cell = [&](std::string_view key) {
    for (std::size_t c = 0; c < table.columns.size(); ++c)
      if (table.columns[c].key == key) return table.rows[2][c];
    return model::Cell();
  };
  EXPECT_EQ(std::get<double>(cell("p50_ns")), 2500);
  EXPECT_EQ(std::get<double>(cell("mean_ns")), 2500);
  EXPECT_EQ(std::get<double>(cell("longest_ns")), 4000);
  EXPECT_EQ(std::get<double>(cell("rate")), 2);
}

TEST(RequestTable, OneLineTellsWhatMattersMost) {
  const auto fact = request_fact(answered(), 2'000'000'000);
  ASSERT_TRUE(fact);
  EXPECT_EQ(fact->value, "4 finished (2.0 per s), per token 2.500us, queue 10.000us (p50)");
  EXPECT_FALSE(request_fact(TraceMaker().trace(), 1'000));
}

}  // namespace
}  // namespace culprit::summary
