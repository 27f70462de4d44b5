#include "report/alternation_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "core/json_writer.h"

namespace culprit::report {
namespace {

using testing::HasSubstr;
using testing::Not;

model::Alternation in_turns() {
  model::Alternation found;
  found.quantity = "step time";
  found.unit = "ns";
  found.of_steps = true;
  found.in_turns = true;
  found.turns.length = 800'000'000;
  found.turns.freezer = "cgroup";
  model::PairedChange& change = found.changes.emplace_back();
  change.pairs = 3;
  change.mean = {1e6, 1.1e6};
  change.change = 0.1;
  return found;
}

std::string text_of(const model::Alternation& found) {
  return fmt::format("{}", fmt::join(alternation_lines(found), "\n"));
}

nlohmann::json json_of(const model::Alternation& found) {
  std::string text;
  JsonWriter json(text, JsonForm::packed);
  json.begin_object();
  write_alternation(json, found);
  json.end_object();
  return nlohmann::json::parse(text).at("alternation");
}

nlohmann::json turns_of(const model::Alternation& found) { return json_of(found).at("turns"); }

TEST(AlternationReport, SaysThatDeviceQueuesAreNotWaitedFor) {
  model::Alternation found = in_turns();
  EXPECT_THAT(text_of(found), HasSubstr("Work queued on a device may go on into the other's turn, since device queues "
                                        "are not waited for: what is compared is each step's own time"));
  found.of_steps = false;
  EXPECT_THAT(text_of(found), HasSubstr("whole turns are compared, and there it counts in the other's"));
  found.in_turns = false;
  EXPECT_THAT(text_of(found), Not(HasSubstr("device"))) << "of runs";
}

TEST(AlternationReport, SaysHowLongDevicesWereWaitedFor) {
  model::Alternation found = in_turns();
  found.turns.queues_seen = true;
  found.turns.turns = 40;
  found.turns.queues_waited = 80'000'000;
  EXPECT_THAT(text_of(found), HasSubstr("Behind each turn devices were waited for until they had nothing to do for its "
                                        "side, a tenth of a turn at most (2.000ms on average)"));
  EXPECT_THAT(text_of(found), Not(HasSubstr("not waited for")));
  EXPECT_THAT(text_of(found), Not(HasSubstr("still had")));
  found.turns.queues_left = 3;
  EXPECT_THAT(text_of(found),
              HasSubstr("; behind 3 of 40 turns they still had, which goes on into the other's: what is "
                        "compared is each step's own time"));
  EXPECT_EQ(turns_of(found).at("queues_waited_for"), true);
  EXPECT_EQ(turns_of(found).at("queues_left"), 3);
  EXPECT_EQ(turns_of(found).at("queues_waited_ns"), 80'000'000);
  EXPECT_EQ(turns_of(in_turns()).at("queues_waited_for"), false);
}

TEST(AlternationReport, SaysFromWhereItIsKnownHowMuchStartsDiffer) {
  model::Alternation found = in_turns();
  found.starts = 1;
  found.between_starts = {model::SpreadFrom::starts, 0.025, 0.025, 0};
  EXPECT_THAT(
      text_of(found),
      HasSubstr("Both were started once; that starts of the same program differ by 2.5 % (standard deviation) is "
                "in the interval: 2.5 % are assumed, as measured on equal servers; --starts N measures it"));
  found.between_starts.from = model::SpreadFrom::step_time;
  EXPECT_THAT(text_of(found), HasSubstr("2.5 % are assumed, which was measured of step time alone; --starts N"));
  found.starts = 4;
  found.between_starts = {model::SpreadFrom::step_time, 0.011, 0.025, 2.5};
  EXPECT_THAT(text_of(found), HasSubstr("Both were started 4 times; that starts of the same program differ by 1.1 %"));
  EXPECT_THAT(text_of(found),
              HasSubstr("of step time alone, and corrected by what these tell; more --starts measure it "
                        "better"));
  found.starts = 1;
  found.between_starts = {model::SpreadFrom::same, 0, 0, 0};
  EXPECT_THAT(text_of(found),
              HasSubstr("; all pairs of a start have the same number, as three processes of one program "
                        "had: that its starts differ by 0.0 % is in the interval; --starts N"));
  found.between_starts = {};
  EXPECT_THAT(text_of(found), HasSubstr("Both were started once\n"));
}

TEST(AlternationReport, TellsOfStartsInJson) {
  model::Alternation found = in_turns();
  found.between_starts = {model::SpreadFrom::step_time, 0.011, 0.025, 2.5};
  const nlohmann::json json = json_of(found);
  EXPECT_EQ(json.at("between_starts"), 0.011);
  EXPECT_EQ(json.at("between_starts_from"), "step_time");
  EXPECT_EQ(json.at("between_starts_assumed"), 0.025);
  EXPECT_EQ(json.at("between_starts_told"), 2.5);
}

TEST(AlternationReport, SaysWhereTheLengthOfTurnsIsFrom) {
  model::Alternation found = in_turns();
  EXPECT_THAT(text_of(found), HasSubstr("From 3 pairs of turns of 0.8 s ("));
  EXPECT_EQ(turns_of(found).at("length_from"), "given");
  found.turns.length_from = model::LengthFrom::noise;
  EXPECT_THAT(text_of(found), HasSubstr("From 3 pairs of turns of 0.8 s, chosen from the noise's memory ("));
  EXPECT_EQ(turns_of(found).at("length_from"), "noise");
  EXPECT_EQ(turns_of(found).at("length_ns"), 800'000'000);
}

}  // namespace
}  // namespace culprit::report
