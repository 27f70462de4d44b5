#include "cli/environment.h"

#include <gmock/gmock.h>

namespace culprit::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Environment environment(std::vector<std::pair<std::string, std::string>> facts) {
  Trace trace;
  trace.ranks.emplace_back();
  trace.ranks.back().metadata = std::move(facts);
  Environment result;
  add_environment(trace, result);
  return result;
}

TEST(Environment, DifferentValuesAreNoted) {
  EXPECT_THAT(environment_notes(environment({{"env.cpu.governor", "performance"}, {"env.kernel.release", "6.1"}}),
                                environment({{"env.cpu.governor", "powersave"}, {"env.kernel.release", "6.1"}})),
              ElementsAre("Environment differs: env.cpu.governor: performance against powersave"));
}

TEST(Environment, WhatOnlyOneSideHasIsNoted) {
  EXPECT_THAT(environment_notes(environment({{"env.a", "1"}}), environment({{"env.a", "1"}, {"missing.sched", "no"}})),
              ElementsAre("Environment differs: missing.sched: nothing against no"));
}

TEST(Environment, CostsAndTimesAreNoEnvironment) {
  EXPECT_THAT(environment_notes(environment({{"env.a", "1"}, {"cost.dropped", "1"}}),
                                environment({{"env.a", "1"}, {"cost.dropped", "2"}})),
              IsEmpty());
}

TEST(Environment, ATraceWithoutFactsSaysNothing) {
  EXPECT_THAT(environment_notes(environment({}), environment({{"env.a", "1"}})), IsEmpty());
}

TEST(Environment, ManyDifferencesAreCounted) {
  std::vector<std::pair<std::string, std::string>> ours;
  std::vector<std::pair<std::string, std::string>> theirs;
  for (int i = 100; i < 200; ++i) {
    ours.emplace_back("env.x" + std::to_string(i), "1");
    theirs.emplace_back("env.x" + std::to_string(i), "2");
  }
  const auto notes = environment_notes(environment(ours), environment(theirs));
  ASSERT_EQ(notes.size(), 41U);
  EXPECT_EQ(notes.back(), "Environment differs in 60 more facts: culprit info shows each side's");
}

}  // namespace
}  // namespace culprit::cli
