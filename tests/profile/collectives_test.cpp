#include "profile/collectives.h"

#include <gtest/gtest.h>

#include <cmath>

#include "support/trace_maker.h"

namespace culprit::profile {
namespace {

using testing_support::TraceMaker;

constexpr const char* kName = "ncclDevKernel_AllReduce_Sum_f16_RING_LL";

/// Ranks with one cycle each, [0, 1 ms) on the clock of the rank.
class Ranks {
 public:
  explicit Ranks(std::size_t n, Ns ahead = 0) : ahead_(ahead) {
    for (std::size_t r = 0; r < n; ++r) {
      if (r > 0) maker_.rank(static_cast<std::int64_t>(r));
      streams_.push_back(maker_.stream(0, 7, static_cast<std::uint16_t>(r)));
      model::Cycle cycle;
      cycle.number = 1;
      cycle.rank = static_cast<std::uint16_t>(r);
      cycle.period = 1'000'000;
      found_.cycles.cycles.push_back(cycle);
    }
  }
  void call(std::size_t rank, Ns begin, Ns end, const char* name = kName, std::uint64_t elements = 0) {
    const SliceIndex slice = maker_.gpu(streams_[rank], "kernel", name, begin + (rank == 1 ? ahead_ : 0), end - begin);
    if (elements > 0) maker_.extra(slice).elements = elements;
    found_.cycle_of_slice.push_back(static_cast<std::uint32_t>(rank));
  }
  cycles::Found& found() { return found_; }
  Trace& trace() { return maker_.trace(); }
  std::vector<model::RankCollectives> measure() { return collectives_of(maker_.trace(), found_); }

