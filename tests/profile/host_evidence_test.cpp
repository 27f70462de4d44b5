#include "profile/host_evidence.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>

#include "trace/builder.h"

namespace culprit::profile {
namespace {

constexpr auto kDecode = static_cast<std::size_t>(model::Phase::decode);

/// A process with one thread whose scheduling the tests draw.
class Recording {
 public:
  void state(std::string_view name, Ns begin, Ns end) { add(TrackKind::sched, "sched", name, begin, end); }
  void blocked(std::string_view name, Ns begin, Ns end) { add(TrackKind::thread, "blocked", name, begin, end); }
  void mark(std::string_view name, Ns begin, Ns end) { add(TrackKind::thread, "nvtx", name, begin, end); }
  void other(std::string_view program, Ns at, double cpus) {
    const ProcessId process = builder_.process(99, 0);
    builder_.name_process(process, builder_.intern(program));
    builder_.add_counter(builder_.intern("other.cpu"), process, kNone, {at, cpus});
  }
  void counter(std::string_view name, Ns at, double value) {
    builder_.add_counter(builder_.intern(name), builder_.process(7, 0), kNone, {at, value});
  }
  /// Of another recorded process.
  void rival_state(std::string_view name, Ns begin, Ns end) { add(TrackKind::sched, "sched", name, begin, end, 8); }
  void rival_counter(std::string_view name, Ns at, double value) {
    builder_.add_counter(builder_.intern(name), builder_.process(8, 0), kNone, {at, value});
  }
  /// Of another thread of the process.
  void beside(TrackKind kind, std::string_view category, std::string_view name, Ns begin, Ns end) {
    add(kind, category, name, begin, end, 7, 70);
  }
  void step(std::string_view name, Ns begin, Ns end) { add(TrackKind::thread, "step", name, begin, end); }
  Trace finish() { return std::move(builder_).finish(); }

