// Real traces: the count that their markers state, and the same without looking at markers.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "cycles/find.h"
#include "formats/load.h"
#include "support/shared_data.h"

namespace culprit::cycles {
namespace {

using model::CycleMethod;

Trace load(const std::string& name, const std::string& folder = "corpus/kineto/") {
  auto trace = formats::load_run({test::shared(folder + name)}, {});
  EXPECT_TRUE(trace.ok());
  return std::move(*trace);
}

model::Cycles cycles_of(const Trace& trace, bool markers, bool functions = true) {
  FindOptions options;
  options.ignore_markers = !markers;
  options.ignore_host_functions = !functions;
  auto found = find_cycles(trace, order_slices(trace), options);
  EXPECT_TRUE(found.ok());
  return std::move(found->cycles);
}

struct Training {
  const char* file;
  std::size_t steps;
};

class TrainingTrace : public testing::TestWithParam<Training> {};

TEST_P(TrainingTrace, LaunchSequenceAgreesWithProfilerSteps) {
  CULPRIT_NEEDS_SHARED(std::string("corpus/kineto/") + GetParam().file);
  const Trace trace = load(GetParam().file);
  const model::Cycles marked = cycles_of(trace, true);
  EXPECT_EQ(marked.method, CycleMethod::marker);
  EXPECT_EQ(marked.anchor, "ProfilerStep#N");
  ASSERT_EQ(marked.cycles.size(), GetParam().steps);

  const model::Cycles bare = cycles_of(trace, false, false);
  EXPECT_EQ(bare.method, CycleMethod::launch_sequence);
  ASSERT_EQ(bare.cycles.size(), marked.cycles.size());
  const auto mean_period = [](const model::Cycles& c) {
    return static_cast<double>(c.cycles.back().begin - c.cycles.front().begin) /
           static_cast<double>(c.cycles.size() - 1);
  };
  const double period = mean_period(marked);
  EXPECT_NEAR(mean_period(bare) / period, 1, 0.01);
  // Offset of the cut to the first GPU operation of the marked step: the same in every step.
  Ns least = std::numeric_limits<Ns>::max();
  Ns most = std::numeric_limits<Ns>::min();
  for (std::size_t i = 0; i < bare.cycles.size(); ++i) {
    const Ns offset = bare.cycles[i].devices.at(0).begin - marked.cycles[i].devices.at(0).begin;
    least = std::min(least, offset);
    most = std::max(most, offset);
  }
  EXPECT_LE(static_cast<double>(most - least), period * 0.01);
  for (const model::Cycle& c : marked.cycles) EXPECT_EQ(c.phase, model::Phase::train_step);
}

INSTANTIATE_TEST_SUITE_P(Corpus, TrainingTrace,
                         testing::Values(Training{"train_2xv100/df_index_resolver.json.gz", 5},
                                         Training{"train_a100_graphs/rank0.json.gz", 5},
                                         Training{"hta_trace_diff/control.json.gz", 6},
                                         Training{"hta_trace_diff/test.json.gz", 6}));

TEST(ServingTrace, SglangPrefillIsOneStepWithItsWorkload) {
  CULPRIT_NEEDS_SHARED("corpus/kineto/sglang_qwen3_8b/prefilldecode.json.gz");
  const Trace trace = load("sglang_qwen3_8b/prefilldecode.json.gz");
  const model::Cycles found = cycles_of(trace, true);
  EXPECT_EQ(found.method, CycleMethod::marker);
  ASSERT_EQ(found.cycles.size(), 1U);
  EXPECT_EQ(found.cycles[0].phase, model::Phase::prefill);
  EXPECT_EQ(found.cycles[0].workload.batch, 15);
  EXPECT_EQ(found.cycles[0].workload.tokens, 15360);
  // One step: what repeats without its marker are 36 layers, and nothing may call them steps with confidence.
  EXPECT_LT(cycles_of(trace, false).period_confidence, 0.6);
  EXPECT_LT(cycles_of(trace, false, false).period_confidence, 0.6);
}

TEST(ServingTrace, VllmGraphsAreOneMixedStep) {
  CULPRIT_NEEDS_SHARED("corpus/kineto/vllm_piecewise/graph_execution.json.gz");
  const Trace trace = load("vllm_piecewise/graph_execution.json.gz");
  const model::Cycles found = cycles_of(trace, true);
  ASSERT_EQ(found.cycles.size(), 1U);
  EXPECT_EQ(found.cycles[0].phase, model::Phase::mixed);
  EXPECT_EQ(found.cycles[0].workload.batch, 46);
  EXPECT_LT(cycles_of(trace, false).period_confidence, 0.6);
}

TEST(OneStep, LayersOfASingleStepAreNoSteps) {
  for (const char* file : {"qwen_h100_vs_mi300/h100.json.gz", "qwen_h100_vs_mi300/mi300.json.gz",
                           "vllm_piecewise/capture_traces/graph_capture_rank_0.1773709679453551615.pt.trace.json.gz"}) {
    CULPRIT_NEEDS_SHARED(std::string("corpus/kineto/") + file);
    const Trace trace = load(file);
    EXPECT_LT(cycles_of(trace, false).period_confidence, 0.6) << file;
    EXPECT_LT(cycles_of(trace, false, false).period_confidence, 0.6) << file;
  }
}

TEST(Diffusion, TheMarkedImageIsTheCycle) {
  CULPRIT_NEEDS_SHARED("corpus/kineto/xdit_flux_null/iteration_0.json.gz");
  const Trace trace = load("xdit_flux_null/iteration_0.json.gz");
  const model::Cycles found = cycles_of(trace, true);
  EXPECT_EQ(found.anchor, "execute_diffusion_1_256x256");
  EXPECT_EQ(found.cycles.size(), 1U);
  EXPECT_LT(cycles_of(trace, false).period_confidence, 0.6);
}

struct Serving {
  const char* file;
  std::size_t steps;
  std::size_t may_differ;
};

class ServingOnTheCpu : public testing::TestWithParam<Serving> {};

TEST_P(ServingOnTheCpu, OperatorsAloneShowTheMarkedSteps) {
  CULPRIT_NEEDS_SHARED(std::string("corpus/real/") + GetParam().file);
  const Trace trace = load(GetParam().file, "corpus/real/");
  const model::Cycles marked = cycles_of(trace, true);
  EXPECT_EQ(marked.method, CycleMethod::marker);
  ASSERT_EQ(marked.cycles.size(), GetParam().steps);
  const model::Cycles bare = cycles_of(trace, false);
  EXPECT_EQ(bare.method, CycleMethod::operator_sequence);
  EXPECT_GE(bare.period_confidence, 0.75);
  EXPECT_GE(bare.cycles.size() + GetParam().may_differ, marked.cycles.size());
  EXPECT_LE(bare.cycles.size(), marked.cycles.size() + GetParam().may_differ);
}

INSTANTIATE_TEST_SUITE_P(Corpus, ServingOnTheCpu,
                         testing::Values(Serving{"vllm-n1.trace.json.gz", 78, 0},
                                         Serving{"vllm-many.trace.json.gz", 64, 0},
                                         Serving{"vllm-cpu.trace.json.gz", 31, 0},
                                         Serving{"sglang-n1.trace.json.gz", 61, 2}));

TEST(SmallTraces, WithoutRepetitionSaySo) {
  for (const char* file : {"hta_small/rank_unavailable/rank_not_found.json.gz",
                           "hta_small/cpu_only/rank-34.Jul_15_10_52_41.1074.pt.trace.json.gz",
                           "hta_small/amd_trace/mi250_minitoy_train_ROCm6_2_kineto.json.gz",
                           "hta_small/cupti_profiler/benchmark_result_924719_1679055439_trace.json.gz"}) {
    CULPRIT_NEEDS_SHARED(std::string("corpus/kineto/") + file);
    const model::Cycles found = cycles_of(load(file), false);
    EXPECT_EQ(found.method, CycleMethod::none) << file;
    EXPECT_NE(found.reason.find("nothing repeats"), std::string::npos);
  }
}

}  // namespace
}  // namespace culprit::cycles
