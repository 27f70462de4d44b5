// Steps that are found in parts, and steps of two kinds that are none.
#include "cycles/alternation.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "cycles/find.h"
#include "cycles/found.h"
#include "support/trace_maker.h"

namespace culprit::cycles {
namespace {

using model::CycleMethod;
using testing_support::TraceMaker;

/// A process that launches kernels 10 us apart and copies as pageable memory is copied: with a wait.
class Program {
 public:
  void launch(const std::string& kernel, const char* category = "kernel", Ns duration = 8'000) {
    const SliceIndex call = maker_.slice(thread_, "cuda_runtime", "cudaLaunchKernel", at_, 3'000, ++correlation_);
    if (lost_ == 0 || random_() % lost_ != 0) maker_.gpu(stream_, category, kernel, at_ + 4'000, duration, call);
    at_ += 10'000;
  }
  void copy_in() {
    launch("Memcpy HtoD (Pageable -> Device)", "gpu_memcpy");
    wait();
  }
  void copy_out() {
    launch("Memcpy DtoH (Device -> Pageable)", "gpu_memcpy");
    wait();
  }
  void wait() {
    maker_.slice(thread_, "cuda_runtime", "cudaStreamSynchronize", at_, 4'000, ++correlation_);
    at_ += 5'000;
  }
  void many(const std::string& kernel, int times, int kinds) {
    for (int i = 0; i < times; ++i) launch(kernel + std::to_string(i % kinds));
  }
  void rest(Ns time) { at_ += time; }
  void lose_one_in(unsigned n) { lost_ = n; }
  void begin_step() { begins_.push_back(at_); }

  [[nodiscard]] Found find() {
    auto found = find_cycles(maker_.trace(), order_slices(maker_.trace()), {});
    EXPECT_TRUE(found.ok());
    return std::move(*found);
  }
  [[nodiscard]] const std::vector<Ns>& begins() const { return begins_; }

 private:
  TraceMaker maker_;
  TrackId thread_ = maker_.thread(100, 1);
  TrackId stream_ = maker_.stream(0, 7);
  std::uint32_t correlation_ = 0;
  Ns at_ = 0;
  unsigned lost_ = 0;
  std::mt19937 random_{7};
  std::vector<Ns> begins_;
};

bool has_note(const model::Cycles& cycles, std::string_view text) {
  return std::ranges::any_of(cycles.notes, [&](const std::string& n) { return n.find(text) != std::string::npos; });
}

/// A training step whose kernels have names that tell nothing.
void unnamed_step(Program& p, int inputs) {
  p.begin_step();
  for (int i = 0; i < inputs; ++i) p.copy_in();
  p.many("fused_", 90, 30);
  p.many("merged_", 60, 20);
  p.rest(200'000);
}

TEST(Alternation, AStepThatCopiesTwoInputsIsOneCycle) {
  Program p;
  for (int s = 0; s < 12; ++s) unnamed_step(p, 2);
  const model::Cycles cycles = p.find().cycles;
  EXPECT_EQ(cycles.cycles.size(), 12U);
  EXPECT_EQ(begins_of(cycles), p.begins());
  EXPECT_TRUE(has_note(cycles, "put together")) << "parts are told";
  EXPECT_LT(cycles.period_confidence, 0.8) << "nothing shows that this is no offloaded layer";
}

TEST(Alternation, AStepThatCopiesManyInputsIsOneCycle) {
  for (const int inputs : {3, 4, 7}) {
    Program p;
    for (int s = 0; s < 9; ++s) unnamed_step(p, inputs);
    const model::Cycles cycles = p.find().cycles;
    EXPECT_EQ(begins_of(cycles), p.begins()) << inputs;
  }
}

TEST(Alternation, LostEventsDoNotTakeStepsApart) {
  Program p;
  p.lose_one_in(200);
  for (int s = 0; s < 30; ++s) unnamed_step(p, 2);
  const model::Cycles cycles = p.find().cycles;
  EXPECT_GE(cycles.cycles.size(), 29U);
  EXPECT_LE(cycles.cycles.size(), 31U);
}

TEST(Alternation, ARecordingThatBeginsAndEndsInsideAStepIsCutTheSame) {
  Program p;
  p.many("merged_", 40, 20);
  p.rest(200'000);
  for (int s = 0; s < 10; ++s) unnamed_step(p, 2);
  p.copy_in();
  p.copy_in();
  p.many("fused_", 20, 20);
  const model::Cycles cycles = p.find().cycles;
  ASSERT_GE(cycles.cycles.size(), 10U);
  ASSERT_LE(cycles.cycles.size(), 12U);
  for (const Ns begin : p.begins()) EXPECT_TRUE(std::ranges::count(begins_of(cycles), begin)) << begin;
}

TEST(Alternation, ForwardAndBackwardThatBothCopyAreOneStep) {
  Program p;
  for (int s = 0; s < 10; ++s) {
    p.begin_step();
    p.copy_in();
    p.many("one_way_", 40, 20);
    p.copy_out();
    p.copy_in();
    p.many("other_way_", 110, 50);
    p.copy_out();
    p.rest(300'000);
  }
  const model::Cycles cycles = p.find().cycles;
  EXPECT_EQ(cycles.cycles.size(), 10U);
  EXPECT_EQ(begins_of(cycles), p.begins());
}

TEST(Alternation, AccumulatedGradientsStayPassesAndANoteTellsTheOptimizer) {
  Program p;
  for (int s = 0; s < 16; ++s) {
    p.begin_step();
    p.copy_in();
    p.many("forward_", 40, 20);
    p.launch("nll_loss_forward");
    p.many("gemm_backward_", 60, 30);
    if (s % 4 == 3) p.many("multi_tensor_apply_adam_", 4, 1);
    p.copy_out();
    p.rest(200'000);
  }
  const model::Cycles cycles = p.find().cycles;
  EXPECT_EQ(cycles.cycles.size(), 16U);
  EXPECT_TRUE(has_note(cycles, "the optimizer runs in one of 4 cycles"));
}

TEST(Alternation, APrefillAfterEveryThirdDecodeIsAStepOfItsOwn) {
  Program p;
  for (int s = 0; s < 24; ++s) {
    p.copy_in();
    if (s % 4 == 0)
      p.many("prefill_gemm_", 120, 40);
    else
      p.many("decode_gemm_", 40, 20);
    p.launch("TopKTopPSamplingFromProbKernel");
    p.copy_out();
    p.rest(100'000);
  }
  const model::Cycles cycles = p.find().cycles;
  EXPECT_EQ(cycles.cycles.size(), 24U);
}

TEST(Alternation, StepsOfTwoKindsInNoOrderAreSteps) {
  Program p;
  std::mt19937 random(3);
  for (int s = 0; s < 40; ++s) {
    p.copy_in();
    if (random() % 3 == 0)
      p.many("large_", 120, 40);
    else
      p.many("small_", 40, 20);
    p.copy_out();
    p.rest(100'000);
  }
  EXPECT_EQ(p.find().cycles.cycles.size(), 40U);
}

TEST(Alternation, EqualStepsHaveNoPeriod) {
  std::vector<Operation> list;
  std::vector<std::uint32_t> cuts;
  for (std::uint32_t s = 0; s < 20; ++s) {
    cuts.push_back(static_cast<std::uint32_t>(list.size()));
    for (std::uint64_t k = 0; k < 50; ++k) {
      Operation op;
      op.name = k;
      op.computes = true;
      list.push_back(op);
    }
  }
  EXPECT_EQ(find_alternation(list, cuts).period, 1U);
  EXPECT_FALSE(find_alternation(list, cuts).parts);
}

}  // namespace
}  // namespace culprit::cycles
