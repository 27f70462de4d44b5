// Which steps of several ranks belong together: told by the collectives that they leave together.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <string>

#include "cycles/find.h"
#include "support/trace_maker.h"

namespace culprit::cycles {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using testing_support::TraceMaker;

/// Steps of a training run: how long each took, in microseconds.
constexpr std::array<Ns, 12> kUneven = {1000, 1340, 980, 1120, 1005, 1610, 1044, 991, 1203, 1017, 1490, 1066};
constexpr std::array<Ns, 12> kEven = {1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000};

struct RankPlan {
  std::size_t first = 0;  ///< step at which the recording begins
  std::size_t last = 11;
  Ns clock = 0;               ///< what its clock shows more than the true time
  bool lost_first = false;    ///< the first collective of its first step was before the recording
  std::size_t no_calls = 99;  ///< a step whose collectives were lost
};

/// Steps without numbers in their names; two all-reduces per step that end at the same true time on every rank.
Trace run(const std::array<Ns, 12>& lengths, const std::vector<RankPlan>& plans, const char* group = "0") {
  TraceMaker maker;
  for (std::size_t r = 0; r < plans.size(); ++r) {
    const std::uint16_t rank = r == 0 ? std::uint16_t{0} : maker.rank(static_cast<std::int64_t>(r));
    const TrackId thread = maker.thread(100, 1, rank);
    const TrackId stream = maker.stream(0, 7, rank);
    const RankPlan& plan = plans[r];
    Ns at = 0;
    std::uint32_t correlation = 0;
    for (std::size_t step = 0; step < lengths.size(); ++step) {
      const Ns length = lengths[step] * 1000;
      if (step >= plan.first && step <= plan.last) {
        maker.slice(thread, "user_annotation", "train_step", at + plan.clock, length - 1000);
        for (const int call : {0, 1}) {
          if (step == plan.no_calls || (call == 0 && plan.lost_first && step == plan.first)) continue;
          const Ns end = at + length * (call + 1) / 3;
          const Ns late = static_cast<Ns>(r) * 20'000;  // the rank that comes later waits less
          const SliceIndex launcher =
              maker.slice(thread, "cuda_runtime", "cudaLaunchKernel", at + plan.clock + 5000 + call, 1, ++correlation);
          const SliceIndex kernel = maker.gpu(stream, "kernel", "ncclDevKernel_AllReduce_Sum_bf16_RING_LL",
                                              end - 100'000 + late + plan.clock, 100'000 - late, launcher);
          maker.extra(kernel).group = maker.trace().strings.intern(group);
        }
      }
      at += length;
    }
  }
  return std::move(maker.trace());
}

struct Numbered {
  std::map<std::uint16_t, std::vector<std::uint32_t>> numbers;  // by rank
  std::vector<std::string> notes;
};

Numbered numbers_of(const Trace& trace) {
  auto found = find_cycles(trace, order_slices(trace), {});
  EXPECT_TRUE(found.ok());
  Numbered out;
  for (const model::Cycle& c : found->cycles.cycles) out.numbers[c.rank].push_back(c.number);
  out.notes = found->cycles.notes;
  return out;
}

TEST(RankAlignment, OneClockAndAllSteps) {
  const Numbered n = numbers_of(run(kUneven, {{}, {}}));
  EXPECT_EQ(n.numbers.at(0), n.numbers.at(1));
  EXPECT_EQ(n.numbers.at(0).size(), 12U);
}

TEST(RankAlignment, ARankThatBeganLaterIsShifted) {
  for (const auto& lengths : {kUneven, kEven}) {
    const Numbered n = numbers_of(run(lengths, {{}, {.first = 3}}));
    EXPECT_EQ(n.numbers.at(0).front(), 1U);
    EXPECT_EQ(n.numbers.at(1).front(), 4U);
    EXPECT_EQ(n.numbers.at(1).back(), 12U);
  }
}

TEST(RankAlignment, TheFirstRankMayBeTheLateOne) {
  const Numbered n = numbers_of(run(kUneven, {{.first = 2}, {}, {.first = 1, .last = 9}}));
  EXPECT_EQ(n.numbers.at(0).front(), 3U);
  EXPECT_EQ(n.numbers.at(1).front(), 1U);
  EXPECT_EQ(n.numbers.at(2).front(), 2U);
  EXPECT_EQ(n.numbers.at(2).back(), 10U);
}

TEST(RankAlignment, ClocksMayDifferByManySteps) {
  for (const Ns clock : {Ns{-7'300'000}, Ns{450'000}, Ns{5'000'000'000}}) {
    const Numbered n = numbers_of(run(kUneven, {{}, {.first = 2, .clock = clock}}));
    EXPECT_EQ(n.numbers.at(1).front(), 3U) << "clock " << clock;
    EXPECT_EQ(n.numbers.at(1).size(), 10U);
  }
}

TEST(RankAlignment, AClockThatIsOffIsSaid) {
  EXPECT_THAT(numbers_of(run(kUneven, {{}, {.clock = 5'000'000}})).notes,
              Contains(HasSubstr("clock of rank 1 is 5.000ms ahead of that of rank 0")));
  EXPECT_THAT(numbers_of(run(kUneven, {{}, {}})).notes, Not(Contains(HasSubstr("clock"))));
}

TEST(RankAlignment, AMissingFirstCollectiveShiftsNothing) {
  const Numbered n = numbers_of(run(kUneven, {{}, {.clock = 2'000'000, .lost_first = true}}));
  EXPECT_EQ(n.numbers.at(0), n.numbers.at(1));
  const Numbered later = numbers_of(run(kUneven, {{}, {.first = 4, .lost_first = true}}));
  EXPECT_EQ(later.numbers.at(1).front(), 5U);
}

TEST(RankAlignment, AStepWithoutCollectivesShiftsNothing) {
  const Numbered n = numbers_of(run(kUneven, {{}, {.clock = -3'000'000, .no_calls = 5}}));
  EXPECT_EQ(n.numbers.at(0), n.numbers.at(1));
}

TEST(RankAlignment, EvenStepsAndStrangeClocksAreNotGuessed) {
  // Every shift fits and no clock tells: the k-th cycles are put together, and a note says so.
  const Numbered n = numbers_of(run(kEven, {{}, {.first = 2, .clock = 5'000'400'000}}));
  EXPECT_EQ(n.numbers.at(1).front(), 1U);
  EXPECT_THAT(n.notes, Contains(HasSubstr("counted from the first of each")));
}

TEST(RankAlignment, OtherCommunicatorsSayNothing) {
  Trace trace = run(kUneven, {{}, {.first = 3}});
  const StringId other = trace.strings.intern("other group");
  for (std::size_t i = 0; i < trace.slices.size(); ++i)
    if (trace.slices[i].rank == 1 && trace.slices[i].extra != kNone) trace.extras[trace.slices[i].extra].group = other;
  const Numbered n = numbers_of(trace);
  EXPECT_EQ(n.numbers.at(1).front(), 1U);
  EXPECT_THAT(n.notes, Contains(HasSubstr("shares no collectives")));
}

TEST(RankAlignment, NoRankIsCutByAnothersClock) {
  const Trace trace = run(kUneven, {{}, {.clock = 400'000}});
  auto found = find_cycles(trace, order_slices(trace), {});
  ASSERT_TRUE(found.ok());
  for (std::size_t i = 0; i < trace.slices.size(); ++i) {
    const std::uint32_t c = found->cycle_of_slice[i];
    if (c != kNone) {
      EXPECT_EQ(found->cycles.cycles[c].rank, trace.slices[i].rank);
    }
  }
  Ns at = 400'000;
  std::size_t step = 0;
  for (const model::Cycle& c : found->cycles.cycles) {
    if (c.rank != 1) continue;
    EXPECT_EQ(c.begin, at);
    at += kUneven[step++] * 1000;
  }
}

TEST(RankAlignment, ClocksMayBeFurtherApartThanAnyTime) {
  constexpr Ns kFar = 5'000'000'000'000'000'000;
  const Numbered n = numbers_of(run(kUneven, {{.clock = -kFar}, {.first = 2, .clock = kFar}}));
  EXPECT_EQ(n.numbers.at(1).size(), 10U);
  EXPECT_THAT(n.notes, Contains(HasSubstr("counted from the first of each")));
}

}  // namespace
}  // namespace culprit::cycles
