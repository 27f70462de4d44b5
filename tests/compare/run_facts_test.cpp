#include "compare/run_facts.h"

#include <gtest/gtest.h>

#include "compare/comparable.h"

namespace culprit::compare {
namespace {

using model::Phase;

TEST(Differences, EqualOrUnknownFactsAreNone) {
  const RunFacts a{{"A100"}, 8, {3}};
  EXPECT_TRUE(differences_of(a, a).empty());
  EXPECT_TRUE(differences_of(a, {}).empty()) << "what a recording does not say differs from nothing";
  EXPECT_TRUE(differences_of({}, a).empty());
}

TEST(Differences, OtherDevicesAndWorldSizesBlock) {
  const auto d = differences_of({{"A100"}, 8, {3}}, {{"V100"}, 2, {1}});
  ASSERT_EQ(d.size(), 3U);
  EXPECT_TRUE(d[0].blocks);
  EXPECT_TRUE(d[1].blocks);
  EXPECT_FALSE(d[2].blocks);
  EXPECT_EQ(to_string(d), "device model A100 against V100; world size 8 against 2; recorded ranks 3 against 1");
}

TEST(Differences, WorkOnGpusOfOneSideOnlyBlocks) {
  RunFacts with;
  with.gpu_work = true;
  const auto d = differences_of(RunFacts{}, with);
  ASSERT_EQ(d.size(), 1U);
  EXPECT_TRUE(d[0].blocks);
  EXPECT_EQ(to_string(d), "work on GPUs: none against recorded");
  EXPECT_TRUE(differences_of(with, with).empty());
}

TEST(Differences, AnotherRankOfTheSameWorldDoesNotBlock) {
  const auto d = differences_of({{"A100"}, 8, {3}}, {{"A100"}, 8, {4}});
  ASSERT_EQ(d.size(), 1U);
  EXPECT_FALSE(d[0].blocks);
}

struct RunOf {
  model::Cycles cycles;
  model::Profile profile;
  explicit RunOf(std::vector<std::pair<Phase, bool>> phases) {
    for (const auto& [phase, guessed] : phases) {
      model::Cycle cycle;
      cycle.phase = phase;
      cycle.phase_guessed = guessed;
      cycles.cycles.push_back(cycle);
      model::ProfileCycle row;
      row.phase = phase;
      row.phase_guessed = guessed;
      profile.cycles.push_back(row);
    }
  }
};

TEST(GuessedPhases, DoNotStandBetweenTwoRuns) {
  RunOf a({{Phase::prefill, true}, {Phase::prefill, true}});
  RunOf b({{Phase::other, false}});
  EXPECT_TRUE(forget_guessed_phases(a.cycles, b.cycles, a.profile, b.profile));
  EXPECT_EQ(common_phases(a.cycles, b.cycles), std::vector<Phase>{Phase::other});
  for (const model::ProfileCycle& c : a.profile.cycles) EXPECT_EQ(c.phase, Phase::other);
}

TEST(GuessedPhases, StayWhereTheyAgree) {
  RunOf a({{Phase::prefill, true}, {Phase::decode, true}});
  RunOf b({{Phase::decode, true}});
  EXPECT_FALSE(forget_guessed_phases(a.cycles, b.cycles, a.profile, b.profile));
  EXPECT_EQ(a.cycles.cycles[0].phase, Phase::prefill);
}

TEST(GuessedPhases, WhatWasStatedStays) {
  RunOf a({{Phase::prefill, false}});
  RunOf b({{Phase::decode, false}});
  EXPECT_FALSE(forget_guessed_phases(a.cycles, b.cycles, a.profile, b.profile));
  EXPECT_EQ(a.cycles.cycles[0].phase, Phase::prefill);
  EXPECT_TRUE(common_phases(a.cycles, b.cycles).empty());
}

}  // namespace
}  // namespace culprit::compare
