#include "compare/environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace culprit::compare {
namespace {

using testing::Contains;
using testing::ElementsAre;

TEST(EnvironmentChanges, DifferentValuesAreNamed) {
  const auto changes = environment_changes({{"env.cpu.governor", {"performance"}}, {"env.kernel.release", {"6.1"}}},
                                           {{"env.cpu.governor", {"powersave"}}, {"env.kernel.release", {"6.1"}}});
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(changes[0].key, "env.cpu.governor");
  EXPECT_EQ(changes[0].value[0], "performance");
  EXPECT_EQ(changes[0].value[1], "powersave");
}

TEST(EnvironmentChanges, WhatOnlyOneSideHasIsNamed) {
  const auto changes = environment_changes({{"env.a", {"1"}}}, {{"env.a", {"1"}}, {"missing.sched", {"no"}}});
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(changes[0].value[0], "");
  EXPECT_EQ(changes[0].value[1], "no");
}

TEST(EnvironmentChanges, WhatAProgramCallsOneStartIsAnotherEachTime) {
  EXPECT_TRUE(environment_changes({{"env.target1.variable.SGLANG_RUN_ID", {"sglang-run-1"}}},
                                  {{"env.target1.variable.SGLANG_RUN_ID", {"sglang-run-2"}}})
                  .empty());
}

TEST(EnvironmentChanges, ATraceWithoutFactsSaysNothing) {
  EXPECT_TRUE(environment_changes({}, {{"env.a", {"1"}}}).empty());
}

TEST(EnvironmentChanges, OfLaterTargetsOnlyWhatIsNotAsOfTheFirstIsRecorded) {
  const auto changes = environment_changes(
      {{"env.target.cpus_allowed", {"0-1"}}, {"env.targets", {"3"}}},
      {{"env.target.cpus_allowed", {"0-1"}}, {"env.target2.cpus_allowed", {"0"}}, {"env.targets", {"3"}}});
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(changes[0].key, "env.target2.cpus_allowed");
  EXPECT_EQ(changes[0].value[0], "0-1");
  EXPECT_EQ(changes[0].value[1], "0");
}

std::vector<std::string> texts(const model::Environment& base, const model::Environment& candidate) {
  std::vector<std::string> texts;
  for (const model::EnvironmentChange& change : environment_changes(base, candidate))
    texts.push_back(change.key + ": " + change.value[0] + " -> " + change.value[1]);
  return texts;
}

TEST(EnvironmentChanges, AProcessThatOnlyOneSideHasIsComparedWithNone) {
  const model::Environment base = {{"env.target.sched.nice", {"0"}}, {"env.targets", {"5"}}};
  model::Environment candidate = {
      {"env.target.sched.nice", {"0"}}, {"env.target1.sched.nice", {"10"}}, {"env.targets", {"6"}}};
  EXPECT_THAT(texts(base, candidate), ElementsAre("env.target1.sched.nice:  -> 10"));
  EXPECT_THAT(texts(candidate, base), ElementsAre("env.target1.sched.nice: 10 -> "));
  candidate["env.targets"] = {"5"};
  EXPECT_THAT(texts(base, candidate), ElementsAre("env.target1.sched.nice: 0 -> 10")) << "as many";
  candidate["env.targets"] = {"5", "6"};
  EXPECT_THAT(texts(base, candidate), ElementsAre("env.target1.sched.nice:  -> 10")) << "several recordings";
  candidate.erase("env.targets");
  EXPECT_THAT(texts({{"env.target.sched.nice", {"0"}}}, candidate), ElementsAre("env.target1.sched.nice:  -> 10"));
  EXPECT_THAT(texts({{"env.target.sched.nice", {"0"}}, {"env.target1.program", {"worker"}}}, candidate),
              Contains("env.target1.sched.nice: 0 -> 10"))
      << "something else is told of it";
}

TEST(EnvironmentChanges, WorkersThatArePinnedOneByOneMayBeMore) {
  const auto pinned = [](unsigned workers) {
    model::Environment side = {{"env.target.cpus_allowed", {"0-7"}}, {"env.targets", {std::to_string(workers + 1)}}};
    for (unsigned i = 1; i <= workers; ++i)
      side["env.target" + std::to_string(i) + ".cpus_allowed"] = {std::to_string(i - 1)};
    return side;
  };
  EXPECT_THAT(texts(pinned(4), pinned(8)),
              ElementsAre("env.target5.cpus_allowed:  -> 4", "env.target6.cpus_allowed:  -> 5",
                          "env.target7.cpus_allowed:  -> 6", "env.target8.cpus_allowed:  -> 7"));
  EXPECT_TRUE(texts(pinned(4), pinned(4)).empty());
}

TEST(EnvironmentChanges, WhatBecameOfAllOfThemIsOneOfTheMoreToo) {
  const auto with = [](const char* cpus, unsigned workers) {
    model::Environment side = {{"env.target.cpus_allowed", {"0-7"}}, {"env.targets", {std::to_string(workers + 1)}}};
    for (unsigned i = 1; i <= workers; ++i) side["env.target" + std::to_string(i) + ".cpus_allowed"] = {cpus};
    return side;
  };
  EXPECT_THAT(texts(with("0-3", 2), with("0", 3)),
              ElementsAre("env.target1.cpus_allowed: 0-3 -> 0", "env.target2.cpus_allowed: 0-3 -> 0",
                          "env.target3.cpus_allowed:  -> 0"));
}

TEST(EnvironmentChanges, AnotherProgramIsNoCounterpart) {
  const model::Environment base = {
      {"env.target.program", {"server"}}, {"env.target.sched.nice", {"0"}}, {"env.targets", {"2"}}};
  model::Environment candidate = base;
  candidate["env.target1.program"] = {"helper"};
  candidate["env.target1.sched.nice"] = {"10"};
  EXPECT_THAT(texts(base, candidate), ElementsAre("env.target1.program:  -> helper", "env.target1.sched.nice:  -> 10"));
}

TEST(EnvironmentChanges, WhichProcessHasWhichNumberIsNone) {
  EXPECT_TRUE(texts({{"env.target.sched.nice", {"0"}}, {"env.target1.sched.nice", {"5"}}, {"env.targets", {"3"}}},
                    {{"env.target.sched.nice", {"0"}}, {"env.target2.sched.nice", {"5"}}, {"env.targets", {"3"}}})
                  .empty());
}

TEST(EnvironmentChanges, SeveralValuesOfASideStandTogether) {
  const auto changes = environment_changes({{"env.a", {"1", "2"}}}, {{"env.a", {"1"}}});
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(changes[0].value[0], "1 / 2");
}

TEST(EnvironmentChanges, ANumberOfTargetsThatNobodyHasCostsNothing) {
  const model::Environment side = {
      {"env.targets", {"18446744073709551615"}}, {"env.target.sched.nice", {"0"}}, {"env.target1.sched.nice", {"5"}}};
  EXPECT_TRUE(environment_changes(side, side).empty());
}

}  // namespace
}  // namespace culprit::compare
