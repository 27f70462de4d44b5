#include "cycles/name_hints.h"

#include <gtest/gtest.h>

namespace culprit::cycles {
namespace {

using model::Phase;

TEST(MarkerFamily, NumbersPhasesAndTailsDoNotTellFamiliesApart) {
  EXPECT_EQ(marker_family("ProfilerStep#7"), marker_family("ProfilerStep#1234"));
  EXPECT_EQ(marker_family("step[EXTEND bs=15 toks=15360]"), marker_family("step[DECODE bs=2 toks=2]"));
  EXPECT_EQ(marker_family("prefill 3"), marker_family("decode 14"));
  EXPECT_NE(marker_family("iteration 3"), marker_family("layer 3"));
  EXPECT_NE(marker_family("decoder 3"), marker_family("prefill 3"));
}

TEST(MarkerRank, KnowsStepsAndTheirParts) {
  EXPECT_EQ(marker_rank("ProfilerStep#3"), MarkerRank::profiler_step);
  EXPECT_EQ(marker_rank("step[DECODE bs=2 toks=2]"), MarkerRank::step_word);
  EXPECT_EQ(marker_rank("execute_32_context_0(sq0)_generation_32(sq32)"), MarkerRank::step_word);
  EXPECT_EQ(marker_rank("iteration 12"), MarkerRank::step_word);
  EXPECT_EQ(marker_rank("Optimizer.step#SGD.step"), MarkerRank::once_per_step);
  EXPECT_EQ(marker_rank("step.end[DECODE]"), MarkerRank::once_per_step);
  EXPECT_EQ(marker_rank("dataloader bs=8"), MarkerRank::input);
  EXPECT_EQ(marker_rank("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"), MarkerRank::denied);
  EXPECT_EQ(marker_rank("nccl:all_reduce"), MarkerRank::denied);
  EXPECT_EQ(marker_rank("layer 3"), MarkerRank::denied);
  EXPECT_EQ(marker_rank("epoch 3"), MarkerRank::denied);
  EXPECT_EQ(marker_rank("stepwise"), MarkerRank::unknown);
}

TEST(IterationNumber, ReadsCountersOnly) {
  EXPECT_EQ(iteration_number("ProfilerStep#7"), 7);
  EXPECT_EQ(iteration_number("iteration 12"), 12);
  EXPECT_EQ(iteration_number("step[DECODE bs=2 toks=2]"), std::nullopt);
  EXPECT_EQ(iteration_number("ProfilerStep#99999999999999999999999"), std::nullopt);
  EXPECT_EQ(iteration_number(""), std::nullopt);
}

TEST(ReadMarker, Sglang) {
  const MarkerText text = read_marker("step[EXTEND bs=15 toks=15360]");
  EXPECT_EQ(text.phase, Phase::prefill);
  EXPECT_EQ(text.workload.batch, 15);
  EXPECT_EQ(text.workload.tokens, 15360);
  EXPECT_EQ(text.workload.context_tokens, 15360);
  EXPECT_EQ(text.workload.decode_tokens, -1);
  EXPECT_EQ(read_marker("step[DECODE bs=3 toks=3]").phase, Phase::decode);
  EXPECT_EQ(read_marker("step[MIXED bs=3 toks=300]").phase, Phase::mixed);
  EXPECT_EQ(read_marker("step[DECODE bs=3 ctx=609]").workload.cached_tokens, 609);
  EXPECT_EQ(read_marker("step[DECODE bs=3 ctx=609]").workload.batch, 3);
  EXPECT_EQ(read_marker("step[DECODE bs=3 ctx=?]").workload.cached_tokens, -1);
}

TEST(ReadMarker, Vllm) {
  const MarkerText mixed = read_marker(
      "execute_8192_context_9(sq8155sk8430sqsq7475785sqsk7671310)_generation_37(sq37sk34489sqsq37sqsk34489)");
  EXPECT_EQ(mixed.phase, Phase::mixed);
  EXPECT_EQ(mixed.workload.batch, 46);
  EXPECT_EQ(mixed.workload.tokens, 8192);
  EXPECT_EQ(mixed.workload.context_tokens, 8155);
  EXPECT_EQ(mixed.workload.decode_tokens, 37);
  EXPECT_EQ(read_marker("execute_context_0(0)_generation_32(32)").phase, Phase::decode);
  EXPECT_EQ(read_marker("execute_context_0(0)_generation_32(32)").workload.cached_tokens, -1);
  EXPECT_EQ(read_marker("execute_context_0(0)_generation_32(32) ctx=609").workload.cached_tokens, 609);
  EXPECT_EQ(read_marker("execute_15360_context_15(sq15360)_generation_0(sq0)").phase, Phase::prefill);
}

TEST(ReadMarker, RequestCounts) {
  const MarkerText text = read_marker("[Executor] _forward_step 12: 1 ctx reqs, 7 gen reqs");
  EXPECT_EQ(text.phase, Phase::mixed);
  EXPECT_EQ(text.workload.batch, 8);
}

TEST(ReadMarker, AKeyAtTheEndOfALongerOneIsAnotherOne) {
  EXPECT_EQ(read_marker("step[DECODE bs=3 cached_tokens=609]").workload.tokens, -1);
  EXPECT_EQ(read_marker("step max_tokens=8192 tokens=5").workload.tokens, 5);
  EXPECT_EQ(read_marker("forward micro_batch=0 batch=8").workload.batch, 8);
  EXPECT_EQ(read_marker("forward 2batch=7").workload.batch, -1);
  EXPECT_EQ(read_marker("step num_tokens=7 num_reqs=2").workload.tokens, 7);
  EXPECT_EQ(read_marker("step num_tokens=7 num_reqs=2").workload.batch, 2);
  EXPECT_EQ(read_marker("step num_scheduled_tokens=9 batch_size=4").workload.tokens, 9);
  EXPECT_EQ(read_marker("step num_scheduled_tokens=9 batch_size=4").workload.batch, 4);
}

TEST(ReadMarker, HostileTextsSayNothing) {
  for (const char* name : {"", "(", "execute_", "execute_context_(_generation_", "step[EXTEND bs= toks=]",
                           "execute_1_context_99999999999999999999(1)_generation_2(3)", "encoder decoderlike"}) {
    const MarkerText text = read_marker(name);
    EXPECT_EQ(text.workload.batch, -1) << name;
  }
}

TEST(Roles, OfRealKernelNames) {
  EXPECT_EQ(role_of_kernel("void multi_tensor_apply_kernel<TensorListMetadata<4>, AdamFunctor<float>>"),
            Role::optimizer);
  EXPECT_EQ(role_of_kernel("void flashinfer::sampling::TopKTopPSamplingFromProbKernel<1024u>"), Role::sampling);
  EXPECT_EQ(role_of_kernel("void vllm::rotary_embedding_kernel<c10::BFloat16, true>"), Role::none);
  EXPECT_EQ(role_of_copy("Memcpy HtoD (Pinned -> Device)"), Role::copy_in);
  EXPECT_EQ(role_of_copy("Memcpy DtoD (Device -> Device)"), Role::none);
  EXPECT_EQ(role_of_operator("aten::multinomial"), Role::draw);
  EXPECT_EQ(role_of_operator("aten::argmax"), Role::sampling);
  EXPECT_TRUE(is_synchronisation("cudaStreamSynchronize"));
  EXPECT_TRUE(is_graph_launch("hipGraphLaunch"));
}

TEST(Functions, WrappersAndPartsAreKnown) {
  EXPECT_TRUE(is_denied_function("torch/nn/modules/module.py(1532): _call_impl"));
  EXPECT_TRUE(is_denied_function("Scheduler.recv_requests"));
  EXPECT_TRUE(is_denied_function("gc generation 2"));
  EXPECT_FALSE(is_denied_function("sglang/srt/managers/scheduler.py(1773): run_batch"));
  EXPECT_TRUE(is_model_part("nn.Module: Qwen3DecoderLayer_0"));
  EXPECT_FALSE(is_model_part("Scheduler.run_batch"));
}

}  // namespace
}  // namespace culprit::cycles
