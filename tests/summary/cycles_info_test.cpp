#include "summary/cycles_info.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "summary/function_table.h"
#include "support/trace_maker.h"

namespace culprit::summary {
namespace {

using model::Phase;
using testing::ElementsAre;
using testing_support::TraceMaker;

model::Cycle cycle(std::uint32_t number, Phase phase, Ns period, std::uint16_t rank = 0) {
  model::Cycle c;
  c.number = number;
  c.rank = rank;
  c.phase = phase;
  c.period = period;
  return c;
}

TEST(CyclesInfo, NothingFoundKeepsTheReason) {
  model::Cycles cycles;
  cycles.reason = "nothing repeats";
  const auto info = cycles_info(cycles);
  EXPECT_EQ(info.count, 0u);
  EXPECT_EQ(info.reason, "nothing repeats");
  EXPECT_TRUE(info.phases.empty());
}

TEST(CyclesInfo, PeriodsLeaveOutWhatIsNoWholeStep) {
  model::Cycles cycles;
  cycles.cycles = {cycle(1, Phase::decode, 900), cycle(2, Phase::decode, 10), cycle(3, Phase::decode, 20),
                   cycle(4, Phase::decode, 60), cycle(5, Phase::decode, 7000)};
  cycles.cycles[0].warm_up = true;
  const auto info = cycles_info(cycles);
  ASSERT_EQ(info.phases.size(), 1u);
  EXPECT_EQ(info.phases[0].cycles, 5u);
  EXPECT_EQ(info.phases[0].whole_periods, 3u);
  EXPECT_DOUBLE_EQ(info.phases[0].mean_period, 30);
  EXPECT_DOUBLE_EQ(info.phases[0].median_period, 20);
}

TEST(CyclesInfo, OneCycleHasNoPeriod) {
  model::Cycles cycles;
  cycles.cycles = {cycle(1, Phase::other, 5)};
  const auto info = cycles_info(cycles);
  EXPECT_EQ(info.count, 1u);
  EXPECT_EQ(info.phases[0].whole_periods, 0u);
}

TEST(CyclesInfo, RanksShareNumbersAndPhasesAreApart) {
  model::Cycles cycles;
  cycles.cycles = {cycle(1, Phase::prefill, 10, 0), cycle(1, Phase::prefill, 12, 1), cycle(2, Phase::decode, 1, 0),
                   cycle(2, Phase::decode, 1, 1)};
  cycles.cycles[0].devices = {{0, 0, 100, 40, 60, 3}};
  cycles.cycles[1].devices = {{0, 0, 300, 160, 140, 3}};
  const auto info = cycles_info(cycles);
  EXPECT_EQ(info.count, 2u);
  ASSERT_EQ(info.phases.size(), 2u);
  EXPECT_EQ(info.phases[0].phase, Phase::prefill);
  EXPECT_DOUBLE_EQ(info.phases[0].median_period, 11);
  EXPECT_EQ(info.phases[0].device_busy, 200);
  EXPECT_EQ(info.phases[0].device_window, 400);
  EXPECT_EQ(info.phases[1].device_window, 0);
}

/// Kernels a, b, a, b, c of 1, 2, 4, 8, 16 ns in cycles 10 (decode), 2 (prefill), none, 10, none.
struct ByCycle : testing::Test {
  TraceMaker make;
  cycles::Found found;
  FunctionQuery query;
  void SetUp() override {
    const TrackId stream = make.stream(0, 7);
    Ns duration = 1;
    for (const char* name : {"a", "b", "a", "b", "c"}) {
      make.gpu(stream, "kernel", name, duration, duration);
      duration *= 2;
    }
    found.cycles.cycles = {cycle(2, Phase::prefill, 1), cycle(10, Phase::decode, 1)};
    found.cycle_of_slice = {1, 0, kNone, 1, kNone};
    query.cycles = &found;
  }
  [[nodiscard]] std::vector<std::pair<std::string, Ns>> rows(const FunctionTableOptions& options = {}) {
    std::vector<std::pair<std::string, Ns>> out;
    for (const auto& row : function_table(function_stats(make.trace(), query), options).rows)
      out.emplace_back(std::get<std::string>(row[0]), std::get<std::int64_t>(row[1]));
    return out;
  }
};

TEST_F(ByCycle, SortedByNumberWithWhatIsInNoneLast) {
  using Row = std::pair<std::string, Ns>;
  query.by = GroupBy::cycle;
  EXPECT_THAT(rows({.sort = SortBy::name}), ElementsAre(Row("2", 2), Row("10", 9), Row("(no cycle)", 20)));
  EXPECT_THAT(rows({.sort = SortBy::name, .reverse = true}),
              ElementsAre(Row("(no cycle)", 20), Row("10", 9), Row("2", 2)));
  EXPECT_THAT(rows(), ElementsAre(Row("(no cycle)", 20), Row("10", 9), Row("2", 2)));
}

TEST_F(ByCycle, Phases) {
  using Row = std::pair<std::string, Ns>;
  query.by = GroupBy::phase;
  EXPECT_THAT(rows(), ElementsAre(Row("(no cycle)", 20), Row("decode", 9), Row("prefill", 2)));
}

TEST_F(ByCycle, ChosenCyclesAreTheWholeAndTheRestIsCounted) {
  const std::vector<bool> kept = {false, true};
  query.kept_cycles = &kept;
  const auto sums = function_stats(make.trace(), query);
  EXPECT_EQ(sums.self, 9);
  EXPECT_EQ(sums.calls, 2u);
  EXPECT_EQ(sums.self_in_no_cycle, 20);
  EXPECT_EQ(sums.calls_in_no_cycle, 2u);
  query.filter = "b";
  using Row = std::pair<std::string, Ns>;
  EXPECT_THAT(rows(), ElementsAre(Row("b", 8)));
}

TEST_F(ByCycle, WithoutAChoiceNothingIsLeftOut) {
  const auto sums = function_stats(make.trace(), query);
  EXPECT_EQ(sums.self, 31);
  EXPECT_EQ(sums.calls_in_no_cycle, 0u);
}

}  // namespace
}  // namespace culprit::summary
