// Threads that could not run for most of a recording.
#include "profile/held_threads.h"

#include <gtest/gtest.h>

#include <optional>
#include <string_view>

#include "core/units.h"
#include "profile/recording.h"
#include "trace/builder.h"

namespace culprit::profile {
namespace {

class ThreadsRecorded {
 public:
  void state(std::int64_t tid, std::string_view name, Ns begin, Ns end) {
    add(TrackKind::sched, "sched", tid, name, begin, end);
  }
  void reason(std::int64_t tid, std::string_view name, Ns begin, Ns end) {
    add(TrackKind::thread, "blocked", tid, name, begin, end);
  }
  void function(std::int64_t tid, std::string_view name, Ns begin, Ns end) {
    add(TrackKind::thread, "python", tid, name, begin, end);
  }
  void step(Ns begin, Ns end) { add(TrackKind::thread, "step", 7, "step", begin, end); }
  Trace finish() { return std::move(builder_).finish(); }

 private:
  void add(TrackKind kind, std::string_view category, std::int64_t tid, std::string_view name, Ns begin, Ns end) {
    TrackKey key;
    key.pid = 7;
    key.tid = tid;
    key.kind = kind;
    Slice slice;
    slice.begin = begin;
    slice.duration = end - begin;
    slice.name = builder_.intern(name);
    slice.track = builder_.track(key);
    slice.category = builder_.category(category);
    builder_.name_thread(slice.track, builder_.intern(tid == 7 ? "worker" : "helper"));
    builder_.name_process(builder_.process(7, 0), builder_.intern("server"));
    builder_.add(slice);
  }

