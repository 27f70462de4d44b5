#include "profile/ledger.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "profile/leaves.h"
#include "support/trace_maker.h"

namespace culprit::profile {
namespace {

using model::LedgerState;
using testing_support::TraceMaker;

/// Cycles of one process; the last one, whose end nobody knows, is not measured.
struct Steps {
  cycles::Found found;
  std::vector<std::uint32_t> rows;
  model::Profile profile;

  void add(Ns begin, Ns period, std::vector<model::DeviceWindow> devices = {}) {
    model::Cycle& cycle = found.cycles.cycles.emplace_back();
    cycle.number = static_cast<std::uint32_t>(found.cycles.cycles.size());
    cycle.process = 0;
    cycle.begin = begin;
    cycle.period = period;
    cycle.devices = std::move(devices);
    rows.push_back(static_cast<std::uint32_t>(rows.size()));
    profile.cycles.emplace_back();
  }
  /// Two cycles of 100 that each begin with 60 of `mm`.
  void add_two(TraceMaker& maker, TrackId thread, Ns no_work = 0) {
    for (const Ns at : {0, 100}) {
      maker.slice(thread, "cpu_op", "mm", at, 60);
      add(at, 100);
      found.cycles.cycles.back().no_work = no_work;
    }
  }
  void measure(const Trace& trace) { add_ledger(trace, order_slices(trace), found, rows, profile); }
  /// Time and count by state and function.
  std::map<std::pair<LedgerState, std::string>, std::pair<Ns, std::int64_t>> lines(std::size_t window) const {
    std::map<std::pair<LedgerState, std::string>, std::pair<Ns, std::int64_t>> all;
    for (const model::LedgerLine& line : model::lines_of(profile.ledger, window))
      all[{line.state, std::string(profile.texts[line.function])}] = {line.time, line.count};
    return all;
  }
};
using Lines = std::map<std::pair<LedgerState, std::string>, std::pair<Ns, std::int64_t>>;

model::DeviceWindow device_window(Ns begin, Ns end, std::int32_t device = 0) {
  model::DeviceWindow window;
  window.device = device;
  window.begin = begin;
  window.end = end;
  return window;
}

TEST(Leaves, TheInnermostOwnsTheTime) {
  TraceMaker maker;
  const TrackId thread = maker.thread(1, 1);
  const SliceIndex outer = maker.slice(thread, "cpu_op", "outer", 0, 100);
  const SliceIndex inner = maker.slice(thread, "cpu_op", "inner", 20, 30);
  const SliceIndex late = maker.slice(thread, "cpu_op", "late", 120, 10);
  const auto leaves = leaves_of(maker.trace(), order_slices(maker.trace()), thread);
  std::vector<std::pair<SliceIndex, Ns>> told;
  for (const Leaf& leaf : leaves) told.emplace_back(leaf.slice, leaf.end - leaf.begin);
  EXPECT_EQ(told,
            (std::vector<std::pair<SliceIndex, Ns>>{{outer, 20}, {inner, 30}, {outer, 50}, {kNone, 20}, {late, 10}}));
}

TEST(Ledger, FunctionsAndWhatLiesBetweenThem) {
  TraceMaker maker;
  const TrackId thread = maker.thread(1, 1);
  Steps steps;
  for (const Ns at : {0, 100}) {
    maker.slice(thread, "user_annotation", "step[" + std::to_string(at) + "]", at, 90);
    maker.slice(thread, "cpu_op", "mm", at + 10, 30);
    maker.slice(thread, "cpu_op", "mm", at + 50, 30);
    maker.slice(thread, "cpu_op", "copy", at + 55, 5);
    steps.add(at, 100);
  }
  steps.measure(maker.trace());
  ASSERT_EQ(steps.profile.ledger.windows.size(), 1U);
  EXPECT_EQ(steps.profile.ledger.windows[0].length, 100);
  EXPECT_EQ(steps.lines(0), (Lines{{{LedgerState::function, "mm"}, {55, 2}},
                                   {{LedgerState::function, "copy"}, {5, 1}},
                                   {{LedgerState::between, "step[N]"}, {30, 3}},
                                   {{LedgerState::between, ""}, {10, 1}}}));
}

TEST(Ledger, AnotherThreadThatWaitsAllAlongIsNotTheOne) {
  TraceMaker maker;
  const TrackId waits = maker.thread(1, 1);
  const TrackId works = maker.thread(1, 2);
  maker.slice(waits, "python_function", "wait", -50, 1000);
  Steps steps;
  for (const Ns at : {0, 100, 200}) {
    maker.slice(works, "cpu_op", "mm", at, 60);
    steps.add(at, 100);
  }
  steps.measure(maker.trace());
  ASSERT_EQ(steps.profile.ledger.windows.size(), 2U);
  EXPECT_EQ(steps.lines(1), (Lines{{{LedgerState::function, "mm"}, {60, 1}}, {{LedgerState::between, ""}, {40, 1}}}));
}

TEST(Ledger, SchedulingTellsRunQueueAndBlockedApart) {
  TraceMaker maker;
  const TrackId thread = maker.thread(1, 1);
  Steps steps;
  steps.add_two(maker, thread);
  Track sched = maker.trace().tracks[thread];
  sched.kind = TrackKind::sched;
  maker.trace().tracks.push_back(sched);
  const auto track = static_cast<TrackId>(maker.trace().tracks.size() - 1);
  maker.slice(track, "sched", "oncpu", 0, 20);
  maker.slice(track, "sched", "runq", 20, 10);
  maker.slice(track, "sched", "oncpu", 30, 40);
  maker.slice(track, "sched", "blocked_uninterruptible", 70, 15);
  maker.slice(track, "sched", "oncpu", 90, 110);  // 5 of which nothing is known
  steps.measure(maker.trace());
  EXPECT_EQ(steps.lines(0), (Lines{{{LedgerState::function, "mm"}, {50, 1}},
                                   {{LedgerState::run_queue, "mm"}, {10, 1}},
                                   {{LedgerState::between, ""}, {25, 2}},
                                   {{LedgerState::blocked, ""}, {15, 1}}}));
}

TEST(Ledger, WithoutWorkThereIsNoOwnCode) {
  TraceMaker maker;
  const TrackId thread = maker.thread(1, 1);
  Steps steps;
  steps.add_two(maker, thread, 30);
  steps.measure(maker.trace());
  EXPECT_EQ(steps.lines(0), (Lines{{{LedgerState::function, "mm"}, {60, 1}},
                                   {{LedgerState::between, ""}, {10, 1}},
                                   {{LedgerState::no_work, ""}, {30, 1}}}));
}

TEST(Ledger, AnOperationThatIsInterruptedByOthersIsOneCall) {
  TraceMaker maker;
  maker.gpu(maker.stream(0, 1), "kernel", "ncclDevKernel_AllReduce_Sum", 0, 100);
  for (const Ns at : {10, 40, 70}) maker.gpu(maker.stream(0, 2), "kernel", "gemm", at, 10);
  Steps steps;
  steps.add(0, 100, {device_window(0, 100)});
  steps.add(100, 100);
  steps.measure(maker.trace());
  EXPECT_EQ(steps.lines(0), (Lines{{{LedgerState::function, "ncclDevKernel_AllReduce_Sum"}, {70, 1}},
                                   {{LedgerState::function, "gemm"}, {30, 3}}}));
}

TEST(Ledger, IdleTimeOfADeviceIsExplainedByTheLaunchThatEndsIt) {
  TraceMaker maker;
  const TrackId thread = maker.thread(1, 1);
  const TrackId stream = maker.stream(0, 7);
  maker.slice(thread, "cpu_op", "prepare", 5, 45);
  const SliceIndex a = maker.slice(thread, "cuda_runtime", "cudaLaunchKernel", 0, 5, 1);
  const SliceIndex b = maker.slice(thread, "cuda_runtime", "cudaLaunchKernel", 60, 10, 2);
  maker.gpu(stream, "kernel", "one", 10, 20, a);
  maker.gpu(stream, "kernel", "two", 85, 15, b);
  Steps steps;
  steps.add(0, 100, {device_window(10, 110)});
  steps.add(100, 100, {});
  steps.measure(maker.trace());
  ASSERT_EQ(steps.profile.ledger.windows.size(), 2U);
  EXPECT_EQ(steps.profile.ledger.windows[1].device, 0);
  EXPECT_EQ(steps.lines(1), (Lines{{{LedgerState::function, "one"}, {20, 1}},
                                   {{LedgerState::function, "two"}, {15, 1}},
                                   {{LedgerState::idle_host, "prepare"}, {20, 1}},
                                   {{LedgerState::idle_host, ""}, {10, 1}},
                                   {{LedgerState::idle_launch, ""}, {10, 1}},
                                   {{LedgerState::idle_latency, ""}, {15, 1}},
                                   {{LedgerState::idle_unknown, ""}, {10, 1}}}));
}

TEST(Ledger, GapsInsideOfAGraphAreTheGraphs) {
  TraceMaker maker;
  const SliceIndex launch = maker.slice(maker.thread(1, 1), "cuda_runtime", "cudaGraphLaunch", 0, 5, 1);
  const TrackId stream = maker.stream(0, 7);
  maker.gpu(stream, "kernel", "one", 10, 20, launch);
  maker.gpu(stream, "kernel", "two", 37, 13, launch);
  Steps steps;
  steps.add(0, 100, {device_window(10, 50)});
  steps.add(100, 100);
  steps.measure(maker.trace());
  EXPECT_EQ(steps.lines(1)[(std::pair{LedgerState::idle_graph, std::string()})], (std::pair<Ns, std::int64_t>{7, 1}));
}

/// A stream of device 0 that waits for an event of device 1, which call 2 recorded at `at` behind what was launched
/// there: in the trace and in its side table.
void add_wait(TraceMaker& maker, TrackId thread, Ns at, std::int32_t stream = 7, std::int32_t event_stream = 20) {
  maker.slice(thread, "cuda_runtime", "cudaEventRecord", at, 1, 2);
  const SliceIndex wait = maker.slice(maker.stream(0, stream), "cuda_sync", "Stream Wait Event", at + 1, 1);
  maker.trace().stream_waits.push_back({wait, 2, 0, stream, 1, event_stream});
}

TEST(Ledger, AfterItsLaunchAnOperationWaitsForAnotherDevice) {
  for (const Ns end : {50, 80, 95}) {
    TraceMaker maker;
    const TrackId thread = maker.thread(1, 1);
    const TrackId stream = maker.stream(0, 7);
    const SliceIndex a = maker.slice(thread, "cuda_runtime", "cudaLaunchKernel", 0, 2, 1);
    const SliceIndex b = maker.slice(thread, "cuda_runtime", "cudaMemcpyPeerAsync", 2, 2, 3);
    add_wait(maker, thread, 4);
    const SliceIndex c = maker.slice(thread, "cuda_runtime", "cudaLaunchKernel", 60, 10, 4);
    maker.gpu(stream, "kernel", "one", 10, 20, a);
    maker.gpu(maker.stream(1, 20), "gpu_memcpy", "copy", 12, end - 12, b);
    maker.gpu(stream, "kernel", "two", 85, 15, c);
    Steps steps;
    steps.add(0, 100, {device_window(10, 100)});
    steps.add(100, 100, {});
    steps.measure(maker.trace());
    ASSERT_EQ(steps.profile.ledger.windows.size(), 2U);
    Lines expected = {{{LedgerState::function, "one"}, {20, 1}},
                      {{LedgerState::function, "two"}, {15, 1}},
                      {{LedgerState::idle_host, ""}, {30, 1}},
                      {{LedgerState::idle_launch, ""}, {10, 1}}};
    // A copy that seems to end after what waited for it (two clocks) explains no more than the idle time.
    if (end > 70) expected[{LedgerState::idle_dependency, "copy"}] = {std::min<Ns>(end, 85) - 70, 1};
    if (end < 85) expected[{LedgerState::idle_latency, ""}] = {85 - std::max<Ns>(end, 70), 1};
    EXPECT_EQ(steps.lines(1), expected) << "the copy ends at " << end;
  }
}

TEST(Ledger, GapsInsideOfAGraphStayItsOwnBehindAWait) {
  TraceMaker maker;
  const TrackId thread = maker.thread(1, 1);
  const SliceIndex send = maker.slice(thread, "cuda_runtime", "cudaLaunchKernel", 0, 1, 1);
  add_wait(maker, thread, 1);
  const SliceIndex launch = maker.slice(thread, "cuda_runtime", "cudaGraphLaunch", 3, 2, 3);
  maker.gpu(maker.stream(1, 20), "kernel", "send", 5, 30, send);
  maker.gpu(maker.stream(0, 7), "kernel", "one", 10, 20, launch);
  maker.gpu(maker.stream(0, 7), "kernel", "two", 37, 13, launch);
  Steps steps;
  steps.add(0, 100, {device_window(10, 50)});
  steps.add(100, 100);
  steps.measure(maker.trace());
  EXPECT_EQ(steps.lines(1)[(std::pair{LedgerState::idle_graph, std::string()})], (std::pair<Ns, std::int64_t>{7, 1}));
}

TEST(Ledger, SamplesOfCyclesThatHadNothingToDoForATimeAreNotCounted) {
  TraceMaker maker;
  const TrackId thread = maker.thread(1, 1);
  Steps steps;
  steps.add_two(maker, thread, 10);
  StackFrame poll;
  poll.function = maker.trace().strings.intern("poll (loop.py:3)");
  maker.trace().stack_frames.push_back(poll);
  maker.trace().stack_samples.push_back({95, 1, thread, 0, StackSample::Kind::on_cpu});
  steps.measure(maker.trace());
  EXPECT_TRUE(steps.profile.ledger.samples.empty());
}

TEST(Ledger, SamplesTellWhatRanBetweenFunctions) {
  TraceMaker maker;
  const TrackId thread = maker.thread(1, 1);
  Steps steps;
  steps.add_two(maker, thread);  // 60 of mm, 40 of its own
  maker.slice(thread, "user_annotation", "step 7", 180, 20);
  steps.add(200, -1);
  Trace& trace = maker.trace();
  const auto frame = [&](std::string_view function, std::uint32_t caller) {
    StackFrame frame;
    frame.function = trace.strings.intern(function);
    frame.caller = caller;
    trace.stack_frames.push_back(frame);
    return static_cast<std::uint32_t>(trace.stack_frames.size() - 1);
  };
  const std::uint32_t parse = frame("parse (app.py:12)", kNone);
  const std::uint32_t inside = frame("memcpy", parse);
  const std::uint32_t native = frame("libx.so+0x12", kNone);
  const auto sample = [&](Ns at, std::uint32_t row, TrackId track, StackSample::Kind kind = StackSample::Kind::on_cpu) {
    trace.stack_samples.push_back({at, at, track, row, kind});
  };
  sample(30, parse, thread);  // in mm
  sample(60, parse, thread);
  sample(99, inside, thread);
  sample(170, native, thread);
  sample(190, native, thread);
  sample(195, parse, thread, StackSample::Kind::off_cpu);
  sample(230, parse, thread);  // in no cycle that counts
  sample(70, parse, maker.thread(1, 2));
  steps.measure(trace);
  std::map<std::pair<std::string, std::string>, std::int64_t> found;
  std::map<std::string, Ns> time;
  for (const model::LedgerSamples& samples : steps.profile.ledger.samples) {
    const std::string function(steps.profile.texts[samples.function]);
    found[{std::string(steps.profile.texts[samples.range]), function}] += samples.count;
    time[function] += samples.time;
  }
  EXPECT_EQ(found,
            (decltype(found){{{"", "parse (app.py)"}, 2}, {{"", "[libx.so]"}, 1}, {{"step N", "[libx.so]"}, 1}}));
  EXPECT_EQ(time, (decltype(time){{"parse (app.py)", 60 + 99}, {"[libx.so]", 170 + 190}})) << "that they stand for";
}

/// Events of any stream, recorded at any time, for which any stream waits, also before they are recorded.
template <class Upto>
void add_random_waits(const Upto& upto, TrackId thread, std::uint16_t rank, Ns end, TraceMaker& maker) {
  for (std::uint32_t i = 0; i < 30; ++i) {
    const std::uint32_t recorded_by = 1000 + static_cast<std::uint32_t>(upto(i));
    if (upto(5) != 0) maker.slice(thread, "cuda_runtime", "cudaEventRecord", upto(end), upto(3), 1000 + i);
    const auto device = static_cast<std::int32_t>(upto(1));
    const auto stream = static_cast<std::int32_t>(upto(2));
    const std::uint32_t call = upto(3) == 0 ? 0 : 2000 + i;
    const Ns at = upto(end);
    if (call != 0) maker.slice(thread, "cuda_runtime", "cudaStreamWaitEvent", at, upto(3), call);
    const SliceIndex wait =
        maker.slice(maker.stream(device, stream, rank), "cuda_sync", "Stream Wait Event", at, upto(3), call);
    maker.trace().stream_waits.push_back({wait, recorded_by, device, stream, static_cast<std::int32_t>(upto(2)) - 1,
                                          static_cast<std::int32_t>(upto(2))});
  }
}

/// Steps of one rank at random: nested and overlapping slices, streams, lost links, graphs, two devices that wait for
/// each other's events, scheduling, stretches without work.
void add_random_rank(std::mt19937& random, std::uint32_t seed, std::uint16_t rank, TraceMaker& maker, Steps& steps) {
  const auto upto = [&](Ns most) { return std::uniform_int_distribution<Ns>(0, most)(random); };
  const TrackId thread = maker.thread(1, 1, rank);
  const TrackId other = maker.thread(1, 2, rank);
  Track sched = maker.trace().tracks[thread];
  sched.kind = TrackKind::sched;
  maker.trace().tracks.push_back(sched);
  const auto states = static_cast<TrackId>(maker.trace().tracks.size() - 1);
  Ns at = 0;
  for (int c = 0; c < 6; ++c) {
    const Ns period = 50 + upto(200);
    std::vector<model::DeviceWindow> devices;
    for (std::int32_t d = 0; d < static_cast<std::int32_t>(seed % 3); ++d)
      devices.push_back(device_window(at + upto(20), at + period + upto(20), d));
    steps.add(at, period, devices);
    model::Cycle& cycle = steps.found.cycles.cycles.back();
    cycle.rank = rank;
    cycle.process = maker.trace().tracks[thread].process;
    cycle.no_work = upto(2) == 0 ? upto(40) : 0;
    maker.slice(thread, "user_annotation", "step", at, period - upto(30));
    at += period;
  }
  SliceIndex graph = kNone;  // the last launch, which may launch more than one kernel
  TrackId stream = 0;
  Ns end = 0;  // of the last kernel
  for (int i = 0; i < 60; ++i) {
    const std::string kernel = "k" + std::to_string(upto(3));
    if (graph != kNone && upto(3) == 0) {
      const Ns begin = end + upto(5);
      end = begin + upto(15);
      maker.gpu(stream, "kernel", kernel, begin, end - begin, graph);
      continue;
    }
    const SliceIndex launch =
        maker.slice(upto(3) == 0 ? other : thread, "cuda_runtime", "launch", upto(at), upto(20), 1);
    maker.slice(thread, "cpu_op", "op" + std::to_string(upto(3)), upto(at), upto(80));
    if (seed % 3 == 0) continue;
    stream = maker.stream(static_cast<std::int32_t>(upto(1)), static_cast<std::int32_t>(upto(2)), rank);
    const Ns begin = upto(at);
    end = begin + upto(15);
    const bool lost = upto(4) == 0;
    maker.gpu(stream, "kernel", kernel, begin, end - begin, lost ? kNone : launch);
    graph = lost ? kNone : launch;
  }
  if (seed % 2 == 0)
    for (Ns t = upto(50); t < at; t += upto(30)) {
      constexpr std::array kStates = {"oncpu", "runq", "blocked_interruptible"};
      const Ns length = 1 + upto(10);
      maker.slice(states, "sched", kStates.at(static_cast<std::size_t>(upto(2))), t, length);
      t += length;
    }
  if (seed % 3 != 0) add_random_waits(upto, thread, rank, at, maker);
}

TEST(Ledger, LinesSumToTheirWindow) {
  std::set<LedgerState> seen;
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    TraceMaker maker;
    Steps steps;
    add_random_rank(random, seed, 0, maker, steps);
    if (seed % 4 == 1) add_random_rank(random, seed, maker.rank(1), maker, steps);
    steps.measure(maker.trace());
    ASSERT_FALSE(steps.profile.ledger.windows.empty());
    std::set<std::uint16_t> ranks;
    for (std::size_t w = 0; w < steps.profile.ledger.windows.size(); ++w) {
      const model::LedgerWindow& window = steps.profile.ledger.windows[w];
      ranks.insert(steps.found.cycles.cycles[window.cycle].rank);
      Ns sum = 0;
      for (const model::LedgerLine& line : model::lines_of(steps.profile.ledger, w)) {
        EXPECT_GT(line.time, 0);
        sum += line.time;
        seen.insert(line.state);
      }
      EXPECT_EQ(sum, window.length) << "seed " << seed << ", window " << w;
    }
    EXPECT_EQ(ranks.size(), seed % 4 == 1 ? 2U : 1U) << "seed " << seed;
  }
  // All of them occurred but `sampled`, which waterfalls alone have.
  for (int state = 0; state < static_cast<int>(LedgerState::sampled); ++state)
    EXPECT_TRUE(seen.contains(static_cast<LedgerState>(state)))
        << model::ledger_state_name(static_cast<LedgerState>(state));
  EXPECT_FALSE(seen.contains(LedgerState::sampled));
}

}  // namespace
}  // namespace culprit::profile
