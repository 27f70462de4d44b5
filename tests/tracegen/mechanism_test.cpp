// Faults act through the machine: what is bound by a resource gets slower when the resource shrinks, and nothing else
// does.
#include <algorithm>

#include "run.h"

namespace culprit::tracegen {
namespace {

constexpr const char* kLargeGemm = "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_64x3_tn";
constexpr const char* kHeadGemm = "ampere_bf16_s16816gemm_bf16_256x64_ldg8_f2f_stages_64x4_tn";

Options exact(Workload workload) {
  Options o;
  o.workload = workload;
  o.steps = 6;
  o.layers = 2;
  o.jitter_ppm = 0;
  return o;
}

Options disturbed(Options o, Fault fault, std::int64_t severity_ppm = 500'000) {
  o.faults = {fault};
  o.severity_ppm = severity_ppm;
  return o;
}

std::vector<std::int64_t> durations(const Json& trace, const std::string& name) {
  std::vector<std::int64_t> result;
  for (const Slice& s : slices(trace))
    if (s.name == name) result.push_back(s.duration);
  return result;
}

std::int64_t total(const Json& trace, const std::string& category) {
  std::int64_t sum = 0;
  for (const Slice& s : of_category(trace, category)) sum += s.duration;
  return sum;
}

/// Time between the kernels of the compute stream.
std::int64_t gaps(const Json& trace) {
  std::vector<Slice> kernels = of_category(trace, "kernel");
  std::ranges::sort(kernels, {}, &Slice::begin);
  std::int64_t sum = 0;
  for (std::size_t i = 1; i < kernels.size(); ++i)
    sum += std::max<std::int64_t>(0, kernels[i].begin - kernels[i - 1].end());
  return sum;
}

std::int64_t run_time(const SimulatedRun& run) {
  std::int64_t sum = 0;
  for (const Json& s : run.truth.at("steps"))
    if (s.at("rank") == 0) sum += s.at("period_ns").get<std::int64_t>();
  return sum;
}

TEST(GpuClock, HalvedDoublesWhatComputesAndLeavesWhatReadsMemory) {
  const SimulatedRun normal = make_run(exact(Workload::serve));
  const SimulatedRun slow = make_run(disturbed(exact(Workload::serve), Fault::gpu_clock_drop));
  // The first two large products belong to the prefill, which is bound by computing; the head reads its weights.
  const auto before = durations(normal.trace[0], kLargeGemm);
  const auto after = durations(slow.trace[0], kLargeGemm);
  ASSERT_EQ(before.size(), after.size());
  EXPECT_EQ(after[0], 2 * before[0]);
  EXPECT_EQ(durations(normal.trace[0], kHeadGemm), durations(slow.trace[0], kHeadGemm));
}

TEST(GpuMemory, HalvedBandwidthDoublesWhatReadsMemoryAndLeavesWhatComputes) {
  const SimulatedRun normal = make_run(exact(Workload::serve));
  const SimulatedRun slow = make_run(disturbed(exact(Workload::serve), Fault::gpu_memory));
  EXPECT_EQ(durations(normal.trace[0], kLargeGemm)[0], durations(slow.trace[0], kLargeGemm)[0]);
  EXPECT_EQ(2 * durations(normal.trace[0], kHeadGemm)[0], durations(slow.trace[0], kHeadGemm)[0]);
}

TEST(CpuContention, LengthensGapsAndNoKernel) {
  const SimulatedRun normal = make_run(exact(Workload::serve));
  const SimulatedRun slow = make_run(disturbed(exact(Workload::serve), Fault::cpu_contention, 800'000));
  EXPECT_EQ(total(normal.trace[0], "kernel"), total(slow.trace[0], "kernel"));
  EXPECT_GT(gaps(slow.trace[0]), 2 * gaps(normal.trace[0]));
  std::int64_t runq = 0;
  for (const Json& s : slow.truth.at("steps")) runq += s.at("runq_ns").get<std::int64_t>();
  EXPECT_GT(runq, 0);
}

TEST(Straggler, SlowsOneRankAndMakesTheOthersWaitInCollectives) {
  Options o = exact(Workload::train);
  o.ranks = 3;
  const SimulatedRun normal = make_run(o);
  const SimulatedRun slow = make_run(disturbed(o, Fault::straggler));
  EXPECT_EQ(durations(normal.trace[0], kLargeGemm), durations(slow.trace[0], kLargeGemm));
  EXPECT_GT(durations(slow.trace[2], kLargeGemm)[0], durations(normal.trace[2], kLargeGemm)[0]);
  const auto waiting = [](const Json& trace) {
    std::int64_t sum = 0;
    for (const Slice& s : of_category(trace, "kernel"))
      if (s.name.starts_with("nccl")) sum += s.duration;
    return sum;
  };
  EXPECT_GT(waiting(slow.trace[0]), waiting(slow.trace[2]));
  EXPECT_GT(waiting(slow.trace[0]), waiting(normal.trace[0]));
}

TEST(SlowLink, LengthensCollectivesAndNoOtherKernel) {
  Options o = exact(Workload::train);
  o.ranks = 2;
  const SimulatedRun normal = make_run(o);
  const SimulatedRun slow = make_run(disturbed(o, Fault::slow_link, 900'000));
  std::int64_t compute[2] = {0, 0};
  std::int64_t collective[2] = {0, 0};
  const SimulatedRun* runs[2] = {&normal, &slow};
  for (std::size_t i = 0; i < 2; ++i)
    for (const Slice& s : of_category(runs[i]->trace[0], "kernel"))
      (s.name.starts_with("nccl") ? collective : compute)[i] += s.duration;
  EXPECT_EQ(compute[0], compute[1]);
  EXPECT_GT(collective[1], 2 * collective[0]);
}

TEST(SlowInput, MakesTheHostWait) {
  const SimulatedRun normal = make_run(exact(Workload::train));
  const SimulatedRun slow = make_run(disturbed(exact(Workload::train), Fault::slow_input, 800'000));
  EXPECT_EQ(total(normal.trace[0], "kernel"), total(slow.trace[0], "kernel"));
  EXPECT_GT(run_time(slow), run_time(normal) * 3 / 2);
  std::int64_t waited = 0;
  for (const Json& s : slow.truth.at("steps")) waited += s.at("input_ns").get<std::int64_t>();
  EXPECT_GT(waited, run_time(slow) / 4);
}

TEST(Pcie, SlowsCopiesBetweenHostAndDeviceOnly) {
  const SimulatedRun normal = make_run(exact(Workload::serve));
  const SimulatedRun slow = make_run(disturbed(exact(Workload::serve), Fault::pcie_contention, 900'000));
  EXPECT_GT(total(slow.trace[0], "gpu_memcpy"), total(normal.trace[0], "gpu_memcpy"));
  EXPECT_EQ(total(normal.trace[0], "kernel"), total(slow.trace[0], "kernel"));
}

TEST(KernelRegression, SlowsAttentionOnly) {
  const SimulatedRun normal = make_run(exact(Workload::serve));
  const SimulatedRun slow = make_run(disturbed(exact(Workload::serve), Fault::kernel_regression));
  for (const Json& n : normal.truth.at("ranks").at(0).at("names")) {
    const std::string name = n.at("name");
    if (n.at("category") != "kernel") continue;
    for (const Json& s : slow.truth.at("ranks").at(0).at("names")) {
      if (s.at("name") != name) continue;
      if (name.find("flash_fwd") == std::string::npos) {
        EXPECT_EQ(s.at("sum_ns"), n.at("sum_ns")) << name;
      } else {
        EXPECT_GT(s.at("sum_ns").get<double>(), 1.9 * n.at("sum_ns").get<double>()) << name;
      }
    }
  }
}

TEST(GcPause, StopsTheHostInEveryFourthStep) {
  Options o = exact(Workload::serve);
  o.steps = 12;
  o.prefill_every = 0;
  const SimulatedRun run = make_run(disturbed(o, Fault::gc_pause));
  for (const Json& s : run.truth.at("steps"))
    EXPECT_EQ(s.at("period_ns").get<std::int64_t>() > 10'000'000, s.at("step").get<int>() % 4 == 3) << s;
}

TEST(FaultFrom, LeavesTheStepsBeforeAlone) {
  Options o = exact(Workload::serve);
  const SimulatedRun normal = make_run(o);
  o.fault_from = 3;
  const SimulatedRun slow = make_run(disturbed(o, Fault::gpu_clock_drop, 900'000));
  for (std::size_t i = 0; i < 6; ++i) {
    const bool same = normal.truth.at("steps").at(i).at("period_ns") == slow.truth.at("steps").at(i).at("period_ns");
    EXPECT_EQ(same, i < 3) << i;
    EXPECT_EQ(slow.truth.at("steps").at(i).at("disturbed"), i >= 3) << i;
  }
}

class Laws : public testing::TestWithParam<Options> {};

TEST_P(Laws, SlicesOfOneStreamNeverOverlapAndFollowTheirLaunch) {
  const SimulatedRun run = make_run(GetParam());
  for (const Json& trace : run.trace) {
    std::map<std::int64_t, std::int64_t> launched;
    for (const Slice& s : of_category(trace, "cuda_runtime")) launched[s.correlation] = s.begin;
    std::map<std::int64_t, std::vector<Slice>> streams;
    for (const Slice& s : slices(trace))
      if (s.stream >= 0) streams[s.stream].push_back(s);
    ASSERT_FALSE(streams.empty());
    for (auto& [stream, work] : streams) {
      std::ranges::sort(work, {}, &Slice::begin);
      for (std::size_t i = 0; i < work.size(); ++i) {
        ASSERT_TRUE(launched.contains(work[i].correlation));
        EXPECT_GT(work[i].begin, launched[work[i].correlation]);
        if (i != 0) {
          EXPECT_GE(work[i].begin, work[i - 1].end()) << "stream " << stream;
        }
      }
    }
  }
}

TEST_P(Laws, CollectivesEndTogetherAndNotBeforeTheLastBegan) {
  const SimulatedRun run = make_run(GetParam());
  std::vector<std::vector<Slice>> collectives(run.trace.size());
  for (std::size_t r = 0; r < run.trace.size(); ++r) {
    const std::int64_t offset = run.truth.at("ranks").at(r).at("clock_offset_ns");
    for (Slice s : of_category(run.trace[r], "kernel")) {
      if (!s.name.starts_with("nccl") && s.name.find("cross_device") == std::string::npos) continue;
      s.begin -= offset;
      collectives[r].push_back(s);
    }
    ASSERT_EQ(collectives[r].size(), collectives[0].size());
  }
  EXPECT_EQ(collectives[0].empty(), run.trace.size() == 1);
  for (std::size_t k = 0; k < collectives[0].size(); ++k)
    for (const auto& rank : collectives) {
      EXPECT_EQ(rank[k].end(), collectives[0][k].end());
      EXPECT_LT(rank[k].begin, collectives[0][k].end());
    }
}

TEST_P(Laws, HostSlicesOfOneThreadNest) {
  const SimulatedRun run = make_run(GetParam());
  for (const Json& trace : run.trace) {
    std::map<std::int64_t, std::vector<Slice>> threads;
    for (const Json& e : events(trace))
      if (e.at("ph") == "X" && e.at("tid").is_number() && !e.at("args").contains("stream"))
        threads[e.at("tid")].push_back({e.at("cat"), e.at("name"), to_ns(e.at("ts")), to_ns(e.at("dur")), -1, 0});
    for (auto& [tid, work] : threads) {
      std::ranges::sort(work, [](const Slice& a, const Slice& b) {
        return a.begin != b.begin ? a.begin < b.begin : a.duration > b.duration;
      });
      std::vector<std::int64_t> ends;
      for (const Slice& s : work) {
        while (!ends.empty() && ends.back() <= s.begin) ends.pop_back();
        if (!ends.empty()) {
          EXPECT_LE(s.end(), ends.back()) << s.name;
        }
        ends.push_back(s.end());
      }
    }
  }
}

std::vector<Options> law_cases() {
  std::vector<Options> all;
  for (const Workload workload : {Workload::serve, Workload::train})
    for (const std::uint32_t ranks : {1U, 3U})
      for (const bool graph : {false, true}) {
        Options o;
        o.workload = workload;
        o.ranks = ranks;
        o.graph = graph;
        o.steps = 5;
        o.layers = 2;
        o.python = true;
        o.sched = true;
        o.jitter_ppm = 100'000;
        all.push_back(o);
        all.push_back(disturbed(o, Fault::cpu_contention, 700'000));
      }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Runs, Laws, testing::ValuesIn(law_cases()));

TEST(LaunchQueue, BlocksTheHostWhenItIsFull) {
  Options o = exact(Workload::train);
  o.batch = 4;
  o.sync_every = 1000;
  o.queue_depth = 8;
  const SimulatedRun run = make_run(o);
  std::int64_t blocked = 0;
  for (const Json& s : run.truth.at("steps")) blocked += s.at("blocked_ns").get<std::int64_t>();
  EXPECT_GT(blocked, 0);
  // Never more than the queue's depth of launches that are not done.
  std::vector<Slice> launches;
  std::map<std::int64_t, std::int64_t> done;
  for (const Slice& s : slices(run.trace[0])) {
    if (s.stream >= 0) done[s.correlation] = s.end();
    if (s.category == "cuda_runtime") launches.push_back(s);
  }
  for (const Slice& launch : launches) {
    const auto waiting = std::ranges::count_if(launches, [&](const Slice& other) {
      return other.begin < launch.end() && done.contains(other.correlation) && done[other.correlation] > launch.end();
    });
    EXPECT_LE(waiting, 8);
  }
}

TEST(Flows, ForwardAndBackwardOfOneSequenceNumberAreLinked) {
  const SimulatedRun run = make_run(exact(Workload::train));
  std::map<std::int64_t, int> begun;
  std::map<std::int64_t, int> ended;
  for (const Json& e : events(run.trace[0]))
    if (e.value("cat", "") == "fwdbwd") ++(e.at("ph") == "s" ? begun : ended)[e.at("id")];
  EXPECT_FALSE(begun.empty());
  EXPECT_EQ(begun, ended);
  for (const auto& [id, n] : begun) EXPECT_EQ(n, 1) << id;
}

TEST(Graph, ItsKernelsShareTheCorrelationOfOneLaunch) {
  Options o = exact(Workload::serve);
  o.graph = true;
  const SimulatedRun run = make_run(o);
  std::map<std::int64_t, std::size_t> kernels;
  for (const Slice& s : of_category(run.trace[0], "kernel")) ++kernels[s.correlation];
  std::size_t graphs = 0;
  for (const Slice& s : of_category(run.trace[0], "cuda_runtime"))
    if (s.name == "cudaGraphLaunch") {
      ++graphs;
      EXPECT_EQ(kernels[s.correlation], 10U * o.layers);
    }
  EXPECT_EQ(graphs, o.steps - 1);  // the first step is a prefill
}

TEST(Training, OptimizerRunsOnceForGradientsOfSeveralSteps) {
  Options o = exact(Workload::train);
  o.steps = 9;
  o.accumulate = 4;
  const SimulatedRun run = make_run(o);
  EXPECT_EQ(durations(run.trace[0], "Optimizer.step#AdamW.step").size(), 2U);
  EXPECT_EQ(durations(run.trace[0], "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__").size(), 9U);
  EXPECT_EQ(run.truth.at("options").at("accumulate"), 4);
}

TEST(Training, EveryPieceOfInputIsCopiedAndWaitedFor) {
  Options o = exact(Workload::train);
  o.sync_every = 100;
  o.inputs = 3;
  const SimulatedRun run = make_run(o);
  EXPECT_EQ(durations(run.trace[0], "Memcpy HtoD (Pinned -> Device)").size(), 3 * o.steps);
  EXPECT_EQ(durations(run.trace[0], "cudaStreamSynchronize").size(), 3 * o.steps);
  EXPECT_EQ(run.truth.at("options").at("inputs"), 3);
}

TEST(WithoutGpu, OperatorsComputeOnTheThreadThatCallsThem) {
  for (const Workload workload : {Workload::serve, Workload::train}) {
    Options o = exact(workload);
    const SimulatedRun gpu = make_run(o);
    o.cpu = true;
    const SimulatedRun cpu = make_run(o);
    for (const char* category : {"kernel", "gpu_memcpy", "gpu_memset", "cuda_runtime"})
      EXPECT_TRUE(of_category(cpu.trace[0], category).empty()) << category;
    EXPECT_EQ(of_category(cpu.trace[0], "cpu_op").size(), of_category(gpu.trace[0], "cpu_op").size());
    EXPECT_GT(total(cpu.trace[0], "cpu_op"), total(gpu.trace[0], "cpu_op"));
    EXPECT_GT(run_time(cpu), run_time(gpu));
    for (const Json& step : cpu.truth.at("steps")) EXPECT_EQ(step.at("kernels"), 0);
  }
}

TEST(WithoutGpu, WhatNeedsAGpuIsRefused) {
  Options o = exact(Workload::serve);
  o.output = "-";
  o.cpu = true;
  EXPECT_TRUE(check(o).ok());
  EXPECT_FALSE(check(disturbed(o, Fault::gpu_clock_drop)).ok());
  EXPECT_TRUE(check(disturbed(o, Fault::cpu_contention)).ok());
  o.graph = true;
  EXPECT_FALSE(check(o).ok());
}

TEST(SharedGpu, SlowsAllKernelsAlike) {
  const Json normal = make_run(exact(Workload::serve)).trace[0];
  const Json shared = make_run(disturbed(exact(Workload::serve), Fault::gpu_shared)).trace[0];
  EXPECT_NEAR(static_cast<double>(total(shared, "kernel")) / static_cast<double>(total(normal, "kernel")), 2, 0.01);
}

TEST(KernelChanged, OtherKernelsTakeTheirPlace) {
  const Json normal = make_run(exact(Workload::serve)).trace[0];
  const Json changed = make_run(disturbed(exact(Workload::serve), Fault::kernel_changed)).trace[0];
  const auto named = [](const Json& trace, std::string_view part) {
    const std::vector<Slice> kernels = of_category(trace, "kernel");
    return std::ranges::count_if(kernels, [&](const Slice& s) { return s.name.find(part) != std::string::npos; });
  };
  EXPECT_GT(named(normal, "flash_fwd"), 0);
  EXPECT_EQ(named(changed, "flash_fwd"), 0);
  EXPECT_EQ(named(changed, "flashinfer"), named(normal, "flashinfer") + named(normal, "flash_fwd"));
}

TEST(SlowFunction, LengthensTheTimeBetweenKernels) {
  Options o = exact(Workload::serve);
  o.python = true;
  EXPECT_GT(gaps(make_run(disturbed(o, Fault::slow_function)).trace[0]), gaps(make_run(o).trace[0]));
}

TEST(TwoFaults, ActTogether) {
  Options both = disturbed(exact(Workload::serve), Fault::gpu_shared);
  both.faults.push_back(Fault::gc_pause);
  const SimulatedRun one = make_run(disturbed(exact(Workload::serve), Fault::gpu_shared));
  const SimulatedRun two = make_run(both);
  EXPECT_EQ(total(one.trace[0], "kernel"), total(two.trace[0], "kernel"));
  EXPECT_GT(run_time(two), run_time(one));
  EXPECT_EQ(two.truth.at("options").at("faults").size(), 2U);
}

}  // namespace
}  // namespace culprit::tracegen
