#include "profile/off_cpu.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/units.h"
#include "support/trace_maker.h"

namespace culprit::profile {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing_support::TraceMaker;

/// Threads of one process, and what they are blocked in.
class Waits {
 public:
  struct At {
    Ns begin = 0;
    Ns end = 0;
  };

  std::uint32_t frame(std::string_view function, std::uint32_t caller = kNone) {
    StackFrame frame;
    frame.function = maker_.trace().strings.intern(function);
    frame.caller = caller;
    maker_.trace().stack_frames.push_back(frame);
    return static_cast<std::uint32_t>(maker_.trace().stack_frames.size() - 1);
  }
  void blocked(std::int64_t tid, std::string_view call, At at, std::uint32_t frame = kNone, std::string_view waker = "",
               std::string_view state = "blocked") {
    maker_.slice(maker_.sched(pid_of(tid), tid), "sched", state, at.begin, at.end - at.begin);
    const TrackId thread = maker_.thread(pid_of(tid), tid);
    maker_.slice(thread, "blocked", "blocked:" + std::string(call), at.begin, at.end - at.begin);
    StackSample sample;
    sample.at = at.begin;
    sample.time = at.end - at.begin;
    sample.track = thread;
    sample.frame = frame;
    sample.kind = StackSample::Kind::off_cpu;
    sample.waker = maker_.trace().strings.intern(waker);
    maker_.trace().stack_samples.push_back(sample);
  }
  /// Threads of another process have numbers from 100 on.
  static std::int64_t pid_of(std::int64_t tid) { return tid < 100 ? 10 : 20; }
  /// The process of a thread that waited gave so many.
  void answers(std::int64_t tid, std::uint64_t count) {
    StringTable& strings = trace().strings;
    DurationCounts answers{strings.intern("answer"), strings.intern("port 5432"), 0, {}};
    answers.process = trace().tracks[maker_.thread(pid_of(tid), tid)].process;
    answers.buckets = {count};
    trace().durations.push_back(answers);
  }
  /// A step of the thread 1.
  void step(At at) {
    maker_.slice(maker_.thread(10, 1), "step", "step", at.begin, at.end - at.begin);
    model::Cycle& cycle = cycles_.cycles.emplace_back();
    cycle.process = 0;
    cycle.begin = at.begin;
    cycle.period = at.end - at.begin;
  }
  TraceMaker& maker() { return maker_; }
  Trace& trace() { return maker_.trace(); }
  model::OffCpu find(const std::vector<model::WorkWindow>& windows = {{0, 100 * kMs}, {100 * kMs, 200 * kMs}}) {
    return off_cpu_in(maker_.trace(), windows, cycles_);
  }

