#include "cycles/find.h"

#include <gtest/gtest.h>

#include <string>

#include "cycles/found.h"
#include "support/trace_maker.h"

namespace culprit::cycles {
namespace {

using model::CycleMethod;
using model::Phase;
using testing_support::TraceMaker;

/// One process that launches to one device.
struct Host {
  TraceMaker& maker;
  TrackId thread;
  TrackId stream;
  std::uint32_t correlation = 0;

  SliceIndex launch(const std::string& kernel, Ns at, Ns gpu_begin, Ns duration, const char* category = "kernel",
                    const char* call = "cudaLaunchKernel") {
    const SliceIndex launcher = maker.slice(thread, "cuda_runtime", call, at, 5, ++correlation);
    return maker.gpu(stream, category, kernel, gpu_begin, duration, launcher);
  }
};

/// `steps` steps of 10 us with `layers` equal layers each; input and sampling around them when `borders`.
void serve(Host& host, int steps, int layers, bool borders, Ns from = 0) {
  for (int s = 0; s < steps; ++s) {
    Ns at = from + s * 10'000;
    const auto next = [&](const char* name, const char* category = "kernel") {
      host.launch(name, at, at + 20, 60, category);
      at += 100;
    };
    if (borders) next("Memcpy HtoD (Pinned -> Device)", "gpu_memcpy");
    if (borders) next("embedding_kernel");
    for (int l = 0; l < layers; ++l) {
      next("norm");
      next("gemm_qkv");
      next("attention");
      next("gemm_out");
    }
    if (borders) next("TopKTopPSamplingFromProbKernel");
    if (borders) next("Memcpy DtoH (Device -> Pinned)", "gpu_memcpy");
  }
}

TEST(FindCycles, AnEmptyTraceHasNoneAndSaysWhy) {
  const Trace trace;
  const Found found = find(trace);
  EXPECT_EQ(found.cycles.method, CycleMethod::none);
  EXPECT_NE(found.cycles.reason.find("nothing repeats"), std::string::npos);
  EXPECT_TRUE(found.cycles.cycles.empty());
}

TEST(FindCycles, WhereNoWorkIsKnownStepsOfTrainingEndWithTheOptimizer) {
  TraceMaker maker;
  const TrackId thread = maker.thread(100, 1);
  for (int s = 0; s < 4; ++s) {
    maker.slice(thread, "python", "Tensor.backward", s * 1000 + 300, 200);
    maker.slice(thread, "step", "step: Optimizer.step", s * 1000 + 600, 100 + s);
    maker.slice(thread, "python", "Optimizer.step", s * 1000 + 600, 100 + s);
  }
  const Found found = find(maker.trace());
  EXPECT_EQ(found.cycles.method, CycleMethod::marker);
  EXPECT_EQ(found.cycles.anchor, "step: Optimizer.step");
  EXPECT_NEAR(found.cycles.period_confidence, 0.85, 1e-9);
  EXPECT_NEAR(found.cycles.phase_confidence, 0.6, 1e-9);
  ASSERT_EQ(found.cycles.notes.size(), 1U);
  EXPECT_EQ(found.cycles.notes[0], "a step is from the end of one \"step: Optimizer.step\" to the end of the next");
  ASSERT_EQ(found.cycles.cycles.size(), 3U);
  for (int s = 0; s < 3; ++s) {
    const model::Cycle& cycle = found.cycles.cycles.at(static_cast<std::size_t>(s));
    EXPECT_EQ(cycle.begin, s * 1000 + 700 + s);
    EXPECT_EQ(cycle.no_work, 0) << "nobody asks for the next one";
    EXPECT_EQ(cycle.phase, Phase::train_step);
    if (s < 2) {
      EXPECT_EQ(cycle.period, 1001);
    }
  }
}

TEST(FindCycles, WithoutAnOptimizerStepsEndWithTheNextInput) {
  for (const bool trains : {false, true}) {
    TraceMaker maker;
    const TrackId thread = maker.thread(100, 1);
    for (int s = 0; s < 4; ++s) {
      maker.slice(thread, "annotation", "dataloader bs=16", s * 1000 + 100, 100);
      maker.slice(thread, "python", "_BaseDataLoaderIter.__next__", s * 1000 + 100, 100);
      if (trains) maker.slice(thread, "step", "step: Optimizer.step", s * 1000 + 600, 100);
    }
    const Found found = find(maker.trace());
    EXPECT_EQ(found.cycles.anchor, trains ? "step: Optimizer.step" : "dataloader bs=N");
    EXPECT_NEAR(found.cycles.period_confidence, 0.85, 1e-9);
    ASSERT_EQ(found.cycles.cycles.size(), 3U);
    EXPECT_EQ(found.cycles.cycles[0].begin, trains ? 700 : 200);
    EXPECT_EQ(found.cycles.cycles[0].workload.batch, 16);
  }
}

TEST(FindCycles, AllInputsOfAStepAreItsBatch) {
  TraceMaker maker;
  const TrackId thread = maker.thread(100, 1);
  for (int s = 0; s < 4; ++s) {
    for (int i = 0; i < 3; ++i) maker.slice(thread, "annotation", "dataloader bs=16", s * 1000 + 100 * i, 50);
    maker.slice(thread, "step", "step: Optimizer.step", s * 1000 + 600, 100);
  }
  const Found found = find(maker.trace());
  ASSERT_EQ(found.cycles.cycles.size(), 3U);
  for (const model::Cycle& cycle : found.cycles.cycles) EXPECT_EQ(cycle.workload.batch, 48);
}

TEST(FindCycles, ProfilerStepsDelimitAndNumberCycles) {
  TraceMaker maker;
  Host host{maker, maker.thread(100, 1), maker.stream(0, 7)};
  for (int i = 0; i < 4; ++i) {
    maker.slice(host.thread, "user_annotation", "ProfilerStep#" + std::to_string(i + 41), i * 1000, 990);
    host.launch("k", i * 1000 + 100, i * 1000 + 600, 700);
  }
  const Found found = find(maker.trace());
  EXPECT_EQ(found.cycles.method, CycleMethod::marker);
  EXPECT_EQ(found.cycles.anchor, "ProfilerStep#N");
  ASSERT_EQ(found.cycles.cycles.size(), 4U);
  EXPECT_GT(found.cycles.period_confidence, 0.95);
  const model::Cycle& second = found.cycles.cycles[1];
  EXPECT_EQ(second.number, 2U);
  EXPECT_EQ(second.begin, 1000);
  EXPECT_EQ(second.period, 1000);
  ASSERT_EQ(second.devices.size(), 1U);
  // The window runs from the first operation launched inside to that of the next cycle, not to the marker's end.
  EXPECT_EQ(second.devices[0].begin, 1600);
  EXPECT_EQ(second.devices[0].end, 2600);
  EXPECT_EQ(second.devices[0].busy, 700);
  EXPECT_EQ(second.devices[0].idle, 300);
  EXPECT_EQ(second.devices[0].operations, 1U);
}

TEST(FindCycles, OverlappingStreamsAreBusyOnce) {
  TraceMaker maker;
  Host host{maker, maker.thread(100, 1), maker.stream(0, 7)};
  Host other{maker, host.thread, maker.stream(0, 8), 1000};
  for (int i = 0; i < 3; ++i) {
    maker.slice(host.thread, "user_annotation", "ProfilerStep#" + std::to_string(i), i * 1000, 1000);
    host.launch("a", i * 1000 + 10, i * 1000 + 100, 400);
    other.launch("b", i * 1000 + 20, i * 1000 + 300, 400);
  }
  const Found found = find(maker.trace());
  EXPECT_EQ(found.cycles.cycles[0].devices[0].busy, 600);
}

TEST(FindCycles, TheOuterOfTwoMarkersWithEqualCountsWins) {
  TraceMaker maker;
  const TrackId thread = maker.thread(1, 1);
  for (int i = 0; i < 5; ++i) {
    maker.slice(thread, "user_annotation", "work_outer", i * 100, 90);
    maker.slice(thread, "user_annotation", "inner", i * 100 + 10, 50);
  }
  EXPECT_EQ(find(maker.trace()).cycles.anchor, "work_outer");
}

TEST(FindCycles, ANoteSaysWhereTheWorkIsThatTheRangesOfTheAnchorDoNotHold) {
  for (const Ns length : {4'500, 9'990}) {
    TraceMaker maker;
    Host host{maker, maker.thread(100, 1), maker.stream(0, 7)};
    for (int s = 0; s < 8; ++s) {
      maker.slice(host.thread, "user_annotation", "## backward ##", s * 10'000, length);
      for (int k = 0; k < 20; ++k)
        host.launch("k" + std::to_string(k), s * 10'000 + k * 500, s * 10'000 + k * 500 + 20, 400);
    }
    const model::Cycles cycles = find(maker.trace()).cycles;
    EXPECT_EQ(cycles.anchor, "## backward ##");
    const bool noted = std::ranges::any_of(cycles.notes, [](const std::string& note) {
      return note.find("holds 45% of the GPU launches from one to the next; the other 55%") != std::string::npos;
    });
    EXPECT_EQ(noted, length == 4'500);
  }
}

TEST(FindCycles, ANoteSaysHowMuchWorkLiesInNoCycle) {
  TraceMaker maker;
  Host host{maker, maker.thread(100, 1), maker.stream(0, 7)};
  host.launch("before", 0, 10, 1'000);
  for (int s = 1; s < 5; ++s) {
    maker.slice(host.thread, "user_annotation", "step " + std::to_string(s), s * 10'000, 9'000);
    host.launch("k", s * 10'000 + 10, s * 10'000 + 20, 750);
  }
  const model::Cycles cycles = find(maker.trace()).cycles;
  EXPECT_TRUE(std::ranges::any_of(cycles.notes, [](const std::string& note) {
    return note.find("1 of 5 GPU operations (25% of their time) lie in no cycle") != std::string::npos;
  }));
}

TEST(FindCycles, CollectivesAreNoMarkers) {
  TraceMaker maker;
  const TrackId thread = maker.thread(1, 1);
  for (int i = 0; i < 9; ++i) maker.slice(thread, "user_annotation", "nccl:all_reduce", i * 100, 90);
  EXPECT_EQ(find(maker.trace()).cycles.method, CycleMethod::none);
}

TEST(FindCycles, AGivenAnchorThatOccursNowhereIsBadUsage) {
  TraceMaker maker;
  maker.slice(maker.thread(1, 1), "user_annotation", "step 1", 0, 10);
  FindOptions options;
  options.anchor = "Model.forward";
  const auto found = find_cycles(maker.trace(), order_slices(maker.trace()), options);
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().kind, ErrorKind::usage);
}

TEST(FindCycles, AGivenAnchorIsTakenAndNestedCallsOfItAreNot) {
  TraceMaker maker;
  const TrackId thread = maker.thread(1, 1);
  for (int i = 0; i < 3; ++i) {
    maker.slice(thread, "python_function", "Model.forward", i * 100, 80);
    maker.slice(thread, "python_function", "Model.forward", i * 100 + 10, 20);
  }
  FindOptions options;
  options.anchor = "Model.forward";
  EXPECT_EQ(find(maker.trace(), options).cycles.cycles.size(), 3U);
}

TEST(FindCycles, ProcessesInOneFileAreCutByTheirOwnClocks) {
  TraceMaker maker;
  const TrackId a = maker.thread(1, 5);
  const TrackId b = maker.thread(2, 5);
  for (int i = 0; i < 4; ++i) {
    maker.slice(a, "user_annotation", "step " + std::to_string(i), i * 1000, 900);
    maker.slice(b, "user_annotation", "step " + std::to_string(i), i * 1000 + 400, 900);
  }
  const SliceIndex late = maker.slice(b, "cpu_op", "op", 1200, 10);  // step 0 of b, though a is in step 1
  const Found found = find(maker.trace());
  ASSERT_EQ(found.cycles.cycles.size(), 8U);
  const model::Cycle& cycle = found.cycles.cycles[found.cycle_of_slice[late]];
  EXPECT_EQ(cycle.number, 1U);
  EXPECT_EQ(maker.trace().processes[cycle.process].pid, 2);
}

TEST(FindCycles, RanksThatBeganAtDifferentStepsGetTheSameNumbers) {
  TraceMaker maker;
  const TrackId a = maker.thread(1, 5);
  const TrackId b = maker.thread(2, 5, maker.rank(1));
  for (int i = 10; i < 14; ++i) maker.slice(a, "user_annotation", "ProfilerStep#" + std::to_string(i), i * 1000, 900);
  for (int i = 11; i < 14; ++i) maker.slice(b, "user_annotation", "ProfilerStep#" + std::to_string(i), i * 1000, 900);
  const Found found = find(maker.trace());
  ASSERT_EQ(found.cycles.cycles.size(), 7U);
  for (const model::Cycle& c : found.cycles.cycles) EXPECT_EQ(c.begin, (c.number + 9) * 1000);
}

TEST(FindCycles, SequencesOfLaunchesAreCutAtTheirInput) {
  TraceMaker maker;
  Host host{maker, maker.thread(100, 1), maker.stream(0, 7)};
  serve(host, 12, 6, true);
  const Found found = find(maker.trace());
  EXPECT_EQ(found.cycles.method, CycleMethod::launch_sequence);
  ASSERT_EQ(found.cycles.cycles.size(), 12U);
  EXPECT_GT(found.cycles.period_confidence, 0.8);
  for (const model::Cycle& c : found.cycles.cycles) EXPECT_EQ(c.begin % 10'000, 0);
}

TEST(FindCycles, WithoutHostSideTheSequenceOnTheDeviceIsUsed) {
  TraceMaker maker;
  const TrackId stream = maker.stream(0, 7);
  for (int s = 0; s < 6; ++s) {
    Ns at = s * 5000;
    for (const char* name : {"embedding_kernel", "norm", "gemm", "norm", "gemm", "argmax"})
      maker.gpu(stream, "kernel", name, at += 50, 40);
  }
  const Found found = find(maker.trace());
  EXPECT_EQ(found.cycles.method, CycleMethod::launch_sequence);
  EXPECT_EQ(found.cycles.cycles.size(), 6U);
}

TEST(FindCycles, ALayerIsNeverAStepWithConfidence) {
  TraceMaker maker;
  Host host{maker, maker.thread(100, 1), maker.stream(0, 7)};
  serve(host, 1, 24, false);
  EXPECT_LT(find(maker.trace()).cycles.period_confidence, 0.6);
  for (int l = 0; l < 24; ++l) maker.slice(host.thread, "python_function", "model.py(3): forward", l * 400, 390);
  EXPECT_LT(find(maker.trace()).cycles.period_confidence, 0.6);
}

TEST(FindCycles, AFunctionPerLayerLosesAgainstTheSequence) {
  TraceMaker maker;
  Host host{maker, maker.thread(100, 1), maker.stream(0, 7)};
  serve(host, 8, 6, true);
  for (int s = 0; s < 8; ++s)
    for (int l = 0; l < 6; ++l)
      maker.slice(host.thread, "python_function", "model.py(3): forward", s * 10'000 + 200 + l * 400, 390);
  const Found found = find(maker.trace());
  EXPECT_EQ(found.cycles.cycles.size(), 8U);
}

TEST(FindCycles, AFunctionPerStepIsConfirmedByTheSequence) {
  TraceMaker maker;
  Host host{maker, maker.thread(100, 1), maker.stream(0, 7)};
  maker.slice(host.thread, "python_function", "event_loop", 0, 100'000);
  serve(host, 8, 6, true, 20);
  for (int s = 0; s < 8; ++s) maker.slice(host.thread, "python_function", "Scheduler.run_batch", s * 10'000 + 10, 4000);
  const Found found = find(maker.trace());
  EXPECT_EQ(found.cycles.method, CycleMethod::host_function);
  EXPECT_EQ(found.cycles.anchor, "Scheduler.run_batch");
  EXPECT_EQ(found.cycles.cycles.size(), 8U);
  EXPECT_GT(found.cycles.period_confidence, 0.9);
  // Between two calls nothing runs, and the server's loop around them does not count as work.
  EXPECT_GT(found.cycles.cycles[2].no_work, 5000);
}

TEST(FindCycles, OneKernelAgainAndAgainIsNoStep) {
  TraceMaker maker;
  Host host{maker, maker.thread(100, 1), maker.stream(0, 7)};
  for (int i = 0; i < 500; ++i) host.launch("spin", i * 100, i * 100 + 10, 50);
  EXPECT_EQ(find(maker.trace()).cycles.method, CycleMethod::none);
}

TEST(FindCycles, GraphLaunchesAreOneOperation) {
  TraceMaker maker;
  Host host{maker, maker.thread(100, 1), maker.stream(0, 7)};
  for (int s = 0; s < 6; ++s) {
    const Ns at = s * 1000;
    host.launch("Memcpy HtoD (Pinned -> Device)", at, at + 5, 5, "gpu_memcpy");
    const SliceIndex launcher = maker.slice(host.thread, "cuda_runtime", "cudaGraphLaunch", at + 20, 5, 5000U + s);
    for (int n = 0; n < 8; ++n)
      maker.gpu(host.stream, "kernel", n % 2 == 0 ? "gemm" : "norm", at + 30 + n * 10, 8, launcher);
    host.launch("argmax", at + 200, at + 210, 5);
    host.launch("Memcpy DtoH (Device -> Pinned)", at + 220, at + 230, 5, "gpu_memcpy");
  }
  const Found found = find(maker.trace());
  ASSERT_EQ(found.cycles.cycles.size(), 6U);
  EXPECT_EQ(found.cycles.cycles[1].devices[0].operations, 11U);
}

TEST(FindCycles, WorkLaunchedBeforeTheRecordingBelongsToNoCycle) {
  TraceMaker maker;
  Host host{maker, maker.thread(100, 1), maker.stream(0, 7)};
  const SliceIndex before = maker.gpu(host.stream, "kernel", "k", 50, 20);
  for (int i = 0; i < 3; ++i) {
    maker.slice(host.thread, "user_annotation", "ProfilerStep#" + std::to_string(i), i * 1000, 1000);
    host.launch("k", i * 1000 + 10, i * 1000 + 100, 400);
  }
  const SliceIndex between = maker.gpu(host.stream, "kernel", "k", 1600, 20);
  const Found found = find(maker.trace());
  EXPECT_EQ(found.cycle_of_slice[before], kNone);
  EXPECT_EQ(found.cycle_of_slice[between], 1U);
  EXPECT_EQ(found.placed_by_time, 1U);
}

TEST(FindCycles, PhaseAndSkipSelectAndMembershipFollows) {
  TraceMaker maker;
  const TrackId thread = maker.thread(1, 1);
  std::vector<SliceIndex> ops;
  for (int i = 0; i < 6; ++i) {
    maker.slice(thread, "user_annotation", i % 3 == 0 ? "step[EXTEND bs=1 toks=64]" : "step[DECODE bs=2 toks=2]",
                i * 100, 90);
    ops.push_back(maker.slice(thread, "cpu_op", "op", i * 100 + 5, 10));
  }
  FindOptions options;
  options.phase = Phase::decode;
  options.skip = 2;
  const Found found = find(maker.trace(), options);
  ASSERT_EQ(found.cycles.cycles.size(), 3U);
  EXPECT_EQ(found.cycles.cycles[0].number, 3U);
  EXPECT_EQ(found.cycles.cycles[0].workload.batch, 2);
  EXPECT_EQ(found.cycle_of_slice[ops[0]], kNone);
  EXPECT_EQ(found.cycle_of_slice[ops[2]], 0U);
  EXPECT_EQ(found.cycle_of_slice[ops[3]], kNone);
  EXPECT_EQ(found.cycle_of_slice[ops[5]], 2U);
}

TEST(FindCycles, ACutLastCycleIsPartialAndASlowFirstOneWarmUp) {
  TraceMaker maker;
  Host host{maker, maker.thread(100, 1), maker.stream(0, 7)};
  Ns at = 0;
  for (int i = 0; i < 8; ++i) {
    const Ns length = i == 0 ? 5000 : 1000;
    maker.slice(host.thread, "user_annotation", "ProfilerStep#" + std::to_string(i), at, length);
    for (int k = 0; k < (i == 7 ? 2 : 10); ++k) host.launch("k", at + k * 10, at + k * 50, 20);
    at += length;
  }
  const Found found = find(maker.trace());
  EXPECT_TRUE(found.cycles.cycles.front().warm_up);
  EXPECT_FALSE(found.cycles.cycles[1].warm_up);
  EXPECT_TRUE(found.cycles.cycles.back().partial);
  EXPECT_FALSE(found.cycles.cycles[5].partial);
}

TEST(FindCycles, WindowsOfACycleAddUp) {
  TraceMaker maker;
  Host host{maker, maker.thread(100, 1), maker.stream(0, 7)};
  serve(host, 9, 3, true);
  const Found found = find(maker.trace());
  for (std::size_t i = 0; i + 1 < found.cycles.cycles.size(); ++i) {
    const model::DeviceWindow& d = found.cycles.cycles[i].devices[0];
    EXPECT_EQ(d.end - d.begin, d.busy + d.idle);
    EXPECT_EQ(d.end, found.cycles.cycles[i + 1].devices[0].begin);
    EXPECT_GE(found.cycles.cycles[i].no_work, 0);
  }
}

}  // namespace
}  // namespace culprit::cycles
