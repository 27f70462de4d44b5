// What looks like a cause and is another one, or half of one: causes side by side.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "comparison.h"

namespace culprit::diagnose {
namespace {

using model::FunctionStatus;
using model::Outcome;
using model::RunComparison;
using model::VerdictState;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

/// Its clock is five sixths of what it was, and `parse` takes so much longer, ms.
RunComparison lower_clock(double parse) {
  RunComparison c = comparison();
  set_step(c, {10, 11 + parse}, {0, 0}, {0, 0});
  c.host->unshown.push_back({"host.cpu0.frequency", "", {3e9, 2.5e9}});
  for (const char* name : {"a", "b", "c"}) add_function(c, name, "python", "Host", {2, 2.05}, {1, 1});
  add_function(c, "parse", "python", "Host", {4, 4 + parse}, {1, 1}, FunctionStatus::changed);
  return c;
}

TEST(LookAlike, ALowerClockExplainsNoMoreThanItMakesSlower) {
  const auto verdicts = diagnose(lower_clock(30));
  ASSERT_THAT(causes(lower_clock(30)), ElementsAre("host_bound/function in parse", "cpu_frequency_drop"));
  EXPECT_NEAR(verdicts[1].impact_ns, 2e6, 1) << "a fifth of 10 ms";
  EXPECT_LE(verdicts[0].share + verdicts[1].share, 1 + 1e-9);
}

TEST(LookAlike, AFunctionThatIsSlowerByTheClockIsTheClocks) {
  EXPECT_THAT(causes(lower_clock(1.1)), ElementsAre("cpu_frequency_drop"));
  EXPECT_THAT(causes(lower_clock(2)), Contains("host_bound/function in parse"));
}

/// Three tenths longer, on its CPUs.
RunComparison longer_on_cpus() {
  RunComparison c = comparison();
  set_step(c, {10, 13}, {0, 0}, {0, 0});
  return c;
}

TEST(LookAlike, WhoWorksOnOtherCpusBesideItIsASuspect) {
  RunComparison c = longer_on_cpus();
  EXPECT_THAT(causes(c), ElementsAre("unknown"));
  add_beside(c, "stream", {0, 0.9});
  const auto verdicts = diagnose(c);
  ASSERT_THAT(causes(c), ElementsAre("cpu_contention/other_processes"));
  EXPECT_DOUBLE_EQ(verdicts[0].confidence, 0.5);
  EXPECT_NEAR(verdicts[0].impact_ns, 3e6, 1);
  EXPECT_THAT(verdicts[0].against, Contains(HasSubstr("they ran on other CPUs")));
  RunComparison other = longer_on_cpus();
  add_beside(other, "stream", {0, 0.9});
  EXPECT_THAT(causes(swapped(std::move(other))), ElementsAre("-cpu_contention/other_processes"));
  c.host->beside[0].value = {0, 0.4};
  EXPECT_THAT(causes(c), ElementsAre("unknown")) << "too little";
  c.host->beside[0].value = {0, 0.9};
  set_step(c, {10, 10.3}, {0, 0}, {0, 0});
  EXPECT_THAT(causes(c), ElementsAre("unknown")) << "nothing was felt";
}

/// All threads together wait 2 ms longer for CPUs, that of the steps hardly.
RunComparison spinning() {
  RunComparison c = comparison(Outcome::inconclusive);
  set_step(c, {6.9, 8.8}, {0.3, 0.6}, {0, 0});
  add_state(c, "runnable", {4.3, 6.4});
  return c;
}

TEST(LookAlike, WhoSpinsForItsOtherThreadsRunsWhileTheyHaveNoCpu) {
  RunComparison c = spinning();
  EXPECT_THAT(causes(c), IsEmpty()) << "its own threads may be more";
  add_beside(c, "stress-ng-hdd", {0, 0.25});
  const auto verdicts = diagnose(c);
  ASSERT_THAT(causes(c), ElementsAre("cpu_contention/other_processes"));
  EXPECT_DOUBLE_EQ(verdicts[0].confidence, 0.7);
  EXPECT_NEAR(verdicts[0].impact_ns, 1.9e6, 1);
  EXPECT_THAT(verdicts[0].evidence, Contains(HasSubstr("All its threads together waited 6.400ms instead of 4.300ms")));
  RunComparison other = spinning();
  add_beside(other, "stress-ng-hdd", {0, 0.25});
  EXPECT_THAT(causes(swapped(std::move(other))), ElementsAre("-cpu_contention/other_processes"));
  c.host->states.back().value[1] = 4.8e6;
  EXPECT_THAT(causes(c), IsEmpty()) << "they hardly waited longer";
}

TEST(LookAlike, WhoWritesALotTakesCpusForIt) {
  RunComparison c = comparison();
  set_step(c, {10, 11}, {0.1, 6}, {1, 1});
  add_beside(c, "backup", {0, 0.9});
  c.disks.push_back({"vda write", {10, 10}, {1e5, 9e8}, {3e5, 3e5}, {}});
  EXPECT_THAT(causes(c), ElementsAre("cpu_contention/other_processes"));
  EXPECT_THAT(diagnose(c)[0].evidence, Contains(HasSubstr("vda write by everybody meanwhile: ")));
}

TEST(LookAlike, WhoStreamsThroughMemoryOnOtherCpusIsNamedByIt) {
  RunComparison c = comparison();
  set_step(c, {10, 13}, {0, 0}, {0, 0});
  add_beside(c, "stream", {0, 0.2});
  add_beside(c, "stream too", {0, 0.2});
  c.host->unshown.push_back({"host.speed.memory", "ns", {10e3, 18e3}});
  EXPECT_THAT(causes(c), ElementsAre("host_memory_pressure/bandwidth"));
}

TEST(LookAlike, WhoSendsMoreWorkTakesCpusAsWell) {
  RunComparison c = comparison();
  set_step(c, {10, 13}, {0, 0}, {0, 0});
  add_beside(c, "client", {0.1, 0.9});
  model::CycleTimeOutcome& time = c.cycle_times[0];
  time.usual_work = {"8 requests", "32 requests"};
  time.all_ns = {10e6, 18e6};
  time.other_share = 0.9;
  EXPECT_THAT(causes(c), ElementsAre("workload_changed"));
}

TEST(LookAlike, RequestsServedOneAfterTheOtherForAWhileAreThoseOfTheSameClients) {
  RunComparison c = comparison(Outcome::inconclusive);
  set_step(c, {10, 10}, {0, 0}, {0, 0});
  model::CycleTimeOutcome& time = c.cycle_times[0];
  time.usual_work = {"1 request behind 108 to 152 tokens", "4 requests behind 216 to 304 tokens"};
  time.all_ns = {10e6, 11e6};
  time.other_share = 0.53;
  time.requests = {2.1, 3.8};
  time.looked_back = {170, 310};
  time.most_requests = {4, 4};
  EXPECT_THAT(causes(c), IsEmpty());
  time.most_requests = {4, 12};
  EXPECT_THAT(causes(c), ElementsAre("workload_changed")) << "the other side never had so many at once";
  time.most_requests = {4, 4};
  time.looked_back = {170, 620};
  EXPECT_THAT(causes(c), ElementsAre("workload_changed")) << "and each has twice as much behind it";
  time.looked_back = {170, 310};
  time.requests = {};
  EXPECT_THAT(causes(c), ElementsAre("workload_changed")) << "nobody tells";
  time.requests = {2.1, 3.8};
  c.outcome = time.outcome = Outcome::regression;
  EXPECT_THAT(causes(c), ElementsAre("workload_changed")) << "a slower side has to be explained";
}

TEST(LookAlike, LessWorkIsNoReasonForLongerSteps) {
  RunComparison c = comparison(Outcome::inconclusive);
  set_step(c, {10, 10}, {0, 0}, {0, 0});
  model::CycleTimeOutcome& time = c.cycle_times[0];
  time.usual_work = {"4 requests behind 216 to 304 tokens", "1 request behind 54 to 76 tokens"};
  time.all_ns = {10e6, 18e6};
  time.other_share = 0.6;
  EXPECT_THAT(causes(c), ElementsAre("workload_changed")) << "how much it is is not known";
  time.requests = {3.7, 1.7};
  time.looked_back = {240, 100};
  EXPECT_THAT(causes(c), IsEmpty());
  time.looked_back = {240, 900};  // for fewer requests, but behind far more
  EXPECT_THAT(causes(c), ElementsAre("workload_changed"));
  time.looked_back = {240, 100};
  time.requests = {3.7, 3.5};  // less of one, as much of the other
  EXPECT_THAT(causes(c), IsEmpty());
  time.looked_back = {240, 220};  // other work, but no less
  EXPECT_THAT(causes(c), ElementsAre("workload_changed"));
  time.looked_back = {240, 100};
  EXPECT_THAT(causes(c), IsEmpty());
  time.phase = model::Phase::decode;
  EXPECT_THAT(causes(c), ElementsAre("workload_changed")) << "not all tell what they look back at";
  time.knows_context = true;
  EXPECT_THAT(causes(c), IsEmpty());
  time.phase = model::Phase::prefill;
  time.requests = time.looked_back = {};
  time.prompt_tokens = {800, 560};
  EXPECT_THAT(causes(c), IsEmpty());
  time.prompts = {4, 1};
  EXPECT_THAT(causes(c), ElementsAre("workload_changed")) << "fewer prompts, each of which is longer";
  time.prompts = {};
  EXPECT_THAT(causes(swapped(std::move(c))), IsEmpty());
}

TEST(LookAlike, WhereMostOftenTheyWorkOnTheSameTheMeanTellsTheLoad) {
  RunComparison c = comparison();
  set_step(c, {10, 13}, {0, 0}, {0, 0});
  model::CycleTimeOutcome& time = c.cycle_times[0];
  time.usual_work = {"8 requests", "8 requests"};
  time.all_ns = {10e6, 18e6};
  time.other_share = 0.6;
  EXPECT_THAT(diagnose(c)[0].evidence[0], HasSubstr("most often of 8 requests on both sides, and otherwise of other"));
  time.requests = {4.5, 7.75};
  EXPECT_THAT(diagnose(c)[0].evidence[0], HasSubstr("work for 7.75 instead of 4.5 requests in the mean"));
}

TEST(LookAlike, AKernelOfStepsOfLikeWorkIsNoOtherLoad) {
  RunComparison c = kernels(1, 1);
  model::CycleTimeOutcome& time = c.cycle_times[0];
  time.usual_work = {"8 requests", "32 requests"};
  time.all_ns = {10e6, 18e6};
  time.other_share = 0.6;
  EXPECT_THAT(causes(c), ElementsAre("workload_changed"));
  add_function(c, "attention", "gpu_compute", "GPU", {3, 6}, {4, 4}, FunctionStatus::changed);
  EXPECT_THAT(causes(c), Contains("kernel_regression in attention"));
  c.cycle_times[0].prompt_tokens = {100, 400};  // what it looks back at is longer
  EXPECT_THAT(causes(c), Not(Contains("kernel_regression in attention")));
}

TEST(LookAlike, SwappingIsNotCountedAgainAsADisk) {
  for (const char* counter : {"host.swap.in", "host.memory.reclaim.stalls", "target.faults.major"}) {
    RunComparison c = comparison();
    set_step(c, {10, 10}, {0, 0}, {1, 41});
    add_state(c, "blocked, uninterruptible", {0, 40});
    add_counter(c, counter, {0, 5e7});
    c.disks.push_back({"vda read", {10, 10}, {1e5, 9e8}, {3e5, 1.5e7}, {}});
    const auto verdicts = diagnose(c);
    ASSERT_EQ(verdicts.size(), 1U) << counter;
    EXPECT_EQ(verdicts[0].cause, "host_memory_pressure");
    EXPECT_NEAR(verdicts[0].impact_ns, 40e6, 1);
  }
}

TEST(LookAlike, ADiskThatAnswersLaterByItselfIsNoCauseOfWhatIsNotDecided) {
  RunComparison c = comparison(Outcome::inconclusive);
  set_step(c, {3, 3}, {0, 0}, {0.3, 1.2});
  add_state(c, "blocked in fsync", {0.3, 1.2});
  c.disks.push_back({"vda write", {10, 10}, {1e5, 1e5}, {1.2e5, 5e5}, {}});
  EXPECT_THAT(causes(c), IsEmpty());
  c.disks[0].bytes_per_second = {1e5, 9e8};
  EXPECT_THAT(causes(c), ElementsAre("disk_io")) << "somebody writes";
  c.disks[0].bytes_per_second = {1e5, 1e5};
  c.outcome = Outcome::regression;
  EXPECT_THAT(causes(c), ElementsAre("disk_io"));
  c.outcome = Outcome::inconclusive;
  set_step(c, {3, 3}, {0, 0}, {0.3, 2.2});
  c.host->states.back().value[1] = 2.2e6;
  EXPECT_THAT(causes(c), ElementsAre("disk_io")) << "it is most of a step";
}

TEST(LookAlike, WhatAThreadBesideTheStepsWaitsForIsNotFelt) {
  RunComparison c = comparison();
  set_step(c, {10, 14}, {0, 0}, {1, 1});
  add_state(c, "blocked in page_fault", {0, 8});
  add_counter(c, "target.faults.major", {0, 400});
  EXPECT_THAT(causes(c), ElementsAre("unknown"));
  add_state(c, "stopped", {0, 8});
  ASSERT_THAT(causes(c), ElementsAre("unknown", "process_stopped"));
  const auto verdicts = diagnose(c);
  EXPECT_EQ(verdicts[1].state, VerdictState::latent) << "that it was stopped is told, not what another thread felt";
}

TEST(LookAlike, APhaseThatIsSlowerMayHideBehindOthersThatAreFaster) {
  RunComparison c = kernels(1, 1);
  c.host->step_thread.clear();
  c.cycle_times.resize(2);
  c.cycle_times[0].phase = model::Phase::decode;
  c.cycle_times[0].time_ns = {10e6, 9e6};
  c.cycle_times[0].cycles = {95, 95};
  c.cycle_times[1].phase = model::Phase::prefill;
  c.cycle_times[1].time_ns = {40e6, 52e6};
  c.cycle_times[1].change = 0.3;
  c.cycle_times[1].cycles = {5, 5};
  add_function(c, "attention", "gpu_compute", "GPU", {10, 22}, {4, 4}, FunctionStatus::changed);
  c.functions.back().phase = model::Phase::prefill;
  const auto verdicts = diagnose(c);
  ASSERT_THAT(causes(c), ElementsAre("kernel_regression in attention"));
  EXPECT_EQ(verdicts[0].state, VerdictState::active);
}

TEST(LookAlike, OnADeviceThatOthersDoNotUseNobodyTakesTurns) {
  RunComparison c = kernels(2, 2);
  add_resource(c, "GPU clock", "GPU", {1.4e9, 1.4e9});
  EXPECT_THAT(causes(c), ElementsAre("gpu_contention/other_process in GPU"));
  add_resource(c, "gpu_usage", "GPU", {98, 98});
  add_resource(c, "process_gpu_usage", "GPU", {97, 97});
  EXPECT_THAT(causes(c), ElementsAre("gpu_contention/unknown in GPU"));
}

TEST(LookAlike, TheSameOnSeveralDevicesOfOneProcessIsNoRanks) {
  RunComparison c = comparison();
  set_step(c, {10, 14}, {0, 0}, {1, 1});
  c.host->step.clear();
  for (const char* device : {"GPU 0", "GPU 1", "GPU 2"}) {
    for (const char* name : {"gemm", "softmax", "norm"})
      add_function(c, name, "gpu_compute", device, {2, 3}, {4, 4}, FunctionStatus::changed);
    add_resource(c, "gpu_sm_frequency", device, {1200, 800});
  }
  c.processes.push_back({0, {100, 200}});
  const auto verdicts = diagnose(c);
  ASSERT_EQ(verdicts.size(), 1U);
  EXPECT_THAT(verdicts[0].evidence, Contains("The same on 2 other devices"));
}

TEST(LookAlike, TheSameOnTwoRanksIsOfNeither) {
  RunComparison c = comparison();
  set_step(c, {10, 14}, {0, 0}, {1, 1});
  c.host->step.clear();
  for (std::int32_t rank = 0; rank < 2; ++rank) {
    c.processes.push_back({rank, {100 + rank, 200 + rank}});
    for (const char* name : {"gemm", "softmax", "norm"}) {
      add_function(c, name, "gpu_compute", "GPU", {2, rank == 0 ? 3.0 : 3.1}, {4, 4}, FunctionStatus::changed);
      c.functions.back().process = static_cast<std::uint32_t>(rank);
    }
    add_resource(c, "gpu_sm_frequency", "GPU", {1200, 800});
    c.resources.back().rank = rank;
  }
  const auto verdicts = diagnose(c);
  ASSERT_EQ(verdicts.size(), 1U);
  EXPECT_EQ(verdicts[0].rank, -1);
  EXPECT_THAT(verdicts[0].evidence, Contains("The same on 1 other rank"));
}

TEST(LookAlike, WhatThreadsOfTablesWaitedTogetherIsNoMoreThanAStep) {
  RunComparison c = comparison();
  set_step(c, {800, 820}, {30, 3030}, {0, 0});
  c.host->step_thread.clear();
  c.cycle_times[0].time_ns = {500e6, 764e6};
  c.host->beside = {{"other processes", "fraction", {0.02, 0.52}}};
  add_function(c, "gemm", "gpu_compute", "GPU", {100, 250}, {4, 4}, FunctionStatus::changed);
  const auto verdicts = diagnose(c);
  ASSERT_EQ(verdicts.size(), 2U);
  EXPECT_EQ(verdicts[0].cause, "cpu_contention");
  EXPECT_NEAR(verdicts[0].impact_ns, 264e6, 1);
  EXPECT_NEAR(verdicts[1].share, 150.0 / 414, 1e-6);
}

TEST(LookAlike, AVersionThatOneSideDoesNotTellIsNotKnown) {
  RunComparison c = comparison();
  set_step(c, {10, 13}, {0, 0}, {0, 0});
  c.environment = {{"env.gpu.driver", {"550.54", ""}}};
  EXPECT_THAT(causes(c), ElementsAre("unknown"));
  c.environment = {{"env.gpu.driver", {"550.54", "570.10"}}};
  EXPECT_THAT(causes(c), ElementsAre("environment_changed/version"));
}

TEST(LookAlike, UnitsOfWorkThatTakeAsLongNeedNoSetting) {
  for (const double worked : {1.005, 1.3}) {
    RunComparison c = comparison(Outcome::inconclusive);
    c.work.emplace();
    c.work->throughput.change = 1 / worked - 1;
    c.work->worked.value = {1e6, 1e6 * worked};
    c.work->parts = {{"on CPU", "ns", {1e6, 1e6 * worked}, {}, {}, {}}};
    c.environment = {{"env.target.package.redis", {"7.0", "7.2"}}};
    if (worked < 1.1)
      EXPECT_THAT(causes(c), IsEmpty());
    else
      EXPECT_THAT(causes(c), ElementsAre("environment_changed/version"));
  }
}

/// A program without steps whose threads wait no longer for each request, of which less are asked for.
RunComparison asked_for_less(double idle, double beside) {
  RunComparison c = comparison(Outcome::inconclusive);
  model::WorkComparison& work = c.work.emplace();
  work.throughput = {"throughput", "1/s", {28000, 21000}, -0.25, -0.4, 0.05};
  work.worked.value = {100e3, 80e3};
  work.parts = {{"on CPU", "ns", {47e3, 38e3}, {}, {}, {}},
                {"runnable, in the run queue", "ns", {53e3, 42e3}, {}, {}, {}}};
  add_counter(c, "host.cpu.idle", {0.09, idle});
  add_beside(c, "stress", {0, beside});
  return c;
}

TEST(LookAlike, WhoTookTheLastOfTheCpusMayHoldUpTheClient) {
  const RunComparison c = asked_for_less(0.001, 0.8);
  EXPECT_THAT(causes(c), ElementsAre("cpu_contention/other_processes"));
  const auto verdict = diagnose(c)[0];
  EXPECT_THAT(verdict.evidence, Contains("No CPU of the machine is left: they idled 0.1 % instead of 9 % of the time"));
  EXPECT_THAT(verdict.evidence, Contains("25 % less got done"));
  EXPECT_EQ(verdict.against.size(), 1U);
  EXPECT_THAT(causes(swapped(asked_for_less(0.001, 0.8))), ElementsAre("-cpu_contention/other_processes"));
}

TEST(LookAlike, WhoWorksALittleLongerForEachMayHoldUpTheClientMoreThanThat) {
  for (const double worked : {107e3, 125e3}) {
    RunComparison c = asked_for_less(0.001, 0.8);
    c.work->worked.value = {100e3, worked};
    c.work->parts = {{"on CPU", "ns", {47e3, 47e3}, {}, {}, {}},
                     {"blocked in futex", "ns", {53e3, worked - 47e3}, {}, {}, {}}};
    if (worked < 110e3)
      EXPECT_THAT(causes(c), ElementsAre("cpu_contention/other_processes"));
    else
      EXPECT_THAT(causes(c), Not(Contains("cpu_contention/other_processes"))) << "most of it is its own";
  }
}

TEST(LookAlike, ProgramsThatEndAtOnceMayTakeTheLastOfTheCpusToo) {
  RunComparison c = asked_for_less(0.001, 0);
  add_beside(c, "client", {0.33, 0.16});
  add_counter(c, "host.cpu.others", {0.38, 0.89});
  add_counter(c, "host.cpu.forks", {4, 820});
  ASSERT_THAT(causes(c), ElementsAre("cpu_contention/other_processes"));
  EXPECT_THAT(diagnose(c)[0].evidence,
              Contains("Programs that end at once took 0.73 instead of 0.05 CPUs; 820 instead of 4 processes and "
                       "threads a second were started"))
      << "what the client took less they took more";
}

TEST(LookAlike, WhoIsAskedForLessWhileCpusAreLeftIsHeldUpByNobody) {
  EXPECT_THAT(causes(asked_for_less(0.2, 0.8)), Not(Contains("cpu_contention/other_processes")));
  EXPECT_THAT(causes(asked_for_less(0.001, 0.1)), Not(Contains("cpu_contention/other_processes")));
  RunComparison as_much = asked_for_less(0.001, 0.8);
  as_much.work->throughput = {"throughput", "1/s", {28000, 27000}, -0.04, -0.2, 0.1};
  EXPECT_THAT(causes(as_much), IsEmpty());
}

}  // namespace
}  // namespace culprit::diagnose
