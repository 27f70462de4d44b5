#include "deepdive/reference_cycles.h"

#include <gtest/gtest.h>

#include <map>
#include <utility>

#include "support/trace_maker.h"

namespace culprit::deepdive {
namespace {

using testing_support::TraceMaker;

constexpr Ns kStep = 10'000'000;

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

// D18 on purpose, for compatible tables: the second process's launches lie in its foreign
// cycles, the tail of one step and the head of the next.
TEST(ReferenceCycles, AllProcessesAreCutByOne) {
  const Trace trace = two_processes();
  const auto theirs = reference_cycles(trace, order_slices(trace), {});
  ASSERT_TRUE(theirs.ok());
  bool mixed = false;
  for (const ReferenceCycle& cycle : theirs->cycles) {
    std::map<Ns, int> steps;  // of the second process
    for (const ReferenceMember& m : cycle.members) {
      const Slice& s = trace.slices[m.slice];
      if (trace.name(s) == "Engine.step" && trace.processes[trace.tracks[s.track].process].pid == 20)
        ++steps[(s.begin - kStep / 2) / kStep];
    }
    mixed = mixed || steps.size() > 1;
  }
  EXPECT_TRUE(mixed);
}

}  // namespace
}  // namespace culprit::deepdive
