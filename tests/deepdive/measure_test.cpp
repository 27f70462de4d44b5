#include "deepdive/measure.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace culprit::deepdive {
namespace {

const std::vector<CounterSample> kRamp = {{0, 0}, {10, 10}, {20, 20}, {30, 30}, {40, 40}};

TEST(Measure, ThreeSamplesInsideAreMeasured) {
  const auto m = measure(kRamp, 10, 30);
  ASSERT_TRUE(m);
  EXPECT_FALSE(m->interpolated);
  EXPECT_DOUBLE_EQ(m->mean, 20);
  EXPECT_DOUBLE_EQ(m->spread, std::sqrt(200.0 / 3)) << "population, not sample, deviation";
}
TEST(Measure, TwoSamplesInsideAreIgnored) {
  const std::vector<CounterSample> spike = {{0, 0}, {10, 1000}, {20, 1000}, {30, 0}};
  const auto m = measure(spike, 5, 25);
  ASSERT_TRUE(m);
  EXPECT_TRUE(m->interpolated);
  EXPECT_DOUBLE_EQ(m->mean, 500) << "only the values at both ends count";
  EXPECT_DOUBLE_EQ(m->spread, 0);
}
TEST(Measure, EndsGiveMeanAndHalfTheirDifference) {
  const auto m = measure(kRamp, 2, 6);
  ASSERT_TRUE(m);
  EXPECT_DOUBLE_EQ(m->mean, 4);
  EXPECT_DOUBLE_EQ(m->spread, 2);
}
TEST(Measure, NothingWithoutSamples) { EXPECT_FALSE(measure({}, 0, 10)); }

TEST(Pool, WeighsByDuration) {
  Pool pool;
  EXPECT_TRUE(pool.empty());
  pool.add({10, 2, false}, 1);
  pool.add({20, 0, true}, 3);
  EXPECT_DOUBLE_EQ(pool.mu(), 17.5);
  EXPECT_DOUBLE_EQ(pool.sigma(), 1) << "the difference between executions does not enter";
  EXPECT_EQ(pool.measured(), 1u);
  EXPECT_EQ(pool.interpolated(), 1u);
}

TEST(ProvenanceOf, SaysWhatTheValuesAreMadeOf) {
  EXPECT_EQ(provenance_of(0, 0), Provenance::none);
  EXPECT_EQ(provenance_of(2, 0), Provenance::measured);
  EXPECT_EQ(provenance_of(0, 2), Provenance::interpolated);
  EXPECT_EQ(provenance_of(1, 1), Provenance::mixed);
}

TEST(MergeOverlapping, AddsUpWhatRanAtOneTime) {
  const auto blocks = merge_overlapping({{20, 40, 20}, {0, 10, 10}, {5, 25, 20}, {40, 50, 10}});
  ASSERT_EQ(blocks.size(), 2u) << "touching blocks stay apart";
  EXPECT_EQ(blocks[0].begin, 0);
  EXPECT_EQ(blocks[0].end, 40);
  EXPECT_EQ(blocks[0].duration, 50);
  EXPECT_EQ(blocks[0].count, 3u);
  EXPECT_EQ(blocks[1].begin, 40);
}
TEST(MergeOverlapping, AShortOneInsideALongOneDoesNotShortenIt) {
  const auto blocks = merge_overlapping({{0, 100, 100}, {10, 20, 10}, {50, 60, 10}});
  ASSERT_EQ(blocks.size(), 1u);
  EXPECT_EQ(blocks[0].end, 100);
}

TEST(EstimateCores, TakesTheNearestUsualNumber) {
  EXPECT_EQ(estimate_cores(std::vector<double>{}), 1);
  EXPECT_EQ(estimate_cores(std::vector<double>{0.0}), 1);
  EXPECT_EQ(estimate_cores(std::vector<double>{116.0}), 8);
  EXPECT_EQ(estimate_cores(std::vector<double>{1200.0}), 8) << "as near to 8 as to 16";
  EXPECT_EQ(estimate_cores(std::vector<double>{650.0, 650.0}), 16) << "each process is rounded up";
  EXPECT_EQ(estimate_cores(std::vector<double>{1e9}), 128);
  EXPECT_EQ(estimate_cores(std::vector<double>{std::nan("")}), 1);
}

}  // namespace
}  // namespace culprit::deepdive
