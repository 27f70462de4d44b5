// The functions of the simulated runs, named as real stacks name them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace culprit::tracegen {

enum class Cat : std::uint8_t { kernel, memcpy, memset, runtime, cpu_op, annotation, python, sched, trace, count_ };
inline constexpr std::size_t kCats = static_cast<std::size_t>(Cat::count_);

// id, category, name
#define CULPRIT_TRACEGEN_NAMES(X)                                                                                     \
  X(gemm_qkv, kernel, "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_64x3_tn")                                  \
  X(gemm_out, kernel, "ampere_bf16_s16816gemm_bf16_64x64_sliced1x2_ldg8_f2f_stages_64x5_tn")                          \
  X(gemm_up, kernel,                                                                                                  \
    "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_256x128_32x3_tn_align8>"                     \
    "(cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_256x128_32x3_tn_align8::Params)")                                 \
  X(gemm_down, kernel, "ampere_bf16_s16816gemm_bf16_128x256_ldg8_f2f_stages_64x3_tn")                                 \
  X(gemm_head, kernel, "ampere_bf16_s16816gemm_bf16_256x64_ldg8_f2f_stages_64x4_tn")                                  \
  X(gemm_wgrad, kernel, "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_nt")                                \
  X(gemm_dgrad, kernel, "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_nn")                                \
  X(rms_norm, kernel,                                                                                                 \
    "void vllm::fused_add_rms_norm_kernel<c10::BFloat16, 8>(c10::BFloat16*, long, c10::BFloat16*, "                   \
    "c10::BFloat16 const*, float, int, int)")                                                                         \
  X(rope, kernel,                                                                                                     \
    "void vllm::rotary_embedding_kernel<c10::BFloat16, true>(long const*, c10::BFloat16*, c10::BFloat16*, "           \
    "c10::BFloat16 const*, int, long, long, int, int, int)")                                                          \
  X(cache_write, kernel,                                                                                              \
    "void vllm::reshape_and_cache_flash_kernel<__nv_bfloat16, __nv_bfloat16, "                                        \
    "(vllm::Fp8KVCacheDataType)0>(__nv_bfloat16 const*, long const*, long, int)")                                     \
  X(attention_prefill, kernel,                                                                                        \
    "void flash::flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64, 4, false, false, "                            \
    "cutlass::bfloat16_t>, false, true>(flash::Flash_fwd_params)")                                                    \
  X(attention_decode, kernel,                                                                                         \
    "void flash::flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits<128, 64, 128, 4, false, false, "                    \
    "cutlass::bfloat16_t>, true, false>(flash::Flash_fwd_params)")                                                    \
  X(attention_other, kernel,                                                                                          \
    "void flashinfer::BatchDecodeWithPagedKVCacheKernel<(flashinfer::PosEncodingMode)0, 2u, 4u, 8u, 16u, "            \
    "__nv_bfloat16>(flashinfer::Params)")                                                                             \
  X(attention_backward, kernel,                                                                                       \
    "void flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<Flash_bwd_kernel_traits<128, 64, "                      \
    "128, 8>, false, true>(flash::Flash_bwd_params)")                                                                 \
  X(silu_mul, kernel,                                                                                                 \
    "void vllm::act_and_mul_kernel<c10::BFloat16, silu_kernel>(c10::BFloat16*, c10::BFloat16 const*, int)")           \
  X(gelu, kernel,                                                                                                     \
    "void at::native::vectorized_elementwise_kernel<4, at::native::GeluCUDAKernelImpl(at::TensorIteratorBase&"        \
    ")::{lambda()#2}::operator()() const, std::array<char*, 2ul> >(int, std::array<char*, 2ul>)")                     \
  X(gelu_backward, kernel,                                                                                            \
    "void at::native::vectorized_elementwise_kernel<4, at::native::GeluBackwardCUDAKernelImpl("                       \
    "at::TensorIteratorBase&)::{lambda()#2}, std::array<char*, 3ul> >(int, std::array<char*, 3ul>)")                  \
  X(layer_norm, kernel,                                                                                               \
    "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::BFloat16, float, false>"               \
    "(int, float, c10::BFloat16 const*)")                                                                             \
  X(layer_norm_backward, kernel,                                                                                      \
    "void at::native::(anonymous namespace)::layer_norm_grad_input_kernel_vectorized<"                                \
    "c10::BFloat16, float>(c10::BFloat16 const*, float const*, int)")                                                 \
  X(add, kernel,                                                                                                      \
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<c10::BFloat16>, "                  \
    "std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add<c10::BFloat16>, std::array<char*, 3ul>)")              \
  X(embedding, kernel,                                                                                                \
    "void at::native::(anonymous namespace)::indexSelectLargeIndex<c10::BFloat16, long, unsigned int, "               \
    "2, 2, -2, true>(long)")                                                                                          \
  X(loss, kernel,                                                                                                     \
    "void at::native::(anonymous namespace)::cunn_SoftMaxForward<8, float, float, float>(float*, float*, int)")       \
  X(loss_backward, kernel,                                                                                            \
    "void at::native::(anonymous namespace)::cunn_SoftMaxBackward<8, float, float>(float*, int)")                     \
  X(softmax, kernel, "void at::native::(anonymous namespace)::cunn_SoftMaxForwardSmem<8, float, float>(float*, int)") \
  X(sampling, kernel,                                                                                                 \
    "void flashinfer::sampling::TopKTopPSamplingFromProbKernel<1024u, float, int>(float*, int*, int)")                \
  X(adam, kernel,                                                                                                     \
    "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<TensorListMetadata<4>, "                       \
    "FusedAdamMathFunctor<float, 4>, float>(TensorListMetadata<4>)")                                                  \
  X(reduce_small, kernel,                                                                                             \
    "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 4>(vllm::RankData*, vllm::RankSignals, "                    \
    "vllm::Signal*, __nv_bfloat16*, int, int)")                                                                       \
  X(reduce_large, kernel, "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)")               \
  X(copy_in, memcpy, "Memcpy HtoD (Pinned -> Device)")                                                                \
  X(copy_out, memcpy, "Memcpy DtoH (Device -> Pinned)")                                                               \
  X(copy_device, memcpy, "Memcpy DtoD (Device -> Device)")                                                            \
  X(fill, memset, "Memset (Device)")                                                                                  \
  X(api_launch, runtime, "cudaLaunchKernel")                                                                          \
  X(api_graph, runtime, "cudaGraphLaunch")                                                                            \
  X(api_memcpy, runtime, "cudaMemcpyAsync")                                                                           \
  X(api_memset, runtime, "cudaMemsetAsync")                                                                           \
  X(api_record, runtime, "cudaEventRecord")                                                                           \
  X(api_wait, runtime, "cudaStreamWaitEvent")                                                                         \
  X(api_sync, runtime, "cudaStreamSynchronize")                                                                       \
  X(op_to, cpu_op, "aten::to")                                                                                        \
  X(op_linear, cpu_op, "aten::linear")                                                                                \
  X(op_norm, cpu_op, "_C::fused_add_rms_norm")                                                                        \
  X(op_rope, cpu_op, "_C::rotary_embedding")                                                                          \
  X(op_cache, cpu_op, "_C_cache_ops::reshape_and_cache_flash")                                                        \
  X(op_attention, cpu_op, "vllm::unified_attention_with_output")                                                      \
  X(op_silu, cpu_op, "_C::silu_and_mul")                                                                              \
  X(op_reduce, cpu_op, "vllm::all_reduce")                                                                            \
  X(op_embedding, cpu_op, "aten::embedding")                                                                          \
  X(op_softmax, cpu_op, "aten::softmax")                                                                              \
  X(op_sampling, cpu_op, "flashinfer::top_k_top_p_sampling_from_probs")                                               \
  X(op_layer_norm, cpu_op, "aten::layer_norm")                                                                        \
  X(op_gelu, cpu_op, "aten::gelu")                                                                                    \
  X(op_add, cpu_op, "aten::add")                                                                                      \
  X(op_sdpa, cpu_op, "aten::scaled_dot_product_attention")                                                            \
  X(op_loss, cpu_op, "aten::cross_entropy_loss")                                                                      \
  X(op_item, cpu_op, "aten::item")                                                                                    \
  X(op_adam, cpu_op, "aten::_fused_adamw_")                                                                           \
  X(op_zero, cpu_op, "aten::zero_")                                                                                   \
  X(op_c10d, cpu_op, "c10d::allreduce_")                                                                              \
  X(bwd_linear, cpu_op, "autograd::engine::evaluate_function: AddmmBackward0")                                        \
  X(bwd_layer_norm, cpu_op, "autograd::engine::evaluate_function: NativeLayerNormBackward0")                          \
  X(bwd_gelu, cpu_op, "autograd::engine::evaluate_function: GeluBackward0")                                           \
  X(bwd_sdpa, cpu_op, "autograd::engine::evaluate_function: ScaledDotProductFlashAttentionBackward0")                 \
  X(bwd_loss, cpu_op, "autograd::engine::evaluate_function: NllLossBackward0")                                        \
  X(nccl_range, annotation, "nccl:all_reduce")                                                                        \
  X(input_range, annotation, "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__")                         \
  X(optimizer_range, annotation, "Optimizer.step#AdamW.step")                                                         \
  X(py_step, python, "scheduler.py(812): run_batch")                                                                  \
  X(py_train, python, "train.py(141): train_step")                                                                    \
  X(py_schedule, python, "scheduler.py(655): get_next_batch_to_run")                                                  \
  X(py_decode, python, "model_runner.py(1010): forward_decode")                                                       \
  X(py_extend, python, "model_runner.py(1043): forward_extend")                                                       \
  X(py_layer, python, "llama.py(231): forward")                                                                       \
  X(py_output, python, "scheduler.py(1203): process_batch_result")                                                    \
  X(py_gc, python, "<built-in function collect>")                                                                     \
  X(runq, sched, "runq")

enum class Fn : std::uint16_t {
#define X(id, cat, name) id,
  CULPRIT_TRACEGEN_NAMES(X)
#undef X
      count_
};
inline constexpr std::size_t kFns = static_cast<std::size_t>(Fn::count_);

struct FnInfo {
  Cat cat;
  std::string_view name;
};
inline constexpr std::array<FnInfo, kFns> kFnInfos = {{
#define X(id, cat, name) {Cat::cat, name},
    CULPRIT_TRACEGEN_NAMES(X)
#undef X
}};
inline constexpr const FnInfo& info(Fn fn) { return kFnInfos[static_cast<std::size_t>(fn)]; }

}  // namespace culprit::tracegen
