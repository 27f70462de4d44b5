#include "library/shared_slices.h"

#include <culprit/compare.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "support/temp_file.h"
#include "support/trace_maker.h"

namespace culprit::library {
namespace {

using testing::HasSubstr;

constexpr Ns kUp = 90'000'000'000'000;  ///< since the machine was started

/// Operators that come at irregular times, those from `from` to `to`.
Trace operators(int from, int to, Ns start = kUp, std::int64_t pid = 7, const std::string& name = "mm") {
  testing_support::TraceMaker make;
  const TrackId thread = make.thread(pid, pid);
  for (int i = from; i < to; ++i) make.slice(thread, "cpu_op", name, start + i * 1'000 + i * 7 % 11, 500 + i * 5 % 13);
  return std::move(make.trace());
}

bool alike(const Trace& a, const Trace& b) {
  const bool found = are_of_one_recording(choose_slices(a), choose_slices(b));
  EXPECT_EQ(found, are_of_one_recording(choose_slices(b), choose_slices(a)));
  return found;
}

TEST(SharedSlices, ACopyThatWasCutIsOfTheSameRecording) {
  const Trace whole = operators(0, 20'000);
  EXPECT_TRUE(alike(whole, operators(0, 19'000)));
  EXPECT_TRUE(alike(whole, operators(0, 2'000))) << "a tenth";
  EXPECT_TRUE(alike(whole, operators(9'000, 15'000))) << "from the middle";
  EXPECT_TRUE(alike(operators(0, 200), operators(0, 120))) << "all are chosen";
}

TEST(SharedSlices, AnotherRecordingIsNot) {
  const Trace whole = operators(0, 20'000);
  EXPECT_FALSE(alike(whole, operators(0, 20'000, kUp + 1))) << "a nanosecond later";
  EXPECT_FALSE(alike(whole, operators(0, 20'000, kUp, 8))) << "another process";
  EXPECT_FALSE(alike(whole, operators(0, 20'000, kUp, 7, "bmm"))) << "other functions";
  EXPECT_FALSE(alike(whole, operators(10'000, 30'000))) << "half of each is the other's";
  EXPECT_FALSE(alike(whole, operators(0, 40))) << "too few to tell";
  EXPECT_FALSE(alike(whole, Trace()));
}

TEST(SharedSlices, AClockThatBeginsWithTheTraceTellsNothing) {
  EXPECT_FALSE(alike(operators(0, 2'000, 0), operators(0, 1'000, 0)));
}

/// Training steps as torch.profiler writes them, the first `steps` of them.
std::string steps_text(int steps, double start_us) {
  std::string events;
  for (int i = 0; i < steps; ++i) {
    const double at = start_us + i * 1'000 + i * 7 % 11;
    events += fmt::format(
        R"({}{{"ph":"X","cat":"user_annotation","name":"ProfilerStep#{}","pid":1,"tid":1,"ts":{},"dur":900}},
          {{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":1,"tid":1,"ts":{},"dur":{}}},
          {{"ph":"X","cat":"cpu_op","name":"aten::add","pid":1,"tid":1,"ts":{},"dur":70}})",
        i == 0 ? "" : ",", i, at, at + 10, 400 + i % 7, at + 700);
  }
  return R"({"schemaVersion":1,"traceEvents":[)" + events;  // the end is missing
}

TEST(SharedSlices, ACutCopyIsRefusedAsOneMoreRecording) {
  const test::TempDir folder;
  const double start = 1.75e15;
  const std::string whole = folder.file("whole.json", steps_text(60, start) + "]}");
  const std::string cut = folder.file("cut.json", steps_text(40, start));
  const std::string later = folder.file("later.json", steps_text(60, start + 1e9) + "]}");
  const std::string latest = folder.file("latest.json", steps_text(60, start + 2e9) + "]}");
  const auto compared = [](const std::vector<std::string>& base, const std::vector<std::string>& candidate) {
    return compare_runs(*load_recordings(base), *load_recordings(candidate));
  };
  const auto refused = compared({whole, cut}, {later});
  ASSERT_FALSE(refused);
  EXPECT_THAT(to_string(refused.error()), HasSubstr(cut + "' is a part of the recording '" + whole + "'"));
  EXPECT_FALSE(compared({cut, later}, {latest, whole})) << "whichever side they are on";
  const auto same = compared({cut}, {whole});
  ASSERT_TRUE(same) << to_string(same.error());
  EXPECT_TRUE(same->same_recording);
  EXPECT_THAT(same->notes, testing::ElementsAre(HasSubstr("only a part of it")));
  const auto fine = compared({whole, later}, {latest});
  ASSERT_TRUE(fine) << to_string(fine.error());
  EXPECT_FALSE(fine->same_recording);
  EXPECT_EQ(fine->sides[0].recordings, 2U);
}

}  // namespace
}  // namespace culprit::library
