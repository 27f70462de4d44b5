// Collectives of two runs: rank by rank, in steps of like work.
#include "compare/collectives.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>

namespace culprit::compare {
namespace {

using model::Phase;
using OfBoth = std::array<double, 2>;

/// Steps of a phase of so many requests; each has one collective that takes `ns` on either of two ranks.
void add_steps(model::Recording& recording, int steps, Phase phase, std::int64_t batch, double ns,
               double elements = model::kNoNumber) {
  recording.collectives.resize(2);
  for (int i = 0; i < steps; ++i) {
    const auto number = static_cast<std::uint32_t>(recording.cycles.cycles.size() / 2 + 1);
    for (std::uint16_t row = 0; row < 2; ++row) {
      model::Cycle& cycle = recording.cycles.cycles.emplace_back();
      cycle.number = number;
      cycle.rank = row;
      cycle.phase = phase;
      if (row == 0) cycle.workload.batch = batch;
      model::RankCollectives& rank = recording.collectives[row];
      rank.rank = row == 0 ? 2 : 10;
      rank.steps.push_back({number, 1, elements, ns / 2, ns, ns / 4});
    }
  }
}

CollectivesOfSide side_of(const model::Recording& recording) {
  CollectivesOfSide side;
  add_collectives(recording, side);
  return side;
}

TEST(CollectiveChanges, ArePerCycleOfRanksOfBothSides) {
  model::Recording first;
  model::Recording second;
  model::Recording other;
  add_steps(first, 4, Phase::decode, -1, 100);
  add_steps(second, 4, Phase::decode, -1, 300);
  add_steps(other, 4, Phase::decode, -1, 700);
  CollectivesOfSide base = side_of(first);
  add_collectives(second, base);
  CollectivesOfSide candidate = side_of(other);
  candidate.erase(2);
  const auto changes = collective_changes(base, candidate, false);
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(changes[0].rank, 10);
  EXPECT_EQ(changes[0].transfer_ns, (OfBoth{200, 700}));
  EXPECT_EQ(changes[0].wait_ns, (OfBoth{100, 350}));
  EXPECT_EQ(changes[0].held_up_ns, (OfBoth{50, 175}));
  EXPECT_EQ(changes[0].calls, (OfBoth{1, 1}));
  EXPECT_TRUE(std::isnan(changes[0].elements[0]));
  EXPECT_FALSE(changes[0].knows_work);
}

TEST(CollectiveChanges, LargerBatchesAreNoSlowerCollectives) {
  model::Recording small;
  model::Recording large;
  add_steps(small, 30, Phase::decode, 4, 100, 400);
  add_steps(small, 10, Phase::decode, 12, 300, 1200);
  add_steps(large, 10, Phase::decode, 4, 100, 400);
  add_steps(large, 30, Phase::decode, 12, 300, 1200);
  const auto changes = collective_changes(side_of(small), side_of(large), false);
  ASSERT_EQ(changes.size(), 2U);
  for (const auto& change : changes) {
    EXPECT_DOUBLE_EQ(change.transfer_ns[0], change.transfer_ns[1]);
    EXPECT_DOUBLE_EQ(change.elements[0], change.elements[1]);
    EXPECT_TRUE(change.knows_work);
  }
}

TEST(CollectiveChanges, MorePrefillsAreNoSlowerCollectives) {
  model::Recording few;
  model::Recording many;
  add_steps(few, 38, Phase::decode, -1, 100);
  add_steps(few, 4, Phase::prefill, -1, 2000);
  add_steps(many, 20, Phase::decode, -1, 100);
  add_steps(many, 20, Phase::prefill, -1, 2000);
  const auto changes = collective_changes(side_of(few), side_of(many), false);
  ASSERT_EQ(changes.size(), 2U);
  EXPECT_DOUBLE_EQ(changes[0].transfer_ns[0], changes[0].transfer_ns[1]);
}

TEST(CollectiveChanges, WhatHasNoLikeIsLeftOut) {
  model::Recording small;
  model::Recording large;
  add_steps(small, 10, Phase::decode, 4, 100);
  add_steps(large, 10, Phase::decode, 32, 300);
  const auto calls = [&] { return collective_changes(side_of(small), side_of(large), false).at(0).calls; };
  EXPECT_EQ(calls(), (OfBoth{0, 0}));
  add_steps(large, 2, Phase::decode, 4, 150);
  EXPECT_EQ(calls(), (OfBoth{0, 0})) << "too few of them";
  add_steps(large, 1, Phase::decode, 4, 150);
  const auto changes = collective_changes(side_of(small), side_of(large), false);
  ASSERT_EQ(changes.size(), 2U);
  EXPECT_EQ(changes[0].transfer_ns, (OfBoth{100, 150}));
}

TEST(CollectiveChanges, WhoWaitedForWhomCountsInAllSteps) {
  model::Recording small;
  model::Recording large;
  add_steps(small, 10, Phase::decode, 4, 100);
  add_steps(large, 10, Phase::decode, 32, 300);
  const auto changes = collective_changes(side_of(small), side_of(large), false);
  ASSERT_EQ(changes.size(), 2U);
  EXPECT_EQ(changes[0].held_up_ns, (OfBoth{25, 75}));
  EXPECT_EQ(changes[0].wait_ns, (OfBoth{50, 150}));
}

TEST(CollectiveChanges, PhasesThatAreGuessedMayBeForgotten) {
  model::Recording base;
  model::Recording candidate;
  add_steps(base, 10, Phase::decode, -1, 100);
  add_steps(candidate, 10, Phase::prefill, -1, 200);
  for (auto* recording : {&base, &candidate})
    for (model::Cycle& cycle : recording->cycles.cycles) cycle.phase_guessed = true;
  EXPECT_EQ(collective_changes(side_of(base), side_of(candidate), false).at(0).calls, (OfBoth{0, 0}));
  const auto changes = collective_changes(side_of(base), side_of(candidate), true);
  ASSERT_EQ(changes.size(), 2U);
  EXPECT_EQ(changes[0].transfer_ns, (OfBoth{100, 200}));
}

}  // namespace
}  // namespace culprit::compare
