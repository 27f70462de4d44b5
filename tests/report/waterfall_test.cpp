#include "report/waterfall.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace culprit::report {
namespace {

std::vector<std::string> notes_of(double change, double before, double after) {
  model::RunComparison c;
  model::CycleTimeOutcome& outcome = c.cycle_times.emplace_back();
  outcome.phase = model::Phase::decode;
  outcome.outcome = model::Outcome::regression;
  outcome.change = change;
  model::Waterfall& waterfall = c.waterfalls.emplace_back();
  waterfall.phase = model::Phase::decode;
  waterfall.window_ns = {before, after};
  const auto tables = waterfall_tables(c, 10);
  EXPECT_EQ(tables.size(), 1U);
  return tables.empty() ? std::vector<std::string>() : tables[0].notes;
}

TEST(Waterfall, SaysWhereItsMeansAreNotThoseOfTheOutcome) {
  EXPECT_TRUE(notes_of(0.20, 1000, 1200).empty());
  EXPECT_TRUE(notes_of(0.20, 1000, 1215).empty()) << "nearly the same";
  EXPECT_TRUE(notes_of(0.04, 1000, 1049).empty()) << "a difference of less than a percent";
  const auto notes = notes_of(0.243, 1000, 1311);
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_EQ(
      notes[0],
      "Means of times: +31.1 %. The outcome, +24.3 %, is of mean logarithms, in which few long cycles count less.");
}

TEST(Waterfall, SaysWhereMediansAreFarFromItsMeans) {
  const auto notes = [](double median_before, double median_after) {
    model::RunComparison c;
    model::CycleTimeOutcome& outcome = c.cycle_times.emplace_back();
    outcome.outcome = model::Outcome::regression;
    outcome.change = 0.5;
    outcome.median_ns = {median_before, median_after};
    c.waterfalls.emplace_back().window_ns = {1e6, 1.5e6};
    return waterfall_tables(c, 10).at(0).notes;
  };
  EXPECT_TRUE(notes(0.95e6, 1.6e6).empty());
  EXPECT_EQ(notes(1e6, 1.1e6),
            (std::vector<std::string>{"All are means per cycle. Half of the cycles take no more than 1.000ms in the "
                                      "baseline, 1.100ms in the candidate."}));
}

std::string heading_of(const std::set<std::int32_t>& base, const std::set<std::int32_t>& candidate) {
  model::RunComparison c;
  c.cycle_times.emplace_back().outcome = model::Outcome::regression;
  model::Waterfall& waterfall = c.waterfalls.emplace_back();
  waterfall.devices = {base, candidate};
  waterfall.device = *base.begin();
  return waterfall_tables(c, 10).at(0).title;
}

TEST(Waterfall, NamesTheDevicesOfBothSides) {
  EXPECT_EQ(heading_of({1}, {1}), "Where the difference comes from, device 1 (other)");
  EXPECT_EQ(heading_of({0, 1}, {0, 1}), "Where the difference comes from, devices 0, 1 (other)");
  EXPECT_EQ(heading_of({0}, {1}),
            "Where the difference comes from, device 0 of the baseline, device 1 of the candidate (other)");
}

}  // namespace
}  // namespace culprit::report