 private:
  TraceMaker maker_;
  std::vector<TrackId> streams_;
  cycles::Found found_;
  Ns ahead_;
};

TEST(Collectives, TheLastToComeHoldsTheOthersUp) {
  Ranks ranks(3);
  ranks.call(0, 100'000, 400'000);
  ranks.call(1, 120'000, 400'000);
  ranks.call(2, 300'000, 400'000);
  const auto sums = ranks.measure();
  ASSERT_EQ(sums.size(), 3U);
  EXPECT_EQ(sums[0].wait_ns, 200'000);
  EXPECT_EQ(sums[1].wait_ns, 180'000);
  EXPECT_EQ(sums[2].wait_ns, 0);
  for (const auto& sum : sums) EXPECT_EQ(sum.transfer_ns, 100'000);
  EXPECT_EQ(sums[2].held_up_ns, 180'000) << "from the last but one's begin";
  EXPECT_EQ(sums[0].held_up_ns, 0);
  EXPECT_EQ(sums[0].cycles, 1U);
  EXPECT_EQ(sums[0].calls, 1U);
}

TEST(Collectives, ClocksThatDifferAreTakenOff) {
  Ranks ranks(2, 7'000'000);
  for (const Ns at : {100'000, 300'000, 500'000}) {
    ranks.call(0, at, at + 100'000);
    ranks.call(1, at + 20'000, at + 100'000);
  }
  const auto sums = ranks.measure();
  ASSERT_EQ(sums.size(), 2U);
  EXPECT_EQ(sums[0].wait_ns, 60'000);
  EXPECT_EQ(sums[1].held_up_ns, 60'000);
}

TEST(Collectives, ARankWithMoreCallsThanTheOthersIsLeftOut) {
  Ranks ranks(3);
  ranks.call(0, 100'000, 200'000);
  ranks.call(0, 300'000, 400'000);
  ranks.call(1, 100'000, 200'000);
  ranks.call(2, 120'000, 200'000);
  const auto sums = ranks.measure();
  ASSERT_EQ(sums.size(), 2U);
  for (const auto& sum : sums) EXPECT_EQ(sum.calls, 1U);
  EXPECT_EQ(sums[0].wait_ns, 20'000);
}

TEST(Collectives, ClocksOfTwoNodesAreKnownByTheFewCallsBetweenThem) {
  constexpr Ns kAhead = 10'000'000;
  Ranks ranks(8);
  const auto shared = [&](std::size_t from, std::size_t to, Ns begin, const char* name) {
    for (std::size_t r = from; r < to; ++r) {
      const Ns ahead = r < 4 ? 0 : kAhead;
      const Ns late = r == 7 && to - from == 8 ? 10'000 : 0;
      ranks.call(r, begin + ahead + late, begin + ahead + 50'000, name);
    }
  };
  for (Ns i = 0; i < 8; ++i) {
    shared(0, 4, i * 60'000, "ncclDevKernel_AllReduce_Sum_bf16_RING_LL");
    shared(4, 8, i * 60'000, "ncclDevKernel_AllReduce_Sum_f32_RING_LL");
  }
  shared(0, 8, 600'000, kName);
  const auto sums = ranks.measure();
  ASSERT_EQ(sums.size(), 8U);
  for (const auto& sum : sums) EXPECT_EQ(sum.calls, 9U);
  EXPECT_EQ(sums[0].wait_ns, 10'000);
  EXPECT_EQ(sums[4].wait_ns, 10'000);
  EXPECT_EQ(sums[7].wait_ns, 0);
  EXPECT_EQ(sums[7].held_up_ns, 10'000);
}

TEST(Collectives, EachStepTellsWhatWasSent) {
  Ranks ranks(2);
  for (const std::size_t rank : {0U, 1U}) {
    ranks.call(rank, 100'000, 200'000, kName, 500);
    ranks.call(rank, 300'000, 400'000, kName, 700);
    model::Cycle without = ranks.found().cycles.cycles[rank];
    without.number = 2;
    ranks.found().cycles.cycles.push_back(without);
  }
  const auto sums = ranks.measure();
  ASSERT_EQ(sums.size(), 2U);
  EXPECT_EQ(sums[0].cycles, 2U);
  ASSERT_EQ(sums[0].steps.size(), 2U);
  EXPECT_EQ(sums[0].steps[0].number, 1U);
  EXPECT_EQ(sums[0].steps[0].calls, 2U);
  EXPECT_EQ(sums[0].steps[0].elements, 1200);
  EXPECT_EQ(sums[0].steps[0].transfer_ns, 200'000);
  EXPECT_EQ(sums[0].steps[1].number, 2U);
  EXPECT_EQ(sums[0].steps[1].calls, 0U);
}

TEST(Collectives, OneCallThatDoesNotTellItsSizeHidesTheSum) {
  Ranks ranks(2);
  for (const std::size_t rank : {0U, 1U}) {
    ranks.call(rank, 100'000, 200'000, kName, 500);
    ranks.call(rank, 300'000, 400'000);
  }
  EXPECT_TRUE(std::isnan(ranks.measure()[0].steps[0].elements));
}

TEST(Collectives, RanksHaveTheirNumbers) {
  Ranks ranks(2);
  ranks.trace().ranks[0].rank = 2;
  ranks.trace().ranks[1].rank = 10;
  for (const std::size_t rank : {0U, 1U}) ranks.call(rank, 100'000, 200'000);
  const auto sums = ranks.measure();
  ASSERT_EQ(sums.size(), 2U);
  EXPECT_EQ(sums[0].rank, 2);
  EXPECT_EQ(sums[1].rank, 10);
}

TEST(Collectives, WhatDoesNotEndTogetherWasNone) {
  Ranks ranks(2);
  ranks.call(0, 100'000, 200'000);
  ranks.call(1, 100'000, 200'000);
  ranks.call(0, 300'000, 400'000);
  ranks.call(1, 300'000, 400'000);
  ranks.call(0, 500'000, 520'000);
  ranks.call(1, 700'000, 900'000);
  EXPECT_EQ(ranks.measure()[0].calls, 2U);
}

TEST(Collectives, OtherKernelsPartialCyclesAndSingleRanksHaveNone) {
  Ranks other(2);
  other.call(0, 100'000, 200'000, "gemm");
  other.call(1, 100'000, 200'000, "gemm");
  EXPECT_TRUE(other.measure().empty());
  Ranks partial(2);
  partial.call(0, 100'000, 200'000);
  partial.call(1, 100'000, 200'000);
  partial.found().cycles.cycles[1].partial = true;
  EXPECT_TRUE(partial.measure().empty());
  Ranks alone(1);
  alone.call(0, 100'000, 200'000);
  EXPECT_TRUE(alone.measure().empty());
}

}  // namespace
}  // namespace culprit::profile
