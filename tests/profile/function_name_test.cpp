#include "profile/function_name.h"

#include <gtest/gtest.h>

#include <string>

#include "support/cpu_time.h"

namespace culprit {
namespace {

TEST(Demangle, MangledNamesBecomeReadable) {
  EXPECT_EQ(demangle("_ZN5aiter3fooEv"), "aiter::foo()");
  EXPECT_EQ(demangle("_Z1fDF16b"), "f(__bf16)");
  EXPECT_EQ(demangle("_Z1fi.kd"), "f(int)");
}

TEST(Demangle, OthersStay) {
  for (const char* name :
       {"", "_Z", "_Zgarbage", "ampere_sgemm_128x64_nn", "void f<int>(int)", "_ZN99999999999999999999fooE"})
    EXPECT_EQ(demangle(name), name);
}

TEST(Demangle, ANameThatWouldUnfoldWithoutEndIsRefused) {
  // f(P<int, int>, P<S1, S1>, ...): every level doubles.
  std::string name = "_Z1f1PIiiE";
  const std::string digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
  for (std::size_t level = 1; level < 36; ++level) {
    const std::string reference = std::string("S") + digits[level - 1] + "_";
    name += "S_I" + reference + reference + "E";
  }
  EXPECT_LT(test::cpu_seconds([&] { EXPECT_LT(demangle(name).size(), std::size_t{4} << 20); }), 2);
}

struct Case {
  const char* name;
  const char* expected;
};

class ShortName : public testing::TestWithParam<Case> {};

TEST_P(ShortName, IsWhatAReaderWouldCallIt) { EXPECT_EQ(short_name(GetParam().name), GetParam().expected); }

INSTANTIATE_TEST_SUITE_P(
    Cpp, ShortName,
    testing::Values(
        Case{"void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, "
             "at::detail::Array<char*, 1> >(int, "
             "at::native::FillFunctor<float>)",
             "at::native::vectorized_elementwise_kernel"},
        Case{"void cutlass::Kernel2<cutlass_80_tensorop_f16_s16816gemm_relu_f16_128x64>(cutlass_80_tensorop::Params)",
             "cutlass::Kernel2<cutlass_80_tensorop_f16_s16816gemm_relu_f16_128x64>"},
        Case{"void cutlass::device_kernel<flash::enable_sm90<flash::FlashAttnFwdSm90<int, 3>>>(int)",
             "cutlass::device_kernel<flash::FlashAttnFwdSm90>"},
        Case{"void ck_tile::kentry<1, ck_tile::Rmsnorm2dFwd<int> >(int)", "ck_tile::kentry<ck_tile::Rmsnorm2dFwd>"},
        Case{"void (anonymous namespace)::softmax_warp_forward<float, 9, false>(float*, int)", "softmax_warp_forward"},
        Case{"void at::native::(anonymous namespace)::CatArrayBatchedCopy<float, unsigned int, 2>(float*)",
             "at::native::CatArrayBatchedCopy"},
        Case{"std::enable_if<!(false), void>::type internal::gemvx::kernel<int, (a)7, float>(int)",
             "internal::gemvx::kernel"},
        Case{"void cub::CUB_200200_890_NS::DeviceScanKernel<cub::CUB_200200_890_NS::P<int> >(int)",
             "cub::DeviceScanKernel"},
        Case{"ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)", "ncclKernel_AllReduce_RING_LL_Sum_float"},
        Case{"at::native::f(at::TensorIteratorBase&)::{lambda()#2}::operator()() "
             "const::{lambda(float)#1}::operator()(float) const",
             "at::native::f::{lambda}::operator()::{lambda}::operator()"},
        Case{"decltype(nullptr) foo<int>(int)", "foo"}, Case{"unsigned int foo::bar<3>(int)", "foo::bar"},
        Case{"void foo<(bool)1, (a > b)>(int)", "foo"}, Case{"foo::operator()(int) const", "foo::operator()"},
        Case{"void kernel<int>(int) [clone .kd]", "kernel"}, Case{"void (anonymous namespace)::f(int)", "f"},
        Case{"_ZN5aiter24add_rmsnorm_quant_kernelIDF16bEEvv", "aiter::add_rmsnorm_quant_kernel"},
        Case{"_ZN7ck_tile6kentryILi1ENS_12Rmsnorm2dFwdINS_9Dv99_999Dv99EEEvv", "ck_tile::kentry<Rmsnorm2dFwd>"},
        Case{"_ZN2ck6device12_GLOBAL__N_13fooINS_3BarIDF16bbDv99_99999EEEvv", "ck::device::foo"}));

INSTANTIATE_TEST_SUITE_P(Unchanged, ShortName,
                         testing::Values(Case{"triton_poi_fused_add_3", "triton_poi_fused_add_3"},
                                         Case{"ampere_sgemm_128x64_nn", "ampere_sgemm_128x64_nn"},
                                         Case{"Memcpy HtoD (Host -> Device)", "Memcpy HtoD (Host -> Device)"},
                                         Case{"Memset (Device)", "Memset (Device)"},
                                         Case{"torch/nn/modules/module.py(2868): named_modules",
                                              "torch/nn/modules/module.py(2868): named_modules"},
                                         Case{"<built-in function hasattr>", "<built-in function hasattr>"},
                                         Case{"autograd::engine::evaluate_function: SumBackward0",
                                              "autograd::engine::evaluate_function: SumBackward0"},
                                         Case{"aten::add_", "aten::add_"}, Case{"## forward ##", "## forward ##"},
                                         Case{"step[EXTEND bs=15 toks=15360]", "step[EXTEND bs=15 toks=15360]"},
                                         Case{"execute_1_context_15(sq1sk1)_generation_0(sq0)",
                                              "execute_1_context_15(sq1sk1)_generation_0(sq0)"},
                                         Case{"", ""}, Case{"_Z", "_Z"}, Case{"_ZN", "_ZN"}, Case{"(", "("},
                                         Case{"<", "<"}, Case{">", ">"}, Case{"::", "::"}, Case{"()", "()"}));

INSTANTIATE_TEST_SUITE_P(Damaged, ShortName,
                         testing::Values(Case{"void foo<int, bar<3", "foo"}, Case{"void foo<int>(int, char", "foo"},
                                         Case{"void cub::DeviceRadixSortOnesweepKernel<cub::DeviceRadixSor...",
                                              "cub::DeviceRadixSortOnesweepKernel"},
                                         Case{"void foo>>(int)", "foo"}, Case{"foo)(", "foo)("},
                                         Case{"foo::{lambda", "foo::{lambda"}));

TEST(ShortNameTime, GrowsLinearlyWithHostileNames) {
  const std::size_t n = 1 << 20;
  const std::string alternating = [&] {
    std::string s = "void f<";
    while (s.size() < n) s += "a<(b{[";
    return s;
  }();
  std::string calls = "x";
  while (calls.size() < n) calls += "::f(int)";
  std::string templates = "void cutlass::Kernel<";
  while (templates.size() < n) templates += "1, ";
  std::string spaces = "f<int>";
  while (spaces.size() < n) spaces += " a";
  const auto shorten_all = [&] {
    for (const std::string& name :
         {alternating, calls, templates, spaces, std::string(n, '('), std::string(n, '<'),
          "void f" + std::string(n, '>'), "_Z" + std::string(n, '1'), "_ZN" + std::string(n, 'S')})
      EXPECT_LE(short_name(name).size(), name.size());
  };
  EXPECT_LT(test::cpu_seconds(shorten_all), 10);
}

TEST(WithoutAddresses, OnlyTheAddressesOfObjectsGo) {
  EXPECT_EQ(without_addresses("<built-in method unbind of Tensor object at 0x7fa2c8d01f90>"),
            "<built-in method unbind of Tensor object>");
  EXPECT_EQ(without_addresses("<bound method A.f of <m.A object at 0x7F>>"), "<bound method A.f of <m.A object>>");
  EXPECT_EQ(without_addresses("<function f at 0x1> of <g at 0x2>"), "<function f> of <g>");
  EXPECT_EQ(without_addresses("<object at 0x7fa2"), "<object");
  for (const char* name :
       {"", "jump at 0xg", "read at 0x10 bytes", "kernel_at_0x7fa2>", "at 0x12>", " at 0x", " at 0x>"})
    EXPECT_EQ(without_addresses(name), name);
}

}  // namespace
}  // namespace culprit
