#include "profile/function_kind.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <set>
#include <string>

#include "profile/function_name.h"

namespace culprit {
namespace {

using function_kind_table::deciding_family_row;
using function_kind_table::deciding_kind_row;

TEST(FunctionKindTable, EveryFamilyRowDecidesItsExamples) {
  const auto rows = function_kind_table::families();
  for (std::size_t i = 0; i < rows.size(); ++i)
    for (std::string_view example : rows[i].examples) {
      if (example.empty()) continue;
      EXPECT_EQ(to_string(family_of(example)), to_string(rows[i].family)) << rows[i].pattern << " : " << example;
    }
}

TEST(FunctionKindTable, EveryFamilyRowHasAnExampleThatItDecidesItself) {
  const auto rows = function_kind_table::families();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    bool reached = false;
    for (std::string_view example : rows[i].examples)
      reached = reached || (!example.empty() && deciding_family_row(example) == i);
    EXPECT_TRUE(reached) << "no example is decided by the row of " << rows[i].pattern;
  }
}

TEST(FunctionKindTable, EveryKindRowDecidesItsExamples) {
  const auto rows = function_kind_table::kinds();
  for (std::size_t i = 0; i < rows.size(); ++i)
    for (std::string_view example : rows[i].examples)
      if (!example.empty()) {
        EXPECT_EQ(to_string(kind_of(rows[i].slice_class, example)), to_string(rows[i].kind)) << example;
        EXPECT_EQ(deciding_kind_row(rows[i].slice_class, example), i) << example;
      }
}

TEST(KernelKind, NamesThatOnlyLookLikeCommunicationAreCompute) {
  for (const char* name :
       {"triton_poi_fused_addmm_all_reduce_1", "triton_red_fused_all_gather_add_native_layer_norm_2",
        "reduce_1Block_kernel", "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float>>(int)",
        "void (anonymous namespace)::groupnorm_kernel_dispatch_down<__hip_bfloat16, 1024u>(unsigned int)",
        "void at::native::elementwise_kernel_manual_unroll<128, 4, at::native::(anonymous "
        "namespace)::type_specialized_broadcast_kernel_launcher<1>::apply<int>>(int)",
        "void BlockAllReduceKernel<float>(float*)", "void foo<ncclAllReduceTag>(int)", "vectorized_gather_kernel",
        "_scatter_gather_elementwise_kernel", "synccl_kernel", ""})
    EXPECT_EQ(to_string(kind_of(SliceClass::kernel, name)), "gpu_compute") << name;
}

TEST(KernelFamily, WordsInsideOtherWordsDoNotDecide) {
  for (const char* name : {"property_kernel", "europe_kernel", "memoetic_kernel", "reconvene_kernel", "empty", "",
                           "kernel", "foo", "evaluate_sh_at_kernel_c80_0_kernel_1_range_for"})
    EXPECT_EQ(to_string(family_of(name)), "other") << name;
}

TEST(KernelFamily, TemplateArgumentsDoNotDecideWhereTheFunctionDoes) {
  EXPECT_EQ(family_of("void at::native::vectorized_elementwise_kernel<4, foo::softmax_tag>(int)"),
            KernelFamily::elementwise);
  EXPECT_EQ(family_of("void at::native::reduce_kernel<512, 1, at::native::sum_functor<float>>(at::native::copy)"),
            KernelFamily::reduce);
}

TEST(FunctionKindOf, ClassesWithoutPatterns) {
  EXPECT_EQ(kind_of(SliceClass::runtime, "cudaLaunchKernel"), FunctionKind::cuda_api);
  EXPECT_EQ(kind_of(SliceClass::runtime, "cudaEventQuery"), FunctionKind::cuda_api);
  EXPECT_EQ(kind_of(SliceClass::runtime, "cudaStreamWaitEvent"), FunctionKind::cuda_api);
  EXPECT_EQ(kind_of(SliceClass::memset, "Memset (Unknown)"), FunctionKind::gpu_memset);
  EXPECT_EQ(kind_of(SliceClass::memcpy, "Memcpy ??"), FunctionKind::gpu_memcpy_other);
  EXPECT_EQ(kind_of(SliceClass::python, "nccl.py(3): runq"), FunctionKind::python);
  EXPECT_EQ(kind_of(SliceClass::annotation, "nccl:all_reduce"), FunctionKind::annotation);
  EXPECT_EQ(kind_of(SliceClass::other, "whatever"), FunctionKind::other);
  EXPECT_EQ(kind_of(SliceClass::other, ""), FunctionKind::other);
}

TEST(FunctionKindOf, HugeAndHostileNamesAreQuick) {
  const std::string brackets(1 << 20, '<');
  const std::string stars(1 << 20, '*');
  EXPECT_EQ(kind_of(SliceClass::kernel, brackets), FunctionKind::gpu_compute);
  EXPECT_EQ(kind_of(SliceClass::kernel, "void f" + brackets), FunctionKind::gpu_compute);
  EXPECT_EQ(kind_of(SliceClass::kernel, stars), FunctionKind::gpu_compute);
  EXPECT_EQ(kind_of(SliceClass::kernel, std::string("\xff\x00\x80", 3)), FunctionKind::gpu_compute);
}

TEST(FunctionKindText, NamesAreDistinctAndReadBack) {
  std::set<std::string_view> seen;
  for (std::size_t i = 0; i < kFunctionKinds; ++i) {
    const auto kind = static_cast<FunctionKind>(i);
    EXPECT_FALSE(to_string(kind).empty()) << i;
    EXPECT_TRUE(seen.insert(to_string(kind)).second) << to_string(kind);
    EXPECT_EQ(parse_function_kind(to_string(kind)), kind);
  }
  EXPECT_EQ(parse_function_kind("nonsense"), std::nullopt);
  for (std::size_t i = 0; i < kKernelFamilies; ++i) EXPECT_FALSE(to_string(static_cast<KernelFamily>(i)).empty());
}

}  // namespace
}  // namespace culprit
