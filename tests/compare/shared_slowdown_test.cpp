// What all functions share is not called the program's where it may be the machine's.
#include "compare/shared_slowdown.h"

#include <gtest/gtest.h>

#include <string>

namespace culprit::compare {
namespace {

using model::Outcome;
using model::RunComparison;

/// Ten functions that take x1.5, in steps of 10 ms that take 15, all of it on CPUs.
RunComparison slower_alike() {
  RunComparison c;
  c.texts.intern("");
  c.outcome = Outcome::regression;
  c.host.emplace();
  c.host->step_thread = "worker";
  c.host->step = {{"on CPU", "ns per step", {9e6, 14e6}},
                  {"runnable, in the run queue", "ns per step", {0.5e6, 0.5e6}},
                  {"blocked", "ns per step", {0.5e6, 0.5e6}}};
  for (int i = 0; i < 10; ++i) {
    model::FunctionFinding f;
    f.function = c.texts.intern("f" + std::to_string(i));
    f.device = c.texts.intern("Host");
    f.work_ratio = 1.5;
    c.functions.push_back(f);
  }
  model::CycleTimeOutcome time;
  time.phase = model::Phase::decode;
  time.outcome = c.outcome;
  time.time_ns = {10e6, 15e6};
  time.change = 0.5;
  time.cycles = {500, 400};
  c.cycle_times = {time};
  return c;
}

TEST(WhySharedSlowdown, AllFunctionsAlikeMayBeTheMachine) {
  EXPECT_EQ(why_shared(slower_alike()),
            "all functions of the candidate take x1.50 alike, and nothing of the program or beside it is known to "
            "differ: the machine may be slower, as machines that are shared are for minutes");
}

TEST(WhySharedSlowdown, TheBaselineMayBeTheSlowerOne) {
  RunComparison c = slower_alike();
  c.outcome = Outcome::improvement;
  c.cycle_times[0].change = 1 / 1.5 - 1;
  for (model::FunctionFinding& f : c.functions) f.work_ratio = 1 / 1.5;
  for (model::HostChange& part : c.host->step) std::swap(part.value[0], part.value[1]);
  EXPECT_NE(why_shared(c).find("all functions of the baseline take x1.50"), std::string::npos);
}

TEST(WhySharedSlowdown, WhatIsDecidedNeedsADifference) {
  RunComparison c = slower_alike();
  for (const Outcome outcome : {Outcome::no_change, Outcome::inconclusive}) {
    c.outcome = outcome;
    EXPECT_EQ(why_shared(c), "");
  }
}

TEST(WhySharedSlowdown, OneFunctionThatIsSlowerIsTheProgram) {
  RunComparison c = slower_alike();
  for (std::size_t i = 1; i < c.functions.size(); ++i) c.functions[i].work_ratio = 1.02;
  EXPECT_EQ(why_shared(c), "");
  RunComparison few = slower_alike();
  few.functions.resize(7);
  EXPECT_EQ(why_shared(few), "") << "too few to tell";
}

TEST(WhySharedSlowdown, HalfOfItIsTheMachineWhereTheRestIsNotDecided) {
  RunComparison c = slower_alike();
  for (model::FunctionFinding& f : c.functions) f.work_ratio = 1.3;
  c.cycle_times[0].low = 0.2;
  c.cycle_times[0].high = 0.9;
  c.cycle_times[0].tolerance = 0.03;
  EXPECT_EQ(why_shared(c),
            "all functions of the candidate take x1.30 alike, what steps take beyond that is not decided, and nothing "
            "of the program or beside it is known to differ: the machine may be slower, as machines that are shared "
            "are for minutes");
  c.cycle_times[0].low = 0.36;
  EXPECT_EQ(why_shared(c), "") << "the rest is decided";
  c.cycle_times[0].low = 0.2;
  for (model::FunctionFinding& f : c.functions) f.work_ratio = 1.2;
  EXPECT_EQ(why_shared(c), "") << "less than half";

  RunComparison faster = slower_alike();
  faster.outcome = faster.cycle_times[0].outcome = Outcome::improvement;
  for (model::FunctionFinding& f : faster.functions) f.work_ratio = 1 / 1.3;
  for (model::HostChange& part : faster.host->step) std::swap(part.value[0], part.value[1]);
  faster.cycle_times[0].change = 1 / 1.5 - 1;
  faster.cycle_times[0].low = 1 / 1.9 - 1;
  faster.cycle_times[0].high = 1 / 1.2 - 1;
  faster.cycle_times[0].tolerance = 0.03;
  EXPECT_NE(why_shared(faster).find("of the baseline take x1.30 alike, what steps take beyond"), std::string::npos);
  faster.cycle_times[0].high = 1 / 1.36 - 1;
  EXPECT_EQ(why_shared(faster), "");
}

TEST(WhySharedSlowdown, EachPhaseThatDecidesIsAsked) {
  RunComparison c = slower_alike();
  c.cycle_times[0].outcome = Outcome::no_change;
  c.cycle_times[0].change = 0.02;
  for (model::FunctionFinding& f : c.functions) f.work_ratio = 1.015;
  model::CycleTimeOutcome prefill = c.cycle_times[0];
  prefill.phase = model::Phase::prefill;
  prefill.outcome = Outcome::regression;
  prefill.time_ns = {20e6, 32e6};
  prefill.change = 0.6;
  prefill.cycles = {20, 20};
  c.cycle_times.push_back(prefill);
  EXPECT_EQ(why_shared(c), "");
}

TEST(WhySharedSlowdown, HalfIsNotEnoughOfStepsThatComeLater) {
  RunComparison c = slower_alike();
  c.cycle_times[0].outcome = Outcome::inconclusive;
  for (model::FunctionFinding& f : c.functions) f.work_ratio = 1.3;
  c.host->states = {{"period", "ns per step", {10e6, 15e6}}};
  EXPECT_EQ(why_shared(c), "");
}

TEST(WhySharedSlowdown, WhatWaitsIsHeldUpByWhatItWaitsFor) {
  for (const std::size_t part : {1U, 2U}) {  // the run queue, blocked
    RunComparison c = slower_alike();
    c.host->step[0].value[1] = 9e6;
    c.host->step[part].value[1] = 5.5e6;
    EXPECT_EQ(why_shared(c), "");
  }
}

/// The same, x2.4 instead.
RunComparison far_slower_alike() {
  RunComparison c = slower_alike();
  for (model::FunctionFinding& f : c.functions) f.work_ratio = 2.4;
  c.cycle_times[0].time_ns = {10e6, 24e6};
  c.cycle_times[0].change = 1.4;
  c.host->step[0].value[1] = 23e6;
  return c;
}

TEST(WhySharedSlowdown, SoMuchOnlyHoursApartOrWithItsMemory) {
  EXPECT_EQ(why_shared(far_slower_alike()), "");
  EXPECT_NE(why_shared(far_slower_alike(), true), "");
  RunComparison c = far_slower_alike();
  c.host->memory = {1.5, 1.0, 2.1};
  EXPECT_NE(why_shared(c), "");
  c.host->memory = {-0.6, -0.7, -0.5};
  EXPECT_EQ(why_shared(c), "") << "the other side's was slower";
  c = far_slower_alike();
  c.cycle_times[0].change = 3.2;
  for (model::FunctionFinding& f : c.functions) f.work_ratio = 4.2;
  EXPECT_EQ(why_shared(c, true), "") << "no machine was seen to be";
}

TEST(WhySharedSlowdown, WaitsForClientsThatAreSlowerTooAreALittleOfIt) {
  RunComparison c = far_slower_alike();
  c.host->step[1].value = {0.5e6, 2.5e6};
  c.host->behind_others = {1.0, 1.0};
  EXPECT_NE(why_shared(c, true), "") << "a seventh of what it takes longer";
  c = slower_alike();
  c.host->step[1].value = {0.5e6, 2e6};
  c.host->step[0].value[1] = 12.9e6;
  c.host->behind_others = {1.0, 1.0};
  EXPECT_EQ(why_shared(c), "") << "three tenths";
}

TEST(WhySharedSlowdown, OthersWhoseNamesNobodySawTookCpus) {
  RunComparison c = slower_alike();
  c.host->counters = {{"host.cpu.others", "count", {0.1, 0.6}}};
  EXPECT_EQ(why_shared(c), "");
  c.host->counters[0].value[1] = 0.3;
  EXPECT_NE(why_shared(c), "");
}

TEST(WhySharedSlowdown, WhoIsKnownToMakeItSlowerIsNotTheMachine) {
  RunComparison beside = slower_alike();
  beside.host->beside = {{"stress", "count", {0.0, 1.5}}};
  EXPECT_EQ(why_shared(beside), "");
  RunComparison clock = slower_alike();
  clock.host->unshown = {{"host.cpu0.frequency", "Hz", {3e9, 2e9}}};
  EXPECT_EQ(why_shared(clock), "");
}

TEST(WhySharedSlowdown, StepsThatComeFarLaterThanTheyTakeLongerAreNotExplained) {
  RunComparison c = slower_alike();
  c.cycle_times[0].outcome = Outcome::inconclusive;  // decided by how late they come, and requests with them
  c.cycle_times[0].change = 0.02;
  for (model::FunctionFinding& f : c.functions) f.work_ratio = 1.03;
  c.host->states = {{"period", "ns per step", {10e6, 16e6}}};
  EXPECT_EQ(why_shared(c), "");
  c.cycle_times[0].change = 0.5;
  for (model::FunctionFinding& f : c.functions) f.work_ratio = 1.5;
  EXPECT_NE(why_shared(c), "") << "they take as much longer";
}

TEST(WhySharedSlowdown, OtherSettingsMayMakeAllOfItSlower) {
  for (const auto& [key, base, candidate] :
       {std::array{"env.target.variable.PYTHONMALLOC", "", "debug"},
        std::array{"env.target.python.version", "3.12", "3.13"}, std::array{"env.target.sched.nice", "0", "19"},
        std::array{"env.kernel.release", "6.1", "6.12"}, std::array{"env.profilers", "none", "perf"}}) {
    RunComparison c = slower_alike();
    c.environment = {{key, {base, candidate}}};
    EXPECT_EQ(why_shared(c), "") << key;
  }
  RunComparison c = slower_alike();
  c.environment = {{"env.hostname", {"a", "b"}}, {"env.target2.threads_at_join", {"36", "37"}}};
  EXPECT_NE(why_shared(c), "");
}

TEST(WhySharedSlowdown, MoreCallsAreMoreWork) {
  RunComparison c = slower_alike();
  model::CallsChange calls;
  calls.more = 3;
  c.calls = {calls};
  EXPECT_EQ(why_shared(c), "");
  c.calls[0] = {};
  c.calls[0].fewer = 3;  // of the side that is faster
  EXPECT_NE(why_shared(c), "");
}

TEST(WhySharedSlowdown, NoMachineWasSeenToBeTwiceAsSlow) {
  RunComparison c = slower_alike();
  c.cycle_times[0].change = 1.2;
  for (model::FunctionFinding& f : c.functions) f.work_ratio = 2.2;
  EXPECT_EQ(why_shared(c), "");
}

TEST(WhySharedSlowdown, RecordingsThatTellHowMuchTwoDifferDecide) {
  RunComparison c = slower_alike();
  c.cycle_times[0].recordings = {3, 3};
  EXPECT_EQ(why_shared(c), "");
  c.cycle_times[0].recordings = {};
  c.cycle_times[0].earlier = 8;
  EXPECT_EQ(why_shared(c), "");
}

/// Requests that take x1.9, on CPUs and waiting for them, while the machine's memory takes x3.
RunComparison slower_units() {
  RunComparison c;
  c.outcome = Outcome::regression;
  c.host.emplace();
  c.host->memory = {2.0, 1.5, 2.6};
  model::WorkComparison& work = c.work.emplace();
  work.unit.kind = model::UnitKind::request;
  work.throughput = {"throughput", "1/s", {40'000, 21'000}};
  work.worked = {"worked per unit", "ns", {60e3, 114e3}};
  work.parts = {{"on CPU", "ns", {30e3, 57e3}}, {"runnable, in the run queue", "ns", {30e3, 57e3}}};
  return c;
}

TEST(WhyUnitsShared, MemoryThatIsSlowerMakesAllUnitsSlower) {
  EXPECT_EQ(why_units_shared(slower_units()),
            "each request of the candidate takes x1.90 on CPUs, and fixed work through the machine's memory x3.00: the "
            "machine may be slower, as machines that are shared are");
  RunComparison c = slower_units();
  c.outcome = Outcome::improvement;
  std::swap(c.work->throughput.value[0], c.work->throughput.value[1]);
  std::swap(c.work->worked.value[0], c.work->worked.value[1]);
  for (model::WorkChange& part : c.work->parts) std::swap(part.value[0], part.value[1]);
  EXPECT_EQ(why_units_shared(c), "") << "the faster side's was slower";
  c.host->memory = {-0.75, -0.8, -0.6};
  EXPECT_NE(why_units_shared(c).find("of the baseline takes x1.90 on CPUs, and fixed work through the machine's memory "
                                     "x4.00"),
            std::string::npos);
}

TEST(WhyUnitsShared, ClientsOnTheSameCpusAreSlowerTooButAreNotWaitedForLonger) {
  RunComparison c = slower_units();
  c.host->step = {{"on CPU", "ns", {30e3, 57e3}}, {"runnable, in the run queue", "ns", {30e3, 57e3}}};
  c.host->behind_others = {0.9, 0.9};
  EXPECT_NE(why_units_shared(c), "");
  c.work->parts[1].value[1] = 140e3;
  c.work->worked.value[1] = 197e3;
  EXPECT_EQ(why_units_shared(c), "");
}

TEST(WhyUnitsShared, WhatElseExplainsItIsNotTheMachine) {
  RunComparison c = slower_units();
  c.host->memory.reset();
  EXPECT_EQ(why_units_shared(c), "");
  c = slower_units();
  c.work->parts[0].value[1] = 36e3;
  EXPECT_EQ(why_units_shared(c), "") << "it waits";
  c = slower_units();
  c.host->beside = {{"stress", "count", {0.0, 1.5}}};
  EXPECT_EQ(why_units_shared(c), "");
  c = slower_units();
  c.work->waited = {50e3, 90e3};
  EXPECT_EQ(why_units_shared(c), "") << "it was decided by how long answers took";
  c = slower_units();
  c.environment.push_back({"env.kernel.release", {"6.1", "6.2"}});
  EXPECT_EQ(why_units_shared(c), "");
  EXPECT_EQ(why_units_shared(RunComparison()), "");
}

}  // namespace
}  // namespace culprit::compare
