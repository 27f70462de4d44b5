#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <utility>

#include "comparison.h"

namespace culprit::diagnose {
namespace {

using model::LedgerState;
using model::Outcome;
using model::RunComparison;
using model::VerdictState;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// Steps of 10 ms that take 4 ms longer; the device waits for so much of them while the host is `there`, ms.
RunComparison late(const std::string& there, std::array<double, 2> waits, std::array<double, 2> host, bool between) {
  RunComparison c = with_functions();
  c.host->step.clear();  // a profiler's trace
  model::Waterfall& waterfall = c.waterfalls.emplace_back();
  waterfall.device = 0;
  model::WaterfallLine& line = waterfall.lines.emplace_back();
  line.state = LedgerState::idle_host;
  line.function = c.texts.intern(there);
  line.time_ns = {waits[0] * 1e6, waits[1] * 1e6};
  line.host_ns = {host[0] * 1e6, host[1] * 1e6};
  line.between = between;
  return c;
}

TEST(LateHost, WhatLiesBetweenFunctionsIsNamedByItsRange) {
  const RunComparison c = late("ProfilerStep#N", {0.5, 4}, {2, 6}, true);
  ASSERT_THAT(causes(c), ElementsAre("host_bound/between_functions in ProfilerStep#N"));
  const model::Verdict verdict = diagnose(c)[0];
  EXPECT_EQ(verdict.state, VerdictState::active);
  EXPECT_NEAR(verdict.impact_ns, 3.5e6, 1);
  EXPECT_THAT(verdict.evidence, Contains(HasSubstr("in ProfilerStep#N, between functions")));
  EXPECT_THAT(verdict.evidence, Contains(HasSubstr("6.000ms instead of 2.000ms")));
  EXPECT_THAT(verdict.against, Contains(HasSubstr("Scheduling was not recorded")));
  EXPECT_THAT(causes(late("", {0, 4}, {2, 6}, true)), ElementsAre("host_bound/between_functions"));
}

TEST(LateHost, AFunctionTheInputAndTheCollector) {
  EXPECT_THAT(causes(late("tokenize", {0, 4}, {1, 5}, false)), ElementsAre("host_bound/function in tokenize"));
  EXPECT_THAT(causes(late("enumerate(DataLoader)#It.__next__", {0, 4}, {0, 5}, false)),
              ElementsAre("host_bound/data_input in enumerate(DataLoader)#It.__next__"));
  EXPECT_THAT(causes(late("gc generation 2", {0, 4}, {0, 5}, false)), ElementsAre("host_bound/gc in gc generation 2"));
}

TEST(LateHost, APartOfTheGrowthIsNotIt) {
  EXPECT_THAT(causes(late("tokenize", {0, 1.9}, {1, 5}, false)), ElementsAre("unknown"));
}

TEST(LateHost, AHostThatWasNoLongerThereIsLateForSomethingElse) {
  EXPECT_THAT(causes(late("tokenize", {0, 4}, {4, 5}, false)), ElementsAre("unknown"));
  EXPECT_THAT(causes(late("tokenize", {0, 4}, {model::kNoNumber, model::kNoNumber}, false)), ElementsAre("unknown"));
}

TEST(LateHost, FunctionsThatAreAllAsMuchSlowerAreNotOne) {
  RunComparison c = late("ProfilerStep#N", {0, 4}, {4, 8}, true);
  for (model::FunctionFinding& f : c.functions) f.work_ratio = 2;
  EXPECT_THAT(causes(c), ElementsAre("unknown"));
}

TEST(LateHost, ACallThatWaitedForTheDeviceWasNotWokenInTime) {
  for (const auto& [name, kind] : {std::pair("cudaMemcpyAsync", "cuda_api"), std::pair("cudaStreamSynchronize", "sync"),
                                   std::pair("threading.py(320): wait", "python")}) {
    RunComparison c = late(name, {0, 4}, {1, 5}, false);
    add_function(c, name, kind, "Host", {1, 5}, {1, 1});
    EXPECT_THAT(causes(c), ElementsAre("unknown")) << name;
  }
}

TEST(LateHost, WhereStepsAreNotCalledSlowerEachMustShowIt) {
  RunComparison c = late("tokenize", {0, 4}, {1, 5}, false);
  c.outcome = c.cycle_times[0].outcome = Outcome::inconclusive;
  EXPECT_THAT(causes(c), IsEmpty());
  c.waterfalls[0].lines[0].apart = true;
  ASSERT_THAT(causes(c), ElementsAre("host_bound/function in tokenize"));
  EXPECT_EQ(diagnose(c)[0].state, VerdictState::latent);
}

TEST(LateHost, StepsThatAreRareAreWeighedByThat) {
  RunComparison c = late("tokenize", {0, 40}, {1, 41}, false);
  c.waterfalls[0].phase = model::Phase::prefill;
  c.cycle_times[0].phase = model::Phase::decode;
  c.cycle_times[0].cycles = {990, 990};
  c.cycle_times.push_back(c.cycle_times[0]);
  c.cycle_times[1].phase = model::Phase::prefill;
  c.cycle_times[1].cycles = {10, 10};
  EXPECT_THAT(causes(c), ElementsAre("unknown"));
}

TEST(LateHost, AnotherCauseOfThatMuchStandsAlone) {
  RunComparison c = late("ProfilerStep#N", {0, 4}, {2, 6}, true);
  add_function(c, "tokenize", "python", "Host", {1, 4.5}, {4, 4}, model::FunctionStatus::changed);
  EXPECT_THAT(causes(c), ElementsAre("host_bound/function in tokenize"));
}

TEST(LateHost, WhatAllFunctionsTakeLongerHasTheRest) {
  RunComparison c = late("ProfilerStep#N", {0, 3}, {1, 6}, true);
  for (const char* name : {"d", "e", "f", "g", "h"}) add_function(c, name, "cpu_op", "Host", {2, 2}, {1, 1});
  for (model::FunctionFinding& f : c.functions) {
    f.work_ratio = 1.2;
    f.time_ns[1] = 1.2 * f.time_ns[0];
  }
  ASSERT_THAT(causes(c), ElementsAre("host_bound/between_functions in ProfilerStep#N", "cpu_contention/unknown"));
  EXPECT_NEAR(diagnose(c)[0].share, 0.75, 1e-6);
  EXPECT_NEAR(diagnose(c)[1].share, 0.25, 1e-6);
}

TEST(LateHost, AHostThatIsRecordedInMoreDetailIsLateByThat) {
  RunComparison c = late("ProfilerStep#N", {0, 4}, {2, 6}, true);
  c.profiled_alone[1] = {"with_stack"};
  EXPECT_THAT(causes(c), ElementsAre("unknown"));
  RunComparison input = late("enumerate(DataLoader)#It.__next__", {0, 4}, {0, 5}, false);
  input.profiled_alone[1] = {"with_stack"};
  EXPECT_THAT(causes(input), ElementsAre("host_bound/data_input in enumerate(DataLoader)#It.__next__"));
}

TEST(LateHost, SwappedSidesSwapTheSide) {
  EXPECT_THAT(causes(swapped(late("ProfilerStep#N", {0, 4}, {2, 6}, true))),
              ElementsAre("-host_bound/between_functions in ProfilerStep#N"));
}

}  // namespace
}  // namespace culprit::diagnose
