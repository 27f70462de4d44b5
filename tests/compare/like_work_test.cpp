#include "compare/like_work.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "compare/kernel_sizes.h"

namespace culprit::compare {
namespace {

double mean(const std::vector<CycleValue>& values) {
  double sum = 0;
  for (const CycleValue& v : values) sum += v.value;
  return sum / static_cast<double>(values.size());
}

/// Cycles of two classes; a long one takes four times as long as a short one, on both sides.
struct Mix {
  std::array<std::vector<CycleValue>, 2> values;
  LikeWork work;
};

Mix mix(std::array<std::size_t, 2> shorts, std::array<std::size_t, 2> longs, double slower) {
  Mix made;
  std::array<std::vector<std::uint32_t>, 2> class_of;
  for (std::size_t s = 0; s < 2; ++s)
    for (std::size_t i = 0; i < shorts[s] + longs[s]; ++i) {
      const bool is_long = i >= shorts[s];
      class_of[s].push_back(is_long ? 1 : 0);
      made.values[s].push_back({static_cast<std::uint32_t>(i), (is_long ? 4.0 : 1.0) * (s == 1 ? slower : 1)});
    }
  made.work = like_work_of(std::move(class_of), 2);
  return made;
}

TEST(LikeWork, AnotherMixOfTheSameIsNoDifference) {
  const Mix made = mix({30, 10}, {10, 30}, 1);
  EXPECT_NEAR(mean(made.values[1]) / mean(made.values[0]), 1.86, 0.01);
  const auto like = at_like_work(made.values, made.work, false);
  EXPECT_NEAR(mean(like[1]) / mean(like[0]), 1, 1e-12);
}

TEST(LikeWork, WhatIsSlowerInEachClassStays) {
  const Mix made = mix({30, 10}, {10, 30}, 1.25);
  const auto like = at_like_work(made.values, made.work, false);
  EXPECT_NEAR(mean(like[1]) / mean(like[0]), 1.25, 1e-12);
}

TEST(LikeWork, AKernelOfOneKindOfWorkAloneIsNoDifferenceOfTheMix) {
  Mix made = mix({30, 10}, {10, 30}, 1);
  for (std::size_t s = 0; s < 2; ++s)
    std::erase_if(made.values[s], [&](const CycleValue& v) { return made.work.class_of[s][v.position] == 0; });
  const auto like = at_like_work(made.values, made.work, true);
  const auto per_cycle = [&](std::size_t s) {
    double sum = 0;
    for (const CycleValue& v : like[s]) sum += v.value;
    return sum / 40;
  };
  EXPECT_NEAR(per_cycle(0), 2, 1e-9) << "half of the cycles, 4 each";
  EXPECT_NEAR(per_cycle(1), 2, 1e-9);
}

TEST(LikeWork, CallsForWorkThatTheOtherSideLacksAreNotHeldAgainstIt) {
  Mix made = mix({30, 10}, {0, 30}, 1);
  const auto like = at_like_work(made.values, made.work, false);
  EXPECT_EQ(like[1].size(), 10U);
  EXPECT_NEAR(mean(like[1]) / mean(like[0]), 1, 1e-12);
}

TEST(LikeWork, OneClassKeepsItsValues) {
  Mix made = mix({10, 10}, {0, 0}, 1.5);
  made.work.classes = 1;
  const auto like = at_like_work(made.values, made.work, true);
  EXPECT_EQ(like[1][3].value, 1.5);
}

TEST(LikeWork, ACycleWithoutTheFunctionCountsAsNothing) {
  Mix made = mix({10, 10}, {10, 10}, 1);
  std::erase_if(made.values[1], [](const CycleValue& v) { return v.position % 2 == 1; });  // half the calls are gone
  const auto like = at_like_work(made.values, made.work, true);
  const auto sum = [](const std::vector<CycleValue>& values) {
    double all = 0;
    for (const CycleValue& v : values) all += v.value;
    return all;
  };
  EXPECT_NEAR(sum(like[1]) / sum(like[0]), 0.5, 1e-12);
}

model::RunComparison kernels(std::array<double, 2> size) {
  model::RunComparison c;
  c.texts.intern("");
  for (const double time : {3.0, 1.0}) {
    model::FunctionFinding f;
    f.kind = c.texts.intern("gpu_compute");
    f.time_ns = {time, time};
    f.size = time > 2 ? size : std::array<double, 2>{64, 64};
    c.functions.push_back(f);
  }
  return c;
}

TEST(KernelSizes, MostKernelsWithMoreThreadsAreOtherWork) {
  EXPECT_NE(other_kernel_sizes(kernels({1000, 1500})).find("75 % of the GPU's time are launched with x1.50"),
            std::string::npos);
  EXPECT_NE(other_kernel_sizes(kernels({1500, 1000})).find("x0.67"), std::string::npos);
  EXPECT_EQ(other_kernel_sizes(kernels({1000, 1000})), "");
  EXPECT_EQ(other_kernel_sizes(kernels({0, 1000})), "") << "not known on one side";
  EXPECT_EQ(other_kernel_sizes(model::RunComparison()), "");
}

TEST(KernelSizes, StepsThatTellTheirWorkAreHeldAgainstLikeOnes) {
  model::RunComparison c = kernels({1000, 1500});
  c.cycle_times.emplace_back().usual_work = {"8 requests", "8 requests"};
  EXPECT_EQ(other_kernel_sizes(c), "");
}

}  // namespace
}  // namespace culprit::compare
