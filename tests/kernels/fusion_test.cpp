#include "kernels/fusion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "kernels/fusion_idioms.h"
#include "kernels/launch_identity.h"
#include "support/launch_log.h"
#include "support/shared_data.h"

namespace culprit::kernels {
namespace {

using model::FusionModel;
using model::KernelLog;
using test::add_launch;

model::FusionReport report_of(const KernelLog& log) { return fusion_report(log, lanes_of(log), {}); }

constexpr const char* kVectorized = "vectorized_elementwise_kernel";

TEST(Fusion, NothingBetweenProducts) {
  KernelLog log;
  for (int i = 0; i < 5; ++i) {
    add_launch(log, "ampere_fp16_s16816gemm", 100'000, 0.7f, 0.1f);
    add_launch(log, kVectorized, 20'000, 0.0f, 0.6f);
  }
  EXPECT_TRUE(report_of(log).candidates.empty());
}

TEST(Fusion, BoundIsTheTrafficMovedOnce) {
  KernelLog log;
  add_launch(log, "gemm", 100'000, 0.7f, 0.1f);
  add_launch(log, kVectorized, 20'000, 0.0f, 0.80f);
  add_launch(log, kVectorized, 40'000, 0.0f, 0.40f);
  add_launch(log, kVectorized, 30'000, 0.0f, 0.40f);
  add_launch(log, "gemm", 5'000, 0.7f, 0.1f);
  const auto report = report_of(log);
  ASSERT_EQ(report.candidates.size(), 1u);
  const auto& candidate = report.candidates[0];
  EXPECT_NEAR(report.best_dram, 0.8, 1e-6);
  EXPECT_EQ(candidate.time, 90'000);
  EXPECT_EQ(candidate.model, FusionModel::traffic_once);
  // Most traffic: 20 us at 80 %, as 40 us at 40 %. At 80 % it takes 20 us.
  EXPECT_NEAR(candidate.bound, 70'000, 1);
  EXPECT_NEAR(candidate.careful, 50'000, 1);
}

TEST(Fusion, AWholeSoftmaxKeepsItsTime) {
  KernelLog log;
  add_launch(log, kVectorized, 20'000, 0.0f, 0.80f);
  add_launch(log, "softmax_warp_forward", 60'000, 0.0f, 0.10f);
  const auto report = report_of(log);
  ASSERT_EQ(report.candidates.size(), 1u);
  EXPECT_NEAR(report.candidates[0].bound, 20'000, 1);
}

TEST(Fusion, WithoutDramUseTheLongestRemains) {
  KernelLog log;
  add_launch(log, kVectorized, 20'000);
  add_launch(log, kVectorized, 30'000);
  const auto report = report_of(log);
  ASSERT_EQ(report.candidates.size(), 1u);
  EXPECT_EQ(report.candidates[0].model, FusionModel::longest_remains);
  EXPECT_NEAR(report.candidates[0].bound, 20'000, 1e-9);
}

TEST(Fusion, LaunchSizedGapsAreCountedLongOnesAreNot) {
  KernelLog log;
  Ns begin = 0;
  for (const Ns gap : {0, 4'000, 500'000}) {
    begin += gap;
    add_launch(log, kVectorized, 10'000, 0.0f, 0.5f).begin = begin;
    begin += 10'000;
  }
  const auto report = report_of(log);
  ASSERT_EQ(report.candidates.size(), 1u);
  EXPECT_EQ(report.candidates[0].gaps, 4'000);
}

TEST(Fusion, ALongPauseSeparatesRuns) {
  KernelLog log;
  Ns begin = 0;
  for (const Ns gap : {0, 4'000, 1'500'000, 4'000}) {
    begin += gap;
    add_launch(log, kVectorized, 10'000, 0.0f, 0.5f).begin = begin;
    begin += 10'000;
  }
  const auto report = report_of(log);
  ASSERT_EQ(report.candidates.size(), 1u);
  EXPECT_EQ(report.candidates[0].begins.size(), 2u) << "two runs of two launches, not one of four";
}

TEST(Fusion, NoRunIsLongerThanAKernelCouldBe) {
  KernelLog log;
  for (int i = 0; i < 100; ++i) add_launch(log, kVectorized, 10'000, 0.0f, 0.5f);
  for (const auto& candidate : report_of(log).candidates) EXPECT_LE(candidate.names.size(), 32u);
}

TEST(Fusion, BoundNeverExceedsTimeAndGaps) {
  for (const char* seed : {"001_abc90e299168b04d", "002_2e6eb07346960d83", "003_a62fcc25c90d6fd4"}) {
    const std::string path = std::string("seeds/") + seed + ".txt";
    CULPRIT_NEEDS_SHARED(path);
    const auto report = report_of(test::parse_launch_log(test::shared(path)));
    ASSERT_FALSE(report.candidates.empty());
    double sum = 0;
    for (const auto& candidate : report.candidates) {
      EXPECT_GE(candidate.bound, candidate.careful - 1e-6);
      EXPECT_GE(candidate.careful, 0);
      EXPECT_LE(candidate.bound, static_cast<double>(candidate.time));
      sum += candidate.bound;
    }
    EXPECT_LT(sum, static_cast<double>(report.total));
    EXPECT_TRUE(std::ranges::is_sorted(report.candidates, std::greater<>(), &model::FusionCandidate::bound));
  }
}

// Adam over 6 chunks in 8 passes: a pass is as long as its operation, a chunk as its size.
TEST(Fusion, ChunksOfAnOptimizer) {
  std::vector<double> times;
  for (const double pass : {148.0, 146.0, 104.0, 145.0, 100.0, 101.0, 99.0, 214.0})
    for (const double chunk : {1.0, 0.97, 0.99, 0.98, 1.0, 0.4}) times.push_back(pass * 1000 * chunk);
  EXPECT_EQ(chunks_of(times), 6u);
  EXPECT_EQ(chunks_of(std::vector<double>{1000, 2000}), 1u);
}

TEST(Fusion, AnOptimizerKeepsOnePassPerChunk) {
  KernelLog log;
  for (const Ns pass : {150, 100, 200, 100})
    for (const Ns chunk : {1000, 1000, 300}) add_launch(log, "multi_tensor_apply_kernel", pass * chunk, 0.0f, 0.5f);
  const auto report = report_of(log);
  ASSERT_EQ(report.candidates.size(), 1u);
  EXPECT_EQ(report.candidates[0].model, FusionModel::pass_remains);
  const double all = 550.0 * 2300;
  EXPECT_NEAR(report.candidates[0].careful, all - 200.0 * 2300, 1);
}

TEST(Idioms, NamedByNamesOrByShape) {
  const auto idiom = [](const std::vector<std::string_view>& names, bool between) {
    std::vector<FusionRole> roles;
    for (const auto name : names) roles.push_back(fusion_role(name));
    return idiom_of(names, roles, between);
  };
  const std::vector<std::string_view> eight(8, kVectorized);
  EXPECT_EQ(idiom(eight, true).name, "GELU (pow, mul, add, tanh)");
  EXPECT_TRUE(idiom(eight, true).by_shape);
  EXPECT_EQ(idiom(eight, false).name, "element-wise chain");
  EXPECT_EQ(idiom({kVectorized, kVectorized}, true).name, "element-wise chain");
  const auto gelu = idiom({"void at::native::vectorized_elementwise_kernel<4, at::native::pow_tensor_scalar>(int)",
                           "void at::native::vectorized_elementwise_kernel<4, at::native::tanh_kernel_cuda>(int)"},
                          true);
  EXPECT_EQ(gelu.name, "GELU (pow, mul, add, tanh)");
  EXPECT_FALSE(gelu.by_shape);
  EXPECT_THAT(idiom({"reduce_kernel", "reduce_kernel", "elementwise_kernel", "elementwise_kernel"}, true).name,
              testing::StartsWith("layer norm"));
  EXPECT_EQ(idiom({"unrolled_elementwise_kernel", "unrolled_elementwise_kernel"}, true).name, "casts");
  EXPECT_THAT(idiom({"cudnn::ops::nchwToNhwcKernel"}, true).name, testing::StartsWith("layout"));
}

TEST(Idioms, HostileNames) {
  const std::string huge(100'000, '<');
  for (const std::string& name : {std::string(), huge, std::string("\0x\xff", 3)}) {
    const std::vector<std::string_view> names = {name, name};
    const std::vector<FusionRole> roles = {fusion_role(name), FusionRole::elementwise};
    EXPECT_FALSE(idiom_of(names, roles, true).name.empty());
  }
}

TEST(Fusion, TopCandidatesOfTheSeeds) {
  CULPRIT_NEEDS_SHARED("seeds/003_a62fcc25c90d6fd4.txt");
  const auto gpt = report_of(test::parse_launch_log(test::shared("seeds/003_a62fcc25c90d6fd4.txt")));
  ASSERT_GE(gpt.candidates.size(), 3u);
  EXPECT_THAT(gpt.candidates[0].idiom, testing::StartsWith("rotary"));
  EXPECT_THAT(gpt.candidates[1].idiom, testing::StartsWith("softmax"));
  EXPECT_THAT(gpt.candidates[2].idiom, testing::StartsWith("GELU"));
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(gpt.candidates[i].begins.size(), 24u);
  const auto unet = report_of(test::parse_launch_log(test::shared("seeds/001_abc90e299168b04d.txt")));
  EXPECT_EQ(unet.candidates[0].model, FusionModel::removed);
  EXPECT_EQ(unet.candidates[0].time, 5'338'496 + 2'403'616);
}

}  // namespace
}  // namespace culprit::kernels
