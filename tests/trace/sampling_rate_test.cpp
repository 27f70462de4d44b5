#include "trace/sampling_rate.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace culprit {
namespace {

Trace with(std::vector<std::pair<std::string, std::string>> metadata) {
  Trace trace;
  trace.ranks.resize(2);
  trace.ranks[1].metadata = std::move(metadata);
  return trace;
}

TEST(SamplingRates, AreThoseThatTheRecorderTells) {
  const auto rates = sampling_rates(
      with({{"samples.rate_hz", "99"}, {"samples.mean_rate_hz", "48.7"}, {"samples.lowest_rate_hz", "24.8"}}));
  ASSERT_TRUE(rates);
  EXPECT_EQ(rates->asked, 99);
  EXPECT_EQ(rates->mean, 48.7);
  EXPECT_EQ(rates->lowest, 24.8);
  EXPECT_TRUE(was_lowered(*rates));
  EXPECT_EQ(to_string(*rates), "48.7 a second and CPU on average, 24.8 at least, of 99");
}

TEST(SamplingRates, TheRateThatWasWishedIsNotLowered) {
  const auto rates = sampling_rates(
      with({{"samples.rate_hz", "99"}, {"samples.mean_rate_hz", "99.0"}, {"samples.lowest_rate_hz", "99.0"}}));
  ASSERT_TRUE(rates);
  EXPECT_FALSE(was_lowered(*rates));
}

TEST(SamplingRates, OfOthersAndOfKilledRecordersAreUnknown) {
  EXPECT_FALSE(sampling_rates(Trace()));
  EXPECT_FALSE(sampling_rates(with({{"samples.rate_hz", "99"}})));
  EXPECT_FALSE(sampling_rates(
      with({{"samples.rate_hz", "99"}, {"samples.mean_rate_hz", "x"}, {"samples.lowest_rate_hz", "1"}})));
}

}  // namespace
}  // namespace culprit
