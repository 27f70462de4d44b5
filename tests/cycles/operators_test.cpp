// Runs without GPU work: steps from the sequence of operators of the busiest thread.
#include "cycles/operators.h"

#include <gtest/gtest.h>

#include <string>

#include "cycles/find.h"
#include "cycles/found.h"
#include "support/trace_maker.h"

namespace culprit::cycles {
namespace {

using model::CycleMethod;
using testing_support::TraceMaker;

/// PyTorch on the CPU: operators 10 us apart, each with a nested one.
struct OperatorProgram {
  TraceMaker maker;
  TrackId thread = maker.thread(100, 1);
  Ns at = 0;
  std::vector<Ns> begins;

  void op(const std::string& name) {
    maker.slice(thread, "cpu_op", name, at, 8'000);
    maker.slice(thread, "cpu_op", "aten::empty", at + 1'000, 2'000);
    at += 10'000;
  }
  void layers(int n) {
    for (int l = 0; l < n; ++l)
      for (const char* name : {"aten::layer_norm", "aten::linear", "aten::scaled_dot_product_attention", "aten::add"})
        op(name);
  }
  void train_step(int accumulate = 1, int number = 0) {
    begins.push_back(at);
    op("aten::randint");
    layers(6);
    op("aten::cross_entropy_loss");
    for (int l = 0; l < 6; ++l)
      for (const char* name : {"AddBackward0", "ScaledDotProductBackward0", "AddmmBackward0"})
        op(std::string("autograd::engine::evaluate_function: ") + name);
    if (number % accumulate == accumulate - 1)
      for (int p = 0; p < 20; ++p)
        for (const char* name : {"aten::lerp_", "aten::sqrt", "aten::addcdiv_"}) op(name);
    at += 50'000;
  }
  void decode_step() {
    begins.push_back(at);
    op("aten::embedding");
    op("aten::arange");
    op("aten::embedding");
    layers(6);
    op("aten::softmax");
    op("aten::multinomial");
    at += 20'000;
  }
};

TEST(Operators, TrainingOnTheCpuIsCutAtItsSteps) {
  OperatorProgram p;
  for (int s = 0; s < 8; ++s) p.train_step();
  const model::Cycles cycles = find(p.maker.trace()).cycles;
  EXPECT_EQ(cycles.method, CycleMethod::operator_sequence);
  EXPECT_EQ(begins_of(cycles), p.begins);
  EXPECT_GE(cycles.period_confidence, 0.8);
  for (const model::Cycle& c : cycles.cycles) EXPECT_EQ(c.phase, model::Phase::train_step);
}

TEST(Operators, GenerationOnTheCpuIsCutAtItsTokens) {
  OperatorProgram p;
  for (int s = 0; s < 12; ++s) p.decode_step();
  const model::Cycles cycles = find(p.maker.trace()).cycles;
  EXPECT_EQ(cycles.method, CycleMethod::operator_sequence);
  EXPECT_EQ(begins_of(cycles), p.begins);
  EXPECT_GE(cycles.period_confidence, 0.8);
}

/// A model compiled into one operator, called for the tokens of requests of equal length, which begin with operators of
/// their own.
OperatorProgram compiled_generation(const char* sample) {
  OperatorProgram p;
  for (int request = 0; request < 4; ++request) {
    for (const char* name : {"aten::randint", "aten::arange", "aten::zeros", "aten::zeros"}) p.op(name);
    for (int token = 0; token < 16; ++token) {
      p.begins.push_back(p.at);
      p.op("TorchDynamo Cache Lookup");
      p.op(token == 0 ? "Torch-Compiled Region: 1/0" : "Torch-Compiled Region: 1/1");
      p.op("aten::softmax");
      p.op(sample);
      p.at += 20'000;
    }
  }
  return p;
}

TEST(Operators, DrawnTokensTellStepsFromRequests) {
  OperatorProgram p = compiled_generation("aten::multinomial");
  const model::Cycles cycles = find(p.maker.trace()).cycles;
  EXPECT_EQ(cycles.method, CycleMethod::operator_sequence);
  EXPECT_EQ(cycles.cycles.size(), p.begins.size());
  EXPECT_GE(cycles.period_confidence, 0.8);
}

TEST(Operators, AMarkerThatTheyConfirmOutweighsAFunctionAroundSeveral) {
  OperatorProgram p = compiled_generation("aten::multinomial");
  for (std::size_t step = 0; step < p.begins.size(); ++step) {
    const Ns begin = p.begins[step];
    p.maker.slice(p.thread, "user_annotation", step % 16 == 0 ? "prefill" : "decode", begin - 500, 50'000);
    if (step % 16 == 0)
      p.maker.slice(p.thread, "python_function", "serve.py(7): generate", begin - 41'000,
                    p.begins[step + 15] - begin + 100'000);
  }
  const model::Cycles cycles = find(p.maker.trace()).cycles;
  EXPECT_EQ(cycles.method, CycleMethod::marker);
  EXPECT_EQ(cycles.cycles.size(), p.begins.size());
  EXPECT_GE(cycles.period_confidence, 0.9);
}

TEST(Operators, AFunctionThatComesAsOftenStaysTheAnchor) {
  OperatorProgram p = compiled_generation("aten::multinomial");
  for (const Ns begin : p.begins) {
    p.maker.slice(p.thread, "user_annotation", "decode", begin - 200, 40'000);
    p.maker.slice(p.thread, "python_function", "serve.py(7): step", begin - 500, 50'000);
  }
  const model::Cycles cycles = find(p.maker.trace()).cycles;
  EXPECT_EQ(cycles.method, CycleMethod::host_function);
  EXPECT_EQ(cycles.cycles.size(), p.begins.size());
}

TEST(Operators, TheLargestAloneMayBeRoutingAndIsNoStepWithConfidence) {
  OperatorProgram p = compiled_generation("aten::argmax");
  EXPECT_LT(find(p.maker.trace()).cycles.period_confidence, 0.5);
}

TEST(Operators, LayersAloneAreNoStepsWithConfidence) {
  OperatorProgram p;
  p.layers(12);
  EXPECT_LT(find(p.maker.trace()).cycles.period_confidence, 0.5);
}

TEST(Operators, ConfirmAFunctionAsAnchor) {
  OperatorProgram p;
  std::vector<std::pair<Ns, Ns>> calls;
  for (int s = 0; s < 8; ++s) {
    const Ns begin = p.at;
    p.at += 1'000;
    p.train_step();
    calls.emplace_back(begin, p.at - begin - 20'000);
  }
  for (const auto& [begin, duration] : calls)
    p.maker.slice(p.thread, "python_function", "train.py(53): train_step", begin, duration);
  const model::Cycles cycles = find(p.maker.trace()).cycles;
  EXPECT_EQ(cycles.method, CycleMethod::host_function);
  EXPECT_EQ(cycles.anchor, "train.py(53): train_step");
  EXPECT_GE(cycles.period_confidence, 0.9);
  EXPECT_NE(cycles.reason.find("operators repeats as often"), std::string::npos);
}

TEST(Operators, AFunctionPerLayerLosesAgainstTheSequence) {
  OperatorProgram p;
  for (int s = 0; s < 8; ++s) {
    p.train_step();
    for (int l = 0; l < 6; ++l)
      p.maker.slice(p.thread, "python_function", "model.py(11): forward", p.begins.back() + 10'000 + l * 40'000,
                    39'000);
  }
  const model::Cycles cycles = find(p.maker.trace()).cycles;
  EXPECT_EQ(begins_of(cycles), p.begins);
}

TEST(Operators, WrappersOfPyTorchAreNoAnchors) {
  OperatorProgram p;
  for (int s = 0; s < 9; ++s) {
    const Ns begin = p.at;
    p.at += 2'000;
    const Ns inner = p.at;
    p.decode_step();
    p.maker.slice(p.thread, "python_function", "torch/utils/_contextlib.py(154): no_grad", begin, p.at - begin - 5'000);
    p.maker.slice(p.thread, "python_function", "serve.py(77): decode", inner, p.at - inner - 6'000);
  }
  EXPECT_EQ(find(p.maker.trace()).cycles.anchor, "serve.py(77): decode");
}

TEST(Operators, AccumulatedGradientsAreToldByTheOptimizersOperators) {
  OperatorProgram p;
  for (int s = 0; s < 16; ++s) p.train_step(4, s);
  const model::Cycles cycles = find(p.maker.trace()).cycles;
  EXPECT_EQ(begins_of(cycles), p.begins);
  EXPECT_TRUE(std::ranges::any_of(cycles.notes, [](const std::string& n) {
    return n.find("the optimizer runs in one of 4 cycles") != std::string::npos;
  }));
}

TEST(Operators, AnOptimizerMarkerThatComesSeldomerTellsTheSame) {
  OperatorProgram p;
  for (int s = 0; s < 16; ++s) {
    p.train_step();
    if (s % 4 == 3) p.maker.slice(p.thread, "user_annotation", "Optimizer.step#SGD.step", p.at - 45'000, 30'000);
  }
  const model::Cycles cycles = find(p.maker.trace()).cycles;
  EXPECT_EQ(begins_of(cycles), p.begins);
  EXPECT_TRUE(std::ranges::any_of(cycles.notes, [](const std::string& n) {
    return n.find("the optimizer runs in one of 4 cycles") != std::string::npos;
  }));
}

TEST(Operators, OfTheBusiestThreadAreTaken) {
  OperatorProgram p;
  const TrackId other = p.maker.thread(100, 2);
  for (int s = 0; s < 8; ++s) {
    p.maker.slice(other, "cpu_op", "aten::pin_memory", p.at, 5'000);
    p.train_step();
  }
  const Trace& trace = p.maker.trace();
  const std::vector<Operations> ranks = list_operators(trace, order_slices(trace));
  ASSERT_EQ(ranks.size(), 1U);
  EXPECT_EQ(ranks[0].track, p.thread);
  for (const Operation& op : ranks[0].list) EXPECT_NE(trace.name(trace.slices[op.slice]), "aten::empty") << "nested";
}

TEST(Operators, BesideGpuWorkAreNotLookedAt) {
  OperatorProgram p;
  for (int s = 0; s < 8; ++s) p.train_step();
  for (int i = 0; i < 3; ++i) p.maker.gpu(p.maker.stream(0, 7), "kernel", "k", 1000 * i, 10);
  EXPECT_NE(find(p.maker.trace()).cycles.method, CycleMethod::operator_sequence);
}

TEST(Operators, InNoOrderAreNoSteps) {
  TraceMaker maker;
  const TrackId thread = maker.thread(1, 1);
  std::uint32_t x = 12345;
  Ns at = 0;
  for (int i = 0; i < 400; ++i) {
    x = x * 1664525 + 1013904223;
    maker.slice(thread, "cpu_op", "op" + std::to_string((x >> 16) % 9), at, 5);
    at += 10 + (x >> 20) % 1000;
  }
  const model::Cycles cycles = find(maker.trace()).cycles;
  EXPECT_LT(cycles.period_confidence, 0.3);
}

}  // namespace
}  // namespace culprit::cycles
