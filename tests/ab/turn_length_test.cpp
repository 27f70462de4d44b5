#include "ab/turn_length.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <random>
#include <vector>

#include "core/units.h"

namespace culprit::ab {
namespace {

constexpr Ns kStep = 10 * kMs;
constexpr int kSteps = 900;  // 9 s
constexpr Ns kLongest = 3200 * kMs;

using Sides = std::array<std::vector<Step>, 2>;

Step step_at(int i, double log) {
  return {i * kStep, (i + 1) * kStep, model::Phase::decode, {4, -1}, 1e7 * std::exp(log)};
}

/// Independent noise of 10 %, and besides noise of 5 % that forgets within `memory` steps; 0: none.
Sides noisy(std::uint32_t seed, double memory) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  Sides sides;
  for (auto& side : sides) {
    const double keeps = memory > 0 ? std::exp(-1 / memory) : 0;
    double slow = 0.05 * normal(random);
    for (int i = 0; i < kSteps; ++i) {
      side.push_back(step_at(i, 0.1 * normal(random) + (memory > 0 ? slow : 0)));
      slow = keeps * slow + 0.05 * std::sqrt(1 - keeps * keeps) * normal(random);
    }
  }
  return sides;
}

/// Goes up and down in this time.
Sides waves(Ns period) {
  std::mt19937 random(1);
  std::normal_distribution<double> normal;
  Sides sides;
  for (auto& side : sides)
    for (int i = 0; i < kSteps; ++i) {
      const double turn = static_cast<double>(i * kStep) / static_cast<double>(period);
      side.push_back(step_at(i, 0.2 * std::sin(2 * std::numbers::pi * turn) + 0.02 * normal(random)));
    }
  return sides;
}

/// How many of forty take the shortest.
int shortest_of_forty(double memory) {
  int count = 0;
  for (std::uint32_t seed = 1; seed <= 40; ++seed)
    count += length_by_memory(noisy(seed, memory), 200 * kMs, kLongest) == 200 * kMs ? 1 : 0;
  return count;
}

TEST(TurnLength, IsLongEnoughForItsSteps) {
  EXPECT_EQ(length_for(0), kUsualLength);
  EXPECT_EQ(length_for(1e6), 200 * kMs);
  EXPECT_EQ(length_for(30e6), 300 * kMs);
  EXPECT_EQ(length_for(10e9), 5000 * kMs);
}

TEST(TurnLength, OfNoiseThatRemembersIsTheShortest) {
  EXPECT_GE(shortest_of_forty(30), 38);   // 0.3 s
  EXPECT_GE(shortest_of_forty(100), 38);  // 1 s
}

TEST(TurnLength, OfNoiseWithoutMemoryIsSeldomLonger) { EXPECT_GE(shortest_of_forty(0), 32); }

TEST(TurnLength, HoldsAWholeRoundOfWhatComesAndGoes) {
  EXPECT_EQ(length_by_memory(waves(400 * kMs), 200 * kMs, 400 * kMs), 400 * kMs);
  EXPECT_EQ(length_by_memory(waves(800 * kMs), 200 * kMs, kLongest), 800 * kMs);
}

TEST(TurnLength, IsNeverBelowTheShortestNorAboveTheLongest) {
  const auto found = length_by_memory(noisy(1, 100), 300 * kMs, kLongest);
  EXPECT_EQ(found, 300 * kMs);
  const auto bounded = length_by_memory(waves(800 * kMs), 200 * kMs, 400 * kMs);
  ASSERT_TRUE(bounded);
  EXPECT_LE(*bounded, 400 * kMs);
  EXPECT_FALSE(length_by_memory(waves(400 * kMs), 200 * kMs, 399 * kMs)) << "there is no other";
}

TEST(TurnLength, TooFewStepsTellNothing) {
  Sides few = noisy(1, 100);
  for (auto& side : few) side.resize(100);
  EXPECT_FALSE(length_by_memory(few, 200 * kMs, kLongest));
  Sides one = noisy(1, 100);
  one[1].clear();
  EXPECT_FALSE(length_by_memory(one, 200 * kMs, kLongest));
  EXPECT_FALSE(length_by_memory({}, 200 * kMs, kLongest));
}

/// A mix of work that comes and goes in 800 ms is no noise.
TEST(TurnLength, IsByTheNoiseOfLikeWork) {
  Sides sides = noisy(3, 100);
  for (auto& side : sides)
    for (std::size_t i = 0; i < side.size(); ++i)
      if (i / 40 % 2 == 0) {
        side[i].work = {8, -1};
        side[i].value *= 3;
      }
  EXPECT_EQ(length_by_memory(sides, 200 * kMs, kLongest), 200 * kMs);
  for (auto& side : sides)
    for (Step& step : side) step.work = {};
  EXPECT_EQ(length_by_memory(sides, 200 * kMs, kLongest), 800 * kMs) << "of unlike work it would";
}

}  // namespace
}  // namespace culprit::ab
