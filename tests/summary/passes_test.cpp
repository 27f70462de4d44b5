#include "summary/passes.h"

#include <gtest/gtest.h>

#include "support/trace_maker.h"

namespace culprit::summary {
namespace {

using testing_support::TraceMaker;

struct Scene {
  TraceMaker make;
  TrackId main = make.thread(1, 1);
  TrackId engine = make.thread(1, 2);
  TrackId stream = make.stream(0, 7);
  std::uint32_t next = 1;

  /// A kernel launched at `at` on `thread`.
  void kernel(TrackId thread, Ns at) {
    const SliceIndex launch = make.slice(thread, "cuda_runtime", "cudaLaunchKernel", at, 1, next++);
    make.gpu(stream, "kernel", "k", at + 1000, 10, launch);
  }
  std::vector<Pass> passes() { return find_passes(make.trace()).of_gpu; }
  bool known() { return find_passes(make.trace()).known; }
};

TEST(Passes, AutogradEngineIsBackward) {
  Scene scene;
  scene.make.slice(scene.engine, "cpu_op", "autograd::engine::evaluate_function: AddmmBackward0", 0, 100);
  scene.make.slice(scene.engine, "cpu_op", "aten::mm", 10, 50);
  scene.kernel(scene.engine, 20);
  scene.kernel(scene.engine, 200);
  EXPECT_EQ(scene.passes(), (std::vector{Pass::backward, Pass::other}));
  EXPECT_TRUE(scene.known());
}

TEST(Passes, LinksMarkBothEnds) {
  Scene scene;
  const SliceIndex f = scene.make.slice(scene.main, "cpu_op", "aten::linear", 0, 10);
  scene.kernel(scene.main, 5);
  const SliceIndex b = scene.make.slice(scene.engine, "cpu_op", "custom_op", 50, 10);
  scene.kernel(scene.engine, 55);
  scene.make.flow(f, b, FlowKind::forward_backward);
  EXPECT_EQ(scene.passes(), (std::vector{Pass::forward, Pass::backward}));
}

TEST(Passes, RecomputedActivationsBelongToTheBackwardPass) {
  Scene scene;
  scene.make.slice(scene.main, "user_annotation", "## backward ##", 0, 100);
  scene.make.slice(scene.main, "python_function", "model.py(3): forward", 10, 50);
  scene.kernel(scene.main, 20);
  EXPECT_EQ(scene.passes(), (std::vector{Pass::backward}));
}

TEST(Passes, OptimizerAndForwardRanges) {
  Scene scene;
  scene.make.slice(scene.main, "user_annotation", "forward", 0, 100);
  scene.kernel(scene.main, 20);
  scene.make.slice(scene.main, "user_annotation", "Optimizer.step#Adam.step", 100, 100);
  scene.kernel(scene.main, 120);
  EXPECT_EQ(scene.passes(), (std::vector{Pass::forward, Pass::optimizer}));
}

TEST(Passes, ARangeAroundBothSaysNothing) {
  Scene scene;
  scene.make.slice(scene.main, "user_annotation", "forward_backward_step", 0, 100);
  scene.kernel(scene.main, 20);
  EXPECT_EQ(scene.passes(), (std::vector{Pass::other}));
  EXPECT_FALSE(scene.known());
}

TEST(Passes, PathsOfPythonFilesSayNothing) {
  Scene scene;
  scene.make.slice(scene.main, "python_function", "/home/backward/x.py(3): run", 0, 100);
  scene.kernel(scene.main, 20);
  EXPECT_FALSE(scene.known());
}

TEST(Passes, SequenceNumbersAloneAreNotEnough) {
  Scene scene;
  const SliceIndex op = scene.make.slice(scene.main, "cpu_op", "aten::add", 0, 100);
  scene.make.extra(op).sequence = 7;
  scene.kernel(scene.main, 20);
  EXPECT_FALSE(scene.known());
  scene.make.slice(scene.engine, "cpu_op", "AddBackward0", 200, 10);
  scene.kernel(scene.engine, 205);
  EXPECT_TRUE(scene.known());
  EXPECT_EQ(scene.passes(), (std::vector{Pass::forward, Pass::backward}));
}

TEST(Passes, WithoutLauncherItIsOther) {
  Scene scene;
  scene.make.gpu(scene.stream, "kernel", "k", 0, 10);
  EXPECT_EQ(scene.passes(), (std::vector{Pass::other}));
  EXPECT_FALSE(scene.known());
  EXPECT_FALSE(find_passes(Trace{}).known);
}

}  // namespace
}  // namespace culprit::summary