 private:
  void add(TrackKind kind, std::string_view category, std::string_view name, Ns begin, Ns end, std::int64_t pid = 7,
           std::int64_t tid = 0) {
    TrackKey key;
    key.pid = pid;
    key.tid = tid != 0 ? tid : pid;
    key.kind = kind;
    Slice slice;
    slice.begin = begin;
    slice.duration = end - begin;
    slice.name = builder_.intern(name);
    slice.track = builder_.track(key);
    slice.category = builder_.category(category);
    builder_.add(slice);
  }
  TraceBuilder builder_{Rank{}};
};

/// Three cycles of 100 ns from 0 on, of which the last has no known end.
model::Cycles three_cycles() {
  model::Cycles cycles;
  for (int i = 0; i < 3; ++i) {
    model::Cycle cycle;
    cycle.number = static_cast<std::uint32_t>(i + 1);
    cycle.process = 0;
    cycle.phase = model::Phase::decode;
    cycle.begin = i * 100;
    cycle.period = 100;
    cycles.cycles.push_back(cycle);
  }
  return cycles;
}

double total(const model::HostEvidence& evidence, std::string_view what) {
  for (const model::HostState& state : evidence.states)
    if (state.what == what) return state.total_ns[kDecode];
  return -1;
}

TEST(HostEvidence, StepsPerSecondCountThoseThatCameUntilTheEnd) {
  const auto rate = [](Ns end) {
    Recording recording;
    recording.state("oncpu", -50, end);
    return host_evidence(recording.finish(), three_cycles()).steps_per_second;
  };
  EXPECT_DOUBLE_EQ(rate(300), 1e7);
  EXPECT_DOUBLE_EQ(rate(600), 5e6) << "it stood still";
  EXPECT_DOUBLE_EQ(rate(250), 1e7) << "the last step goes on";
}

TEST(HostEvidence, StepsPerSecondOfProcessesThatEndGoToTheirLastStep) {
  constexpr Ns kLong = 1'000'000'000;
  Recording ended;
  ended.state("oncpu", 0, 300);
  ended.rival_state("oncpu", 0, kLong);
  EXPECT_DOUBLE_EQ(host_evidence(ended.finish(), three_cycles()).steps_per_second, 1e7);
  Recording whole;
  whole.state("oncpu", 0, kLong);
  Trace trace = whole.finish();
  EXPECT_DOUBLE_EQ(host_evidence(trace, three_cycles()).steps_per_second, 3);
  trace.ranks.front().metadata.emplace_back("record.end", "target_ended");
  EXPECT_DOUBLE_EQ(host_evidence(trace, three_cycles()).steps_per_second, 1e7);
}

TEST(HostEvidence, StepsPerSecondOfSeveralProcessesAreTheirMean) {
  Recording recording;
  recording.state("oncpu", 0, 300);
  recording.rival_state("oncpu", 0, 300);
  model::Cycles cycles = three_cycles();
  model::Cycle other = cycles.cycles.front();
  other.process = 1;
  other.period = 300;
  cycles.cycles.push_back(other);
  EXPECT_NEAR(host_evidence(recording.finish(), cycles).steps_per_second, (3 + 1) / 2.0 / 300e-9, 1);
}

TEST(HostEvidence, StatesAreCutAtTheWholeCycles) {
  Recording recording;
  recording.state("oncpu", -50, 30);
  recording.state("runq", 30, 60);
  recording.state("oncpu", 60, 150);
  recording.state("runq", 180, 400);
  const auto evidence = host_evidence(recording.finish(), three_cycles());
  EXPECT_TRUE(evidence.scheduling);
  EXPECT_EQ(evidence.cycles[kDecode], 2U);
  EXPECT_DOUBLE_EQ(total(evidence, "running"), 120);
  EXPECT_DOUBLE_EQ(total(evidence, "runnable"), 50);
}

TEST(HostEvidence, AReadThatNothingEndsIsOneOfAFile) {
  Recording recording;
  recording.state("blocked_uninterruptible", 10, 40);
  recording.blocked("blocked:read", 10, 40);
  recording.state("blocked", 50, 70);
  recording.blocked("blocked:read", 50, 70);
  recording.state("blocked_uninterruptible", 110, 115);  // too short for a reason
  recording.state("blocked_uninterruptible", 120, 140);
  recording.blocked("blocked:fsync", 120, 140);
  const auto evidence = host_evidence(recording.finish(), three_cycles());
  EXPECT_DOUBLE_EQ(total(evidence, "blocked in read, uninterruptible"), 30);
  EXPECT_DOUBLE_EQ(total(evidence, "blocked in read"), 20);
  EXPECT_DOUBLE_EQ(total(evidence, "blocked in fsync"), 20);
  EXPECT_DOUBLE_EQ(total(evidence, "blocked, uninterruptible"), 5);
}

TEST(HostEvidence, SleepsThatBeginAtOnceHaveOneReason) {
  Recording recording;
  recording.state("blocked_uninterruptible", 10, 40);
  recording.state("blocked_uninterruptible", 10, 10);
  recording.state("blocked_uninterruptible", 10, 30);
  recording.blocked("blocked:fsync", 10, 40);
  recording.state("blocked_uninterruptible", 50, 55);
  const auto evidence = host_evidence(recording.finish(), three_cycles());
  EXPECT_DOUBLE_EQ(total(evidence, "blocked in fsync"), 30);
  EXPECT_DOUBLE_EQ(total(evidence, "blocked, uninterruptible"), 5) << "that of the last one alone is not known";
}

TEST(HostEvidence, WithoutReasonsAllSleepThatNothingEndsIsOne) {
  Recording recording;
  recording.state("blocked_uninterruptible", 10, 40);
  recording.state("blocked_uninterruptible", 50, 70);
  const auto evidence = host_evidence(recording.finish(), three_cycles());
  EXPECT_DOUBLE_EQ(total(evidence, "blocked, uninterruptible"), 50);
}

TEST(HostEvidence, AnotherThreadsSleepIsNoReasonOfThisOne) {
  Recording recording;
  recording.blocked("blocked:read", 10, 40);
  recording.state("blocked", 10, 40);
  recording.beside(TrackKind::sched, "sched", "blocked_uninterruptible", 10, 40);
  const auto evidence = host_evidence(recording.finish(), three_cycles());
  EXPECT_DOUBLE_EQ(total(evidence, "blocked in read"), 30);
  EXPECT_DOUBLE_EQ(total(evidence, "blocked, uninterruptible"), 30);
}

TEST(HostEvidence, TheThreadOfTheStepsIsTheOneThatHasThemThoughAnotherIsFuller) {
  Recording recording;
  for (Ns at = 0; at < 300; at += 100) recording.step("step[DECODE bs=1]", at, at + 20);
  recording.state("oncpu", 0, 400);
  recording.beside(TrackKind::thread, "python", "wait", 0, 300);
  recording.beside(TrackKind::sched, "sched", "blocked", 0, 400);
  const auto evidence = host_evidence(recording.finish(), three_cycles());
  ASSERT_TRUE(evidence.step);
  EXPECT_DOUBLE_EQ(evidence.step->on_cpu[kDecode], 200);
  EXPECT_DOUBLE_EQ(evidence.step->blocked[kDecode], 0);
}

TEST(HostEvidence, TheTimeOfTheThreadThatRunsTheStepsAddsUpToThem) {
  Recording recording;
  recording.mark("step", 0, 290);
  recording.state("oncpu", -50, 30);
  recording.state("runq", 30, 60);
  recording.state("blocked", 60, 150);
  recording.state("oncpu", 150, 400);
  recording.other("rival", 0, 0.5);
  recording.other("rival", 100, 1.5);
  const auto evidence = host_evidence(recording.finish(), three_cycles());
  ASSERT_TRUE(evidence.step);
  EXPECT_DOUBLE_EQ(evidence.step->on_cpu[kDecode], 80);
  EXPECT_DOUBLE_EQ(evidence.step->runnable[kDecode], 30);
  EXPECT_DOUBLE_EQ(evidence.step->blocked[kDecode], 90);
  EXPECT_DOUBLE_EQ(evidence.period_ns[kDecode], 200);
  ASSERT_EQ(evidence.beside.size(), 1U);
  EXPECT_DOUBLE_EQ(evidence.beside.at("rival"), 1.0);
}

TEST(HostEvidence, HowMuchOfTheWaitForCpusWasBehindOthers) {
  Recording recording;
  recording.mark("step", 0, 290);
  recording.state("oncpu", -50, 30);
  recording.state("runq", 30, 60);
  recording.state("oncpu", 60, 400);
  recording.rival_state("runq", 0, 60);
  Trace trace = recording.finish();
  EXPECT_FALSE(host_evidence(trace, three_cycles()).behind_others) << "nobody tells";
  for (TrackId track = 0; track < trace.tracks.size(); ++track)
    if (trace.tracks[track].kind == TrackKind::sched) {
      ThreadSched& thread = trace.sched.emplace_back();
      thread.track = track;
      thread.behind_others = trace.tracks[track].tid == 7 ? 12 : 60;
      thread.ran_instead = {{0, 66, 1, thread.behind_others}};
    }
  EXPECT_DOUBLE_EQ(host_evidence(trace, three_cycles()).behind_others.value(), 12.0 / 30) << "of the step's thread";
  EXPECT_DOUBLE_EQ(host_evidence_per_second(trace).behind_others.value(), 72.0 / 90) << "of all";
}

TEST(HostEvidence, OfAProcessThatEndedTheLastValueHoldsNoLonger) {
  Recording recording;
  recording.state("oncpu", 0, 50);
  recording.counter("process.threads", 0, 8);
  recording.rival_state("oncpu", 0, 400);
  recording.rival_counter("process.threads", 0, 2);
  const auto evidence = host_evidence(recording.finish(), three_cycles());
  ASSERT_EQ(evidence.counters.size(), 1U);
  EXPECT_DOUBLE_EQ(evidence.counters[0].mean, 8 * 50 / 200.0 + 2);
}

TEST(HostEvidence, HalfSecondsTellWhoElseHadTheCPUsAndHowItsStepsWent) {
  constexpr Ns kTenth = 100'000'000;
  model::Cycles cycles;
  for (int i = 0; i < 13; ++i) {
    model::Cycle cycle = three_cycles().cycles.front();
    cycle.number = static_cast<std::uint32_t>(i + 1);
    cycle.begin = i * kTenth;
    cycle.period = kTenth;
    cycles.cycles.push_back(cycle);
  }
  Recording recording;
  recording.state("oncpu", 0, 13 * kTenth);
  EXPECT_TRUE(host_evidence(recording.finish(), cycles).stretches.empty()) << "nobody tells";
  Recording told;
  told.state("oncpu", 0, 13 * kTenth);
  told.counter("host.cpu.others", 0, 0.1);
  told.counter("host.cpu.others", 5 * kTenth, 1.5);
  const auto stretches = host_evidence(told.finish(), cycles).stretches;
  ASSERT_EQ(stretches.size(), 2U) << "less than half a second is left";
  EXPECT_DOUBLE_EQ(stretches[0].others, 0.1);
  EXPECT_DOUBLE_EQ(stretches[1].others, 1.5);
  EXPECT_DOUBLE_EQ(stretches[1].steps, 5);
  EXPECT_DOUBLE_EQ(stretches[1].period_ns, 5.0 * kTenth);
}

TEST(HostEvidence, WindowsOfWorkTellTheSameOfUnits) {
  Recording recording;
  recording.state("oncpu", 0, 400);
  recording.counter("host.cpu.others", 0, 0.1);
  recording.counter("host.cpu.others", 200, 1.5);
  model::WorkUnits work;
  for (const Ns begin : {0, 200}) work.windows.push_back({.begin = begin, .end = begin + 200});
  work.units.emplace_back().per_window = {40, 10};
  model::HostEvidence evidence;
  add_stretches(recording.finish(), work, evidence);
  ASSERT_EQ(evidence.stretches.size(), 2U);
  EXPECT_DOUBLE_EQ(evidence.stretches[1].others, 1.5);
  EXPECT_DOUBLE_EQ(evidence.stretches[1].steps, 10);
  EXPECT_DOUBLE_EQ(evidence.stretches[1].period_ns, 200);
}

TEST(HostEvidence, ALimitOfAGroupHoldsAlsoWhenItsProcessHasEnded) {
  Recording r;
  r.state("oncpu", 0, 100);
  r.rival_state("oncpu", 0, 300);
  r.counter("cgroup.cpu.quota", 0, 0.2);
  r.counter("cgroup.cpu.used", 0, 0.2);
  const model::HostEvidence evidence = host_evidence(r.finish(), three_cycles());
  const auto mean = [&](std::string_view name) {
    return std::ranges::find(evidence.counters, name, &model::HostCounter::name)->mean;
  };
  EXPECT_DOUBLE_EQ(mean("cgroup.cpu.quota"), 0.2);
  EXPECT_DOUBLE_EQ(mean("cgroup.cpu.used"), 0.1);
}

TEST(HostEvidence, AControlGroupIsTheSameForAllThatAreInIt) {
  Recording recording;
  recording.state("oncpu", 0, 400);
  recording.counter("cgroup.memory.used", 0, 100);
  recording.rival_state("oncpu", 0, 400);
  recording.rival_counter("cgroup.memory.used", 0, 102);
  const auto evidence = host_evidence(recording.finish(), three_cycles());
  ASSERT_EQ(evidence.counters.size(), 1U);
  EXPECT_DOUBLE_EQ(evidence.counters[0].mean, 102);
}

TEST(HostEvidence, WithoutSlicesOfItsOwnNoThreadIsKnownToRunTheSteps) {
  Recording recording;
  recording.state("oncpu", 0, 400);
  EXPECT_FALSE(host_evidence(recording.finish(), three_cycles()).step);
}

TEST(HostEvidence, StepsOutsideOfARecordingBesideATraceAreLeftOut) {
  Recording recording;
  recording.mark("step", 0, 290);
  recording.state("oncpu", 100, 400);
  Trace trace = recording.finish();
  EXPECT_EQ(host_evidence(trace, three_cycles()).cycles[kDecode], 2U);
  trace.ranks.front().recordings.emplace_back().path = "run.pftrace";
  EXPECT_EQ(host_evidence(trace, three_cycles()).cycles[kDecode], 1U);
}

TEST(HostEvidence, ReasonsOfBlockingAreNamed) {
  Recording recording;
  recording.state("oncpu", 0, 10);
  recording.state("blocked", 10, 90);
  recording.blocked("blocked:fsync", 10, 90);
  const auto evidence = host_evidence(recording.finish(), three_cycles());
  EXPECT_DOUBLE_EQ(total(evidence, "blocked in fsync"), 80);
  EXPECT_EQ(total(evidence, "blocked"), -1);
}

TEST(HostEvidence, AThreadThatSleepsThroughTheStepIsNotBlockedInIt) {
  Recording recording;
  recording.state("oncpu", 0, 10);
  recording.blocked("blocked:accept4", 90, 300);
  const auto evidence = host_evidence(recording.finish(), three_cycles());
  EXPECT_DOUBLE_EQ(total(evidence, "blocked in accept4"), 10);
}

TEST(HostEvidence, CountersAreMeansOverTheTimeOfTheSteps) {
  Recording recording;
  recording.counter("host.cpu.busy", -10, 5);  // until 20
  recording.counter("host.cpu.busy", 20, 1);
  recording.counter("host.cpu.busy", 150, 3);
  recording.counter("host.cpu.busy", 250, 100);
  const auto evidence = host_evidence(recording.finish(), three_cycles());
  ASSERT_EQ(evidence.counters.size(), 1U);
  EXPECT_DOUBLE_EQ(evidence.counters[0].mean, (5 * 20 + 1 * 130 + 3 * 50) / 200.0);
  EXPECT_EQ(evidence.counters[0].samples, 2U);
}

TEST(HostEvidence, OfTotalsTheGrowthPerSecondCounts) {
  Recording recording;
  recording.counter("page_faults.minor", -10, 1000);
  recording.counter("page_faults.minor", 120, 1004);
  recording.counter("page_faults.minor", 250, 2000);
  const auto evidence = host_evidence(recording.finish(), three_cycles());
  ASSERT_EQ(evidence.counters.size(), 1U);
  EXPECT_DOUBLE_EQ(evidence.counters[0].mean, 4 / 200e-9);
  EXPECT_EQ(evidence.counters[0].unit, "/s");
}

TEST(HostEvidence, ACounterThatDidNotChangeHoldsItsValue) {
  Recording recording;
  recording.counter("host.cpu0.frequency", -10, 7);
  const auto evidence = host_evidence(recording.finish(), three_cycles());
  ASSERT_EQ(evidence.counters.size(), 1U);
  EXPECT_DOUBLE_EQ(evidence.counters[0].mean, 7);
  EXPECT_EQ(evidence.counters[0].samples, 1U);
}

TEST(HostEvidence, ACounterThatBeginsLaterCountsFromThen) {
  Recording recording;
  recording.counter("cgroup.cpu.quota", 150, 2);
  recording.counter("later", 200, 2);
  const auto evidence = host_evidence(recording.finish(), three_cycles());
  ASSERT_EQ(evidence.counters.size(), 1U);
  EXPECT_DOUBLE_EQ(evidence.counters[0].mean, 2);
}

TEST(HostEvidence, OfARecordingWithoutCyclesASecondStandsForAll) {
  Recording recording;
  recording.state("oncpu", 0, 500);
  recording.state("runq", 500, 2000);
  const auto evidence = host_evidence_per_second(recording.finish());
  EXPECT_TRUE(evidence.per_second);
  const auto kOther = static_cast<std::size_t>(model::Phase::other);
  ASSERT_EQ(evidence.states.size(), 2U);
  EXPECT_EQ(evidence.states[0].what, "runnable");
  EXPECT_DOUBLE_EQ(evidence.states[0].total_ns[kOther], 0.75e9);
  EXPECT_EQ(evidence.states[1].what, "running");
  EXPECT_DOUBLE_EQ(evidence.states[1].total_ns[kOther], 0.25e9);
  EXPECT_DOUBLE_EQ(evidence.period_ns[kOther], 1e9);
}

TEST(HostEvidence, WithoutCyclesThereIsNothing) {
  Recording recording;
  recording.state("oncpu", 0, 10);
  EXPECT_TRUE(host_evidence(recording.finish(), model::Cycles{}).states.empty());
}

}  // namespace
}  // namespace culprit::profile