  TraceBuilder builder_{Rank{}};
};

TEST(HeldThreads, WhoCouldNotRunForFourFifthsIsOne) {
  ThreadsRecorded r;
  r.state(7, "oncpu", 0, 10);
  r.state(7, "runq", 10, 900);
  r.state(7, "blocked", 900, 1000);
  r.state(8, "runq", 0, 700);  // less than four fifths
  r.state(8, "blocked", 700, 1000);
  const auto held = held_threads(r.finish());
  ASSERT_EQ(held.size(), 1U);
  EXPECT_EQ(held[0].name, "worker");
  EXPECT_EQ(held[0].process, "server");
  EXPECT_TRUE(held[0].main);
  EXPECT_EQ(held[0].recorded, 1000);
  EXPECT_EQ(held[0].on_cpu, 10);
  EXPECT_EQ(held[0].runnable, 890);
  EXPECT_EQ(held[0].stopped, 0);
}

TEST(HeldThreads, StoppedAndAsleepWithoutSignalsAreAlikeToIt) {
  ThreadsRecorded r;
  r.state(7, "stopped", 0, 600 * kMs);
  r.state(7, "blocked_uninterruptible", 600 * kMs, 1100 * kMs);
  r.state(7, "oncpu", 1100 * kMs, 1200 * kMs);
  r.state(8, "runq", 0, 1200 * kMs);
  const auto held = held_threads(r.finish());
  ASSERT_EQ(held.size(), 2U);
  EXPECT_EQ(held[0].stopped, 600 * kMs);
  EXPECT_EQ(held[0].uninterruptible, 500 * kMs);
  EXPECT_FALSE(held[1].main);
}

TEST(HeldThreads, WhoReadsFromADiskAllTheTimeIsNone) {
  ThreadsRecorded r;
  for (Ns i = 0; i < 20; ++i) {
    r.state(7, "oncpu", i * 100 * kMs, (i * 100 + 1) * kMs);
    r.state(7, "blocked_uninterruptible", (i * 100 + 1) * kMs, (i + 1) * 100 * kMs);
  }
  EXPECT_TRUE(held_threads(r.finish()).empty());
}

TEST(HeldThreads, WhoWasSeenForAMomentIsNone) {
  ThreadsRecorded r;
  r.state(7, "runq", 990, 1000);
  r.state(8, "oncpu", 0, 1000);
  EXPECT_TRUE(held_threads(r.finish()).empty());
}

TEST(HeldThreads, WhomNobodyWokeWasWaitingBefore) {
  const auto held_in = [](Ns first, std::string_view state, bool sees_wakers) {
    ThreadsRecorded r;
    r.state(8, "oncpu", 0, 1000);
    r.state(7, state, first, first + 1);
    r.state(7, "runq", first + 1, 1000);
    Trace trace = r.finish();
    if (sees_wakers) trace.ranks.front().metadata.emplace_back("sched.source", "ebpf");
    return held_threads(trace);
  };
  const auto held = held_in(720, "oncpu", true);
  ASSERT_EQ(held.size(), 1U);
  EXPECT_EQ(held[0].recorded, 1000);
  EXPECT_EQ(held[0].runnable, 999);
  EXPECT_TRUE(held_in(720, "runq", true).empty()) << "it was woken then";
  EXPECT_TRUE(held_in(720, "oncpu", false).empty()) << "nobody tells who was";
  EXPECT_TRUE(held_in(950, "oncpu", true).empty()) << "it may have been made then";
}

TEST(HeldThreads, WhoWaitsForWorkOrWorksIsNone) {
  ThreadsRecorded r;
  r.state(7, "blocked", 0, 990);
  r.state(7, "oncpu", 990, 1000);
  r.state(8, "oncpu", 0, 1000);
  EXPECT_TRUE(held_threads(r.finish()).empty());
  EXPECT_TRUE(held_threads(ThreadsRecorded().finish()).empty());
}

/// 50 of 10 ms by thread 7.
void steps(ThreadsRecorded& r) {
  for (Ns i = 0; i < 50; ++i) {
    r.step(i * 10 * kMs, i * 10 * kMs + 8 * kMs);
    r.state(7, "oncpu", i * 10 * kMs, (i + 1) * 10 * kMs);
  }
}

/// Steps, then `rest` for two seconds; a helper runs on.
Trace steps_and(std::string_view rest, Ns until = 2500 * kMs) {
  ThreadsRecorded r;
  steps(r);
  r.state(7, rest, 500 * kMs, until);
  r.state(8, "blocked", 0, 2500 * kMs);
  return r.finish();
}

model::Cycles cycles_of_steps() {
  model::Cycles cycles;
  for (std::uint32_t i = 0; i < 50; ++i) {
    model::Cycle& cycle = cycles.cycles.emplace_back();
    cycle.number = i + 1;
    cycle.process = 0;
    cycle.begin = static_cast<Ns>(i) * 10 * kMs;
    cycle.period = i == 49 ? 0 : 10 * kMs;
  }
  return cycles;
}

bool is_held(const std::optional<model::LongEnd>& end) { return end && end->held; }

TEST(LongEnd, WhoIsStoppedAfterItsStepsIsHeld) {
  for (const std::string_view state : {"stopped", "runq", "blocked_uninterruptible"}) {
    const auto end = long_end(steps_and(state), cycles_of_steps());
    ASSERT_TRUE(is_held(end)) << state;
    EXPECT_EQ(end->thread.name, "worker");
    EXPECT_EQ(end->thread.recorded, 2010 * kMs) << "since the last step began";
    EXPECT_EQ(end->thread.on_cpu, 10 * kMs);
    EXPECT_EQ(end->thread.stopped + end->thread.runnable + end->thread.uninterruptible, 2000 * kMs);
  }
}

TEST(LongEnd, WhoWaitsOrWorksIsNotHeldAndWhoEndedHasNone) {
  for (const std::string_view state : {"blocked", "oncpu"}) {
    const auto end = long_end(steps_and(state), cycles_of_steps());
    ASSERT_TRUE(end.has_value()) << state;
    EXPECT_FALSE(end->held || end->in_step || end->for_work) << state;
    EXPECT_EQ(end->waits_in, "");
  }
  EXPECT_FALSE(long_end(steps_and("stopped", 2000 * kMs), cycles_of_steps()).has_value()) << "it ended";
  EXPECT_FALSE(long_end(steps_and("stopped"), {}).has_value()) << "no steps";
}

TEST(LongEnd, AStepThatDoesNotEndIsTold) {
  ThreadsRecorded r;
  steps(r);
  r.step(490 * kMs, 2500 * kMs);
  r.state(7, "oncpu", 500 * kMs, 2500 * kMs);
  const auto end = long_end(r.finish(), cycles_of_steps());
  ASSERT_TRUE(end.has_value());
  EXPECT_TRUE(end->in_step);
  EXPECT_FALSE(end->held);
}

TEST(LongEnd, InWhatItWaitsIsToldAndWhetherForWork) {
  const auto waits = [](std::string_view usual, std::string_view last) {
    ThreadsRecorded r;
    steps(r);
    for (Ns i = 0; i < 49; ++i) r.reason(7, usual, i * 10 * kMs + 8 * kMs, (i + 1) * 10 * kMs);
    r.state(7, "blocked", 500 * kMs, 2500 * kMs);
    r.reason(7, last, 500 * kMs, 2500 * kMs);
    r.reason(8, "blocked:read", 0, 2500 * kMs);
    return long_end(r.finish(), cycles_of_steps());
  };
  const auto idle = waits("blocked:epoll_wait", "blocked:epoll_wait");
  ASSERT_TRUE(idle.has_value());
  EXPECT_EQ(idle->waits_in, "epoll_wait");
  EXPECT_TRUE(idle->for_work);
  const auto locked = waits("blocked:epoll_wait", "blocked:futex");
  ASSERT_TRUE(locked.has_value());
  EXPECT_EQ(locked->waits_in, "futex");
  EXPECT_FALSE(locked->for_work) << "its work comes from elsewhere";
  EXPECT_TRUE(waits("blocked:futex", "blocked:futex")->for_work) << "of a pool";
}

TEST(LongEnd, WhoWakesAgainAndAgainLooksForWork) {
  ThreadsRecorded r;
  steps(r);
  for (Ns i = 0; i < 49; ++i) r.reason(7, "blocked:epoll_wait", i * 10 * kMs + 8 * kMs, (i + 1) * 10 * kMs);
  for (Ns i = 0; i < 200; ++i) {
    r.state(7, "blocked", 500 * kMs + i * 10 * kMs, 500 * kMs + (i + 1) * 10 * kMs);
    r.reason(7, "blocked:futex", 500 * kMs + i * 10 * kMs, 500 * kMs + (i + 1) * 10 * kMs);
  }
  EXPECT_TRUE(long_end(r.finish(), cycles_of_steps())->for_work);
}

TEST(LongEnd, HowItWaitsForWorkHasToBeSeenInItsSteps) {
  ThreadsRecorded r;
  steps(r);
  for (Ns i = 0; i < 2; ++i) r.reason(7, "blocked:epoll_wait", i * 10 * kMs + 8 * kMs, (i + 1) * 10 * kMs);
  r.state(7, "blocked", 500 * kMs, 2500 * kMs);
  r.reason(7, "blocked:futex", 500 * kMs, 2500 * kMs);
  EXPECT_TRUE(long_end(r.finish(), cycles_of_steps())->for_work);
}

TEST(LongEnd, WhatIsCalledWithinAStepThatDoesNotEndHidesNothing) {
  ThreadsRecorded r;
  steps(r);
  r.function(7, "forward", 2400 * kMs, 2500 * kMs);
  r.step(490 * kMs, 2500 * kMs);
  r.state(7, "oncpu", 500 * kMs, 2500 * kMs);
  EXPECT_TRUE(long_end(r.finish(), cycles_of_steps())->in_step);
}

TEST(LongEnd, WhatElseIsCalledBehindAStepIsNone) {
  const auto then = [](std::string_view name, bool in_steps) {
    ThreadsRecorded r;
    steps(r);
    for (Ns i = 0; in_steps && i < 49; ++i) r.function(7, name, i * 10 * kMs + 8 * kMs, (i + 1) * 10 * kMs);
    r.function(7, name, 500 * kMs, 2500 * kMs);
    r.state(7, "oncpu", 500 * kMs, 2500 * kMs);
    return long_end(r.finish(), cycles_of_steps())->in_step;
  };
  EXPECT_FALSE(then("evaluate", false));
  EXPECT_TRUE(then("sample", true)) << "each step calls it";
}

TEST(LongEnd, WhoIsFrozenBetweenItsTurnsHasNone) {
  const Trace trace = steps_and("stopped");
  const auto whole = recording_of(trace, {"a"});
  ASSERT_TRUE(whole.ok());
  EXPECT_TRUE(is_held(whole->host.long_end));
  RecordingOptions options;
  options.within = {{0, 500 * kMs}};
  const auto turn = recording_of(trace, {"a"}, options);
  ASSERT_TRUE(turn.ok());
  EXPECT_FALSE(turn->host.long_end.has_value());
}

TEST(LongEnd, WhoEndedWithTheRecordingHasNone) {
  Trace trace = steps_and("blocked_uninterruptible");
  trace.ranks.front().metadata.emplace_back("record.end", "target_ended");
  EXPECT_FALSE(long_end(trace, cycles_of_steps()).has_value());
  Trace joined = steps_and("stopped");
  joined.ranks.front().recordings.emplace_back();
  EXPECT_FALSE(long_end(joined, cycles_of_steps()).has_value()) << "a trace has the steps";
}

TEST(LongEnd, AShortTimeIsNone) {
  ThreadsRecorded r;
  steps(r);
  r.state(7, "stopped", 500 * kMs, 1400 * kMs);
  EXPECT_FALSE(long_end(r.finish(), cycles_of_steps()).has_value());
}

}  // namespace
}  // namespace culprit::profile