 private:
  TraceMaker maker_;
  model::Cycles cycles_;
};

std::vector<std::string> names_of(const std::optional<model::NamedSums>& sums) {
  std::vector<std::string> names;
  if (sums)
    for (const auto& [name, row] : *sums) names.push_back(name.first + " " + name.second);
  return names;
}

const model::WindowSums& only(const std::optional<model::NamedSums>& sums) {
  EXPECT_TRUE(sums);
  EXPECT_EQ(sums->size(), 1U);
  return sums->begin()->second;
}

TEST(OffCpu, AWaitIsThatOfTheInnermostFunctionWithANameAndLiesInItsWindows) {
  Waits waits;
  const std::uint32_t named = waits.frame("write_log", waits.frame("main"));
  waits.blocked(2, "fsync", {90 * kMs, 130 * kMs}, waits.frame("libc.so+0x12", waits.frame("[unknown]", named)),
                "disk-3");
  const model::OffCpu off = waits.find();
  EXPECT_THAT(names_of(off.functions), ElementsAre("write_log fsync"));
  EXPECT_THAT(only(off.functions).ns, ElementsAre(10.0 * kMs, 30.0 * kMs));
  EXPECT_THAT(only(off.functions).count, ElementsAre(0, 1)) << "it counts where it ends";
  EXPECT_THAT(names_of(off.wakers), ElementsAre("disk-N fsync"));
  EXPECT_THAT(only(off.wakers).count, ElementsAre(0, 1));
  EXPECT_THAT(off.seconds, ElementsAre(0.1, 0.1));
  EXPECT_THAT(off.first, ElementsAre(0, 1, 2));
  EXPECT_THAT(off.steps, IsEmpty());
}

TEST(OffCpu, WaitsForInputAreToldByWhatWaitsForItHoweverDeepItIsBlocked) {
  Waits waits;
  for (int i = 0; i < 10; ++i) waits.step({20 * i * kMs, (20 * i + 20) * kMs});
  const std::uint32_t loader = waits.frame("_try_get_data (data/dataloader.py:12)", waits.frame("main (train.py:3)"));
  const std::uint32_t poll = waits.frame("__poll", waits.frame("select (selectors.py:4)", loader));
  waits.blocked(1, "poll", {10 * kMs, 18 * kMs}, poll, "worker");
  waits.blocked(1, "futex", {30 * kMs, 38 * kMs}, waits.frame("main (train.py:3)"), "other");
  waits.blocked(2, "fsync", {50 * kMs, 58 * kMs}, loader, "disk");  // it runs no steps
  const model::OffCpu off = waits.find();
  EXPECT_THAT(names_of(off.inputs), ElementsAre("_try_get_data (data/dataloader.py) poll"));
  EXPECT_THAT(only(off.inputs).ns, ElementsAre(8.0 * kMs, 0));
  const auto ended = off.ended_by.find({"__poll", "poll"});
  ASSERT_NE(ended, off.ended_by.end());
  EXPECT_THAT(ended->second, ElementsAre(::testing::Pair("worker", 8.0 * kMs)));
  EXPECT_TRUE(off.ended_by.contains({"_try_get_data (data/dataloader.py)", "poll"}));
}

TEST(OffCpu, CodeWithoutANameIsThatOfItsFileAndFunctionsOfPythonHaveNoLines) {
  Waits waits;
  waits.blocked(2, "fsync", {10 * kMs, 20 * kMs}, waits.frame("libc.so+0x12", waits.frame("[unknown]")));
  waits.blocked(2, "fsync", {30 * kMs, 40 * kMs}, waits.frame("save (model.py:12)"));
  waits.blocked(2, "fsync", {50 * kMs, 60 * kMs});
  EXPECT_THAT(names_of(waits.find().functions),
              ElementsAre("[libc.so] fsync", "[no stack] fsync", "save (model.py) fsync"));
}

TEST(OffCpu, ASleepIsThatOfWhoAsksForIt) {
  Waits waits;
  for (Ns at = 0; at < 200 * kMs; at += 40 * kMs) waits.step({at, at + 40 * kMs});
  const std::uint32_t limiter = waits.frame("Limiter.wait (limiter.py:12)");
  waits.blocked(1, "clock_nanosleep", {10 * kMs, 20 * kMs},
                waits.frame("libc.so.6+0x9", waits.frame("__nanosleep", waits.frame("usleep", limiter))), "idle");
  waits.blocked(1, "clock_nanosleep", {30 * kMs, 40 * kMs}, waits.frame("clock_nanosleep@@GLIBC_2.17"), "idle");
  waits.blocked(1, "fsync", {50 * kMs, 60 * kMs}, waits.frame("sleep", limiter), "idle");
  EXPECT_THAT(names_of(waits.find().functions),
              ::testing::UnorderedElementsAre("Limiter.wait (limiter.py) clock_nanosleep",
                                              "clock_nanosleep@@GLIBC_2.17 clock_nanosleep", "sleep fsync"));
}

TEST(OffCpu, WithoutAnyStackThereAreNoFunctionsAndWithoutWaitsNothingIsTold) {
  Waits waits;
  waits.blocked(2, "fsync", {10 * kMs, 20 * kMs}, kNone, "main");
  EXPECT_FALSE(waits.find().functions);
  EXPECT_EQ(names_of(waits.find().wakers).size(), 1U);
  Waits none;
  EXPECT_FALSE(none.find().wakers);
  none.trace().ranks.front().metadata = {{"sched.shortest_blocked_ns", "10000"}};
  const model::OffCpu told = none.find();
  EXPECT_TRUE(told.wakers);
  EXPECT_EQ(told.shortest, "10000");
}

TEST(OffCpu, WaitsForWorkAndOfPoolsAreLeftOut) {
  Waits waits;
  const std::uint32_t f = waits.frame("f");
  waits.blocked(2, "epoll_wait", {0, 50 * kMs}, f, "a");
  waits.blocked(3, "futex", {0, 50 * kMs}, f, "b");
  waits.blocked(3, "fdatasync", {60 * kMs, 61 * kMs}, f, "c");
  waits.blocked(4, "epoll_wait", {0, 50 * kMs}, f, "d");
  waits.blocked(4, "futex", {60 * kMs, 65 * kMs}, f, "e");
  EXPECT_THAT(names_of(waits.find().wakers), ElementsAre("c fdatasync", "e futex"))
      << "a lock is in the work of a thread that waits for events";
}

TEST(OffCpu, WhoAnswersByHimselfWaitsForAThreadOfTheProgramThatWakesHim) {
  Waits waits;
  const auto woken = [&](std::int64_t tid, std::string_view by, std::int64_t its_tid) {
    ThreadSched sched;
    sched.track = waits.maker().sched(Waits::pid_of(tid), tid);
    sched.woken_by = {{waits.trace().strings.intern(by), its_tid, 3, 0}};
    return sched;
  };
  const auto asks = [&](std::int64_t tid, Ns at, std::string_view waker) {
    waits.blocked(tid, "epoll_wait", {at, at + 5 * kMs}, kNone, waker);
  };
  for (const Ns at : {0 * kMs, 10 * kMs, 20 * kMs}) asks(2, at, "client");
  asks(2, 30 * kMs, "backend");
  for (const Ns at : {0 * kMs, 10 * kMs}) asks(3, at, "acceptor");  // a pool's: its work comes from there
  asks(4, 0, "twin");
  asks(4, 10 * kMs, "client");
  asks(4, 20 * kMs, "client");
  // Who writes now and then sleeps until it is time to, or until somebody wants it earlier.
  for (const Ns at : {0 * kMs, 10 * kMs, 20 * kMs}) asks(101, at, "time");
  asks(101, 30 * kMs, "backend");
  waits.answers(2, 1000);
  waits.trace().sched = {woken(2, "backend", 3), woken(3, "acceptor", 2), woken(4, "twin", 99),
                         woken(101, "backend", 3)};
  const model::OffCpu off = waits.find();
  EXPECT_THAT(names_of(off.handed), ElementsAre("backend epoll_wait")) << "a client may be named alike";
  EXPECT_THAT(only(off.handed).ns, ElementsAre(5e6, 0));
  EXPECT_THAT(names_of(off.wakers), IsEmpty());
}

TEST(OffCpu, AReadThatNoSignalEndsIsPartOfTheWorkAndAStoppedThreadIsNot) {
  Waits waits;
  waits.blocked(2, "read", {0, 50 * kMs}, kNone, "pipe");
  waits.blocked(3, "read", {0, 50 * kMs}, kNone, "disk", "blocked_uninterruptible");
  waits.blocked(3, "stopped", {60 * kMs, 70 * kMs}, kNone, "shell", "stopped");
  EXPECT_THAT(names_of(waits.find().wakers), ElementsAre("disk read"));
}

TEST(OffCpu, TheThreadOfTheStepsWaitsInThemAndWhoSleepsThroughOneDoesNot) {
  Waits waits;
  for (Ns at = 0; at < 200 * kMs; at += 40 * kMs) waits.step({at, at + 40 * kMs});
  waits.blocked(1, "futex", {10 * kMs, 20 * kMs}, kNone, "loader");
  waits.blocked(1, "futex", {30 * kMs, 85 * kMs}, kNone, "client");
  waits.blocked(2, "futex", {10 * kMs, 20 * kMs}, kNone, "main");
  const model::OffCpu off = waits.find();
  EXPECT_THAT(names_of(off.wakers), ElementsAre("loader futex"));
  EXPECT_THAT(off.steps, ElementsAre(DoubleNear(2.5, 1e-9), DoubleNear(2.5, 1e-9)));
}

TEST(OffCpu, AWaitThatHadNotEndedWasEndedByNobody) {
  Waits waits;
  waits.blocked(2, "fsync", {10 * kMs, 150 * kMs}, waits.frame("f"));
  const model::OffCpu off = waits.find();
  EXPECT_THAT(names_of(off.wakers), IsEmpty());
  EXPECT_EQ(names_of(off.functions).size(), 1U);
}

TEST(OffCpu, ManyWindowsArePutTogether) {
  Waits waits;
  waits.blocked(2, "fsync", {10 * kMs, 20 * kMs}, waits.frame("f"));
  std::vector<model::WorkWindow> windows(100);
  for (std::size_t w = 0; w < windows.size(); ++w) {
    windows[w].begin = static_cast<Ns>(w) * 10 * kMs;
    windows[w].end = windows[w].begin + 10 * kMs;
  }
  const model::OffCpu off = waits.find(windows);
  ASSERT_EQ(off.seconds.size(), 34U);
  EXPECT_DOUBLE_EQ(off.seconds[0], 0.03);
  EXPECT_DOUBLE_EQ(off.seconds[33], 0.01);
  EXPECT_EQ(off.first[33], 99U);
  EXPECT_EQ(off.first[34], 100U);
  EXPECT_DOUBLE_EQ(only(off.functions).ns[0], 10.0 * kMs);
}

TEST(OffCpu, RivalsAreProcessesWhereTheyAreRecordedElseThreads) {
  Waits waits;
  const TrackId waiting = waits.maker().sched(10, 1);
  waits.maker().sched(20, 21);
  Trace& trace = waits.trace();
  trace.processes[trace.tracks.back().process].name = trace.strings.intern("trainer");
  trace.sched.push_back({});
  trace.sched.back().track = waiting;
  const auto rival = [&](Ns at, std::int64_t tid, std::string_view name, Ns time) {
    trace.rivals.push_back({at, waiting, trace.strings.intern(name), tid, 2, time});
  };
  rival(50 * kMs, 21, "loader-7", 4 * kMs);
  rival(75 * kMs, 99, "stress-ng-1", 10 * kMs);
  const model::OffCpu off = waits.find();
  ASSERT_TRUE(off.rivals);
  ASSERT_EQ(names_of(off.rivals), (std::vector<std::string>{"stress-ng-N ", "trainer "}));
  const model::WindowSums& other = off.rivals->begin()->second;
  EXPECT_THAT(other.ns, ElementsAre(DoubleNear(5.0 * kMs, 1), DoubleNear(5.0 * kMs, 1))) << "half of it in each";
  EXPECT_THAT(other.count, ElementsAre(DoubleNear(1, 1e-9), DoubleNear(1, 1e-9)));
  EXPECT_THAT(off.rivals->rbegin()->second.ns, ElementsAre(DoubleNear(4.0 * kMs, 1), 0));
}

}  // namespace
}  // namespace culprit::profile
