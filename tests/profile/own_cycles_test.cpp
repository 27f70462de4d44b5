// From finding cycles to their profile: what Culprit does otherwise than the reference on purpose.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>

#include "cycles/find.h"
#include "formats/load.h"
#include "profile/run_profile.h"
#include "support/shared_data.h"
#include "support/trace_maker.h"

namespace culprit::profile {
namespace {

using testing_support::TraceMaker;

constexpr Ns kStep = 10'000'000;

cycles::Found find(const Trace& trace) {
  auto found = cycles::find_cycles(trace, order_slices(trace), {});
  EXPECT_TRUE(found.ok());
  return std::move(*found);
}

/// Two processes that step at the same pace, the second half a step later; each step computes ("gemm"), then talks.
Trace two_processes() {
  TraceMaker maker;
  std::uint32_t correlation = 0;
  for (const std::int64_t pid : {10, 20}) {
    const TrackId thread = maker.thread(pid, 1);
    const TrackId stream = maker.stream(pid == 10 ? 0 : 1, 7);
    const Ns from = pid == 10 ? 0 : kStep / 2;
    for (int i = 0; i < 6; ++i) {
      const Ns at = from + i * kStep;
      maker.slice(thread, "python_function", "Engine.step", at, kStep * 9 / 10);
      for (int k = 0; k < 8; ++k) {
        const SliceIndex launcher =
            maker.slice(thread, "cuda_runtime", "cudaLaunchKernel", at + 1000 + k * kStep / 10, 5000, ++correlation);
        maker.gpu(stream, "kernel", k < 6 ? "gemm" : "reduce", at + 20'000 + k * kStep / 10, kStep / 20, launcher);
      }
    }
  }
  return std::move(maker.trace());
}

/// How often each process called "reduce" in each cycle, by (number, pid).
std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> reduces(const model::Profile& profile) {
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> counts;
  for (const model::FunctionUse& use : profile.functions)
    if (profile.texts[use.function] == "reduce")
      counts[{profile.cycles[use.cycle].number, profile.processes[use.process].pid}] += use.count;
  return counts;
}

// D18: the reference cuts all processes by the anchors of the one with the smallest id, so a cycle holds parts of two
// steps of the others.
TEST(Defect18, EveryProcessIsCutByItsOwnSteps) {
  const Trace trace = two_processes();
  const cycles::Found found = find(trace);
  const model::Profile profile = run_profile(trace, found);
  std::map<std::int64_t, std::map<Ns, int>> begins;
  for (const model::ProfileCycle& c : profile.cycles) ++begins[c.pid][c.begin % kStep];
  ASSERT_EQ(begins.size(), 2U);
  EXPECT_EQ(begins[10].size(), 1U);
  EXPECT_EQ(begins[20].begin()->first, kStep / 2);
  const auto counts = reduces(profile);
  EXPECT_EQ(counts.size(), 12U);
  for (const auto& [key, n] : counts) EXPECT_EQ(n, 2) << "cycle " << key.first << " of " << key.second;
}

/// Three steps whose kernels outlast the host's calls by most of a step; one helper call is very long.
Trace long_tail() {
  TraceMaker maker;
  const TrackId thread = maker.thread(10, 1);
  const TrackId helper = maker.thread(10, 2);
  const TrackId stream = maker.stream(0, 7);
  for (int i = 0; i < 5; ++i) {
    const Ns at = i * kStep;
    maker.slice(thread, "user_annotation", "ProfilerStep#" + std::to_string(i), at, kStep / 10);
    maker.slice(thread, "python_function", "Engine.step", at, kStep / 10);
    const SliceIndex launcher =
        maker.slice(thread, "cuda_runtime", "cudaLaunchKernel", at + 1000, 5000, 1U + static_cast<std::uint32_t>(i));
    maker.gpu(stream, "kernel", "gemm", at + 100'000, kStep * 9 / 10, launcher);
  }
  maker.slice(helper, "python_function", "prefetch", kStep + 10, kStep * 3);
  return std::move(maker.trace());
}

// D23: the reference's cycle is as long as its Python functions, so GPU work behind them makes shares above 100 %, and
// one long Python function stretches the cycle.
TEST(Defect23, SharesAreOfTheStepWithItsTail) {
  const Trace trace = long_tail();
  const cycles::Found found = find(trace);
  const model::Profile profile = run_profile(trace, found);
  int seen = 0;
  for (const model::FunctionUse& use : profile.functions) {
    if (profile.texts[use.function] != "gemm") continue;
    ++seen;
    EXPECT_LE(use.beta, 1.0);
    EXPECT_GE(use.beta, 0.85);
  }
  EXPECT_EQ(seen, 5);
}

TEST(Defect23, ALongCallStretchesNoCycle) {
  const Trace trace = long_tail();
  const cycles::Found found = find(trace);
  ASSERT_EQ(found.cycles.cycles.size(), 5U);
  for (std::size_t i = 0; i + 1 < 5; ++i) EXPECT_EQ(found.cycles.cycles[i].period, kStep);
  EXPECT_LE(found.cycles.cycles[1].span_end - found.cycles.cycles[1].span_begin, kStep);
  for (const model::ProfileCycle& c : run_profile(trace, found).cycles) EXPECT_LE(c.duration, kStep);
}

/// Steps that launch one short kernel each; most of their work has no known launcher.
Trace few_launches(bool last_step_launches) {
  TraceMaker maker;
  const TrackId thread = maker.thread(10, 1);
  const TrackId stream = maker.stream(0, 7);
  for (int i = 0; i < 3; ++i) {
    const Ns at = i * kStep;
    maker.slice(thread, "user_annotation", "ProfilerStep#" + std::to_string(i), at, kStep);
    if (i == 2 && !last_step_launches) continue;
    const SliceIndex launcher =
        maker.slice(thread, "cuda_runtime", "cudaLaunchKernel", at + 1000, 5000, 1U + static_cast<std::uint32_t>(i));
    maker.gpu(stream, "kernel", "tiny", at + 10'000, 4'000, launcher);
    for (int k = 1; k < 5; ++k) maker.gpu(stream, "kernel", "big", at + k * kStep / 5, kStep / 6);
  }
  return std::move(maker.trace());
}

TEST(DeviceWindows, HoldTheWorkThatWasPlacedInThemByTime) {
  for (const bool last : {true, false}) {
    const Trace trace = few_launches(last);
    const cycles::Found found = find(trace);
    EXPECT_EQ(found.placed_by_time, last ? 12U : 8U);
    for (std::size_t i = 0; i < trace.slices.size(); ++i) {
      const Slice& s = trace.slices[i];
      if (s.gpu == kNone || found.cycle_of_slice[i] == kNone) continue;
      const model::Cycle& cycle = found.cycles.cycles[found.cycle_of_slice[i]];
      ASSERT_EQ(cycle.devices.size(), 1U);
      EXPECT_GE(s.begin, cycle.devices[0].begin) << i;
      EXPECT_LE(s.end(), cycle.devices[0].end) << i;
    }
    for (const model::FunctionUse& use : run_profile(trace, found).functions)
      if (use.exposed >= 0) {
        EXPECT_LE(use.beta, 1.0);
      }
  }
}

TEST(DeviceWindows, AShareIsNeverOfLessThanOneOperation) {
  // The second cycle launches nothing on the main stream, and its copy ran before the main stream was done.
  TraceMaker maker;
  const TrackId thread = maker.thread(10, 1);
  const TrackId main = maker.stream(0, 7);
  const TrackId copies = maker.stream(0, 8);
  std::uint32_t correlation = 0;
  for (int i = 0; i < 4; ++i) {
    const Ns at = i * 1000;
    maker.slice(thread, "user_annotation", "ProfilerStep#" + std::to_string(i), at, 1000);
    if (i == 1) {
      const SliceIndex launcher = maker.slice(thread, "cuda_runtime", "cudaMemcpyAsync", at + 10, 5, ++correlation);
      maker.gpu(copies, "gpu_memcpy", "Memcpy HtoD", at + 995, 300, launcher);
      continue;
    }
    const SliceIndex launcher = maker.slice(thread, "cuda_runtime", "cudaLaunchKernel", at + 1, 5, ++correlation);
    maker.gpu(main, "kernel", "gemm", at, 900, launcher);
  }
  const Trace& trace = maker.trace();
  for (const model::FunctionUse& use : run_profile(trace, find(trace)).functions) {
    if (use.exposed >= 0) {
      EXPECT_LE(use.beta, 1.0);
    }
  }
}

TEST(CorpusWindows, NoShareOfThousandsOfPercent) {
  for (const char* file :
       {"corpus/kineto/hta_small/trace_compare/base/base.json.gz",
        "corpus/kineto/hta_small/trace_compare/test/test.json.gz", "corpus/kineto/hta_trace_diff/test.json.gz"}) {
    CULPRIT_NEEDS_SHARED(file);
    const auto trace = formats::load_run({test::shared(file)}, {});
    ASSERT_TRUE(trace.ok());
    const model::Profile profile = run_profile(*trace, find(*trace));
    for (const model::FunctionUse& use : profile.functions)
      if (use.exposed >= 0 && !std::isnan(use.beta)) {
        EXPECT_LE(use.beta, 2.0) << file << " " << profile.texts[use.function] << " " << use.count;
      }
  }
}

}  // namespace
}  // namespace culprit::profile
