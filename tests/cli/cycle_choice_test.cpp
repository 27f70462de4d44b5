#include "cli/cycle_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "support/program.h"
#include "support/shared_data.h"

namespace culprit::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing_support::run_program;

constexpr const char* kTraining = "corpus/kineto/train_a100_graphs/rank0.json.gz";

TEST(CycleNumbers, NumbersAndRanges) {
  const auto ranges = parse_cycle_numbers("3,5-7");
  ASSERT_TRUE(ranges);
  ASSERT_EQ(ranges->size(), 2u);
  EXPECT_EQ((*ranges)[0].first, 3u);
  EXPECT_EQ((*ranges)[0].last, 3u);
  EXPECT_EQ((*ranges)[1].first, 5u);
  EXPECT_EQ((*ranges)[1].last, 7u);
  EXPECT_TRUE(parse_cycle_numbers("")->empty());
}

TEST(CycleNumbers, NonsenseIsAnError) {
  for (const char* text : {"x", "3,", ",3", "3,,4", "7-5", "-3", "3-", "1-2-3", "+1", " 1", "99999999999", "1.5"})
    EXPECT_FALSE(parse_cycle_numbers(text)) << text;
}

struct CycleOptions : testing::Test {
  fs::path dir = fs::temp_directory_path() / ("culprit_cycle_options_" + std::to_string(getpid()));
  std::string plain = dir / "plain.json";
  std::string steps = dir / "steps.json";
  void SetUp() override {
    fs::create_directories(dir);
    std::ofstream(plain) << R"([{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":1,"dur":1}])";
    std::ofstream out(steps);  // three steps with one kernel each, and a kernel of an unknown launcher long after
    out << "[";
    for (int i = 1; i <= 3; ++i)
      out << R"({"ph":"X","cat":"user_annotation","name":"ProfilerStep#)" << i << R"(","pid":1,"tid":1,"ts":)"
          << i * 100 << R"(,"dur":90},{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":)"
          << i * 100 + 5 << R"(,"dur":2,"args":{"correlation":)" << i
          << R"(}},{"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":)" << i * 100 + 10 << R"(,"dur":)"
          << i * 10 << R"(,"args":{"device":0,"stream":7,"correlation":)" << i << "}},";
    out << R"({"ph":"X","cat":"kernel","name":"early","pid":0,"tid":7,"ts":1,"dur":4,
      "args":{"device":0,"stream":7,"correlation":0}}])";
  }
  void TearDown() override { fs::remove_all(dir); }
  static json rows(const std::string& arguments) {
    const auto result = run_program("top --json " + arguments);
    EXPECT_EQ(result.code, 0) << arguments;
    return json::parse(result.output)["tables"][0]["rows"];
  }
};

TEST_F(CycleOptions, WithoutCyclesOneErrorSaysWhy) {
  for (const char* option : {"--by cycle", "--by phase", "--cycle 1", "--phase decode"}) {
    const auto result = run_program("top " + plain + " " + option + " 2>&1");
    EXPECT_EQ(result.code, 3) << option;
    EXPECT_EQ(std::ranges::count(result.output, '\n'), 1) << result.output;
    EXPECT_THAT(result.output, AllOf(HasSubstr("nothing repeats"), HasSubstr("--anchor"))) << option;
  }
}

TEST_F(CycleOptions, BadChoicesAreUsageErrors) {
  const auto error = [&](const std::string& arguments) {
    const auto result = run_program("top " + steps + " " + arguments + " 2>&1");
    EXPECT_EQ(result.code, 2) << arguments << result.output;
    return result.output;
  };
  EXPECT_THAT(error("--cycle 3-1"), HasSubstr("3-1"));
  EXPECT_THAT(error("--cycle $(printf '1\\033[2J')"), Not(HasSubstr("\x1b")));
  EXPECT_THAT(error("--cycle 9"), HasSubstr("cycles 1 to 3"));
  EXPECT_THAT(error("--phase nonsense"), HasSubstr("--phase"));
  EXPECT_THAT(error("--phase mixed"), HasSubstr("no cycle fits --phase mixed"));
  EXPECT_THAT(error("--anchor ProfilerStep#1"), HasSubstr("--anchor"));
  EXPECT_THAT(error("--by cycle --anchor nowhere"), HasSubstr("nowhere"));
}

