// Rules about what the program itself does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "comparison.h"

namespace culprit::diagnose {
namespace {

using model::FunctionStatus;
using model::Outcome;
using model::RunComparison;
using model::VerdictState;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(ProgramRules, AFunctionThatAloneTakesLonger) {
  RunComparison c = with_functions();
  add_function(c, "tokenize", "python", "Host", {1, 5}, {4, 4}, FunctionStatus::changed);
  EXPECT_THAT(causes(c), testing::ElementsAre("host_bound/function in tokenize"));
}

TEST(ProgramRules, WhatIsNearlyAllOfAStepIsItsCauseWhereNothingLiesInIt) {
  RunComparison c = comparison();
  set_step(c, {10, 14}, {0, 0}, {0, 0});
  c.host->step.clear();
  add_function(c, "solve", "python", "Host", {9.5, 13.5}, {1, 1}, FunctionStatus::changed);
  for (const char* name : {"log", "count", "save"}) add_function(c, name, "python", "Host", {0.1, 0.1}, {1, 1});
  // Nobody tells what lies in what: it may be the step.
  EXPECT_THAT(causes(c), testing::ElementsAre("unknown"));
  for (model::FunctionFinding& f : c.functions) f.parent = c.texts.intern("step");
  EXPECT_THAT(causes(c), testing::ElementsAre("host_bound/function in solve"));
  c.functions.back().parent = c.texts.intern("solve");
  EXPECT_THAT(causes(c), testing::ElementsAre("unknown"));
}

TEST(ProgramRules, BetweenFunctionsIsAPlaceOnlyWhereFunctionsWereRecorded) {
  RunComparison c = comparison();
  set_step(c, {10, 14}, {0, 0}, {0, 0});
  c.host->step.clear();
  add_function(c, "between functions: step", "between", "Host", {9.9, 13.9}, {1, 1}, FunctionStatus::changed);
  c.functions.back().parent = c.texts.intern("step");
  EXPECT_THAT(causes(c), testing::ElementsAre("unknown"));
  c.functions.back().apart = true;
  c.functions.back().status = FunctionStatus::unknown;
  EXPECT_THAT(causes(c), testing::ElementsAre("unknown"));
  c.functions.back().status = FunctionStatus::changed;
  for (const char* name : {"log", "count", "save"}) {
    add_function(c, name, "python", "Host", {0.1, 0.1}, {1, 1});
    c.functions.back().parent = c.texts.intern("step");
  }
  EXPECT_THAT(causes(c), testing::ElementsAre("host_bound/between_functions in between functions: step"));
}

TEST(ProgramRules, AKernelMayBeNearlyAllOfAStep) {
  RunComparison c = comparison();
  set_step(c, {10, 14}, {0, 0}, {0, 0});
  c.host->step.clear();
  add_function(c, "gemm", "gpu_compute", "GPU", {9, 13}, {1, 1}, FunctionStatus::changed);
  EXPECT_THAT(causes(c), testing::ElementsAre("kernel_regression in gemm"));
}

TEST(ProgramRules, WhereACycleMayBeSeveralStepsNoFunctionIsNamed) {
  RunComparison c = with_functions();
  c.outcome = c.cycle_times[0].outcome = Outcome::inconclusive;
  add_function(c, "tokenize", "python", "Host", {1, 5}, {4, 4}, FunctionStatus::changed);
  add_function(c, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", "annotation", "Host", {1, 5}, {1, 1},
               FunctionStatus::changed);
  EXPECT_EQ(causes(c).size(), 2U);
  c.why = "it is not sure that a cycle of the candidate is one step";
  for (model::ComparedSide& side : c.sides) side.period_confidence = 1;
  EXPECT_EQ(causes(c).size(), 2U);
  c.sides[1].period_confidence = 0.79;
  EXPECT_THAT(causes(c), IsEmpty());
}

TEST(ProgramRules, WhoWaitsForALockOrASocketIsNotSlow) {
  for (const char* name : {"<built-in method acquire of _thread.lock object>", "threading.py(320): wait",
                           "zmq.sugar.socket.recv", "<built-in function sleep>", "selectors.py(468): select"}) {
    RunComparison c = with_functions();
    c.host->step.clear();  // a profiler's trace
    add_function(c, name, "python", "Host", {1, 5}, {4, 4}, FunctionStatus::changed);
    EXPECT_THAT(causes(c), testing::ElementsAre("unknown")) << name;
  }
  for (const char* name : {"parse.py(3): wait_list", "<built-in method join of str object>", "beam.py(80): select"}) {
    RunComparison c = with_functions();
    c.host->step.clear();
    add_function(c, name, "python", "Host", {1, 5}, {4, 4}, FunctionStatus::changed);
    EXPECT_THAT(causes(c), testing::ElementsAre(std::string("host_bound/function in ") + name));
  }
}

TEST(ProgramRules, WhatAllFunctionsShareIsNoneOfOne) {
  RunComparison c = with_functions();
  for (auto& f : c.functions) {
    f.work_ratio = 1.4;
    f.status = FunctionStatus::changed;
    f.time_ns[1] = 1.4 * f.time_ns[0];
  }
  add_function(c, "tokenize", "python", "Host", {5, 7}, {4, 4}, FunctionStatus::changed);
  EXPECT_THAT(causes(c), testing::ElementsAre("unknown"));
}

TEST(ProgramRules, AFunctionInWhichItsThreadWaitsIsNotSlow) {
  RunComparison c = with_functions();
  set_step(c, {10, 10}, {0.1, 0.1}, {1, 5});
  add_function(c, "forward", "python", "Host", {1, 5}, {4, 4}, FunctionStatus::changed);
  EXPECT_THAT(causes(c), testing::ElementsAre("unknown"));
}

/// Of the last function, ms per step.
model::WaterfallLine line_of_last(const RunComparison& c, model::LedgerState state, std::array<double, 2> ms) {
  model::WaterfallLine line;
  line.state = state;
  line.function = c.functions.back().function;
  line.time_ns = {ms[0] * 1e6, ms[1] * 1e6};
  return line;
}

TEST(ProgramRules, AFunctionWhoseThreadWaitedForACpuIsNotSlow) {
  RunComparison c = with_functions();
  set_step(c, {10, 13}, {0.1, 6}, {1, 1});
  add_beside(c, "stress-ng-cpu", {0, 1.2});
  add_function(c, "forward", "python", "Host", {1, 5}, {4, 4}, FunctionStatus::changed);
  EXPECT_THAT(causes(c), testing::ElementsAre("cpu_contention/other_processes"));
  set_step(c, {10, 16}, {0.1, 1}, {1, 1});
  c.waterfalls.emplace_back();
  c.waterfalls[0].lines = {line_of_last(c, model::LedgerState::run_queue, {0, 3.9}),
                           line_of_last(c, model::LedgerState::function, {1, 1.1})};
  EXPECT_THAT(causes(c), testing::ElementsAre("cpu_contention/other_processes"));
  c.waterfalls[0].lines[1].time_ns[1] = 4.5e6;
  EXPECT_THAT(causes(c), testing::ElementsAre("cpu_contention/other_processes", "host_bound/function in forward"));
}

TEST(ProgramRules, AFunctionCountsByWhatItRanLongerItself) {
  RunComparison c = with_functions();
  set_step(c, {10, 12}, {0.1, 0.1}, {1, 9});
  add_state(c, "blocked in futex", {1, 9});
  c.python.push_back({"hold", {0, 0.3}});
  add_function(c, "forward", "python", "Host", {1, 11}, {4, 4}, FunctionStatus::changed);
  c.waterfalls.emplace_back();
  c.waterfalls[0].lines = {line_of_last(c, model::LedgerState::blocked, {0, 8}),
                           line_of_last(c, model::LedgerState::function, {1, 3})};
  const auto verdicts = diagnose(c);
  ASSERT_THAT(causes(c), testing::ElementsAre("host_bound/gil in hold", "host_bound/function in forward"));
  EXPECT_DOUBLE_EQ(verdicts[1].impact_ns, 2e6);
  EXPECT_THAT(verdicts[1].against, Contains("It takes 8.000ms more of that because its thread waited in it"));
}

/// A device that works and waits for its host, ms per step.
void add_device(RunComparison& c, std::array<double, 2> works, std::array<double, 2> waits) {
  model::Waterfall waterfall;
  waterfall.device = 0;
  for (const auto& [state, ms] :
       {std::pair(model::LedgerState::function, works), std::pair(model::LedgerState::idle_host, waits)}) {
    model::WaterfallLine line;
    line.state = state;
    line.time_ns = {ms[0] * 1e6, ms[1] * 1e6};
    waterfall.lines.push_back(line);
  }
  c.waterfalls.push_back(waterfall);
}

TEST(ProgramRules, ACallThatWaitsForTheDeviceIsNotSlow) {
  RunComparison c = kernels(2, 2);
  set_step(c, {10, 16}, {0, 0}, {0, 0});
  c.host->step.clear();
  for (const char* name : {"aten::mm", "aten::add", "aten::view"})
    add_function(c, name, "torch", "Host", {1, 1}, {4, 4});
  add_function(c, "cudaMemcpyAsync", "cuda_api", "Host", {2, 8}, {4, 4}, FunctionStatus::changed);
  add_device(c, {6, 12}, {3, 3.1});
  EXPECT_THAT(causes(c), testing::ElementsAre("gpu_clock_drop/unknown in GPU"));
}

TEST(ProgramRules, AFunctionThatTheDeviceWaitsForCostsNoMoreThanItWaits) {
  RunComparison c = with_functions();
  c.host->step.clear();
  add_function(c, "tokenize", "python", "Host", {1, 5}, {4, 4}, FunctionStatus::changed);
  add_device(c, {6, 6}, {3, 5.5});
  const auto verdicts = diagnose(c);
  ASSERT_EQ(verdicts.size(), 1U);
  EXPECT_EQ(verdicts[0].where, "tokenize");
  EXPECT_NEAR(verdicts[0].impact_ns, 2.5e6, 1);
}

TEST(ProgramRules, OneOfManyRanksMayHaveWaitedForAllOfTheMean) {
  RunComparison c = with_functions();
  c.host->step.clear();
  for (std::int32_t rank = 0; rank < 8; ++rank) c.processes.push_back({rank, {100 + rank, 200 + rank}});
  add_function(c, "tokenize", "python", "Host", {1, 4}, {4, 4}, FunctionStatus::changed);
  add_device(c, {6, 6}, {3, 3.375});  // three milliseconds of one of eight
  const auto verdicts = diagnose(c);
  ASSERT_EQ(verdicts.size(), 1U);
  EXPECT_EQ(verdicts[0].where, "tokenize");
  EXPECT_NEAR(verdicts[0].impact_ns, 3e6, 1);
}

TEST(ProgramRules, AFunctionOfRareStepsIsWeighedByThem) {
  RunComparison c = with_functions();
  c.cycle_times[0].phase = model::Phase::decode;
  c.cycle_times[0].cycles = {990, 990};
  c.cycle_times.push_back(c.cycle_times[0]);
  c.cycle_times[1].phase = model::Phase::prefill;
  c.cycle_times[1].cycles = {10, 10};
  add_function(c, "rare", "python", "Host", {1, 6}, {1, 1}, FunctionStatus::changed);
  c.functions.back().phase = model::Phase::prefill;
  add_function(c, "often", "python", "Host", {1, 2}, {1, 1}, FunctionStatus::changed);
  c.functions.back().phase = model::Phase::decode;
  const auto verdicts = diagnose(c);
  ASSERT_EQ(verdicts.size(), 1U);
  EXPECT_EQ(verdicts[0].where, "often");
  EXPECT_NEAR(verdicts[0].impact_ns, 0.99e6, 1);
}

TEST(ProgramRules, WorkThatMovedInsideOfAFunctionIsNone) {
  RunComparison c = with_functions();
  add_function(c, "fused", "python", "Host", {1, 5}, {4, 4}, FunctionStatus::changed);
  c.functions.back().moved_inside = c.texts.intern("forward");
  EXPECT_THAT(causes(c), testing::ElementsAre("unknown"));
}

TEST(ProgramRules, OfFunctionsThatAreAllSlowerOneCountsByWhatItIsBeyondThem) {
  RunComparison c = comparison();
  set_step(c, {10, 16}, {0.1, 0.1}, {1, 1});
  for (const char* name : {"a", "b", "c"}) add_function(c, name, "python", "Host", {2, 3.2}, {1, 1});
  add_function(c, "tokenize", "python", "Host", {1, 1.8}, {4, 4}, FunctionStatus::changed);  // x1.6 would be as all
  EXPECT_THAT(causes(c), testing::ElementsAre("unknown"));
  c.functions.back().time_ns[1] = 2.3e6;
  c.functions.back().work_ratio = 2.3;
  EXPECT_THAT(causes(c), testing::ElementsAre("host_bound/function in tokenize"));
  EXPECT_NEAR(diagnose(c)[0].impact_ns, 0.7e6, 1);
}

TEST(ProgramRules, OfFunctionsThatAreAllFarSlowerOneIsAFewHundredthsSlower) {
  RunComparison c = comparison();
  set_step(c, {10, 23}, {0.1, 0.1}, {1, 1});
  for (const char* name : {"a", "b", "c"}) add_function(c, name, "python", "Host", {2, 4.6}, {1, 1});
  add_function(c, "run_batch", "python", "Host", {5, 12.1}, {1, 1}, FunctionStatus::changed);
  EXPECT_THAT(causes(c), testing::ElementsAre("unknown"));
}

TEST(ProgramRules, WhatIsLittleBesideWhatAllFunctionsShareIsNotWhy) {
  RunComparison c = comparison(Outcome::inconclusive);
  set_step(c, {10, 20}, {0.1, 0.1}, {1, 1});
  for (const char* name : {"a", "b", "c"}) add_function(c, name, "python", "Host", {2, 2}, {1, 1});
  add_function(c, "tokenize", "python", "Host", {1, 2}, {4, 4}, FunctionStatus::changed);
  EXPECT_THAT(causes(c), testing::ElementsAre("host_bound/function in tokenize"));
  c.shared_by_all = true;
  EXPECT_THAT(causes(c), IsEmpty());
}

TEST(ProgramRules, KernelsThatAreSlowerOrNew) {
  RunComparison c = comparison();
  set_step(c, {10, 14}, {0.1, 0.1}, {1, 1});
  for (const char* name : {"a", "b", "c"}) add_function(c, name, "gpu_compute", "GPU", {2, 2}, {1, 1});
  add_function(c, "gemm", "gpu_compute", "GPU", {2, 5}, {8, 8}, FunctionStatus::changed);
  EXPECT_THAT(causes(c), testing::ElementsAre("kernel_regression in gemm"));
  c.functions.pop_back();
  add_function(c, "slow_gemm", "gpu_compute", "GPU", {0, 5}, {0, 8}, FunctionStatus::added);
  EXPECT_THAT(causes(c), testing::ElementsAre("kernel_changed in slow_gemm"));
}

/// Five steps of which none but the whole is called slower.
RunComparison few_steps() {
  RunComparison c = with_functions();
  c.host->step.clear();
  c.cycle_times[0].cycles = {5, 5};
  return c;
}

TEST(FewSteps, WhatMakesMostOfAllStepsIsLikely) {
  RunComparison c = few_steps();
  add_function(c, "tokenize", "python", "Host", {1, 4.5}, {4, 4});
  EXPECT_THAT(causes(c), testing::ElementsAre("unknown"));  // some steps take as long as before in it
  c.functions.back().apart = true;
  EXPECT_THAT(causes(c), testing::ElementsAre("host_bound/function in tokenize"));
  const model::Verdict likely = diagnose(c)[0];
  EXPECT_EQ(likely.state, VerdictState::active);
  EXPECT_NEAR(likely.confidence, 0.6, 1e-9);
  EXPECT_THAT(likely.against, Contains(HasSubstr("among 4 functions")));
  c.functions.back().time_ns[1] = 2.5e6;  // of four milliseconds
  EXPECT_THAT(causes(c), testing::ElementsAre("unknown"));
  c.functions.back().time_ns[1] = 4.5e6;
  c.outcome = c.cycle_times[0].outcome = Outcome::inconclusive;
  EXPECT_THAT(causes(c), IsEmpty());
  c.outcome = c.cycle_times[0].outcome = Outcome::regression;
  EXPECT_THAT(causes(swapped(std::move(c))), testing::ElementsAre("-host_bound/function in tokenize"));
}

TEST(FewSteps, WaitingForTheInputIsTheInputs) {
  RunComparison c = few_steps();
  for (const char* name : {"decode_image", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"}) {
    add_function(c, name, "annotation", "Host", {0.1, 3.9}, {1, 1});
    c.functions.back().apart = true;
  }
  EXPECT_THAT(causes(c),
              testing::ElementsAre("host_bound/data_input in " + std::string(c.texts[c.functions[4].function])));
}

TEST(FewSteps, KernelsAreCalledWhatTheyAre) {
  RunComparison c = few_steps();
  for (const char* name : {"a", "b", "c"}) add_function(c, name, "gpu_compute", "GPU", {1, 1}, {1, 1});
  add_function(c, "gemm", "gpu_compute", "GPU", {2, 5.5}, {4, 4});
  c.functions.back().apart = true;
  EXPECT_THAT(causes(c), testing::ElementsAre("kernel_regression in gemm"));
  c.functions.back().calls = {4, 11};
  c.functions.back().work_ratio = 1;
  EXPECT_THAT(causes(c), testing::ElementsAre("workload_changed/calls in gemm"));
}

TEST(FewSteps, ACallThatWaitsForADeviceThatIdledElsewhereIsNotSlow) {
  RunComparison c = few_steps();
  add_function(c, "cudaMemcpyAsync", "cuda_api", "Host", {1, 4.5}, {1, 1});
  c.functions.back().apart = true;
  add_device(c, {9, 9}, {1, 5});
  EXPECT_THAT(causes(c), testing::ElementsAre("unknown"));
  c.waterfalls[0].lines[1].function = c.functions.back().function;
  EXPECT_THAT(causes(c), testing::ElementsAre("host_bound/function in cudaMemcpyAsync"));
}

TEST(FewSteps, WhatWaitsIsNotSlow) {
  RunComparison c = few_steps();
  add_function(c, "cudaStreamSynchronize", "sync", "Host", {1, 4.5}, {1, 1});
  c.functions.back().apart = true;
  EXPECT_THAT(causes(c), testing::ElementsAre("unknown"));
}

/// A kernel is launched twice as often, and a launch takes `ratio` times as long.
RunComparison more_launches(double ratio) {
  RunComparison c = comparison();
  set_step(c, {10, 14}, {0.1, 0.1}, {1, 1});
  for (const char* name : {"a", "b", "c"}) add_function(c, name, "gpu_compute", "GPU", {2, 2}, {1, 1});
  add_function(c, "adam", "gpu_compute", "GPU", {2, 4 * ratio}, {2, 4}, FunctionStatus::changed);
  return c;
}

TEST(ProgramRules, AKernelThatIsOnlyLaunchedMoreOftenIsNotSlower) {
  EXPECT_THAT(causes(more_launches(1)), testing::ElementsAre("workload_changed/calls in adam"));
  EXPECT_EQ(diagnose(more_launches(1))[0].state, VerdictState::active);
  EXPECT_THAT(diagnose(more_launches(1))[0].evidence[0], HasSubstr("4 instead of 2 times per step"));
  EXPECT_THAT(causes(swapped(more_launches(1))), testing::ElementsAre("-workload_changed/calls in adam"));
  EXPECT_THAT(causes(more_launches(1.2)), testing::ElementsAre("kernel_regression in adam"));
}

TEST(ProgramRules, WhatLooksLikeMoreLaunchesSpeaksAgainstThem) {
  EXPECT_THAT(diagnose(more_launches(1))[0].against, testing::ElementsAre(HasSubstr("Only its launches are counted")));
  ASSERT_THAT(causes(more_launches(0.8)), testing::ElementsAre("workload_changed/calls in adam"));
  EXPECT_THAT(diagnose(more_launches(0.8))[0].against, testing::ElementsAre(HasSubstr("in smaller pieces")));
}

TEST(ProgramRules, WhereTheSidesDidNotLoseAlikeThatSpeaksAgainstMoreLaunches) {
  RunComparison c = more_launches(1);
  for (model::ComparedSide& side : c.sides) side.events = 70000;
  const auto lose = [&](std::size_t side, std::uint64_t count) {
    c.sides[side].losses.resize(1);
    c.sides[side].losses[0].reason = "flow_unbound";
    c.sides[side].losses[0].count = count;
  };
  lose(0, 5385);
  lose(1, 5000);
  EXPECT_THAT(diagnose(c)[0].against, testing::Not(Contains(HasSubstr("flow_unbound"))));
  lose(1, 1373);
  EXPECT_THAT(diagnose(c)[0].against, Contains(HasSubstr("5385 flow_unbound in the baseline, 1373 in the candidate")));
  lose(0, 60);
  lose(1, 0);  // of so many events nothing
  EXPECT_THAT(diagnose(c)[0].against, testing::Not(Contains(HasSubstr("flow_unbound"))));
}

TEST(ProgramRules, AKernelInsteadOfAnotherIsToldOnce) {
  const auto replaced = [](double before, double after) {
    RunComparison c = comparison();
    set_step(c, {10, 14}, {0.1, 0.1}, {1, 1});
    for (const char* name : {"a", "b", "c"}) add_function(c, name, "gpu_compute", "GPU", {2, 2}, {1, 1});
    add_function(c, "flash", "gpu_compute", "GPU", {before, 0}, {8, 0}, FunctionStatus::gone);
    add_function(c, "flashinfer", "gpu_compute", "GPU", {0, after}, {0, 8}, FunctionStatus::added);
    return causes(c);
  };
  EXPECT_THAT(replaced(1.2, 6.1), testing::ElementsAre("kernel_changed in flashinfer"));
  EXPECT_THAT(replaced(6.1, 1.2), testing::ElementsAre("unknown", "-kernel_changed in flash"));
}

TEST(ProgramRules, AFunctionThatIsInAnotherProcessNowIsNotNew) {
  RunComparison c = with_functions();
  add_function(c, "serve", "python", "Host", {0, 5}, {0, 1}, FunctionStatus::added);
  EXPECT_THAT(causes(c), testing::ElementsAre("host_bound/function in serve"));
  add_function(c, "serve", "python", "Host", {4, 0}, {1, 0}, FunctionStatus::gone);
  EXPECT_THAT(causes(c), testing::ElementsAre("unknown"));
}

TEST(ProgramRules, CollectionsOfGarbage) {
  RunComparison c = with_functions();
  add_function(c, "gc generation 2", "python", "Host", {0, 4}, {0, 1}, FunctionStatus::added);
  EXPECT_THAT(causes(c), testing::ElementsAre("host_bound/gc in gc generation 2"));
}

TEST(ProgramRules, AKernelWhoseTimeHardlyMattersIsLatent) {
  RunComparison c = comparison(Outcome::inconclusive);
  set_step(c, {10, 10.2}, {0.1, 0.1}, {1, 1});
  for (const char* name : {"a", "b", "c"}) add_function(c, name, "gpu_compute", "GPU", {2, 2}, {1, 1});
  add_function(c, "flash", "gpu_compute", "GPU", {0.2, 0.4}, {8, 8}, FunctionStatus::changed);
  const auto verdicts = diagnose(c);
  ASSERT_EQ(verdicts.size(), 1U);
  EXPECT_EQ(verdicts[0].cause, "kernel_regression");
  EXPECT_EQ(verdicts[0].state, VerdictState::latent);
}

TEST(ProgramRules, CodeThatTakesMoreOfTheCpus) {
  RunComparison c = comparison();
  set_step(c, {10, 14}, {0.1, 0.1}, {1, 1});
  c.on_cpu.push_back({"parse", {0.1, 0.4}});
  EXPECT_THAT(causes(c), testing::ElementsAre("host_bound/function in parse"));
  c.outcome = Outcome::inconclusive;  // another mix of work moves shares, too
  EXPECT_THAT(causes(c), IsEmpty());
}

TEST(ProgramRules, AFunctionOfPythonStandsForWhatItCallsOfTheInterpreter) {
  RunComparison c = comparison();
  set_step(c, {10, 14}, {0.1, 0.1}, {1, 1});
  c.on_cpu.push_back({"_PyObject_Malloc", {0.1, 0.35}});
  c.python.push_back({"augment (train.py)", {0, 0.3}});
  EXPECT_THAT(causes(c), testing::ElementsAre("host_bound/function in _PyObject_Malloc")) << "it may run beside them";
  c.python[0].in_steps = {model::kNoNumber, 0.9};
  EXPECT_THAT(causes(c), testing::ElementsAre("host_bound/function in augment (train.py)"));
  c.python[0].share[1] = 0.05;
  EXPECT_THAT(causes(c), testing::ElementsAre("host_bound/function in _PyObject_Malloc"));
}

/// Steps that wait for their input longer, and a worker that loads it, in a process of its own.
TEST(ProgramRules, WhatLoadsBesideTheStepsIsEvidenceAndNoPartOfThem) {
  RunComparison c = comparison();
  add_function(c, "_BaseDataLoaderIter.__next__", "python", "Host", {1, 5}, {1, 1}, FunctionStatus::changed);
  add_function(c, "_MapDatasetFetcher.fetch", "python", "Host", {2, 9}, {1, 1}, FunctionStatus::changed);
  c.processes.resize(2);
  c.functions.back().process = 1;
  c.processes[1].has_steps = false;
  const auto verdicts = diagnose(c);
  ASSERT_EQ(verdicts.size(), 1U);
  EXPECT_EQ(verdicts[0].detail, "data_input");
  EXPECT_EQ(verdicts[0].where, "_BaseDataLoaderIter.__next__");
  EXPECT_THAT(verdicts[0].evidence,
              Contains("A call of _MapDatasetFetcher.fetch takes 9.000ms instead of 2.000ms in what loads it"));
  c.functions.erase(c.functions.end() - 2);
  EXPECT_THAT(causes(c), testing::Not(Contains(HasSubstr("fetch")))) << "no step waits for it";
}

TEST(ProgramRules, CodeOfThreadsThatRunNoStepsDoesNotMakeThemLonger) {
  RunComparison c = comparison();
  set_step(c, {10, 14}, {0.1, 0.1}, {1, 1});
  c.on_cpu.push_back({"compact", {0, 0.4}, {model::kNoNumber, 0}, {model::kNoNumber, 0.1}});
  EXPECT_THAT(causes(c), testing::ElementsAre("unknown"));
  c.on_cpu[0].in_steps[1] = 0.9;
  EXPECT_THAT(causes(c), testing::ElementsAre("host_bound/function in compact"));
}

TEST(ProgramRules, WhoSpinsForThreadsThatHaveNoCpuIsNoCause) {
  RunComparison c = comparison();
  set_step(c, {10, 14}, {0.1, 4}, {1, 1});
  c.on_cpu.push_back({"[libgomp.so.1]", {0.4, 0.8}});
  add_beside(c, "burner", {0, 1.8});
  EXPECT_THAT(causes(c), testing::ElementsAre("cpu_contention/other_processes"));
  set_step(c, {10, 14}, {0.1, 0.1}, {1, 1});
  c.host->beside.clear();
  EXPECT_THAT(causes(c), testing::ElementsAre("host_bound/function in [libgomp.so.1]"));
}

/// The collector of CPython in its parts, none of which is much by itself; a step runs 4 ms longer.
RunComparison with_collector() {
  RunComparison c = comparison();
  set_step(c, {10, 14}, {0.1, 0.1}, {1, 1});
  c.on_cpu = {{"_PyEval_EvalFrameDefault", {0.8, 0.55}},
              {"deduce_unreachable.lto_priv.0", {0.02, 0.08}},
              {"visit_decref", {0.02, 0.085}},
              {"visit_reachable", {0.02, 0.085}},
              {"dict_traverse", {0.01, 0.06}}};
  return c;
}

TEST(ProgramRules, CollectionsOfGarbageThatOnlySamplesSeeAreAddedUp) {
  const auto verdicts = diagnose(with_collector());
  ASSERT_EQ(verdicts.size(), 1U);
  EXPECT_EQ(verdicts[0].detail, "gc");
  EXPECT_EQ(verdicts[0].where, "visit_decref");
  EXPECT_NEAR(verdicts[0].impact_ns, (0.31 * 14 - 0.07 * 10) * 1e6, 1);
  EXPECT_THAT(verdicts[0].evidence[0], HasSubstr("Collecting garbage ran in 31 % instead of 7 % of the samples"));
  RunComparison go = comparison();
  set_step(go, {10, 14}, {0.1, 0.1}, {1, 1});
  go.on_cpu = {{"runtime.scanobject", {0.02, 0.3}}, {"runtime.gcDrain", {0.01, 0.06}}};
  EXPECT_THAT(causes(go), testing::ElementsAre("host_bound/gc in runtime.scanobject"));
}

TEST(ProgramRules, ALittleMoreCollectingIsNoCause) {
  RunComparison c = with_collector();
  for (model::ShareChange& change : c.on_cpu) change.share[1] = change.share[0] + 0.015;
  EXPECT_THAT(causes(c), testing::ElementsAre("unknown"));
  c = with_collector();
  c.outcome = Outcome::inconclusive;
  EXPECT_THAT(causes(c), IsEmpty());
}

TEST(ProgramRules, WhatIsOnlyNamedLikeACollectorIsNone) {
  for (const char* name : {"visit_decref_log", "collect_garbage_stats (shop.py)", "dict_traverse (walk.py)",
                           "tree_traverse", "ZMarkup::parse", "runtime.mallocgc"}) {
    RunComparison c = comparison();
    set_step(c, {10, 14}, {0.1, 0.1}, {1, 1});
    c.on_cpu.push_back({name, {0.1, 0.4}});
    EXPECT_THAT(causes(c), testing::ElementsAre(std::string("host_bound/function in ") + name));
  }
  for (const char* name : {"gc_collect_main", "GC Thread#0", "G1ParScanThreadState::trim_queue_to_threshold(unsigned)",
                           "_ZN5ZMark4workEv", "runtime.gcBgMarkWorker.func2"})
    EXPECT_TRUE(model::is_collector(name)) << name;
}

TEST(ProgramRules, WhatWaitsForTheProcessesOfTheModelIsNoSlowFunction) {
  EXPECT_TRUE(model::is_engine_step("EngineCore.step"));
  EXPECT_TRUE(model::is_engine_step("EngineCore.step_with_batch_queue"));
  EXPECT_FALSE(model::is_engine_step("Scheduler.schedule"));
  model::RunComparison c = with_functions();
  add_function(c, "EngineCore.step", "python", "Host", {1, 5}, {4, 4}, model::FunctionStatus::changed);
  EXPECT_THAT(causes(c), testing::Not(testing::Contains(testing::HasSubstr("EngineCore.step"))));
  add_function(c, "Scheduler.schedule", "python", "Host", {1, 5}, {4, 4}, model::FunctionStatus::changed);
  EXPECT_THAT(causes(c), testing::Contains("host_bound/function in Scheduler.schedule"));

  model::RunComparison one = with_functions();
  add_function(one, "EngineCore.step", "python", "Host", {1, 5}, {4, 4}, model::FunctionStatus::changed);
  add_function(one, "GPUModelRunner.execute_model", "python", "Host", {2, 2}, {1, 1});
  EXPECT_THAT(causes(one), testing::Contains("host_bound/function in EngineCore.step")) << "its process runs the model";
  one.functions.back().process = 1;
  EXPECT_THAT(causes(one), testing::Not(testing::Contains(testing::HasSubstr("EngineCore.step"))));
}

TEST(ProgramRules, OfSeveralProcessesItSaysWhoseTheFunctionIs) {
  model::RunComparison c = with_functions();
  c.processes = {{-1, {10, 20}}, {-1, {11, 21}}};
  add_function(c, "emit", "python", "Host", {1, 5}, {4, 4}, model::FunctionStatus::changed);
  EXPECT_EQ(diagnose(c)[0].process, "") << "all functions are of one";
  c.functions.back().process = 1;
  EXPECT_EQ(diagnose(c)[0].where, "emit");
  EXPECT_EQ(diagnose(c)[0].process, "21");
  EXPECT_EQ(diagnose(c)[0].device, "") << "the host is none";
}

/// Each request of a database is answered by another plan.
RunComparison another_plan() {
  RunComparison c = comparison();
  set_work(c, model::UnitKind::request, {0.03, 48}, {0.035, 199});
  c.work->unit.process = "postgres";
  c.host->behind_others = {0.3, 0.05};
  c.on_cpu = {{"heap_getnext", {0, 0.1}}, {"_bt_compare", {0.03, 0}}};
  return c;
}

TEST(ProgramRules, UnitsThatComputeMoreWhateverDoes) {
  const auto verdicts = diagnose(another_plan());
  ASSERT_EQ(verdicts.size(), 1U);
  EXPECT_EQ(verdicts[0].cause, "host_bound");
  EXPECT_EQ(verdicts[0].detail, "more_work");
  EXPECT_EQ(verdicts[0].where, "postgres");
  EXPECT_NEAR(verdicts[0].impact_ns, (48 - 0.03 + 0.95 * 199 - 0.7 * 0.035) * 1e6, 1e3);
  EXPECT_THAT(
      verdicts[0].evidence,
      testing::ElementsAre("Its threads took 48.000ms instead of 30.000us per request on CPUs",
                           testing::HasSubstr("for a CPU, of which programs that were not recorded had one for"),
                           "heap_getnext ran in 10 % instead of 0 % of the samples"));
}

TEST(ProgramRules, MoreWorkIsWhatNothingElseExplains) {
  RunComparison others = another_plan();
  others.host->behind_others = {0.3, 0.9};
  add_beside(others, "stress-ng-cpu", {0, 1.9});
  EXPECT_THAT(causes(others), testing::Not(testing::Contains(testing::HasSubstr("more_work"))));
  RunComparison waits = another_plan();
  set_work(waits, model::UnitKind::request, {0.03, 0.05}, {0.035, 0.04}, "recvfrom", {0, 10});
  EXPECT_THAT(causes(waits), testing::ElementsAre("unknown"));
  RunComparison little = another_plan();
  set_work(little, model::UnitKind::request, {1, 1.2}, {0, 0});
  little.on_cpu.clear();
  EXPECT_THAT(causes(little), testing::ElementsAre("unknown")) << "as much as caches make of it";
  RunComparison steps = another_plan();
  steps.work.reset();
  set_step(steps, {0.03, 48}, {0.035, 199}, {0, 0});
  EXPECT_THAT(causes(steps), testing::Not(testing::Contains(testing::HasSubstr("more_work"))));
  RunComparison same = another_plan();
  same.outcome = Outcome::inconclusive;
  set_work(same, model::UnitKind::request, {0.03, 0.03}, {0.035, 0.035});
  EXPECT_THAT(causes(same), testing::IsEmpty());
}

}  // namespace
}  // namespace culprit::diagnose
