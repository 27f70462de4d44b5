#include "ab/start_spread.h"

#include <culprit/load.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>

#include "library/run_data.h"

namespace culprit::ab {
namespace {

using Kind = Quantity::Kind;
using model::SpreadFrom;

TEST(AssumedSpread, IsOfStepTimeButForCountsThatAllPairsHave) {
  for (const Kind kind : {Kind::automatic, Kind::step, Kind::cpu, Kind::throughput, Kind::function, Kind::counter}) {
    EXPECT_EQ(assumed_of({kind}).usual.spread, 0.025);
    EXPECT_EQ(assumed_of({kind}).same.starts, 0) << "also of what all pairs have";
  }
  for (const Kind kind : {Kind::calls, Kind::bytes}) {
    EXPECT_EQ(assumed_of({kind}).usual.spread, 0.025);
    EXPECT_EQ(assumed_of({kind}).same.spread, 0);
    EXPECT_GT(assumed_of({kind}).same.starts, 0);
  }
}

TEST(BetweenStarts, AreFromStartsOfEqualServersForTheTimeOfAStepAlone) {
  const Between seen = {0.02, kServerStarts, 1.5, false};
  EXPECT_EQ(between_starts(seen, {Kind::step}, true).from, SpreadFrom::starts);
  EXPECT_EQ(between_starts(seen, {Kind::automatic}, true).from, SpreadFrom::starts);
  EXPECT_EQ(between_starts(seen, {Kind::automatic}, false).from, SpreadFrom::step_time) << "units of work";
  for (const Kind kind : {Kind::cpu, Kind::throughput, Kind::function, Kind::calls, Kind::bytes, Kind::counter})
    EXPECT_EQ(between_starts(seen, {kind}, true).from, SpreadFrom::step_time);
  const model::BetweenStarts found = between_starts(seen, {Kind::step}, true);
  EXPECT_EQ(found.spread, 0.02);
  EXPECT_EQ(found.assumed, 0.025);
  EXPECT_EQ(found.told, 1.5);
}

TEST(BetweenStarts, OfTheSameInAllPairsAndOfNoStarts) {
  EXPECT_EQ(between_starts({0, kSameCounts, 0, true}, {Kind::calls}, true).from, SpreadFrom::same);
  EXPECT_EQ(between_starts({}, {Kind::step}, true).from, SpreadFrom::none);
}

/// Calls, and bytes, by name of what ran on the device.
std::map<std::string, std::pair<std::size_t, double>> counts_of(const std::string& file) {
  const auto run = load_run({std::string(CULPRIT_SOURCE_DIR) + "/tests/data/gpu/" + file});
  if (!run) return {};
  const Trace& trace = run->data().trace;
  std::map<std::string, std::pair<std::size_t, double>> counts;
  for (std::size_t i = 0; i < trace.slices.size(); ++i) {
    const Slice& slice = trace.slices[i];
    if (slice.gpu == kNone) continue;
    auto& [calls, bytes] = counts[std::string(trace.name(slice))];
    ++calls;
    bytes += static_cast<double>(trace.gpu[slice.gpu].bytes);
  }
  return counts;
}

// What kSameCounts rests on: each file is of a process of its own.
TEST(AssumedSpread, OfCountsIsThatOfThreeProcessesOnADevice) {
  for (const char* const name : {"prefill", "decode", "train"}) {
    const std::string phase = name;
    const auto first = counts_of(phase + ".quiet0.json.gz");
    ASSERT_GT(first.size(), 10U);
    double bytes = 0;
    for (const auto& [called, count] : first) bytes += count.second;
    EXPECT_GT(bytes, 0);
    EXPECT_EQ(first, counts_of(phase + ".quiet1.json.gz"));
    EXPECT_EQ(first, counts_of(phase + ".quiet2.json.gz"));
  }
}

}  // namespace
}  // namespace culprit::ab
