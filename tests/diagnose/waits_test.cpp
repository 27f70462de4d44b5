// Rules about what threads wait for: input, a lock, another thread.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "comparison.h"

namespace culprit::diagnose {
namespace {

using model::Outcome;
using model::RunComparison;
using model::VerdictState;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kLoader = "_MultiProcessingDataLoaderIter._try_get_data (data/dataloader.py)";

TEST(WaitRules, AThreadThatHoldsTheLock) {
  RunComparison c = comparison();
  set_step(c, {10, 10}, {0.1, 0.2}, {0.2, 8});
  add_state(c, "blocked in futex", {0.2, 9});
  c.python.push_back({"_hold (gil_fault.py)", {0, 0.47}});
  EXPECT_THAT(causes(c), testing::ElementsAre("host_bound/gil in _hold (gil_fault.py)"));
  set_step(c, {10, 10}, {0.1, 0.2}, {0.2, 0.2});  // it runs beside, and nobody waits
  c.outcome = Outcome::no_change;
  EXPECT_THAT(causes(c), IsEmpty());
}

TEST(WaitRules, ALockHeldInAnotherProcessThanThatOfTheSteps) {
  const auto made = [](double request_ms, double share_before) {
    RunComparison c = comparison(Outcome::inconclusive);
    set_step(c, {2.4, 2.5}, {0.3, 0.3}, {0, 0});
    c.host->states[0].value = {2.7e6, 6.8e6};  // from step to step
    add_state(c, "blocked in futex", {3, 12});
    c.host->requests.push_back({"request", {345, 137}, {88e6, request_ms * 1e6}, {154e6, 380e6}, true});
    c.python.push_back({"_hold (gil_fault.py)", {share_before, 0.3}});
    return c;
  };
  const auto verdicts = diagnose(made(215, 0));
  ASSERT_EQ(verdicts.size(), 1U);
  EXPECT_EQ(verdicts[0].detail, "gil");
  EXPECT_EQ(verdicts[0].state, VerdictState::latent);
  RunComparison decided = made(215, 0);
  decided.outcome = Outcome::regression;
  ASSERT_EQ(diagnose(decided).size(), 1U);
  EXPECT_EQ(diagnose(decided)[0].detail, "gil");
  EXPECT_EQ(diagnose(decided)[0].state, VerdictState::active);
  EXPECT_TRUE(diagnose(made(88, 0)).empty());     // fewer requests come, and each takes as long
  EXPECT_TRUE(diagnose(made(215, 0.1)).empty());  // it was there before
  RunComparison few = made(215, 0);
  few.host->requests[0].moved = false;  // too few to be sure of
  EXPECT_EQ(diagnose(few).size(), 1U);
}

TEST(WaitRules, WhatRanInAProcessWhoseThreadsDoNotWaitHeldNoLock) {
  RunComparison c = comparison();
  set_step(c, {10, 10}, {0.1, 0.2}, {0.2, 8});
  add_state(c, "blocked in futex", {0.2, 9});
  c.python.push_back({"augment (images.py)", {0, 0.47}, {model::kNoNumber, 0.1}});
  EXPECT_THAT(causes(c), ElementsAre("unknown"));
  c.on_cpu.push_back({"decode_jpeg", {0, 0.4}, {model::kNoNumber, 0}});
  EXPECT_THAT(causes(c), ElementsAre("unknown"));
  c.python.push_back({"_hold (gil_fault.py)", {0, 0.3}, {model::kNoNumber, 0.97}});
  EXPECT_THAT(causes(c), ElementsAre("host_bound/gil in _hold (gil_fault.py)"));
}

/// One row of where threads were blocked, or of who ended that, ms per step.
model::OffCpuChange wait(const std::string& name, const std::string& call, std::array<double, 2> ms) {
  model::OffCpuChange change;
  change.name = name;
  change.call = call;
  change.ns_per_unit = {ms[0] * 1e6, ms[1] * 1e6};
  change.per_unit = {1, 1};
  return change;
}

/// Steps of 6 ms take 14; their thread is blocked for 8 ms longer, in `function`.
RunComparison blocked_longer(const std::string& function, const std::string& call) {
  RunComparison c = comparison();
  set_step(c, {4, 4}, {0.1, 0.1}, {2, 10});
  add_state(c, "blocked in " + call, {2, 10});
  c.off_cpu.per = "step";
  c.off_cpu.functions.push_back(wait(function, call, {1.5, 9}));
  return c;
}

TEST(WaitRules, InputThatComesLateIsSeenByWhereTheThreadIsBlocked) {
  for (const char* call : {"poll", "futex", "read"}) {
    const RunComparison c = blocked_longer(kLoader, call);
    const auto verdicts = diagnose(c);
    ASSERT_EQ(verdicts.size(), 1U) << call;
    EXPECT_EQ(verdicts[0].detail, "data_input");
    EXPECT_EQ(verdicts[0].where, kLoader);
    EXPECT_EQ(verdicts[0].state, VerdictState::active);
    EXPECT_NEAR(verdicts[0].impact_ns, 7.5e6, 1);
    EXPECT_THAT(verdicts[0].evidence[0], HasSubstr("9.000ms instead of 1.500ms per step"));
  }
}

TEST(WaitRules, InputIsWhatTheThreadStandsInWhereverItIsBlockedThere) {
  RunComparison c = blocked_longer("__poll", "poll");
  c.off_cpu.inputs.push_back(wait(kLoader, "poll", {1.5, 9}));
  EXPECT_THAT(causes(c), ElementsAre(std::string("host_bound/data_input in ") + kLoader));
  c.off_cpu.inputs[0] = wait(kLoader, "poll", {1.5, 3});  // of eight
  EXPECT_THAT(causes(c), ElementsAre("unknown"));
}

TEST(WaitRules, WorkOfALoaderThatBecameHotHoldsNoLock) {
  RunComparison c = blocked_longer(kLoader, "futex");
  c.python.push_back({"augment (images.py)", {0.1, 0.6}});
  EXPECT_THAT(causes(c), ElementsAre(std::string("host_bound/data_input in ") + kLoader));
}

TEST(WaitRules, AFewWaitsForInputBesideALockAreTheLocks) {
  RunComparison c = blocked_longer(kLoader, "futex");
  c.off_cpu.functions[0] = wait(kLoader, "futex", {1.5, 3});
  c.python.push_back({"_hold (gil_fault.py)", {0, 0.47}});
  EXPECT_THAT(causes(c), ElementsAre("host_bound/gil in _hold (gil_fault.py)"));
}

TEST(WaitRules, InputThatStepsDoNotWaitForIsNoCause) {
  RunComparison c = blocked_longer(kLoader, "poll");
  set_step(c, {4, 12}, {0.1, 0.1}, {2, 2});  // it is longer on its CPU
  EXPECT_THAT(causes(c), ElementsAre("unknown"));
  c = blocked_longer(kLoader, "poll");
  c.outcome = Outcome::no_change;
  EXPECT_THAT(causes(c), IsEmpty());
  c = blocked_longer("_pin_memory_loop (_utils/pin_memory.py)", "poll");  // that thread waits all the time
  EXPECT_THAT(causes(c), ElementsAre("unknown"));
  c = blocked_longer(kLoader, "poll");
  c.off_cpu.per = "second";
  EXPECT_THAT(causes(c), ElementsAre("unknown"));
}

TEST(WaitRules, WorkersThatHaveNoCpuAreNoSlowInput) {
  RunComparison c = blocked_longer(kLoader, "poll");
  set_step(c, {4, 4}, {0.1, 8}, {2, 10});
  add_beside(c, "stress-ng-cpu", {0, 1.5});
  EXPECT_THAT(causes(c), ElementsAre("cpu_contention/other_processes"));
}

TEST(WaitRules, WhatAThreadWroteComesFromNoDisk) {
  RunComparison c = blocked_longer(kLoader, "read");
  model::DiskChange disk;
  disk.name = "vda write";
  disk.mean_ns = {263e3, 477e3};
  c.disks.push_back(disk);
  EXPECT_THAT(causes(c), ElementsAre("disk_io"));
  c.off_cpu.wakers = {wait("interrupt or idle", "read", {1, 8.8})};  // a disk
  EXPECT_THAT(causes(c), ElementsAre("disk_io"));
  c.off_cpu.wakers = {wait("pt_data_worker", "read", {1, 8.8})};
  EXPECT_THAT(causes(c), ElementsAre(std::string("host_bound/data_input in ") + kLoader));
  c.host->states.back().value[1] = 18e6;  // the worker reads files, too
  EXPECT_THAT(causes(c), ElementsAre("disk_io"));
}

TEST(WaitRules, InputIsTheFunctionsWhereTheseAreKnown) {
  RunComparison c = blocked_longer(kLoader, "poll");
  add_function(c, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", "annotation", "Host", {1, 9}, {1, 1},
               model::FunctionStatus::changed);
  ASSERT_EQ(diagnose(c).size(), 1U);
  EXPECT_NEAR(diagnose(c)[0].confidence, 0.9, 1e-9);
}

/// A thread that fills a queue is late.
RunComparison late_filler() {
  RunComparison c = blocked_longer("Condition.wait (threading.py)", "futex");
  c.off_cpu.wakers = {wait("filler", "futex", {1.2, 8.7}), wait("logger", "futex", {0.3, 0.2})};
  return c;
}

TEST(WaitRules, AThreadThatIsLateIsNamed) {
  const auto verdicts = diagnose(late_filler());
  ASSERT_EQ(verdicts.size(), 1U);
  EXPECT_EQ(verdicts[0].cause, "host_bound");
  EXPECT_EQ(verdicts[0].detail, "waits_for");
  EXPECT_EQ(verdicts[0].where, "filler");
  EXPECT_NEAR(verdicts[0].confidence, 0.6, 1e-9);
  EXPECT_NEAR(verdicts[0].impact_ns, 7.5e6, 1);
  EXPECT_THAT(verdicts[0].evidence, Contains(HasSubstr("blocked in Condition.wait (threading.py) (futex) 9.000ms")));
  EXPECT_THAT(verdicts[0].evidence, Contains("A thread named filler ended most of that"));
}

TEST(WaitRules, OneOfSeveralThatEndAWaitIsNotLate) {
  RunComparison c = late_filler();
  c.off_cpu.wakers[1] = wait("logger", "futex", {1, 6});
  EXPECT_THAT(causes(c), ElementsAre("unknown"));
  c.off_cpu.wakers = {wait("interrupt or idle", "futex", {1, 8.9})};  // time, a device or a packet
  EXPECT_THAT(causes(c), ElementsAre("unknown"));
  c.off_cpu.wakers.clear();
  EXPECT_THAT(causes(c), ElementsAre("unknown"));
}

TEST(WaitRules, WhoEndedAWaitIsKnownWhereTheirNumberIsTheSame) {
  RunComparison c = late_filler();
  c.off_cpu.wakers.clear();
  c.off_cpu.functions[0].ended_by[1] = "filler";
  EXPECT_THAT(causes(c), ElementsAre("host_bound/waits_for in filler"));
  c.off_cpu.functions[0].ended_by[1] = "interrupt or idle";
  EXPECT_THAT(causes(c), ElementsAre("unknown"));
}

TEST(WaitRules, WhatTheKernelDoesIsNobodysThread) {
  for (const char* kernel : {"kworker/u8:N-kcryptd", "ksoftirqd/N", "stress-ng (softirq)"}) {
    RunComparison c = late_filler();
    c.off_cpu.wakers.clear();
    c.off_cpu.functions[0].ended_by[1] = kernel;
    EXPECT_THAT(causes(c), ElementsAre("unknown")) << kernel;
    RunComparison read = blocked_longer(kLoader, "read");
    model::DiskChange disk;
    disk.name = "vda read";
    disk.mean_ns = {263e3, 477e3};
    read.disks.push_back(disk);
    read.off_cpu.wakers = {wait(kernel, "read", {1, 8.8})};
    EXPECT_THAT(causes(read), ElementsAre("disk_io")) << kernel;
  }
}

TEST(WaitRules, WaitsThatStepsDoNotFeelAreOfIdleThreads) {
  RunComparison c = late_filler();
  set_step(c, {4, 12}, {0.1, 0.1}, {2, 2});
  EXPECT_THAT(causes(c), ElementsAre("unknown"));
  c = late_filler();
  c.off_cpu.functions[0] = wait("Condition.wait (threading.py)", "futex", {1.5, 4});  // of eight
  EXPECT_THAT(causes(c), ElementsAre("unknown"));
}

TEST(WaitRules, WhatExplainsALateThreadIsToldInstead) {
  RunComparison c = late_filler();
  c.python.push_back({"_hold (gil_fault.py)", {0, 0.47}});
  EXPECT_THAT(causes(c), ElementsAre("host_bound/gil in _hold (gil_fault.py)"));
  c = late_filler();
  add_state(c, "runnable", {0.2, 7});  // it had no CPU
  EXPECT_THAT(causes(c), ElementsAre("unknown"));
  c = late_filler();
  c.off_cpu.functions[0].call = c.off_cpu.wakers[0].call = "fsync";
  EXPECT_THAT(causes(c), ElementsAre("unknown"));
}

/// Each step sleeps.
RunComparison sleeping() { return blocked_longer("Limiter.wait (limiter.py)", "clock_nanosleep"); }

TEST(WaitRules, WhoAsksForASleepIsNamed) {
  const auto verdicts = diagnose(sleeping());
  ASSERT_EQ(verdicts.size(), 1U);
  EXPECT_EQ(verdicts[0].cause, "host_bound");
  EXPECT_EQ(verdicts[0].detail, "sleep");
  EXPECT_EQ(verdicts[0].where, "Limiter.wait (limiter.py)");
  EXPECT_NEAR(verdicts[0].impact_ns, 7.5e6, 1);
  EXPECT_THAT(verdicts[0].evidence,
              Contains(HasSubstr("slept in Limiter.wait (limiter.py) (clock_nanosleep) 9.000ms")));
  RunComparison nameless = blocked_longer("[no stack]", "clock_nanosleep");
  EXPECT_THAT(causes(nameless), ElementsAre("host_bound/sleep"));
}

TEST(WaitRules, SleepsThatStepsDoNotFeelAreNoCause) {
  RunComparison c = sleeping();
  set_step(c, {4, 12}, {0.1, 0.1}, {2, 2});
  EXPECT_THAT(causes(c), ElementsAre("unknown"));
  c = sleeping();
  c.host->answered_per_second = {100, 40};  // fewer came, and none took longer
  c.host->requests.push_back({"request", {300, 120}, {88e6, 88e6}, {154e6, 154e6}, false});
  EXPECT_THAT(causes(c), ElementsAre("unknown"));
  c = sleeping();
  add_state(c, "runnable", {0.2, 7});
  EXPECT_THAT(causes(c), ElementsAre("unknown"));
  EXPECT_THAT(causes(blocked_longer("Limiter.wait (limiter.py)", "poll")), ElementsAre("unknown"));
}

TEST(WaitRules, WhoHasLessToDoWaitsForNobody) {
  RunComparison c = late_filler();
  c.host->answered_per_second = {100, 40};
  c.host->requests.push_back({"request", {300, 120}, {88e6, 88e6}, {154e6, 154e6}, false});
  EXPECT_THAT(causes(c), ElementsAre("unknown"));
  c.host->requests[0].median[1] = 160e6;
  EXPECT_THAT(causes(c), ElementsAre("host_bound/waits_for in filler"));
}

TEST(WaitRules, AThreadThatWasLateInTheBaselineIsTheBaselines) {
  RunComparison c = swapped(late_filler());
  for (auto* list : {&c.off_cpu.functions, &c.off_cpu.wakers})
    for (model::OffCpuChange& change : *list) std::swap(change.ns_per_unit[0], change.ns_per_unit[1]);
  EXPECT_THAT(causes(c), ElementsAre("-host_bound/waits_for in filler"));
}

/// Requests of a database wait, and its threads meanwhile until another one wakes them.
RunComparison behind_a_lock() {
  RunComparison c = comparison();
  set_work(c, model::UnitKind::transaction, {0.26, 0.29}, {0.4, 0.42}, "fdatasync", {0.2, 0.2});
  c.work->waited = {0.8e6, 2.4e6};
  c.off_cpu.per = "transaction";
  c.off_cpu.handed = {wait("postgres", "epoll_wait", {0, 1.1})};
  return c;
}

TEST(WaitRules, RequestsThatWaitForAnotherThreadOfTheProgramItself) {
  const auto verdicts = diagnose(behind_a_lock());
  ASSERT_EQ(verdicts.size(), 1U);
  EXPECT_EQ(verdicts[0].cause, "host_bound");
  EXPECT_EQ(verdicts[0].detail, "waits_for");
  EXPECT_EQ(verdicts[0].where, "postgres");
  EXPECT_NEAR(verdicts[0].impact_ns, 1.1e6, 1);
  EXPECT_THAT(verdicts[0].evidence,
              Contains(HasSubstr("slept in epoll_wait until a thread named postgres of the program "
                                 "itself woke them 1.100ms instead of 0.000us per transaction")));
  RunComparison little = behind_a_lock();
  little.off_cpu.handed[0].ns_per_unit[1] = 0.5e6;
  EXPECT_THAT(causes(little), ElementsAre("unknown"));
  RunComparison both = behind_a_lock();
  both.work->parts[2].value = {0.2e6, 0.35e6};
  both.off_cpu.functions = {wait("[no stack]", "futex", {0.1, 0.25})};
  both.off_cpu.functions[0].ended_by[1] = "postgres";
  ASSERT_THAT(causes(both), ElementsAre("host_bound/waits_for in postgres"));
  EXPECT_NEAR(diagnose(both)[0].impact_ns, 1.25e6, 1);
  RunComparison calm = behind_a_lock();
  calm.work->waited = {0, 0};
  EXPECT_THAT(causes(calm), ElementsAre("unknown")) << "no answer was late";
}

TEST(WaitRules, WhoHoldsTheLockIsLateByTheDisk) {
  RunComparison c = behind_a_lock();
  c.work->parts[2].value = {0.2e6, 0.5e6};
  model::DiskChange disk;
  disk.name = "vda write";
  disk.mean_ns = {63e3, 207e3};
  c.disks.push_back(disk);
  const auto verdicts = diagnose(c);
  ASSERT_EQ(verdicts.size(), 1U);
  EXPECT_EQ(verdicts[0].cause, "disk_io");
  EXPECT_NEAR(verdicts[0].impact_ns, 1.4e6, 1);
  EXPECT_THAT(verdicts[0].evidence, Contains(HasSubstr("until a thread named postgres")));
}

TEST(WaitRules, ASideThatWasDeadlockedAllTheTimeHangs) {
  RunComparison c = comparison(Outcome::not_comparable);
  c.deadlocked = model::DeadlockedSide{1, {"futex (2)", true}};
  EXPECT_THAT(causes(c), ElementsAre("hang/wait"));
  c.deadlocked->side = 0;
  EXPECT_THAT(causes(c), ElementsAre("-hang/wait"));
}

TEST(WaitRules, OfIdleProgramsNothingIsSlower) {
  RunComparison c = comparison(Outcome::inconclusive);
  set_work(c, model::UnitKind::window, {0.1, 0.1}, {0.1, 1});
  add_beside(c, "stress-ng-cpu", {0, 1.9});
  EXPECT_THAT(causes(c), testing::Not(IsEmpty()));
  c.work->idle = true;
  EXPECT_THAT(causes(c), IsEmpty());
}

TEST(WaitRules, WhatNobodyKnowsIsToldByWhereThreadsWereBlocked) {
  RunComparison c = late_filler();
  c.off_cpu.wakers.clear();
  EXPECT_THAT(diagnose(c)[0].evidence,
              Contains("Threads were blocked in Condition.wait (threading.py) (futex) 9.000ms instead of 1.500ms per "
                       "step"));
  add_state(c, "runnable", {0.2, 7});
  c.off_cpu.wakers = {wait("filler", "futex", {1.2, 8.7})};
  ASSERT_THAT(causes(c), ElementsAre("unknown"));
  EXPECT_THAT(diagnose(c)[0].evidence, Contains(HasSubstr("per step, until a thread named filler woke them")));
  c.off_cpu.functions[0] = wait("Condition.wait (threading.py)", "futex", {1.5, 2});  // of eight
  EXPECT_THAT(diagnose(c)[0].evidence, testing::Not(Contains(HasSubstr("Condition.wait"))));
}

}  // namespace
}  // namespace culprit::diagnose
