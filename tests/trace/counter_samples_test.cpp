#include "trace/counter_samples.h"

#include <gtest/gtest.h>

#include <vector>

namespace culprit {
namespace {

const std::vector<CounterSample> kRamp = {{0, 0}, {10, 10}, {20, 20}, {30, 30}, {40, 40}};

TEST(Interpolate, IsLinearBetweenSamples) { EXPECT_DOUBLE_EQ(interpolate(kRamp, 14), 14); }
TEST(Interpolate, HoldsTheFirstAndTheLastValueOutside) {
  EXPECT_DOUBLE_EQ(interpolate(kRamp, -5), 0);
  EXPECT_DOUBLE_EQ(interpolate(kRamp, 99), 40);
}
TEST(Interpolate, StartsFromTheLastOfSamplesAtOneTime) {
  const std::vector<CounterSample> step = {{0, 1}, {10, 2}, {10, 8}, {20, 4}};
  EXPECT_DOUBLE_EQ(interpolate(step, 10), 8);
  EXPECT_DOUBLE_EQ(interpolate(step, 15), 6);
}

TEST(SamplesWithin, TakesBothEnds) {
  EXPECT_EQ(samples_within(kRamp, 10, 30).size(), 3u);
  EXPECT_EQ(samples_within(kRamp, 11, 19).size(), 0u);
  EXPECT_EQ(samples_within(kRamp, 30, 10).size(), 0u) << "an interval that ends before it begins";
  EXPECT_EQ(samples_within({}, 0, 10).size(), 0u);
}

TEST(MeanWithin, WeighsByTheTimeAValueHolds) {
  EXPECT_DOUBLE_EQ(mean_within(kRamp, 15, 40).value(), (5 * 10 + 10 * 20 + 10 * 30) / 25.0);
  EXPECT_DOUBLE_EQ(mean_within(kRamp, 40, 90).value(), 40) << "writers leave out values that stay the same";
  EXPECT_DOUBLE_EQ(mean_within(kRamp, -10, 10).value(), 0) << "nothing is known before the first";
  EXPECT_FALSE(mean_within(kRamp, -10, 0));
  EXPECT_FALSE(mean_within({}, 0, 10));
}

TEST(CounterInstance, ComesFromTheTrackOrTheName) {
  EXPECT_EQ(counter_instance("gpu_usage", "CAT_XPU_3"), 3);
  EXPECT_EQ(counter_instance("process_cpu_usage_100", ""), 100);
  EXPECT_EQ(counter_instance("process_cpu_usage_4.013652e+06", ""), -1) << "six digits cannot name a process";
  EXPECT_EQ(counter_instance("cpu_frequency", ""), -1);
  EXPECT_EQ(counter_instance("x_", "CAT_XPU_"), -1);
  EXPECT_EQ(counter_instance("x_99999999999999999999", ""), -1);
}

}  // namespace
}  // namespace culprit
