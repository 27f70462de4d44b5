#include "profile/whole_run.h"

#include <gtest/gtest.h>

#include "support/trace_maker.h"

namespace culprit::profile {
namespace {

using testing_support::TraceMaker;

TEST(WholeRun, OfNothingIsNothing) {
  const model::WholeRun whole = whole_run_of(Trace{});
  EXPECT_EQ(whole.wall_ns, 0);
  EXPECT_EQ(whole.busy_ns, 0);
  EXPECT_EQ(whole.kernels, 0);
}

TEST(WholeRun, BusyIsTheMeanOfDevicesAndOverlapCountsOnce) {
  TraceMaker maker;
  const TrackId thread = maker.thread(1, 1);
  const TrackId first = maker.stream(0, 7);
  const TrackId beside = maker.stream(0, 8);
  const TrackId second = maker.stream(1, 7);
  maker.slice(thread, "cpu_op", "aten::mm", 100, 50);
  const SliceIndex launch = maker.slice(thread, "cuda_runtime", "cudaLaunchKernel", 110, 5, 1);
  maker.gpu(first, "kernel", "k", 200, 100, launch);
  maker.gpu(beside, "kernel", "k", 250, 100);
  maker.gpu(second, "gpu_memcpy", "Memcpy HtoD", 200, 50);
  maker.gpu(second, "gpu_memset", "Memset", 1000, 100);
  const model::WholeRun whole = whole_run_of(maker.trace());
  EXPECT_EQ(whole.wall_ns, 1000);
  EXPECT_EQ(whole.busy_ns, (150 + 150) / 2.0);
  EXPECT_EQ(whole.kernel_ns, 200);
  EXPECT_EQ(whole.kernels, 2);
  EXPECT_EQ(whole.copies, 2);
  EXPECT_EQ(whole.operators, 1);
  EXPECT_EQ(whole.launches, 1);
}

}  // namespace
}  // namespace culprit::profile
