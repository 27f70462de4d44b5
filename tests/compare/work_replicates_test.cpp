// Programs without steps, several recordings of each side: how much recordings of the same differ is measured then.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "compare/work.h"
#include "core/units.h"

namespace culprit::compare {
namespace {

using model::Outcome;

constexpr Ns kDay = 1'790'000'000 * kSecond;

/// Twelve seconds of a thread that is never idle: `unit_ns` is what it works for each answer, and how often one comes.
/// `begin`: since kDay.
model::Recording busy(double unit_ns, Ns begin) {
  model::Recording r;
  r.files = {"x.pftrace"};
  model::WorkUnits& work = r.work.emplace();
  work.recorded = true;
  work.base = kDay;
  work.program = "server";
  work.programs = {"server"};
  work.seconds = 12;
  model::WorkUnit& unit = work.units.emplace_back();
  unit.kind = model::UnitKind::request;
  unit.process = "server";
  unit.receive = "read";
  unit.send = "write";
  unit.confidence = 0.9;
  for (int i = 0; i < 12; ++i) {
    model::WorkWindow& window = work.windows.emplace_back();
    window.begin = begin + i * kSecond;
    window.end = window.begin + kSecond;
    window.on_cpu = 1e9;
    unit.per_window.push_back(1e9 / unit_ns);
    unit.count += static_cast<std::uint64_t>(1e9 / unit_ns);
  }
  return r;
}

enum class Order : std::uint8_t { in_turns, one_side_first };

using Sides = std::array<std::vector<model::Recording>, 2>;

/// `n` recordings of each side, which spread by `between`; the candidate's units take `slower` times as long.
Sides recorded_twice(std::size_t n, double between, double slower, std::mt19937_64& random,
                     Order order = Order::in_turns) {
  std::normal_distribution<double> gauss;
  Sides sides;
  for (std::size_t r = 0; r < n; ++r)
    for (std::size_t s = 0; s < 2; ++s) {
      const std::size_t place = order == Order::in_turns ? 2 * r + s : r + s * n;
      sides[s].push_back(
          busy(1e6 * (s == 0 ? 1 : slower) * std::exp(between * gauss(random)), static_cast<Ns>(place) * 30 * kSecond));
    }
  return sides;
}

TEST(WorkReplicates, OfTheSameRaiseNoAlarmHoweverMuchTheyDiffer) {
  std::mt19937_64 random(1);
  constexpr int kPairs = 400;
  for (const double between : {0.01, 0.05, 0.1})
    for (const std::size_t n : {3U, 5U}) {
      int alarms = 0;
      int held = 0;
      for (int pair = 0; pair < kPairs; ++pair) {
        const Sides sides = recorded_twice(n, between, 1, random);
        const model::WorkComparison c = compare_work(sides[0], sides[1]);
        alarms += c.outcome == Outcome::regression || c.outcome == Outcome::improvement ? 1 : 0;
        held += c.throughput.low <= 0 && c.throughput.high >= 0 ? 1 : 0;
      }
      EXPECT_LE(alarms, kPairs / 20) << between << ", " << n;
      EXPECT_GE(held, kPairs * 92 / 100) << between << ", " << n;
    }
}

TEST(WorkReplicates, OfTheSameWithoutDriftAreNoChangeAtFivePercentMostly) {
  std::mt19937_64 random(2);
  constexpr int kPairs = 200;
  WorkOptions options;
  options.tolerance = 0.05;
  for (const std::size_t n : {3U, 5U}) {
    int no_change = 0;
    for (int pair = 0; pair < kPairs; ++pair) {
      const Sides sides = recorded_twice(n, 0.01, 1, random);
      no_change += compare_work(sides[0], sides[1], options).outcome == Outcome::no_change ? 1 : 0;
    }
    EXPECT_GE(no_change, kPairs / 2) << n;
  }
}

TEST(WorkReplicates, FindWhatIsLargeAgainstTheirDifferences) {
  std::mt19937_64 random(3);
  int found = 0;
  int found_by_one = 0;
  constexpr int kPairs = 100;
  for (int pair = 0; pair < kPairs; ++pair) {
    const Sides sides = recorded_twice(3, 0.01, 1.12, random);
    found += compare_work(sides[0], sides[1]).outcome == Outcome::regression ? 1 : 0;
    const std::span<const model::Recording> a = sides[0];
    const std::span<const model::Recording> b = sides[1];
    found_by_one += compare_work(a.first(1), b.first(1)).outcome == Outcome::regression ? 1 : 0;
  }
  EXPECT_GE(found, kPairs * 9 / 10);
  EXPECT_EQ(found_by_one, 0) << "two recordings of the same are assumed to differ by 5 %";
}

TEST(WorkReplicates, SayWhatWasMeasured) {
  std::mt19937_64 random(4);
  const Sides sides = recorded_twice(5, 0.02, 1, random);
  const model::WorkComparison c = compare_work(sides[0], sides[1]);
  EXPECT_EQ(c.recordings, (std::array<std::size_t, 2>{5, 5}));
  EXPECT_EQ(c.earlier, 0U);
  EXPECT_GT(c.between, 0.005);
  EXPECT_LT(c.between, 0.05);
  EXPECT_GT(c.smallest_seen, 0.03);
  EXPECT_EQ(assumption_of(c), "");
  const model::WorkComparison two = compare_work(std::span(sides[0]).first(2), std::span(sides[1]).first(2));
  EXPECT_EQ(two.recordings, (std::array<std::size_t, 2>{0, 0}));
  EXPECT_EQ(two.between, 0.05);
  EXPECT_EQ(assumption_of(two), "two recordings of the same differ by 5 % (standard deviation)");
}

TEST(WorkReplicates, OneSideAfterTheOtherLeavesRoomForDrift) {
  std::mt19937_64 random(5);
  const Sides sides = recorded_twice(3, 0.001, 1.12, random, Order::one_side_first);
  const model::WorkComparison c = compare_work(sides[0], sides[1]);
  EXPECT_EQ(c.outcome, Outcome::inconclusive);
  EXPECT_EQ(assumption_of(c), "sides that were not recorded in turns differ by 5 % more (standard deviation)");
  const Sides in_turns = recorded_twice(3, 0.001, 1.12, random);
  EXPECT_EQ(compare_work(in_turns[0], in_turns[1]).outcome, Outcome::regression);
}

TEST(WorkReplicates, HoursApartTheyDifferMore) {
  const auto judged = [](Ns apart) {
    std::array<std::vector<model::Recording>, 2> sides;
    sides[0].push_back(busy(1e6, 0));
    sides[1].push_back(busy(1.2e6, apart));
    EXPECT_EQ(work_far_apart(sides[0], sides[1]), apart > 5 * 60 * kSecond);
    return compare_work(sides[0], sides[1]);
  };
  const model::WorkComparison near = judged(60 * kSecond);
  EXPECT_EQ(near.outcome, Outcome::regression);
  EXPECT_EQ(near.between, 0.05);
  const model::WorkComparison far = judged(3600 * kSecond);
  EXPECT_EQ(far.outcome, Outcome::inconclusive);
  EXPECT_EQ(assumption_of(far), "two recordings of the same differ by 15 % (standard deviation)");
}

}  // namespace
}  // namespace culprit::compare