TEST_F(CycleOptions, CyclesAreInOrderOfTheirNumbers) {
  const auto by_cycle = rows(steps + " --by cycle");
  ASSERT_EQ(by_cycle.size(), 4u);
  EXPECT_EQ(by_cycle[0]["cycle"], "1");
  EXPECT_EQ(by_cycle[0]["self_ns"], 10000);
  EXPECT_EQ(by_cycle[2]["cycle"], "3");
  EXPECT_EQ(by_cycle[2]["self_ns"], 30000);
  EXPECT_EQ(by_cycle[3]["cycle"], "(no cycle)");
  EXPECT_EQ(by_cycle[3]["self_ns"], 4000);
  EXPECT_EQ(rows(steps + " --by cycle --sort time")[0]["cycle"], "3");
}

TEST_F(CycleOptions, FiltersCombineAndSayWhatIsLeftOut) {
  EXPECT_EQ(rows(steps + " --cycle 1,3 --by short-name")[0]["self_ns"], 40000);
  EXPECT_EQ(rows(steps + " --cycle 2-9 --by cycle").size(), 2u);
  EXPECT_EQ(rows(steps + " --cycle 2 --filter early").size(), 0u);
  EXPECT_EQ(rows(steps + " --cycle 2 --class runtime")[0]["calls"], 1);
  EXPECT_THAT(run_program("top --cycle 1,7 " + steps).output,
              AllOf(HasSubstr("1 of 3 cycles"), HasSubstr("Left out because in no cycle: 1 calls with 4.000us"),
                    HasSubstr("There is no cycle 7")));
  const auto top = json::parse(run_program("top --json --cycle 1 --anchor ProfilerStep#1 " + steps).output);
  EXPECT_EQ(top["cycle"], "1");
  EXPECT_EQ(top["cycles"]["method"], "marker");
  EXPECT_FALSE(json::parse(run_program("top --json " + steps).output).contains("cycles"));
}

TEST_F(CycleOptions, InfoSaysHowCyclesWereFoundOrWhyNot) {
  EXPECT_THAT(run_program("info --all " + plain).output, HasSubstr("No cycles found: nothing repeats"));
  EXPECT_THAT(run_program("info " + plain).output,
              AllOf(HasSubstr("none found"), HasSubstr("No steps: nothing repeats")));
  EXPECT_THAT(run_program("info --all " + steps).output, AllOf(HasSubstr("Cycles"), HasSubstr("ProfilerStep")));
  const auto info = json::parse(run_program("info --json " + steps).output);
  EXPECT_EQ(info["cycles"]["count"], 3);
  EXPECT_EQ(info["cycles"]["phases"][0]["median_period_ns"], 100000);
  auto without = info;
  without.erase("cycles");
  EXPECT_EQ(json::parse(run_program("info --json --no-cycles " + steps).output), without);
  EXPECT_EQ(json::parse(run_program("info --json " + plain).output)["cycles"]["method"], "none");
}

TEST(RealTrace, CyclesOfATrainingRunAddUp) {
  CULPRIT_NEEDS_SHARED(kTraining);
  const std::string file = test::shared(kTraining);
  const auto of = [&](const std::string& options) {
    return json::parse(run_program("top --json " + file + " " + options).output)["tables"][0]["rows"];
  };
  const auto sum = [](const json& rows) {
    std::int64_t total = 0;
    for (const auto& row : rows) total += row["self_ns"].get<std::int64_t>();
    return total;
  };
  const auto by_cycle = of("--by cycle");
  std::int64_t steps = 0;
  for (const auto& row : by_cycle) steps += row["cycle"] != "(no cycle)" ? 1 : 0;
  EXPECT_EQ(steps, 5);
  const std::int64_t total = sum(of("--by kind"));
  EXPECT_GT(total, 0);
  EXPECT_EQ(sum(by_cycle), total);
  EXPECT_EQ(sum(of("--by phase")), total);
  EXPECT_EQ(sum(of("--cycle 2-3")),
            by_cycle[1]["self_ns"].get<std::int64_t>() + by_cycle[2]["self_ns"].get<std::int64_t>());
  const auto info = json::parse(run_program("info --json " + file).output)["cycles"];
  EXPECT_EQ(info["count"], 5);
  EXPECT_EQ(info["method"], "marker");
  EXPECT_GT(info["phases"][0]["device_busy_share"], 0.0);
  EXPECT_LE(info["phases"][0]["device_busy_share"], 1.0);
}

}  // namespace
}  // namespace culprit::cli
