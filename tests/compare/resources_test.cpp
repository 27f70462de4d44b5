#include "compare/resources.h"

#include <gtest/gtest.h>

namespace culprit::compare {
namespace {

/// One cycle from 0 to 1000 and one series of a device.
model::Profile profile_of(const char* device, const std::vector<Ns>& times, const std::vector<double>& values) {
  model::Profile p;
  model::ProfileCycle cycle;
  cycle.duration = 1000;
  cycle.rank = 0;
  p.cycles.push_back(cycle);
  model::ResourceSeries series;
  series.metric = p.texts.intern("gpu_frequency");
  series.device = p.texts.intern(device);
  series.rank = 0;
  series.unit = model::Unit::hertz;
  series.times = times;
  series.values = values;
  p.series.push_back(series);
  return p;
}

std::vector<model::ResourceChange> changes(const model::Profile& base, const model::Profile& candidate,
                                           std::vector<model::ResourceChange>& steady) {
  ResourceMeans a;
  ResourceMeans b;
  add_resources(base, a);
  add_resources(candidate, b);
  return resource_changes(a, b, steady);
}

TEST(Resources, ADeviceIsItsRoleNotItsNumber) {
  std::vector<model::ResourceChange> steady;
  const auto moved = changes(profile_of("GPU 0", {10, 20}, {1.4e9, 1.4e9}), profile_of("GPU 7", {10}, {2.1e8}), steady);
  ASSERT_EQ(moved.size(), 1U);
  EXPECT_EQ(moved[0].device, "GPU");
  EXPECT_EQ(moved[0].value[0], 1.4e9);
  EXPECT_EQ(moved[0].value[1], 2.1e8);
  EXPECT_EQ(moved[0].unit, model::Unit::hertz);
}

TEST(Resources, OnlySamplesInsideCyclesCount) {
  std::vector<model::ResourceChange> steady;
  EXPECT_TRUE(changes(profile_of("GPU 0", {10, 5000}, {100, 9e9}), profile_of("GPU 0", {500}, {101}), steady).empty());
  EXPECT_EQ(steady.size(), 1U);
}

TEST(Resources, ClocksAreJudgedWhileTheDeviceWasBusy) {
  model::Profile idle = profile_of("GPU 0", {10, 20}, {2e8, 1.4e9});
  idle.series[0].only_while_busy = true;
  idle.series[0].busy_samples = 1;
  idle.series[0].busy_mean = 1.4e9;
  std::vector<model::ResourceChange> steady;
  EXPECT_TRUE(changes(idle, profile_of("GPU 0", {10}, {1.4e9}), steady).empty());
}

TEST(Resources, WhatOneSideLacksMoved) {
  std::vector<model::ResourceChange> steady;
  const auto moved = changes(profile_of("GPU 0", {10}, {1}), model::Profile(), steady);
  ASSERT_EQ(moved.size(), 1U);
  EXPECT_FALSE(moved[0].value[1]);
}

TEST(Resources, WhatIsOfNoDeviceIsToldElsewhere) {
  std::vector<model::ResourceChange> steady;
  EXPECT_TRUE(changes(profile_of("Host", {10}, {1}), profile_of("Host", {10}, {2}), steady).empty());
}

}  // namespace
}  // namespace culprit::compare
