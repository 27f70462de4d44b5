#include "compare/change_point.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace culprit::compare {
namespace {

/// Steps of 10 ms that spread by 3 %; those from `at` on take `times` as long.
model::Cycles steps(std::size_t n, std::size_t at, double times, std::uint64_t seed = 1, double alike = 0) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> chance(0, 0.03);
  model::Cycles cycles;
  cycles.method = model::CycleMethod::marker;
  Ns begin = 0;
  double before = 0;
  for (std::size_t i = 0; i < n; ++i) {
    before = alike * before + std::sqrt(1 - alike * alike) * chance(random);
    model::Cycle cycle;
    cycle.number = static_cast<std::uint32_t>(i + 1);
    cycle.begin = begin;
    cycle.phase = model::Phase::decode;
    cycle.period = std::llround(1e7 * std::exp(before) * (i >= at ? times : 1));
    begin += cycle.period;
    cycle.span_begin = cycle.begin;
    cycle.span_end = begin;
    cycles.cycles.push_back(cycle);
  }
  return cycles;
}

TEST(ChangePoint, IsWhereStepsBecameSlower) {
  for (const double times : {1.5, 1.1, 0.8}) {
    const auto found = change_point(steps(200, 120, times));
    ASSERT_TRUE(found) << times;
    EXPECT_NEAR(static_cast<double>(*found), 121, 2) << times;
  }
}

TEST(ChangePoint, IsNoneOfChance) {
  std::size_t found = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) found += change_point(steps(200, 200, 1, seed)).has_value() ? 1 : 0;
  EXPECT_EQ(found, 0U);
}

TEST(ChangePoint, IsNoneOfStepsThatResembleTheirNeighbours) {
  std::size_t found = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed)
    found += change_point(steps(200, 200, 1, seed, 0.8)).has_value() ? 1 : 0;
  EXPECT_LE(found, 4U);
}

TEST(ChangePoint, SmallOnesAndThoseAtTheEndsDoNotCount) {
  EXPECT_FALSE(change_point(steps(400, 200, 1.02)));
  EXPECT_FALSE(change_point(steps(200, 196, 1.5)));
  EXPECT_FALSE(change_point(steps(20, 10, 2)));
  EXPECT_FALSE(change_point(model::Cycles()));
}

TEST(ChangePoint, IsFoundInsideOfClassesThatComeAndGo) {
  model::Cycles cycles = steps(300, 150, 1.3);
  for (model::Cycle& cycle : cycles.cycles) {
    cycle.workload.batch = 1 + cycle.number / 60;  // most classes lie on one side only
    cycle.period *= cycle.workload.batch;
  }
  const auto found = change_point(cycles);
  ASSERT_TRUE(found);
  EXPECT_NEAR(static_cast<double>(*found), 151, 3);
}

TEST(ChangePoint, StepsThatBecomeLongerLittleByLittleHaveNone) {
  model::Cycles cycles = steps(200, 200, 1);
  for (model::Cycle& cycle : cycles.cycles)
    cycle.period = std::llround(static_cast<double>(cycle.period) * (1 + 0.002 * static_cast<double>(cycle.number)));
  EXPECT_FALSE(change_point(cycles));
}

TEST(ChangePoint, LargerBatchesAreNone) {
  model::Cycles cycles = steps(200, 100, 1.5);
  for (model::Cycle& cycle : cycles.cycles) cycle.workload.batch = cycle.number > 100 ? 8 : 4;
  EXPECT_FALSE(change_point(cycles));
}

}  // namespace
}  // namespace culprit::compare
