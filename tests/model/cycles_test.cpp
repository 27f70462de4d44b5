#include "model/cycles.h"

#include <gtest/gtest.h>

#include <vector>

namespace culprit::model {
namespace {

/// Cycles of one process by their numbers.
Cycles numbered(const std::vector<std::uint32_t>& numbers) {
  Cycles cycles;
  for (const std::uint32_t number : numbers) {
    Cycle& cycle = cycles.cycles.emplace_back();
    cycle.number = number;
  }
  return cycles;
}

TEST(WholePeriods, OfTheLastCycleTheEndIsUnknown) {
  EXPECT_EQ(whole_periods(numbered({1, 2, 3})), (std::vector<bool>{true, true, false}));
}

TEST(WholePeriods, ACycleWhoseSuccessorWasLeftOutIsWhole) {
  Cycles cycles = numbered({1, 3});
  for (Cycle& cycle : cycles.cycles) cycle.ends = CycleEnd::at_next;
  EXPECT_EQ(whole_periods(cycles), (std::vector<bool>{true, true}));
}

TEST(WholePeriods, AnOpenOneIsWholeOnlyWhereItStandsStill) {
  Cycles cycles = numbered({1, 2});
  cycles.cycles[1].ends = CycleEnd::open;
  EXPECT_FALSE(whole_periods(cycles)[1]);
  cycles.cycles[1].stands_still = true;
  EXPECT_TRUE(whole_periods(cycles)[1]);
}

}  // namespace
}  // namespace culprit::model
