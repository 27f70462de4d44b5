#include "report/cycles_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace culprit::report {
namespace {

using testing::ElementsAre;

model::Cycle cycle(std::uint32_t number, std::int32_t devices) {
  model::Cycle c;
  c.number = number;
  c.phase = model::Phase::decode;
  c.begin = 1000 + 100 * static_cast<Ns>(number);
  c.period = 100 + static_cast<Ns>(number);
  for (std::int32_t device = 0; device < devices; ++device)
    c.devices.push_back({device, c.begin, c.begin + 90, 50, 40, 3});
  return c;
}

bool may_lack_the_device(std::int32_t devices) {
  model::Cycles cycles;
  cycles.cycles = {cycle(1, devices), cycle(2, devices)};
  const model::Table table = cycles_table(cycles, {3});
  return std::ranges::find(table.columns, "device", &model::Column::key)->detail;
}

TEST(CyclesTable, WhereACycleHasSeveralDevicesTheyAreShown) {
  EXPECT_TRUE(may_lack_the_device(0));
  EXPECT_TRUE(may_lack_the_device(1));
  EXPECT_FALSE(may_lack_the_device(2));
}

TEST(CyclesTable, RanksHaveTheirNumbers) {
  model::Cycles cycles;
  cycles.cycles = {cycle(1, 1), cycle(1, 1)};
  cycles.cycles[1].rank = 1;
  const model::Table table = cycles_table(cycles, {4});
  EXPECT_EQ(table.columns[1].key, "rank");
  EXPECT_EQ(table.rows[0][1], model::Cell(std::int64_t{4}));
  EXPECT_EQ(table.rows[1][1], model::Cell(std::int64_t{1})) << "a row without a number";
}

TEST(DrawnCycles, AreWholeAndBeginWithTheFirst) {
  model::Cycles cycles;
  cycles.cycles = {cycle(1, 1), cycle(2, 1), cycle(3, 1), cycle(4, 1)};
  cycles.cycles[1].partial = true;
  const auto drawn = drawn_cycles(cycles);
  ASSERT_EQ(drawn.size(), 1U);
  EXPECT_EQ(drawn[0].phase, model::Phase::decode);
  EXPECT_EQ(drawn[0].all, 2U);
  EXPECT_THAT(drawn[0].at, ElementsAre(0, 200));
  EXPECT_THAT(drawn[0].period, ElementsAre(101, 103));
}

}  // namespace
}  // namespace culprit::report
