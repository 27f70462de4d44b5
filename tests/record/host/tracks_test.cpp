#include "record/host/tracks.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "record/host/out.h"

namespace culprit::record {
namespace {

using test::out_to;
using test::Samples;

TEST(Tracks, AValueIsWrittenWithItsUnitAndProcess) {
  Samples samples;
  Emitter emitter(out_to(samples));
  Track track{"process.cpu", "count", 42};
  emitter.put(track, 5, 1.5);
  ASSERT_NE(samples.find("process.cpu", 42), nullptr);
  EXPECT_EQ(samples.find("process.cpu", 42)->unit, "count");
  EXPECT_EQ(samples.last("process.cpu", 42), 1.5);
}

TEST(Tracks, EqualValuesAreLeftOutUpToASecond) {
  Samples samples;
  Emitter emitter(out_to(samples));
  Track track{"t", "count"};
  for (int i = 0; i <= 10; ++i) emitter.put(track, i * kSecond / 10, 7);
  const auto& s = samples.find("t")->samples;
  ASSERT_EQ(s.size(), 2u);
  EXPECT_EQ(s[1].at, kSecond);
}

TEST(Tracks, TheLastEqualValueStandsBeforeAChange) {
  Samples samples;
  Emitter emitter(out_to(samples));
  Track track{"t", "count"};
  emitter.put(track, 100, 7);
  emitter.put(track, 200, 7);
  emitter.put(track, 300, 7);
  emitter.put(track, 400, 9);
  const auto& s = samples.find("t")->samples;
  ASSERT_EQ(s.size(), 3u);
  EXPECT_EQ(s[1].at, 300);
  EXPECT_EQ(s[1].value, 7);
  EXPECT_EQ(s[2].value, 9);
}

TEST(Tracks, AFileHasEachValueFromItsBeginOn) {
  Samples samples;
  Emitter emitter(out_to(samples));
  Track same{"same", "count"};
  Track other{"other", "count"};
  emitter.put(same, 100, 7);
  emitter.put(other, 100, 7);
  emitter.put(other, 200, 7);
  emitter.begin_at(500);
  emitter.put(same, 300, 7);
  emitter.put(other, 300, 8);
  ASSERT_EQ(samples.find("same")->samples.size(), 2u);
  EXPECT_EQ(samples.find("same")->samples[1].at, 500);
  ASSERT_EQ(samples.find("other")->samples.size(), 2u);
  EXPECT_EQ(samples.find("other")->samples[1].at, 500);
  EXPECT_EQ(samples.find("other")->samples[1].value, 8);
}

TEST(Tracks, NoNumbersAreCountedAndNotWritten) {
  Samples samples;
  Emitter emitter(out_to(samples));
  Track track{"t", "count"};
  emitter.put(track, 1, std::nan(""));
  emitter.put(track, 2, std::numeric_limits<double>::infinity());
  EXPECT_EQ(emitter.odd(), 2u);
  EXPECT_EQ(samples.find("t"), nullptr);
}

TEST(Tracks, ARateStandsAtTheBeginOfItsInterval) {
  Samples samples;
  Emitter emitter(out_to(samples));
  RateTrack rate{{"r", "bytes/s"}, 512};
  rate.put(emitter, 1 * kSecond, 1000);
  EXPECT_EQ(samples.find("r"), nullptr) << "one reading is no rate";
  rate.put(emitter, 3 * kSecond, 1020);
  ASSERT_NE(samples.find("r"), nullptr);
  EXPECT_EQ(samples.find("r")->samples.front().at, 1 * kSecond);
  EXPECT_DOUBLE_EQ(samples.last("r"), 10 * 512.0);
}

TEST(Tracks, ACounterThatGoesBackBeginsAnew) {
  Samples samples;
  Emitter emitter(out_to(samples));
  RateTrack rate{{"r", "count/s"}};
  rate.put(emitter, 1 * kSecond, 1000);
  rate.put(emitter, 2 * kSecond, 3);
  EXPECT_EQ(samples.find("r"), nullptr);
  EXPECT_EQ(emitter.odd(), 1u);
  rate.put(emitter, 3 * kSecond, 13);
  EXPECT_DOUBLE_EQ(samples.last("r"), 10);
}

TEST(Tracks, ACounterWithAKnownRangeWraps) {
  Samples samples;
  Emitter emitter(out_to(samples));
  RateTrack rate{{"r", "W"}, 1e-6};
  rate.put(emitter, 1 * kSecond, 900'000'000, 1'000'000'000);
  rate.put(emitter, 2 * kSecond, 50'000'000, 1'000'000'000);
  EXPECT_DOUBLE_EQ(samples.last("r"), 150);
  EXPECT_EQ(emitter.odd(), 0u);
}

TEST(Tracks, AClockThatStandsStillGivesNoRate) {
  Samples samples;
  Emitter emitter(out_to(samples));
  RateTrack rate{{"r", "count/s"}};
  rate.put(emitter, kSecond, 1);
  rate.put(emitter, kSecond, 100);
  EXPECT_EQ(samples.find("r"), nullptr);
}

TEST(Tracks, DeviceNamesCannotForgeTrackNames) {
  EXPECT_EQ(track_part("nvme0n1p2"), "nvme0n1p2");
  EXPECT_EQ(track_part("a b\n\x1b[31m/c"), "a_b___31m_c");
  EXPECT_EQ(track_part(std::string(500, 'x')).size(), 32u);
}

}  // namespace
}  // namespace culprit::record
