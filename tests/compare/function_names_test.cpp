// Functions that are one under two names.
#include "compare/function_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <array>

#include <string>
#include <utility>
#include <vector>

namespace culprit::compare {
namespace {

using testing::IsEmpty;
using testing::UnorderedElementsAre;

TEST(MatchKey, NumbersThatDifferFromBuildToBuildDoNotCount) {
  const std::vector<std::pair<std::string, std::string>> alike = {
      {"ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x3_tn",
       "ampere_bf16_s16816gemm_bf16_64x64_ldg8_f2f_stages_64x5_tn"},
      {"triton_poi_fused_add_mul_0", "triton_poi_fused_add_mul_12"},
      {"_fwd_kernel_0d1d2d3de4", "_fwd_kernel_0d1d2de3d"},
      {"cutlass_80_tensorop_f16_s16816gemm_f16_256x128_32x3_tn_align8",
       "cutlass_80_tensorop_f16_s16816gemm_f16_128x128_64x4_tn_align4"},
      {"sm90_xmma_gemm_bf16bf16_tilesize64x64x64_warpgroupsize1x1x1_stage4",
       "sm90_xmma_gemm_bf16bf16_tilesize128x64x64_warpgroupsize1x1x1_stage3"},
      {"void vectorized_elementwise_kernel<4, AddFunctor<float>>",
       "void vectorized_elementwise_kernel<8, AddFunctor<float>>"},
      {"<built-in method linear of type object at 0x7f1a90>", "<built-in method linear of type object at 0x7fffab12>"},
      {"torch/nn/modules/module.py(1501): _call_impl", "torch/nn/modules/module.py(1518): _call_impl"},
      {"fused_kernel_c7a8b9d0e1", "fused_kernel_0123abcdef"},
      {"_ZN7cutlass6KernelILi64ELi128EfEE", "_ZN7cutlass6KernelILi32ELi256EfEE"},
  };
  for (const auto& [a, b] : alike) EXPECT_EQ(match_key(a), match_key(b));
}

TEST(MatchKey, WhatSaysWhichWorkIsDoneDoes) {
  const std::vector<std::pair<std::string, std::string>> other = {
      {"gemm_f16_64x64_tn", "gemm_f32_64x64_tn"},
      {"gemm_f16_64x64_tn", "gemm_f16_64x64_nn"},
      {"sm80_gemm", "sm90_gemm"},
      {"conv2d_kernel", "conv3d_kernel"},
      {"conv_2d", "conv_3d"},
      {"triton_poi_fused_add_0", "triton_poi_fused_add_relu_0"},
      {"elementwise_kernel<4, AddFunctor<float>>", "elementwise_kernel<4, MulFunctor<float>>"},
      {"_ZN7cutlass6KernelILi64EfEE", "_ZN7cutlass6KernelILi64EdEE"},
      {"facade", "decade"},
      {"deadbeef", "feedface"},
  };
  for (const auto& [a, b] : other) EXPECT_NE(match_key(a), match_key(b)) << a << " " << b;
}

TEST(MatchKey, OddNames) {
  for (const char* name : {"", "_", "memcpy", "Memcpy HtoD (Host -> Device)", "é", "_Z", "_ZL", "_ZLi"})
    EXPECT_EQ(match_key(name), name);
  EXPECT_EQ(match_key("_ZLi5"), "_ZLi5");
  EXPECT_EQ(match_key("7"), "#");
  EXPECT_EQ(match_key("x64"), "x64");
}

OneSided row(std::size_t side, std::string_view name, double calls = 4, StringId parent = 0) {
  OneSided r;
  r.side = side;
  r.name = r.short_name = name;
  r.calls = calls;
  r.parent = parent;
  return r;
}

using RowPair = std::pair<std::size_t, std::size_t>;

TEST(PairRenamed, OneOfEachSideIsTheSame) {
  EXPECT_THAT(pair_renamed({row(0, "gemm_64x3_tn"), row(1, "norm_1"), row(1, "gemm_64x5_tn", 9)}),
              UnorderedElementsAre(RowPair{0, 2}));
}

TEST(PairRenamed, ByCallsAndParentWhereSeveralCouldBeMeant) {
  EXPECT_THAT(pair_renamed({row(0, "f_1", 16), row(0, "f_2", 4), row(1, "f_3", 4), row(1, "f_4", 16)}),
              UnorderedElementsAre(RowPair{0, 3}, RowPair{1, 2}));
  EXPECT_THAT(pair_renamed({row(0, "f_1", 4, 5), row(0, "f_2", 4, 6), row(1, "f_3", 4, 6), row(1, "f_4", 4, 5)}),
              UnorderedElementsAre(RowPair{0, 3}, RowPair{1, 2}));
  EXPECT_THAT(pair_renamed({row(0, "f_1", 16), row(1, "f_3", 8), row(1, "f_4", 8)}), IsEmpty());
}

TEST(PairRenamed, AKernelThatTookAnothersPlaceIsItsSuccessor) {
  const auto kernel = [](std::size_t side, std::string_view name, double calls, StringId parent) {
    OneSided r = row(side, name, calls, parent);
    r.on_device = true;
    return r;
  };
  EXPECT_THAT(pair_renamed({kernel(0, "flash_fwd", 4, 5), kernel(1, "flashinfer::Decode", 4, 5)}),
              UnorderedElementsAre(RowPair{0, 1}));
  EXPECT_THAT(pair_renamed({kernel(0, "flash_fwd", 4, 5), kernel(1, "flashinfer::Decode", 8, 5)}), IsEmpty())
      << "called otherwise";
  EXPECT_THAT(pair_renamed({kernel(0, "flash_fwd", 4, 5), kernel(1, "flashinfer::Decode", 4, 6)}), IsEmpty());
  EXPECT_THAT(pair_renamed({kernel(0, "flash_fwd", 4, 0), kernel(1, "flashinfer::Decode", 4, 0)}), IsEmpty())
      << "nobody knows who launched them";
  EXPECT_THAT(pair_renamed({kernel(0, "flash_fwd", 4, 5), kernel(1, "a", 4, 5), kernel(1, "b", 4, 5)}), IsEmpty())
      << "one became two";
  EXPECT_THAT(pair_renamed({row(0, "read", 4, 5), row(1, "write", 4, 5)}), IsEmpty())
      << "the host's are what they are called";
}

TEST(PairRenamed, TheLongerOneIsTheLongerOne) {
  std::vector<OneSided> rows = {row(0, "model.py(95): forward"), row(0, "model.py(150): forward"),
                                row(1, "model.py(101): forward"), row(1, "model.py(156): forward")};
  const std::array times = {1e7, 1e6, 1.1e7, 0.9e6};
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i].time = times[i];
  EXPECT_THAT(pair_renamed(rows), UnorderedElementsAre(RowPair{0, 2}, RowPair{1, 3}));
}

TEST(PairRenamed, OtherPlacesAreOthers) {
  std::vector<OneSided> rows = {row(0, "f_1"), row(1, "f_2")};
  for (const auto member : {&OneSided::kind, &OneSided::device}) {
    rows[1].*member = 3;
    EXPECT_THAT(pair_renamed(rows), IsEmpty());
    rows[1].*member = 0;
  }
  rows[1].process = 1;
  EXPECT_THAT(pair_renamed(rows), IsEmpty());
  rows[1].process = 0;
  rows[1].phase = model::Phase::decode;
  EXPECT_THAT(pair_renamed(rows), IsEmpty());
}

TEST(PairRenamed, OtherTemplateArgumentsIfCalledAsOften) {
  std::vector<OneSided> rows = {row(0, "k<float>"), row(1, "k<half>")};
  rows[0].short_name = rows[1].short_name = "k";
  EXPECT_THAT(pair_renamed(rows), UnorderedElementsAre(RowPair{0, 1}));
  rows[1].calls = 8;
  EXPECT_THAT(pair_renamed(rows), IsEmpty());
  rows[1].calls = 4;
  rows.push_back(rows[1]);
  rows[2].name = "k<double>";
  EXPECT_THAT(pair_renamed(rows), IsEmpty()) << "either could be meant";
}

TEST(PairRenamed, ManyOfOneKeyAreNobody) {
  std::vector<OneSided> rows(kMostAlike + 1, row(0, "f_1"));
  rows.push_back(row(1, "f_2"));
  EXPECT_THAT(pair_renamed(rows), IsEmpty());
  rows.erase(rows.begin());
  EXPECT_EQ(pair_renamed(rows).size(), 1U);
}

TEST(PairRenamed, TheOrderOfRowsChangesNothing) {
  const std::vector<OneSided> rows = {row(0, "f_1"), row(0, "f_2"), row(1, "f_4"), row(1, "f_3"), row(1, "f_5")};
  EXPECT_THAT(pair_renamed(rows), UnorderedElementsAre(RowPair{0, 3}, RowPair{1, 2}));
}

}  // namespace
}  // namespace culprit::compare
