#include "record/syscalls/answer_windows.h"

#include <gtest/gtest.h>

#include <functional>
#include <optional>

namespace culprit::record::syscalls {
namespace {

constexpr Ns kMs = 1'000'000;

/// In how much of `length` requests were looked at that come at rate(t) a second; counted every quarter of a second.
double share(const std::function<double(Ns)>& rate, Ns length, std::optional<double> few) {
  AnswerWindows windows(0, 1, few);
  double requests = 0;
  for (Ns now = kMs; now <= length; now += kMs) {
    requests += rate(now) * 1e-3;
    if (now % AnswerWindows::kPeriod == 0) {
      windows.counted(now, requests);
      requests = 0;
    }
    const auto due = windows.due(now);
    if (due == AnswerWindows::Due::open) windows.opened(now);
    if (due == AnswerWindows::Due::close) windows.closed(now);
  }
  return windows.share(length);
}

TEST(AnswerWindows, WhileThereAreFewAllAreLookedAt) {
  EXPECT_EQ(share([](Ns) { return 9'000.0; }, 10'000 * kMs, 10'000), 1);
}

TEST(AnswerWindows, WhoAsksForAllGetsAll) {
  EXPECT_EQ(share([](Ns) { return 1e6; }, 10'000 * kMs, std::nullopt), 1);
}

TEST(AnswerWindows, OfManyAFifthOfTheTimeIs) {
  EXPECT_NEAR(share([](Ns) { return 50'000.0; }, 100'000 * kMs, 10'000), 0.2, 0.01);
}

TEST(AnswerWindows, WhenTheyBecomeFewAllAreAgainAndNotBeforeTheyAreMuchFewer) {
  const Ns change = 5'000 * kMs;
  const auto falls_to = [&](double rate) {
    return share([=](Ns now) { return now < change ? 50'000 : rate; }, 2 * change, 10'000);
  };
  EXPECT_NEAR(falls_to(4'000), 0.6, 0.05);
  EXPECT_NEAR(falls_to(9'000), 0.2, 0.05);
}

TEST(AnswerWindows, AnswersThatTakeTooLongForThemAreLookedAtAlways) {
  AnswerWindows windows(0, 1, 10'000);
  windows.counted(AnswerWindows::kPeriod, 1e6);
  EXPECT_FALSE(windows.is_whole());
  windows.counted(2 * AnswerWindows::kPeriod, 1e6, true);
  EXPECT_TRUE(windows.is_whole());
}

TEST(AnswerWindows, ACountThatFollowsAtOnceDecidesNothing) {
  AnswerWindows windows(0, 1, 10'000);
  windows.counted(AnswerWindows::kPeriod, 100);
  windows.counted(AnswerWindows::kPeriod + kMs, 40);
  EXPECT_TRUE(windows.is_whole());
  EXPECT_EQ(windows.next(), std::nullopt);
}

}  // namespace
}  // namespace culprit::record::syscalls
