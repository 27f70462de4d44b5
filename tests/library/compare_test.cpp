// Comparing runs by the public call.
#include <culprit/compare.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <sstream>
#include <tuple>

#include "library/write_steps.h"
#include "support/temp_file.h"

namespace culprit {
namespace {

using test::StepsFile;
using testing::HasSubstr;

std::vector<Run> load(const std::vector<std::string>& paths) { return *load_recordings(paths); }

const Finding* finding_of(const Comparison& comparison, const std::string& function) {
  const auto at = std::ranges::find(comparison.findings, function, &Finding::function);
  return at == comparison.findings.end() ? nullptr : &*at;
}

TEST(LibraryCompare, ASlowerKernelIsARegressionAndItsFindingComesFirst) {
  const StepsFile good(60, 100);
  const StepsFile bad(60, 400);
  const auto compared = compare_runs(load({good.path()}), load({bad.path()}));
  ASSERT_TRUE(compared) << to_string(compared.error());
  EXPECT_EQ(compared->outcome, Outcome::regression) << compared->why;
  EXPECT_NE(compared->comparability.level, Comparable::no);
  ASSERT_EQ(compared->cycle_times.size(), 1U);
  const CycleTime& time = compared->cycle_times[0];
  EXPECT_NEAR(time.time_ns[0], 1e6, 1e3);
  EXPECT_NEAR(time.time_ns[1], 1.3e6, 1e3);
  EXPECT_NEAR(time.change, 0.3, 0.005);
  EXPECT_LT(time.low, time.change);
  EXPECT_GT(time.high, time.change);
  ASSERT_FALSE(compared->findings.empty());
  const Finding& first = compared->findings[0];
  EXPECT_EQ(first.function, "gemm");
  EXPECT_EQ(first.status, FunctionStatus::changed);
  EXPECT_EQ(first.device, "GPU");
  EXPECT_NEAR(first.impact_ns, 3e5, 1);
  EXPECT_NEAR(first.work_ratio, 4, 1e-9);
  const Finding* softmax = finding_of(*compared, "softmax");
  ASSERT_NE(softmax, nullptr);
  EXPECT_EQ(softmax->status, FunctionStatus::same);
  EXPECT_EQ(compared->sides[0].files, std::vector<std::string>{good.path()});
  EXPECT_GE(compared->sides[1].cycles, 58U);
}

TEST(LibraryCompare, ReportsAreThoseOfDiff) {
  const StepsFile good(60, 100);
  const StepsFile bad(60, 400);
  const auto compared = compare_runs(load({good.path()}), load({bad.path()}));
  ASSERT_TRUE(compared);
  EXPECT_THAT(to_text(*compared), HasSubstr("gemm"));
  EXPECT_THAT(to_markdown(*compared), HasSubstr("| "));
  EXPECT_THAT(to_csv(*compared), HasSubstr(",gemm,"));
  EXPECT_THAT(to_json(*compared), testing::AllOf(testing::StartsWith("{"), HasSubstr("\"regression\"")));
}

TEST(LibraryCompare, ARunComparedWithItselfIsTheSameRecordingAndIsSaidSo) {
  const StepsFile file(20, 100);
  const auto run = load({file.path()});
  const auto shared = compare_runs(run, run);
  ASSERT_TRUE(shared);
  EXPECT_TRUE(shared->same_recording);
  const auto loaded_twice = compare_runs(load({file.path()}), load({file.path()}));
  ASSERT_TRUE(loaded_twice);
  EXPECT_TRUE(loaded_twice->same_recording);
}

TEST(LibraryCompare, ACopyIsTheSameRecordingHoweverItIsPacked) {
  const StepsFile file(20, 100);
  std::ostringstream text;
  text << std::ifstream(file.path()).rdbuf();
  const test::TempDir folder;
  const std::vector<std::string> copies = {folder.file("plain.json", text.str()),
                                           folder.file("packed.json.gz", test::gzip(text.str())),
                                           folder.file("packed.json.zst", test::zstd(text.str()))};
  for (const std::string& copy : copies) {
    const auto compared = compare_runs(load({file.path()}), load({copy}));
    ASSERT_TRUE(compared) << copy;
    EXPECT_TRUE(compared->same_recording) << copy;
  }
  const StepsFile longer(21, 100);
  const auto compared = compare_runs(load({longer.path()}), load({copies[1]}));
  ASSERT_TRUE(compared);
  EXPECT_FALSE(compared->same_recording);
}

TEST(LibraryCompare, AFileWrittenAnewBetweenTwoLoadsIsAnotherRecording) {
  const StepsFile file(60, 100);
  const auto before = load({file.path()});
  file.write(60, 400);
  const auto compared = compare_runs(before, load({file.path()}));
  ASSERT_TRUE(compared);
  EXPECT_FALSE(compared->same_recording);
  EXPECT_EQ(compared->outcome, Outcome::regression);
}

TEST(LibraryCompare, FilesOfSeveralRanksAreOneRunOthersAreRecordingsOfTheSame) {
  const StepsFile rank0(20, 100, 0);
  const StepsFile rank1(20, 110, 1);
  const auto ranks = load_recordings({rank0.path(), rank1.path()});
  ASSERT_TRUE(ranks);
  EXPECT_EQ(ranks->size(), 1U);
  const StepsFile again(20, 105);
  const StepsFile once_more(20, 106);
  const auto recordings = load_recordings({again.path(), once_more.path()});
  ASSERT_TRUE(recordings);
  EXPECT_EQ(recordings->size(), 2U);
  const StepsFile bad0(20, 400);
  const StepsFile bad1(20, 410);
  const auto compared = compare_runs(*recordings, load({bad0.path(), bad1.path()}));
  ASSERT_TRUE(compared) << to_string(compared.error());
  EXPECT_EQ(compared->sides[0].recordings, 2U);
  EXPECT_EQ(compared->outcome, Outcome::regression) << compared->why;
}

TEST(LibraryCompare, EachRankHasItsCycleTimeBehindThatOfTheSlowest) {
  const StepsFile good0(60, 100, 0);
  const StepsFile good1(60, 100, 1);
  const StepsFile same0(60, 101, 0);
  const StepsFile slow1(60, 400, 1);
  const auto compared = compare_runs(load({good0.path(), good1.path()}), load({same0.path(), slow1.path()}));
  ASSERT_TRUE(compared) << to_string(compared.error());
  ASSERT_EQ(compared->cycle_times.size(), 3U);
  const auto& [all, first, second] =
      std::tie(compared->cycle_times[0], compared->cycle_times[1], compared->cycle_times[2]);
  EXPECT_EQ(all.rank, -1);
  EXPECT_NEAR(all.change, 0.3, 0.01);
  EXPECT_EQ(first.rank, 0);
  EXPECT_NEAR(first.change, 0.001, 0.005);
  EXPECT_EQ(first.outcome, Outcome::inconclusive) << "one recording a side";
  EXPECT_EQ(second.rank, 1);
  EXPECT_NEAR(second.change, 0.3, 0.01);
  EXPECT_EQ(second.outcome, Outcome::regression);
  EXPECT_EQ(compared->outcome, Outcome::regression);
  EXPECT_THAT(to_text(*compared), HasSubstr("A step on each rank"));
}

TEST(LibraryCompare, BadArgumentsAreErrorsOfUsage) {
  const StepsFile file(20, 100);
  const auto none = compare_runs({}, load({file.path()}));
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().kind, ErrorKind::usage);
  const StepsFile other(20, 100 + 1);
  CompareOptions options;
  options.anchor = "not there";
  const auto anchor = compare_runs(load({file.path()}), load({other.path()}), options);
  ASSERT_FALSE(anchor);
  EXPECT_EQ(anchor.error().kind, ErrorKind::usage);
  EXPECT_FALSE(load_recordings({}));
  for (const double tolerance : {0.0, 1.0, 9.0, -1.0, std::numeric_limits<double>::quiet_NaN()}) {
    options = {};
    options.tolerance = tolerance;
    const auto compared = compare_runs(load({file.path()}), load({other.path()}), options);
    ASSERT_FALSE(compared) << tolerance;
    EXPECT_EQ(compared.error().kind, ErrorKind::usage);
    EXPECT_THAT(to_string(compared.error()), HasSubstr("no share between 0 and 1"));
  }
}

}  // namespace
}  // namespace culprit
