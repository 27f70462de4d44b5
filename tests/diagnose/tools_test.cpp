// Profilers and debuggers beside one side, and what looks like them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "comparison.h"
#include "diagnose/diagnose.h"

namespace culprit::diagnose {
namespace {

using model::Outcome;
using model::RunComparison;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

/// Steps that take 6 ms longer on CPUs.
RunComparison slower_on_cpus() {
  RunComparison c = comparison();
  set_step(c, {10, 16}, {0.1, 0.1}, {1, 1});
  return c;
}

TEST(ToolRules, AProfilerBesideOneSide) {
  RunComparison c = slower_on_cpus();
  c.environment = {{"env.profilers", {"none", "perf"}}};
  EXPECT_THAT(causes(c), ElementsAre("profiler_overhead in perf"));
  const auto verdict = diagnose(c)[0];
  EXPECT_NEAR(verdict.impact_ns, 6e6, 1);
  EXPECT_THAT(verdict.evidence, Contains("perf ran meanwhile, and not on the other side"));
  EXPECT_EQ(verdict.against.size(), 1U);
}

TEST(ToolRules, WhatRanBesideTheOtherSideOrBothIsNone) {
  RunComparison c = slower_on_cpus();
  c.environment = {{"env.profilers", {"perf", "none"}}};
  EXPECT_THAT(causes(c), ElementsAre("unknown"));
  RunComparison fast = slower_on_cpus();
  fast.outcome = Outcome::no_change;
  set_step(fast, {10, 10}, {0.1, 0.1}, {1, 1});
  fast.environment = {{"env.profilers", {"none", "perf"}}};
  EXPECT_THAT(causes(fast), Not(Contains(HasSubstr("profiler_overhead"))));
}

TEST(ToolRules, AWaitForSomethingElseIsNotAProfilers) {
  RunComparison c = comparison();
  set_step(c, {10, 10}, {0.1, 0.1}, {1, 7});
  c.environment = {{"env.profilers", {"none", "perf"}}};
  EXPECT_THAT(causes(c), Not(Contains(HasSubstr("profiler_overhead"))));
}

/// It stood still for 2 ms of a step, and waited for the tracer's turns.
RunComparison traced() {
  RunComparison c = comparison();
  set_step(c, {10, 16}, {0.1, 4.1}, {1, 3});
  add_state(c, "blocked in stopped", {0, 2});
  add_beside(c, "strace", {0, 0.4});
  c.host->behind_others = {0.1, 0.9};
  c.environment = {{"env.profilers", {"none", "strace"}}, {"env.target2.traced_by", {"", "strace"}}};
  return c;
}

TEST(ToolRules, WhoTracesItStopsItAndTakesItsCpus) {
  EXPECT_THAT(causes(traced()), ElementsAre("profiler_overhead/traced in strace"));
  const auto verdict = diagnose(traced())[0];
  EXPECT_NEAR(verdict.impact_ns, 12e6, 1);
  EXPECT_THAT(verdict.evidence, Contains(HasSubstr("strace traces it")));
  EXPECT_THAT(causes(swapped(traced())), ElementsAre("-profiler_overhead/traced in strace"));
}

TEST(ToolRules, ItsTurnsCostTheCachesToo) {
  RunComparison c = traced();
  add_counter(c, "host.speed.memory", {1000, 1500});
  EXPECT_THAT(causes(c), ElementsAre("profiler_overhead/traced in strace"));
}

TEST(ToolRules, OthersBesideItStayACauseOfTheirOwn) {
  RunComparison c = traced();
  add_beside(c, "stress", {0, 1.5});
  EXPECT_THAT(causes(c), Contains("cpu_contention/other_processes"));
}

TEST(ToolRules, WhoStopsNobodyHasNotStoppedIt) {
  RunComparison c = traced();
  set_step(c, {10, 10}, {0.1, 0.1}, {1, 3});
  c.environment = {{"env.profilers", {"none", "perf"}}};
  EXPECT_THAT(causes(c), ElementsAre("process_stopped"));
  c.environment = {{"env.profilers", {"none", "gdb"}}};  // which looks at another program
  EXPECT_THAT(causes(c), ElementsAre("process_stopped"));
  c.environment = {{"env.profilers", {"none", "py-spy"}}};
  EXPECT_THAT(causes(c), ElementsAre("profiler_overhead/traced in py-spy"));
}

TEST(ToolRules, ADebuggerOfAnotherProgramIsNone) {
  RunComparison c = slower_on_cpus();
  c.environment = {{"env.profilers", {"none", "gdb"}}};
  EXPECT_THAT(causes(c), ElementsAre("unknown"));
}

TEST(ToolRules, WhatRunsBesideBothIsNone) {
  RunComparison c = slower_on_cpus();
  c.environment = {{"env.profilers", {"bpftrace / perf", "perf"}}};
  EXPECT_THAT(causes(c), ElementsAre("unknown"));
  c.environment = {{"env.profilers", {"", "perf"}}};  // made before recordings told so
  EXPECT_THAT(causes(c), ElementsAre("unknown"));
  c.environment = {{"env.target2.traced_by", {"strace", ""}}, {"env.target3.traced_by", {"", "strace"}}};
  EXPECT_THAT(causes(c), ElementsAre("unknown"));
}

TEST(ToolRules, AFunctionThatIsSlowerStaysOneBesideAProfiler) {
  RunComparison c = with_functions();
  add_function(c, "parse", "python", "Host", {3, 7}, {1, 1}, model::FunctionStatus::changed);
  const auto alone = causes(c);
  ASSERT_THAT(alone, ElementsAre(HasSubstr("host_bound/function")));
  c.environment = {{"env.profilers", {"none", "perf"}}};
  EXPECT_THAT(causes(c), Contains(alone.front()));
}

}  // namespace
}  // namespace culprit::diagnose
