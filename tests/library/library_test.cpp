// The public calls, used as a program outside the tree uses them.
#include <culprit/cycles.h>
#include <culprit/events.h>
#include <culprit/kernels.h>
#include <culprit/load.h>
#include <culprit/profile.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace culprit {
namespace {

using testing::HasSubstr;

/// Five training steps of one kernel of 100 us and one of 50 us each; the period is 1 ms.
struct Library : testing::Test {
  std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("culprit_library_" + std::to_string(getpid()) + ".json");
  void SetUp() override {
    std::ofstream out(path);
    out << R"({"schemaVersion": 1, "traceEvents": [)";
    for (int step = 0; step < 5; ++step) {
      const int begin = step * 1000;
      out << (step == 0 ? "" : ",") << R"({"ph":"X","cat":"user_annotation","name":"ProfilerStep#)" << step
          << R"(","pid":1,"tid":1,"ts":)" << begin << R"(,"dur":990})";
      for (int k = 0; k < 2; ++k) {
        const int id = step * 2 + k + 1;
        out << R"(,{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":)"
            << begin + 10 + k * 20 << R"(,"dur":5,"args":{"correlation":)" << id
            << R"(}},{"ph":"X","cat":"kernel","name":")" << (k == 0 ? "gemm" : "softmax")
            << R"(","pid":0,"tid":7,"ts":)" << begin + 100 + k * 200 << R"(,"dur":)" << (k == 0 ? 100 : 50)
            << R"(,"args":{"device":0,"stream":7,"correlation":)" << id << "}}";
      }
    }
    out << R"(,{"ph":"X","name":"no time","pid":1,"tid":1}]})";
  }
  void TearDown() override { std::filesystem::remove(path); }
  culprit::Run run() const { return *load_run({path.string()}); }
};

TEST_F(Library, CyclesComeWithConfidenceAndWithoutTheLastOneAsWhole) {
  const auto found = find_cycles(run());
  ASSERT_TRUE(found);
  EXPECT_THAT(found->anchor, HasSubstr("ProfilerStep"));
  EXPECT_GT(found->period_confidence, 0.9);
  ASSERT_EQ(found->cycles.size(), 5U);
  EXPECT_EQ(found->cycles[1].number, 2U);
  EXPECT_EQ(found->cycles[1].period, 1'000'000);
  EXPECT_EQ(found->cycles[1].batch, -1);
  EXPECT_TRUE(found->cycles[1].whole);
  EXPECT_FALSE(found->cycles[4].whole);
}

TEST_F(Library, ErrorsAreValues) {
  const auto none = load_run({"/nonexistent/trace.json"});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().kind, ErrorKind::input);
  EXPECT_EQ(none.error().where, "/nonexistent/trace.json");
  EXPECT_THAT(to_string(none.error()), HasSubstr("/nonexistent/trace.json: "));
  CycleOptions options;
  options.phase = "nonsense";
  const auto phase = find_cycles(run(), options);
  ASSERT_FALSE(phase);
  EXPECT_EQ(phase.error().kind, ErrorKind::usage);
  options = {};
  options.anchor = "not there";
  EXPECT_FALSE(find_cycles(run(), options));
}

TEST_F(Library, FunctionTimesAreColumnsInWholeNanoseconds) {
  const Table table = function_times(run());
  ASSERT_EQ(table.rows, 2U);
  for (const Column& column : table.columns) EXPECT_EQ(column.known.size(), table.rows) << column.key;
  const Column* names = table.find("name");
  ASSERT_NE(names, nullptr);
  EXPECT_EQ(std::get<std::vector<std::string>>(names->values), (std::vector<std::string>{"gemm", "softmax"}));
  const Column* total = table.find("total_ns");
  ASSERT_NE(total, nullptr);
  EXPECT_EQ(std::get<std::vector<std::int64_t>>(total->values), (std::vector<std::int64_t>{500'000, 250'000}));
  EXPECT_EQ(table.find("nonsense"), nullptr);
}

TEST_F(Library, ProfileHasOneRowPerCycleAndFunction) {
  const auto profile = profile_run(run());
  ASSERT_TRUE(profile);
  EXPECT_EQ(profile->cycles.rows, 5U);
  EXPECT_GE(profile->functions.rows, 10U);
  CycleOptions skip;
  skip.skip = 2;
  const auto fewer = profile_run(run(), skip);
  ASSERT_TRUE(fewer);
  EXPECT_EQ(fewer->cycles.rows, 3U);
}

TEST_F(Library, TheLedgerOfACycleSumsToItsWindow) {
  const auto profile = profile_run(run());
  ASSERT_TRUE(profile);
  const Table& ledger = profile->ledger;
  const auto numbers = [&](const char* key) { return std::get<std::vector<std::int64_t>>(ledger.find(key)->values); };
  const auto cycle = numbers("cycle");
  const auto time = numbers("time_ns");
  const auto& state = std::get<std::vector<std::string>>(ledger.find("state")->values);
  std::int64_t host = 0, device = 0, works = 0;
  for (std::size_t r = 0; r < ledger.rows; ++r) {
    if (cycle[r] != 2) continue;
    const bool of_device = ledger.find("device")->known[r];
    (of_device ? device : host) += time[r];
    if (of_device && state[r] == "function") works += time[r];
  }
  EXPECT_EQ(host, 1'000'000);
  EXPECT_EQ(device, 1'000'000);
  EXPECT_EQ(works, 150'000);
}

TEST_F(Library, KernelsAreLaunchesNamesAndClasses) {
  const auto kernels = kernels_of(run());
  ASSERT_TRUE(kernels);
  EXPECT_EQ(kernels->launches.rows, 10U);
  EXPECT_EQ(kernels->names.rows, 2U);
  EXPECT_GE(kernels->classes.rows, 1U);
}

TEST_F(Library, LossesAreCountedWithRemedies) {
  const auto found = losses(run());
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].reason, "time_missing");
  EXPECT_EQ(found[0].count, 1U);
  EXPECT_FALSE(found[0].remedy.empty());
}

TEST_F(Library, ARunTellsHowMuchItHolds) {
  const Extent extent = extent_of(run());
  EXPECT_EQ(extent.files, std::vector{path.string()});
  EXPECT_EQ(extent.ranks, 1U);
  EXPECT_EQ(extent.slices, slices(run()).rows);
  EXPECT_EQ(extent.on_devices, 10U);
  EXPECT_EQ(extent.duration_ns, 4'990'000);
}

TEST_F(Library, ProgressReachesTheEnd) {
  LoadOptions options;
  options.threads = 1;
  std::uint64_t done = 0;
  options.task.progress = [&](std::string_view, std::uint64_t now, std::uint64_t) { done = now; };
  ASSERT_TRUE(load_run({path.string()}, options));
  EXPECT_EQ(done, std::filesystem::file_size(path));
}

}  // namespace
}  // namespace culprit
