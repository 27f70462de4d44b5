#include "tracegen/workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace culprit::tracegen {

namespace {

constexpr std::int64_t kHidden = 4096;
constexpr std::int64_t kInner = 11'008;
constexpr std::int64_t kVocabulary = 32'000;
constexpr std::int64_t kElement = 2;  // bytes of bf16
constexpr std::int64_t kPromptTokens = 512;
constexpr std::int64_t kTrainSequence = 64;  // tokens per sample
constexpr Ns kOpCost = 3'500;                // host time around the launches of one operator

/// A matrix product (m x k) (k x n).
Work product(std::int64_t m, std::int64_t n, std::int64_t k) {
  return {2 * m * n / 10 * k / 100, kElement * (m * k + k * n + m * n)};
}
/// A kernel that reads and writes `passes` times `elements`.
Work streaming(std::int64_t elements, std::int64_t passes) { return {elements / 250, kElement * elements * passes}; }
/// Attention of `queries` to `keys` over the whole hidden size; the keys and values of each of `sequences` are read
/// once.
Work attention(std::int64_t queries, std::int64_t keys, std::int64_t sequences, std::int64_t width) {
  return {4 * queries * keys / 10 * width / 100, kElement * width * (2 * keys * sequences + 2 * queries)};
}

/// An operator that launches one kernel; nodes of a graph have no host side.
void op(Machine& m, bool in_graph, Fn operation, Fn kernel, Work work) {
  if (in_graph) return m.launch(kernel, work);
  m.begin();
  m.host(kOpCost);
  m.launch(kernel, work);
  m.host(kOpCost / 3);
  m.end(operation);
}

void serve_all_reduce(Machine& m, bool in_graph, bool decode, std::int64_t bytes) {
  const Fn kernel = decode ? Fn::reduce_small : Fn::reduce_large;
  if (in_graph) return m.all_reduce(kernel, bytes, StreamId::compute);
  m.begin();
  m.host(kOpCost);
  m.all_reduce(kernel, bytes, StreamId::compute);
  m.end(Fn::op_reduce);
}

void serve_layer(Machine& m, const Options& o, const StepPlan& plan, bool g) {
  const auto tp = static_cast<std::int64_t>(o.ranks);
  const bool decode = plan.phase == "decode";
  const std::int64_t t = plan.tokens;
  const std::int64_t width = std::max<std::int64_t>(kHidden / tp, 128);
  const std::int64_t inner = std::max<std::int64_t>(kInner / tp, 128);
  op(m, g, Fn::op_norm, Fn::rms_norm, streaming(t * kHidden, 4));
  op(m, g, Fn::op_linear, Fn::gemm_qkv, product(t, 3 * width, kHidden));
  op(m, g, Fn::op_rope, Fn::rope, streaming(t * width * 2, 2));
  op(m, g, Fn::op_cache, Fn::cache_write, streaming(t * width * 2, 2));
  if (decode) {
    op(m, g, Fn::op_attention, Fn::attention_decode, attention(t, plan.context, plan.batch, width));
  } else {
    op(m, g, Fn::op_attention, Fn::attention_prefill, attention(t, kPromptTokens / 2, plan.batch, width));
  }
  op(m, g, Fn::op_linear, Fn::gemm_out, product(t, kHidden, width));
  if (tp > 1) serve_all_reduce(m, g, decode, t * kHidden * kElement);
  op(m, g, Fn::op_norm, Fn::rms_norm, streaming(t * kHidden, 4));
  op(m, g, Fn::op_linear, Fn::gemm_up, product(t, 2 * inner, kHidden));
  op(m, g, Fn::op_silu, Fn::silu_mul, streaming(t * inner, 3));
  op(m, g, Fn::op_linear, Fn::gemm_down, product(t, kHidden, inner));
  if (tp > 1) serve_all_reduce(m, g, decode, t * kHidden * kElement);
}

void serve_step(Machine& m, const Options& o, const StepPlan& plan) {
  const bool decode = plan.phase == "decode";
  const bool graph = decode && o.graph;
  if (o.markers) m.begin();
  m.begin_python();
  m.begin_python();
  m.schedule(60'000);
  m.take_input(150'000);
  m.end_python(Fn::py_schedule);
  m.begin_python();
  m.begin();
  m.host(kOpCost);
  m.copy(Fn::copy_in, plan.tokens * 8);
  m.end(Fn::op_to);
  op(m, false, Fn::op_embedding, Fn::embedding, streaming(plan.tokens * kHidden, 2));
  if (graph) m.begin_graph();
  for (std::uint32_t layer = 0; layer < o.layers; ++layer) {
    if (!graph) m.begin_python();
    serve_layer(m, o, plan, graph);
    if (!graph) m.end_python(Fn::py_layer);
  }
  if (graph) m.end_graph();
  op(m, false, Fn::op_norm, Fn::rms_norm, streaming(plan.batch * kHidden, 4));
  op(m, false, Fn::op_linear, Fn::gemm_head, product(plan.batch, kVocabulary, kHidden));
  m.end_python(decode ? Fn::py_decode : Fn::py_extend);
  op(m, false, Fn::op_softmax, Fn::softmax, streaming(plan.batch * kVocabulary, 3));
  op(m, false, Fn::op_sampling, Fn::sampling, streaming(plan.batch * kVocabulary, 4));
  m.begin();
  m.host(kOpCost);
  m.copy(Fn::copy_out, plan.batch * 8);
  m.end(Fn::op_to);
  const std::uint64_t every = o.sync_every == 0 ? 1 : o.sync_every;
  if ((plan.number + 1) % every == 0) m.synchronize(StreamId::compute);
  m.begin_python();
  m.host(120'000 + 2'000 * plan.batch);
  m.end_python(Fn::py_output);
  m.end_python(Fn::py_step);
  if (o.markers)
    m.end_named(Cat::annotation,
                fmt::format("step[{} bs={} toks={}]", decode ? "DECODE" : "EXTEND", plan.batch, plan.tokens));
}

/// The differentiable operators of one layer, in forward order.
enum class Block : std::uint8_t { norm, qkv, sdpa, out, norm2, up, gelu, down };
constexpr std::array kBlocks = {Block::norm,  Block::qkv, Block::sdpa, Block::out,
                                Block::norm2, Block::up,  Block::gelu, Block::down};

struct BlockWork {
  Fn forward_op;
  Fn forward;
  Work forward_work;
  Fn backward_op;
  Fn backward;
  Work backward_work;
};

BlockWork work_of(Block block, std::int64_t t, std::int64_t batch) {
  const auto linear = [&](Fn kernel, std::int64_t n, std::int64_t k) {
    return BlockWork{Fn::op_linear, kernel, product(t, n, k), Fn::bwd_linear, Fn::gemm_dgrad, product(t, k, n)};
  };
  switch (block) {
    case Block::qkv:
      return linear(Fn::gemm_qkv, 3 * kHidden, kHidden);
    case Block::out:
      return linear(Fn::gemm_out, kHidden, kHidden);
    case Block::up:
      return linear(Fn::gemm_up, kInner, kHidden);
    case Block::down:
      return linear(Fn::gemm_down, kHidden, kInner);
    case Block::sdpa: {
      const Work forward = attention(t, kTrainSequence, batch, kHidden);
      return {Fn::op_sdpa,  Fn::attention_prefill,  forward,
              Fn::bwd_sdpa, Fn::attention_backward, {forward.flops * 5 / 2, forward.bytes * 2}};
    }
    case Block::gelu:
      return {Fn::op_gelu,  Fn::gelu,          streaming(t * kInner, 2),
              Fn::bwd_gelu, Fn::gelu_backward, streaming(t * kInner, 3)};
    case Block::norm:
    case Block::norm2:
      break;
  }
  return {Fn::op_layer_norm,  Fn::layer_norm,          streaming(t * kHidden, 2),
          Fn::bwd_layer_norm, Fn::layer_norm_backward, streaming(t * kHidden, 4)};
}

void train_forward(Machine& m, const BlockWork& w, std::uint64_t sequence) {
  m.begin();
  m.forward_backward(true, sequence);
  m.host(kOpCost);
  m.launch(w.forward, w.forward_work);
  m.host(kOpCost / 3);
  m.end(w.forward_op, static_cast<std::int64_t>(sequence), 0);
}

void train_backward(Machine& m, const BlockWork& w, std::uint64_t sequence) {
  m.begin();
  m.forward_backward(false, sequence);
  m.host(kOpCost);
  m.launch(w.backward, w.backward_work);
  if (w.backward == Fn::gemm_dgrad) m.launch(Fn::gemm_wgrad, w.backward_work);
  m.host(kOpCost / 3);
  m.end(w.backward_op, static_cast<std::int64_t>(sequence), 1);
}

void optimizer(Machine& m, const Options& o, std::int64_t parameters) {
  // Gradient, parameter and two moments in 32 bits, four of them read and three written.
  const Work work{parameters / 100, parameters * 4 * 7 / 4};
  m.begin();
  m.host(40'000);
  m.begin();
  m.host(kOpCost);
  if (o.graph) m.begin_graph();
  for (int part = 0; part < 4; ++part) m.launch(Fn::adam, work);
  if (o.graph) m.end_graph();
  m.end(Fn::op_adam);
  m.end(Fn::optimizer_range);
}

void train_step(Machine& m, const Options& o, const StepPlan& plan) {
  const std::int64_t t = plan.tokens;
  const auto layers = static_cast<std::int64_t>(o.layers);
  const std::int64_t layer_parameters = kHidden * (4 * kHidden + 2 * kInner);
  const std::uint64_t blocks = kBlocks.size();
  const std::uint64_t first = plan.number * (blocks * o.layers + 1);
  if (o.markers) m.begin();
  m.begin_python();
  m.begin();
  // The pipeline delivers at about 1.5 times the rate at which batches are used up.
  m.take_input(layers * 160'000 * plan.batch);
  m.end(Fn::input_range);
  for (std::uint32_t i = 0; i < o.inputs; ++i) {
    m.begin();
    m.host(kOpCost);
    m.copy(Fn::copy_in, o.input_bytes > 0 ? o.input_bytes : t * 16, StreamId::copy);
    if (o.inputs > 1) m.synchronize(StreamId::copy);
    m.end(Fn::op_to);
  }
  m.wait_event(StreamId::compute, StreamId::copy);
  m.begin();
  m.host(kOpCost);
  m.fill(layers * layer_parameters * kElement / 8);
  m.end(Fn::op_zero);

  op(m, false, Fn::op_embedding, Fn::embedding, streaming(t * kHidden, 2));
  std::uint64_t sequence = first;
  for (std::uint32_t layer = 0; layer < o.layers; ++layer)
    for (const Block block : kBlocks) {
      train_forward(m, work_of(block, t, plan.batch), sequence++);
      if (block == Block::out || block == Block::down) op(m, false, Fn::op_add, Fn::add, streaming(t * kHidden, 3));
    }
  const BlockWork loss{Fn::op_loss,  Fn::loss,          streaming(t * kVocabulary / 4, 2),
                       Fn::bwd_loss, Fn::loss_backward, streaming(t * kVocabulary / 4, 2)};
  train_forward(m, loss, sequence);

  m.on_autograd_thread(true);
  train_backward(m, loss, sequence);
  for (std::uint32_t layer = o.layers; layer-- > 0;) {
    for (std::size_t b = blocks; b-- > 0;) train_backward(m, work_of(kBlocks[b], t, plan.batch), --sequence);
    if (o.ranks > 1) {
      // The gradients of a layer travel while the layer before it is still being computed.
      m.begin();
      m.host(kOpCost * 2);
      m.wait_event(StreamId::comm, StreamId::compute);
      m.begin();
      m.all_reduce(Fn::reduce_large, layer_parameters * kElement, StreamId::comm);
      m.end(Fn::nccl_range);
      m.end(Fn::op_c10d);
    }
  }
  m.on_autograd_thread(false);
  if (o.ranks > 1) m.wait_event(StreamId::compute, StreamId::comm);
  if ((plan.number + 1) % o.accumulate == 0) optimizer(m, o, layers * layer_parameters);
  const std::uint64_t every = o.sync_every == 0 ? 4 : o.sync_every;
  if ((plan.number + 1) % every == 0) {
    m.begin();
    m.host(kOpCost);
    m.copy(Fn::copy_out, 4);
    m.synchronize(StreamId::compute);
    m.end(Fn::op_item);
  }
  m.host(30'000);
  m.end_python(Fn::py_train);
  if (o.markers) m.end_named(Cat::annotation, fmt::format("ProfilerStep#{}", plan.number));
}

}  // namespace

Planner::Planner(const Options& options)
    : options_(options),
      random_((options.work_seed != 0 ? options.work_seed : options.seed) * 0x94d049bb133111ebU + 3),
      batch_(options.batch) {}

StepPlan Planner::next() {
  StepPlan plan;
  plan.number = number_++;
  if (options_.workload == Workload::train) {
    plan.phase = "train";
    plan.batch = options_.batch;
    plan.tokens = plan.batch * kTrainSequence;
    return plan;
  }
  const auto base = static_cast<std::int64_t>(options_.batch);
  batch_ = std::clamp<std::int64_t>(batch_ + random_.below(3) - 1, std::max<std::int64_t>(1, base / 2), base * 2);
  context_ = std::clamp<std::int64_t>(context_ + random_.below(33) - 16, 256, 4096);
  if (options_.prefill_every != 0 && plan.number % options_.prefill_every == 0) {
    plan.phase = "prefill";
    plan.batch = 1 + random_.below(4);
    plan.tokens = plan.batch * kPromptTokens;
  } else {
    plan.phase = "decode";
    plan.batch = batch_;
    plan.tokens = batch_;
    plan.context = context_;
  }
  return plan;
}

void run_step(Machine& machine, const Options& options, const StepPlan& plan) {
  machine.begin_step(plan.number);
  if (options.workload == Workload::train) {
    train_step(machine, options, plan);
  } else {
    serve_step(machine, options, plan);
  }
}

}  // namespace culprit::tracegen
