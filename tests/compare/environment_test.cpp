#include "compare/environment.h"

#include <gtest/gtest.h>

namespace culprit::compare {
namespace {

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
  const auto changes = environment_changes({{"env.target.cpus_allowed", {"0-1"}}},
                                           {{"env.target.cpus_allowed", {"0-1"}}, {"env.target2.cpus_allowed", {"0"}}});
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(changes[0].key, "env.target2.cpus_allowed");
  EXPECT_EQ(changes[0].value[0], "0-1");
  EXPECT_EQ(changes[0].value[1], "0");
}

TEST(EnvironmentChanges, SeveralValuesOfASideStandTogether) {
  const auto changes = environment_changes({{"env.a", {"1", "2"}}}, {{"env.a", {"1"}}});
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(changes[0].value[0], "1 / 2");
}

}  // namespace
}  // namespace culprit::compare
