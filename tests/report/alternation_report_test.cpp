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

nlohmann::json turns_of(const model::Alternation& found) {
  std::string text;
  JsonWriter json(text, JsonForm::packed);
  json.begin_object();
  write_alternation(json, found);
  json.end_object();
  return nlohmann::json::parse(text).at("alternation").at("turns");
}

TEST(AlternationReport, SaysThatDeviceQueuesAreNotWaitedFor) {
  model::Alternation found = in_turns();
  EXPECT_THAT(text_of(found), HasSubstr("Work queued on a device may go on into the other's turn, since device queues "
                                        "are not waited for: what is compared is each step's own time"));
  found.of_steps = false;
  EXPECT_THAT(text_of(found), HasSubstr("whole turns are compared, and there it counts in the other's"));
  found.in_turns = false;
  EXPECT_THAT(text_of(found), Not(HasSubstr("device"))) << "of runs";
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
