#include <gtest/gtest.h>

#include "compare/counter_changes.h"

namespace culprit::compare {
namespace {

model::Recording with_counter(double mean, double wobble) {
  model::Recording r;
  model::HostCounter& counter = r.host.counters.emplace_back();
  counter.name = "host.disk.written";
  counter.unit = "bytes/s";
  for (int i = 0; i < 12; ++i) counter.windows.push_back(mean * (1 + wobble * ((i * 5) % 7 - 3)));
  return r;
}

TEST(MovedCounters, ThatWobbleAsMuchAsTheyDifferAreSilent) {
  const model::Recording a = with_counter(100, 0.3);
  const model::Recording b = with_counter(160, 0.3);
  EXPECT_TRUE(counter_changes({&a, 1}, {&b, 1}).moved.empty());
}

TEST(MovedCounters, ALimitThatOnlyOneSideFeelsComesFirst) {
  model::Recording a = with_counter(100, 0.02);
  model::Recording b = with_counter(300, 0.02);
  model::HostCounter& quota = b.host.counters.emplace_back();
  quota.name = "cgroup.cpu.quota";
  quota.windows = {0.5, 0.5};
  model::HostCounter throttled;
  throttled.name = "cgroup.cpu.throttled_time";
  throttled.windows = {0, 0, 0, 0};
  a.host.counters.push_back(throttled);
  throttled.windows = {0, 9, 0, 0};
  b.host.counters.push_back(throttled);
  const auto moved = counter_changes({&a, 1}, {&b, 1}).moved;
  ASSERT_EQ(moved.size(), 3U);
  EXPECT_EQ(moved[1].what, "cgroup.cpu.throttled_time");
  EXPECT_EQ(moved[1].value[0], 0);
  EXPECT_EQ(moved[0].what, "cgroup.cpu.quota");
  EXPECT_FALSE(moved[0].value[0].has_value());
  EXPECT_EQ(moved[0].value[1], 0.5);
}

TEST(MovedCounters, BeyondTheirSpreadAreListed) {
  const model::Recording a = with_counter(100, 0.02);
  const model::Recording b = with_counter(300, 0.02);
  const auto moved = counter_changes({&a, 1}, {&b, 1}).moved;
  ASSERT_EQ(moved.size(), 1U);
  EXPECT_NEAR(*moved[0].value[1], 300, 1);
}

TEST(MovedCounters, ALowerClockIsASpeedThoughItMovedByLess) {
  model::Recording a = with_counter(3.0e9, 0.002);
  model::Recording b = with_counter(2.5e9, 0.002);
  EXPECT_TRUE(counter_changes({&a, 1}, {&b, 1}).unshown.empty()) << "what was written is none";
  a.host.counters.back().name = b.host.counters.back().name = "host.cpu0.frequency";
  EXPECT_TRUE(counter_changes({&a, 1}, {&b, 1}).moved.empty());
  ASSERT_EQ(counter_changes({&a, 1}, {&b, 1}).unshown.size(), 1U);
  EXPECT_NEAR(*counter_changes({&a, 1}, {&b, 1}).unshown[0].value[1], 2.5e9, 1e7);
  for (double& window : b.host.counters.back().windows) window *= 2.96 / 2.5;
  EXPECT_TRUE(counter_changes({&a, 1}, {&b, 1}).unshown.empty()) << "a hundredth is none";
}

}  // namespace
}  // namespace culprit::compare
