// Layers, blocks and other parts of a step that repeat as regularly as steps do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <string>

#include "cycles/find.h"
#include "cycles/found.h"
#include "cycles/name_hints.h"
#include "formats/load.h"
#include "support/shared_data.h"
#include "support/trace_maker.h"

namespace culprit::cycles {
namespace {

using model::CycleMethod;
using model::Phase;
using testing::HasSubstr;
using testing_support::TraceMaker;

struct Model {
  TraceMaker maker;
  TrackId thread = maker.thread(100, 1);
  TrackId stream = maker.stream(0, 7);
  std::uint32_t correlation = 0;
  Ns at = 0;

  void run(const char* kernel, const char* category = "kernel") {
    const SliceIndex launcher = maker.slice(thread, "cuda_runtime", "cudaLaunchKernel", at, 5, ++correlation);
    maker.gpu(stream, category, kernel, at + 20, 60, launcher);
    at += 100;
  }

  /// A block that copies in and out as a step does.
  void block(std::int64_t number, bool named) {
    const Ns begin = at;
    run("Memcpy HtoD (Pinned -> Device)", "gpu_memcpy");
    for (const char* kernel : {"norm", "qkv", "flash_fwd_kernel", "out", "mlp_up", "mlp_down"}) run(kernel);
    run("Memcpy DtoH (Device -> Pinned)", "gpu_memcpy");
    if (named)
      maker.slice(thread, "user_annotation", "FSDP::pre_forward (blocks." + std::to_string(number) + "._wrapped)",
                  begin, at - begin - 10);
    at += 300;
  }
};

TEST(NumberedPart, IsReadFromTheNamesThatFrameworksGive) {
  const auto part = numbered_part("FSDP::pre_forward (blocks.17._checkpoint_wrapped_module), op_id = 990878");
  ASSERT_TRUE(part);
  EXPECT_EQ(part->number, 17);
  EXPECT_EQ(part->family, "FSDP::pre_forward (blocks.N._checkpoint_wrapped_module), op_id = N");
  EXPECT_EQ(numbered_part("nn.Module: Qwen3DecoderLayer_7")->number, 7);
  EXPECT_EQ(numbered_part("model.layers.31.self_attn")->number, 31);
  EXPECT_EQ(numbered_part("Layer 4")->number, 4);
}

TEST(NumberedPart, IsNoStepAndNoUnnumberedName) {
  for (const char* name : {"", "layer", "blocks.", "ProfilerStep#3", "step 3", "iteration 12", "layer_norm_12",
                           "layers.99999999999999999999", "player one"})
    EXPECT_FALSE(numbered_part(name)) << name;
}

TEST(Parts, BlocksThatCopyAreNoStepsThoughNothingNamesThem) {
  Model model;
  for (int b = 0; b < 17; ++b) model.block(b, false);
  const model::Cycles cycles = cycles_in(model.maker.trace());
  EXPECT_EQ(cycles.method, CycleMethod::launch_sequence);
  EXPECT_LT(cycles.period_confidence, 0.5);
  EXPECT_THAT(cycles.reason, HasSubstr("layers may copy"));
}

TEST(Parts, NumberedBlocksAreCalledParts) {
  Model model;
  for (int b = 3; b < 20; ++b) model.block(b, true);
  const model::Cycles cycles = cycles_in(model.maker.trace());
  EXPECT_LT(cycles.period_confidence, 0.5);
  EXPECT_LT(cycles.phase_confidence, 0.5);
  EXPECT_THAT(cycles.reason, HasSubstr("blocks.N"));
  EXPECT_THAT(cycles.reason, HasSubstr("part of a step"));
}

TEST(Parts, StepsAreFoundWhereTheNumbersStartAgain) {
  Model model;
  for (int step = 0; step < 4; ++step)
    for (int b = 0; b < 6; ++b) model.block(b, true);
  const model::Cycles cycles = cycles_in(model.maker.trace());
  ASSERT_EQ(cycles.cycles.size(), 4U);
  EXPECT_THAT(cycles.reason, HasSubstr("start again"));
  for (std::size_t i = 1; i < cycles.cycles.size(); ++i)
    EXPECT_EQ(cycles.cycles[i].begin - cycles.cycles[i - 1].begin, 6 * 1100);
}

TEST(Parts, NumbersMayEndWithTheLargest) {
  constexpr std::int64_t kFirst = 9'223'372'036'854'775'802;
  Model model;
  for (int step = 0; step < 4; ++step)
    for (int b = 0; b < 6; ++b) model.block(kFirst + b, true);
  EXPECT_EQ(cycles_in(model.maker.trace()).cycles.size(), 4U);
}

TEST(Parts, TwoPassesAreTooFewToBeSteps) {
  Model model;
  for (int step = 0; step < 2; ++step)
    for (int b = 0; b < 6; ++b) model.block(b, true);
  EXPECT_LT(cycles_in(model.maker.trace()).period_confidence, 0.5);
}

TEST(Parts, AStepThatHoldsAllItsNumberedLayersIsAStep) {
  Model model;
  for (int step = 0; step < 8; ++step) {
    model.run("Memcpy HtoD (Pinned -> Device)", "gpu_memcpy");
    model.run("embedding_kernel");
    for (int b = 0; b < 4; ++b) {
      model.maker.slice(model.thread, "user_annotation", "layers." + std::to_string(b), model.at, 290);
      for (const char* kernel : {"norm", "attn", "mlp"}) model.run(kernel);
    }
    model.run("argmax");
    model.run("Memcpy DtoH (Device -> Pinned)", "gpu_memcpy");
    model.at += 500;
  }
  const model::Cycles cycles = cycles_in(model.maker.trace());
  EXPECT_EQ(cycles.cycles.size(), 8U);
  EXPECT_GT(cycles.period_confidence, 0.8);
}

TEST(Parts, OneLayerOfOneNumberInEveryStepIsNoDoubt) {
  Model model;
  for (int step = 0; step < 8; ++step) {
    model.run("Memcpy HtoD (Pinned -> Device)", "gpu_memcpy");
    model.run("embedding_kernel");
    model.maker.slice(model.thread, "user_annotation", "layers.0", model.at, 290);
    for (const char* kernel : {"norm", "attn", "mlp"}) model.run(kernel);
    model.run("argmax");
    model.run("Memcpy DtoH (Device -> Pinned)", "gpu_memcpy");
    model.at += 500;
  }
  EXPECT_GT(cycles_in(model.maker.trace()).period_confidence, 0.8);
}

TEST(Parts, OperatorsWrittenAsRangesAreNoMarkers) {
  EXPECT_EQ(marker_rank("FlashAttnFunc, seq = 12, op_id = 4711"), MarkerRank::denied);
  EXPECT_EQ(marker_rank("aten::copy_, op_id = 3"), MarkerRank::denied);
  EXPECT_EQ(marker_rank("train_step, op_id = 3"), MarkerRank::step_word) << "a user's own range under the same tool";
}

TEST(GuessedPhase, AttentionOfManyQueriesAloneIsNoPrefill) {
  Model model;
  for (int b = 0; b < 9; ++b) model.block(b, false);
  for (const model::Cycle& c : cycles_in(model.maker.trace()).cycles) EXPECT_EQ(c.phase, Phase::other);
}

TEST(GuessedPhase, BesideDecodesItIs) {
  TraceMaker maker;
  const TrackId thread = maker.thread(1, 1);
  const TrackId stream = maker.stream(0, 7);
  for (int i = 0; i < 6; ++i) {
    maker.slice(thread, "user_annotation", "ProfilerStep#" + std::to_string(i), i * 1000, 990);
    const SliceIndex launcher = maker.slice(thread, "cuda_runtime", "cudaLaunchKernel", i * 1000 + 5, 5, 1U + i);
    maker.gpu(stream, "kernel", i % 3 == 0 ? "flash_fwd_kernel" : "flash_fwd_splitkv_kernel", i * 1000 + 50, 60,
              launcher);
  }
  const model::Cycles cycles = cycles_in(maker.trace());
  ASSERT_EQ(cycles.cycles.size(), 6U);
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(cycles.cycles[i].phase, i % 3 == 0 ? Phase::prefill : Phase::decode);
    EXPECT_TRUE(cycles.cycles[i].phase_guessed);
  }
}

TEST(GuessedPhase, WhatAMarkerSaysIsNoGuess) {
  TraceMaker maker;
  const TrackId thread = maker.thread(1, 1);
  for (int i = 0; i < 3; ++i) maker.slice(thread, "user_annotation", "step[DECODE bs=2 toks=2]", i * 100, 90);
  for (const model::Cycle& c : cycles_in(maker.trace()).cycles) EXPECT_FALSE(c.phase_guessed);
}

/// Video diffusion on two devices without markers of steps; the recordings hold 17 and 15 transformer blocks.
TEST(CorpusBlocks, BothSidesAreCalledPartsAndHaveNoPhase) {
  for (const char* file : {"corpus/nsys/mfu_2gpu_before.sqlite", "corpus/nsys/mfu_2gpu_after.sqlite"}) {
    CULPRIT_NEEDS_SHARED(file);
    const auto trace = formats::load_run({test::shared(file)}, {});
    ASSERT_TRUE(trace.ok());
    const model::Cycles cycles = cycles_in(*trace);
    EXPECT_EQ(cycles.method, CycleMethod::launch_sequence) << file;
    EXPECT_LT(cycles.period_confidence, 0.5) << file;
    EXPECT_THAT(cycles.reason, HasSubstr("blocks.N")) << file;
    for (const model::Cycle& c : cycles.cycles) EXPECT_EQ(c.phase, Phase::other) << file;
    FindOptions bare;
    bare.ignore_markers = bare.ignore_host_functions = true;
    EXPECT_LT(cycles_in(*trace, bare).period_confidence, 0.5) << file << " without any names of ranges";
  }
}

}  // namespace
}  // namespace culprit::cycles
