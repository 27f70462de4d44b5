// What a cycle is: its phase and workload, whether it is a whole one, or one of warming up.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "cycles/find.h"
#include "cycles/found.h"
#include "support/trace_maker.h"

namespace culprit::cycles {
namespace {

using model::Phase;
using testing_support::TraceMaker;

struct Text {
  const char* name = "";
  Ns at = 0;  ///< from the begin of the step on
};

/// Five steps; further ranges inside each, in the order of the file.
std::vector<model::Cycle> steps_with(const std::string& marker, const std::vector<Text>& ranges) {
  TraceMaker maker;
  const TrackId thread = maker.thread(1, 1);
  for (int i = 0; i < 5; ++i) {
    maker.slice(thread, "user_annotation", "iteration " + std::to_string(i) + marker, i * 1000, 900);
    for (const Text& range : ranges) maker.slice(thread, "user_annotation", range.name, i * 1000 + range.at, 50);
  }
  std::vector<model::Cycle> cycles = cycles_in(maker.trace()).cycles;
  EXPECT_EQ(cycles.size(), 5U);
  return cycles;
}

TEST(Workload, OfTheMarkerComesBeforeThatOfRangesInside) {
  for (const model::Cycle& c : steps_with(" batch=64", {{"prefetch batch=3", 100}})) {
    EXPECT_EQ(c.workload.batch, 64);
    EXPECT_EQ(c.phase, Phase::other);
  }
}

TEST(Workload, OfTheMarkerGoesWithThePhaseOfARangeInside) {
  for (const model::Cycle& c : steps_with(" batch=64", {{"decode batch=3", 100}})) {
    EXPECT_EQ(c.workload.batch, 64);
    EXPECT_EQ(c.phase, Phase::decode);
  }
}

TEST(Workload, OfTheEarliestRangeInsideCountsWhateverTheOrderInTheFile) {
  for (const model::Cycle& c : steps_with("", {{"prefetch batch=2", 500}, {"prefetch batch=8", 100}}))
    EXPECT_EQ(c.workload.batch, 8);
}

TEST(Workload, OfARangeThatTellsThePhaseComesFirst) {
  const std::vector<Text> ranges = {{"decode batch=2", 500}, {"decode batch=8", 100}, {"prefetch batch=3", 10}};
  for (const model::Cycle& c : steps_with("", ranges)) {
    EXPECT_EQ(c.workload.batch, 8);
    EXPECT_EQ(c.phase, Phase::decode);
  }
}

/// Steps that last as long, one after the other.
Trace steps_of(const std::vector<Ns>& lengths) {
  TraceMaker maker;
  const TrackId thread = maker.thread(1, 1);
  Ns at = 0;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    maker.slice(thread, "user_annotation", "ProfilerStep#" + std::to_string(i), at, lengths[i] - 10);
    at += lengths[i];
  }
  return std::move(maker.trace());
}

TEST(WarmUp, IsWhatTheSpreadOfLaterStepsDoesNotExplain) {
  // Medians 1000 and 975; half of the later ones are within 100 and 75 of it, and six times as much is allowed.
  const std::vector<Ns> odd = {800, 1100, 950, 1000, 1200, 1050, 900, 1000};
  const std::vector<Ns> even = {800, 1100, 950, 1000, 1050, 900, 1000};
  for (const auto& [later, first, warm] : {std::tuple(odd, Ns{1590}, false), std::tuple(odd, Ns{1610}, true),
                                           std::tuple(even, Ns{1420}, false), std::tuple(even, Ns{1430}, true)}) {
    std::vector<Ns> lengths = {first};
    lengths.insert(lengths.end(), later.begin(), later.end());
    const model::Cycles cycles = cycles_in(steps_of(lengths));
    EXPECT_EQ(cycles.cycles[0].warm_up, warm) << first;
    EXPECT_FALSE(cycles.cycles[1].warm_up) << first;
  }
}

TEST(WarmUp, EndsWithTheFirstQuarterOfManySteps) {
  constexpr std::size_t kSteps = 20'000;
  std::vector<Ns> lengths(kSteps, 1000);
  std::fill_n(lengths.begin(), kSteps / 3, 2000);
  const model::Cycles cycles = cycles_in(steps_of(lengths));
  EXPECT_EQ(std::ranges::count(cycles.cycles, true, &model::Cycle::warm_up), static_cast<std::ptrdiff_t>(kSteps / 4));
  EXPECT_EQ(std::ranges::count(cycles.cycles, true, &model::Cycle::partial), 0);
}

/// A prefill before every two decodes.
Trace served(int steps) {
  TraceMaker maker;
  const TrackId thread = maker.thread(1, 1);
  for (int i = 0; i < steps; ++i)
    maker.slice(thread, "user_annotation", i % 3 == 0 ? "step[EXTEND bs=1 toks=64]" : "step[DECODE bs=2 toks=2]",
                i * 100, 90);
  return std::move(maker.trace());
}

TEST(Chosen, TheLastOfAPhaseIsWholeWhereAnotherStepFollowed) {
  FindOptions options;
  options.phase = Phase::decode;
  EXPECT_EQ(model::whole_periods(cycles_in(served(7), options)), (std::vector<bool>{true, true, true, true}));
  EXPECT_EQ(model::whole_periods(cycles_in(served(6), options)), (std::vector<bool>{true, true, true, false}));
}

}  // namespace
}  // namespace culprit::cycles
