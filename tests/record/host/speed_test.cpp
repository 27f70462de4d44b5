#include "record/host/speed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "record/host/out.h"

namespace culprit::record {
namespace {

using test::out_to;
using test::Samples;

TEST(Speed, FixedWorkIsTimedFourTimesASecond) {
  Samples samples;
  Emitter emitter{out_to(samples)};
  SpeedProbes probes;
  Ns at = 1;
  for (int i = 0; i < 40; ++i, at += SpeedProbes::kEvery / 2) probes.sample(at, emitter);
  std::size_t seen = 0;
  for (const char* name : {"host.speed.arithmetic", "host.speed.memory", "host.speed.branches"}) {
    const auto& series = samples.series[{name, 0}];
    EXPECT_EQ(series.unit, "ns");
    EXPECT_LE(series.samples.size(), 20U) << name;
    for (const auto& sample : series.samples) EXPECT_GT(sample.value, 0) << name;
    seen += series.samples.size();
  }
  EXPECT_GT(seen, 0U);
  // Each CPU's own are those that were done there.
  std::size_t of_cpus = 0;
  for (const auto& [key, series] : samples.series)
    if (key.first.starts_with("host.cpu")) {
      EXPECT_TRUE(key.first.ends_with(".speed.branches")) << key.first;
      EXPECT_EQ(series.unit, "ns");
      of_cpus += series.samples.size();
    }
  if (!samples.series[{"host.speed.branches", 0}].samples.empty()) {
    EXPECT_GT(of_cpus, 0U);
  }
  EXPECT_LE(of_cpus, 20U);
  EXPECT_LE(seen + probes.preempted(), 60U);
}

}  // namespace
}  // namespace culprit::record
