// The rate at which stacks are taken, with costs and clocks that are made up.
#include "record/samples/sampling_rate.h"

#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "core/units.h"

namespace culprit::record::samples {
namespace {

constexpr unsigned kHz = 99;

/// So many rounds alike, whose stacks took a share of one CPU.
std::vector<Round> alike(double share, unsigned every = 1, std::size_t count = kRounds) {
  return std::vector<Round>(count, {static_cast<Ns>(share * kSecond), kSecond, every});
}

/// One round after the other: `cost` gives the ns that one stack takes in a round, `cpus` are busy all the time.
std::vector<unsigned> simulate(SamplingRate& rate, const std::function<double(int)>& cost, int rounds, int cpus = 2) {
  std::vector<unsigned> every;
  for (int i = 0; i < rounds; ++i) {
    rate.round_ended(static_cast<Ns>(cost(i) * cpus * kHz / rate.every()), kSecond);
    every.push_back(rate.every());
  }
  return every;
}

TEST(NextEvery, WhatIsCheapIsAskedEachTime) {
  EXPECT_EQ(next_every(alike(0), kHz), 1U);
  EXPECT_EQ(next_every(alike(0.9 * kMostShare), kHz), 1U);
}

TEST(NextEvery, WhatTakesTooMuchIsAskedRarerAtOnceUntilItTakesItsShare) {
  EXPECT_EQ(next_every(alike(1.01 * kMostShare), kHz), 2U);
  EXPECT_EQ(next_every(alike(3.5 * kMostShare), kHz), 4U);
  EXPECT_EQ(next_every(alike(2 * kMostShare, 2), kHz), 4U) << "what it takes is of one ask in two";
}

TEST(NextEvery, NeverBelowTheLowestRate) {
  EXPECT_EQ(next_every(alike(50), kHz), 9U);
  EXPECT_GE(kHz / next_every(alike(50), kHz), kLowestHz);
  EXPECT_EQ(next_every(alike(50), 1000), 100U);
  EXPECT_EQ(next_every(alike(50), kLowestHz), 1U);
  EXPECT_EQ(next_every(alike(50), 1), 1U) << "a rate that was wished is not raised";
}

TEST(NextEvery, OftenerAgainWhenAFifthIsLeftAtMostTwiceInARound) {
  // Of every second ask just what is allowed: one of two stays.
  EXPECT_EQ(next_every(alike(0.95 * kMostShare / 2, 2), kHz), 2U) << "each ask would take nearly all";
  EXPECT_EQ(next_every(alike(0.75 * kMostShare / 2, 2), kHz), 1U);
  EXPECT_EQ(next_every(alike(0, 9), kHz), 5U);
  EXPECT_EQ(next_every(alike(0, 5), kHz), 3U);
  EXPECT_EQ(next_every(alike(0, 3), kHz), 2U);
  EXPECT_EQ(next_every(alike(0, 2), kHz), 1U);
}

TEST(NextEvery, NothingChangesBeforeEnoughIsKnown) {
  EXPECT_EQ(next_every({}, kHz), 1U);
  EXPECT_EQ(next_every(alike(50, 1, kRounds - 1), kHz), 1U);
  EXPECT_EQ(next_every(alike(0, 4, kRounds - 1), kHz), 4U);
}

TEST(NextEvery, OneRoundAloneChangesNothing) {
  std::vector<Round> rounds = alike(0.1 * kMostShare);
  rounds[0].cpu = 100 * kSecond;
  EXPECT_EQ(next_every(rounds, kHz), 1U) << "code that is met first";
  rounds[1].cpu = 100 * kSecond;
  EXPECT_EQ(next_every(rounds, kHz), 9U);
}

TEST(NextEvery, RoundsOfAnyLengthCountByTheirShare) {
  std::vector<Round> rounds = alike(3.5 * kMostShare);
  for (Round& round : rounds) {
    round.cpu *= 5;
    round.wall *= 5;
  }
  EXPECT_EQ(next_every(rounds, kHz), 4U);
  for (Round& round : rounds) round.wall = 0;
  EXPECT_EQ(next_every(rounds, kHz), 9U) << "a clock that stands still";
}

TEST(SamplingRate, SettlesBelowItsShareAndComesBack) {
  SamplingRate rate(kHz);
  const double dear = 2.9 * kMostShare * kSecond / (2 * kHz);  // ns
  const auto every = simulate(
      rate, [&](int i) { return i < 10 ? dear : dear / 100; }, 20);
  EXPECT_EQ(every[1], 1U);
  for (std::size_t i = 3; i < 10; ++i) EXPECT_EQ(every[i], 3U) << i;
  EXPECT_EQ(every.back(), 1U);
  EXPECT_DOUBLE_EQ(rate.used().lowest_hz, 33);
}

TEST(SamplingRate, StaysWhereItIsWhenTheCostDoes) {
  for (double share = 0.1; share < 12; share += 0.1) {
    SamplingRate rate(kHz);
    const double cost = share * kMostShare * kSecond / (2 * kHz);
    const auto every = simulate(
        rate, [&](int) { return cost; }, 12);
    for (std::size_t i = kRounds; i < every.size(); ++i) EXPECT_EQ(every[i], every[kRounds - 1]) << share;
    if (every.back() < kHz / kLowestHz) {
      EXPECT_LE(share / every.back(), 1 + 1e-6);
    }
  }
}

TEST(SamplingRate, TheMeanIsOverTheTime) {
  SamplingRate rate(100);
  EXPECT_DOUBLE_EQ(rate.used().mean_hz, 100) << "before the first round ended";
  for (int i = 0; i < 3; ++i) rate.round_ended(static_cast<Ns>(2 * kMostShare * kSecond), kSecond);
  ASSERT_EQ(rate.every(), 2U);
  EXPECT_DOUBLE_EQ(rate.used().mean_hz, 100);
  EXPECT_DOUBLE_EQ(rate.used().lowest_hz, 100) << "no round had the lower one yet";
  rate.round_ended(static_cast<Ns>(kMostShare * kSecond), kSecond);
  EXPECT_DOUBLE_EQ(rate.used().mean_hz, 87.5);
  EXPECT_DOUBLE_EQ(rate.used().lowest_hz, 50);
  rate.round_ended(kSecond, 0);
  EXPECT_DOUBLE_EQ(rate.used().mean_hz, 87.5) << "a round that did not last is none";
}

}  // namespace
}  // namespace culprit::record::samples
