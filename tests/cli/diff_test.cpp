// `culprit diff` as a whole: what it writes, what it refuses, and the published comparisons.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cli/cli.h"
#include "formats/io/csv_rows.h"

namespace culprit::cli {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

struct Outcome {
  int code = 0;
  std::string error;
  std::string out;
  std::string warnings;
};

Outcome diff(std::vector<std::string> arguments) {
  CommandLine command_line;
  Invocation invocation;
  add_diff(command_line, invocation);
  arguments.insert(arguments.begin(), "diff");
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  Outcome outcome;
  if (const auto parsed = command_line.parse(std::move(arguments)); parsed) {
    const auto result = invocation.run();
    outcome.code = result.ok() ? *result : static_cast<int>(result.error().kind);
    if (!result.ok()) outcome.error = to_string(result.error());
  } else {
    outcome.code = static_cast<int>(parsed.error().kind);
    outcome.error = to_string(parsed.error());
  }
  outcome.out = testing::internal::GetCapturedStdout();
  outcome.warnings = testing::internal::GetCapturedStderr();
  return outcome;
}

/// By the reference's score.
Outcome suspicion(std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), {"--score", "suspicion"});
  return diff(std::move(arguments));
}

std::string content(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class Diff : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::temp_directory_path() / ("culprit_diff_" + std::to_string(::getpid()));
    fs::remove_all(root_);
    fs::create_directories(root_ / "case" / "normal_perf_data");
    fs::create_directories(root_ / "case" / "abnormal_perf_data");
  }
  void TearDown() override { fs::remove_all(root_); }

  static std::string table(double beta, int pid = 7, const std::string& anchor = "step") {
    std::string text = "cycle,pid,beta_pct,function_name,metric_name,device,mu_pct,anchor_dur_us,anchor_name\n";
    for (int i = 1; i <= 5; ++i) {
      const std::string rest = ",1000," + anchor + "\n";
      text += std::to_string(i) + "," + std::to_string(pid) + "," + std::to_string(beta + 0.1 * i) +
              ",f,gpu_usage,GPU 0," + std::to_string(i) + rest;
      text += std::to_string(i) + "," + std::to_string(pid) + ",1,sync,N/A,Host," + rest;
    }
    return text;
  }
  void write(const fs::path& path, const std::string& text) const {
    std::ofstream(root_ / path, std::ios::binary) << text;
  }
  void write_case() const {
    write("case/normal_perf_data/r_perf_data.csv", table(1));
    write("case/abnormal_perf_data/r_perf_data.csv", table(50));
  }
  std::string at(const char* path) const { return (root_ / path).string(); }

  fs::path root_;
};

TEST_F(Diff, WritesMarkdownAndCsvAndSaysSo) {
  write_case();
  const Outcome outcome = suspicion({at("case"), "-o", at("new/out")});
  EXPECT_EQ(outcome.code, 0) << outcome.error;
  EXPECT_TRUE(fs::exists(root_ / "new/out/case_pid7_strict_comparison.md"));
  EXPECT_TRUE(fs::exists(root_ / "new/out/case_pid7_strict_comparison.csv"));
  EXPECT_THAT(outcome.out, HasSubstr("Average cycle time: 1,000.00 us -> 1,000.00 us (+0.00%)"));
  EXPECT_THAT(outcome.out, HasSubstr("Median cycle time: 1,000.00 us -> 1,000.00 us (+0.00%)"));
  EXPECT_THAT(outcome.out, HasSubstr("f on GPU 0"));
  EXPECT_THAT(outcome.out, HasSubstr("5 of 10 rows of normal"));
  EXPECT_THAT(outcome.out, HasSubstr("Written: "));
}

TEST_F(Diff, FindsCasesInATreeAndKeepsTheirNamesApart) {
  write_case();
  fs::create_directories(root_ / "deep/er");
  fs::rename(root_ / "case", root_ / "deep/er/case");
  EXPECT_EQ(suspicion({at("deep"), "-o", at("out")}).code, 0);
  EXPECT_TRUE(fs::exists(root_ / "out/deep_er_case_pid7_strict_comparison.csv"));
}

TEST_F(Diff, NeverOverwritesWithoutForce) {
  write_case();
  EXPECT_EQ(diff({at("case"), "-o", at("out")}).code, 0);
  const Outcome again = diff({at("case"), "-o", at("out")});
  EXPECT_EQ(again.code, 2);
  EXPECT_THAT(again.error, HasSubstr("--force"));
  EXPECT_EQ(diff({at("case"), "-o", at("out"), "--force"}).code, 0);
}

TEST_F(Diff, TwoTablesDirectly) {
  write_case();
  const Outcome outcome = suspicion(
      {at("case/normal_perf_data/r_perf_data.csv"), at("case/abnormal_perf_data/r_perf_data.csv"), "--format", "csv"});
  EXPECT_EQ(outcome.code, 0) << outcome.error;
  EXPECT_THAT(outcome.out, HasSubstr("f,gpu_usage,GPU 0,"));
}

TEST_F(Diff, EveryFormGoesToStandardOutput) {
  write_case();
  EXPECT_THAT(suspicion({at("case")}).out, HasSubstr("First findings"));
  EXPECT_THAT(suspicion({at("case")}).out, HasSubstr(" us per cycle\n"));
  EXPECT_THAT(suspicion({at("case"), "--json"}).out, HasSubstr("{\"score\":\"suspicion\""));
  EXPECT_THAT(suspicion({at("case"), "--format", "md"}).out, HasSubstr("## 4. Legend"));
  EXPECT_EQ(diff({at("case"), "--json", "--format", "md"}).code, 2);
}

TEST_F(Diff, TablesByTheirImpactAreComparedAsTracesAre) {
  write_case();
  const Outcome outcome = diff({at("case")});
  EXPECT_EQ(outcome.code, 0) << outcome.error;
  EXPECT_THAT(outcome.out, testing::StartsWith("Outcome: "));
  EXPECT_EQ(outcome.out, diff({at("case"), "--score", "impact"}).out);
  EXPECT_THAT(outcome.out, HasSubstr("Profile tables hold sums of each cycle"));
  const Outcome json = diff({at("case"), "--score", "impact", "--json"});
  for (const char* member : {"\"outcome\"", "\"cycle_time\"", "\"findings\"", "\"verdicts\"", "\"data_quality\""})
    EXPECT_THAT(json.out, HasSubstr(member));
  EXPECT_EQ(diff({at("case"), "--score", "impact", "-o", at("out")}).code, 0);
  EXPECT_TRUE(fs::exists(root_ / "out/comparison.md"));
}

/// Cycles of about `us`, half of each in one kernel.
std::string cycles_of(double us, int pid, int cycles) {
  std::string text;
  for (int i = 0; i < cycles; ++i)
    text += fmt::format("{},{},50,f,gpu_usage,GPU 0,gpu_compute,50,{},step,{},4,f\n", i + 1, pid, us / 2,
                        us * (1 + 0.001 * (i % 3)));
  return text;
}

std::string cycles_table(double us) {
  return "cycle,pid,beta_pct,function_name,metric_name,device,func_type,mu_pct,duration,anchor_name,anchor_dur_us,"
         "instances_count,simple_name\n" +
         cycles_of(us, 7, 10);
}

TEST_F(Diff, AGateOfTablesIsThatOfTheirCycles) {
  write("a_perf_data.csv", cycles_table(1000));
  write("b_perf_data.csv", cycles_table(1500));
  const std::vector<std::string> slower = {at("a_perf_data.csv"), at("b_perf_data.csv"), "--fail-on", "regression"};
  EXPECT_EQ(diff(slower).code, 1) << diff(slower).out << diff(slower).error;
  EXPECT_EQ(diff({at("b_perf_data.csv"), at("a_perf_data.csv"), "--fail-on", "regression"}).code, 0);
  EXPECT_EQ(diff({at("a_perf_data.csv"), at("b_perf_data.csv"), "--fail-on", "regression", "--tolerance", "70%"}).code,
            0);
  const Outcome same = diff({at("a_perf_data.csv"), at("a_perf_data.csv")});
  EXPECT_THAT(same.out, HasSubstr("same recording"));
}

TEST_F(Diff, AWarningNamesThePairOfWhichNothingWasDecided) {
  write("case/normal_perf_data/r_perf_data.csv", cycles_table(1000) + cycles_of(1000, 9, 2));
  write("case/abnormal_perf_data/r_perf_data.csv", cycles_table(1500) + cycles_of(1000, 9, 2));
  const Outcome outcome = diff({at("case"), "--fail-on", "regression"});
  EXPECT_EQ(outcome.code, 1) << outcome.error;
  EXPECT_EQ(outcome.warnings,
            "culprit: warning: case_pid9_strict_comparison: nothing could be decided; '--fail-on inconclusive' does "
            "not let that pass\n");
  write("case/normal_perf_data/r_perf_data.csv", cycles_table(1000));
  EXPECT_EQ(diff({at("case"), "--fail-on", "regression"}).warnings, "");
}

TEST_F(Diff, WhatOnlyTracesUseIsRefusedOfTables) {
  write_case();
  for (const auto& [option, value] :
       {std::pair("--anchor", "step"), std::pair("--threads", "1"), std::pair("--max-expansion", "9")})
    for (const char* score : {"impact", "suspicion"}) {
      const Outcome outcome = diff({at("case"), option, value, "--score", score});
      EXPECT_EQ(outcome.code, 2) << option << ' ' << score;
      EXPECT_THAT(outcome.error, HasSubstr(std::string(option) + " is for traces"));
    }
  const std::string table = at("case/normal_perf_data/r_perf_data.csv");
  EXPECT_EQ(diff({table, table, "--anchor", "step"}).code, 2);
  EXPECT_EQ(diff({at("nothing"), "--anchor", "step"}).code, 3) << "what is not there is said first";
}

TEST_F(Diff, SeveralProcessesByTheirImpactAreSeveralComparisons) {
  const std::string second = table(2, 9).substr(table(2).find('\n') + 1);
  write("case/normal_perf_data/r_perf_data.csv", table(1) + second);
  write("case/abnormal_perf_data/r_perf_data.csv", table(50) + second);
  const Outcome outcome = diff({at("case")});
  EXPECT_EQ(outcome.code, 0) << outcome.error;
  EXPECT_THAT(outcome.out, HasSubstr("case_pid7_strict_comparison\nOutcome"));
  EXPECT_THAT(outcome.out, HasSubstr("case_pid9_strict_comparison\nOutcome"));
  EXPECT_THAT(diff({at("case"), "--json"}).out, testing::StartsWith("{\"score\":\"impact\",\"comparisons\":[{"));
  EXPECT_EQ(diff({at("case"), "-o", at("out")}).code, 0);
  EXPECT_TRUE(fs::exists(root_ / "out/case_pid9_strict_comparison.md"));
}

TEST_F(Diff, AProcessOnOneSideOnlyIsReported) {
  write("case/normal_perf_data/r_perf_data.csv", table(1) + table(2, 9).substr(table(2).find('\n') + 1));
  write("case/abnormal_perf_data/r_perf_data.csv", table(50));
  const Outcome outcome = suspicion({at("case"), "-o", at("out")});
  EXPECT_THAT(outcome.out, HasSubstr("Not compared: process 9 of"));
  EXPECT_THAT(content(root_ / "out/case_pid7_strict_comparison.md"), HasSubstr("Not compared: process 9 of"));
}

TEST_F(Diff, RestartedProcessesAreCrossed) {
  write("case/normal_perf_data/r_perf_data.csv", table(1, 7));
  write("case/abnormal_perf_data/r_perf_data.csv", table(50, 8));
  EXPECT_EQ(suspicion({at("case"), "-o", at("out")}).code, 0);
  EXPECT_THAT(content(root_ / "out/case_n_pid7_vs_a_pid8_cross_comparison.csv"),
              HasSubstr("β_normal_pid_7(%),β_abnormal_pid_8(%)"));
}

TEST_F(Diff, DifferentAnchorsAreAWarning) {
  write("case/normal_perf_data/r_perf_data.csv", table(1));
  write("case/abnormal_perf_data/r_perf_data.csv", table(50, 7, "layer"));
  EXPECT_THAT(suspicion({at("case")}).out, HasSubstr("WARNING: the two sides have different anchors"));
}

TEST_F(Diff, WrongUseAndWrongInputAreToldApart) {
  write_case();
  EXPECT_THAT(suspicion({at("case"), "--fail-on", "regression"}).error, HasSubstr("leave out --score"));
  EXPECT_EQ(diff({at("case"), "--score", "luck"}).code, 2);
  EXPECT_EQ(diff({at("nothing")}).code, 3);
  EXPECT_EQ(diff({at("case/normal_perf_data/r_perf_data.csv")}).code, 2);
  EXPECT_EQ(diff({at("case"), at("case")}).code, 2);
  EXPECT_EQ(diff({}).code, 2);
  write("case/abnormal_perf_data/r_perf_data.csv", "cycle,pid\n1,2\n");
  const Outcome outcome = diff({at("case")});
  EXPECT_EQ(outcome.code, 3);
  EXPECT_THAT(outcome.error, HasSubstr("'function_name'"));
  fs::remove_all(root_ / "case/normal_perf_data");
  EXPECT_EQ(diff({at("case")}).code, 3);
}

using Cells = std::vector<std::string>;

/// Rows of a comparison table by function, metric and device.
std::map<Cells, Cells> rows_of(const fs::path& path) {
  std::map<Cells, Cells> rows;
  const std::string text = content(path);
  EXPECT_TRUE(formats::split_csv(
                  text, path.string(),
                  {[&](std::span<const std::string_view> f, std::uint64_t) {
                     rows[{std::string(f[0]), std::string(f[1]), std::string(f[2])}] = Cells(f.begin() + 3, f.end());
                   },
                   [](std::uint64_t, const std::string&, const std::string&) { FAIL(); }})
                  .ok());
  return rows;
}

/// Every number of the Markdown between two headings, thousands separators removed.
std::vector<double> numbers_between(const std::string& text, const std::string& begin, const std::string& end) {
  const std::size_t from = text.find(begin);
  EXPECT_NE(from, std::string::npos) << begin;
  std::string part = text.substr(from, text.find(end) - from);
  part.erase(std::remove(part.begin(), part.end(), ','), part.end());
  std::vector<double> numbers;
  const auto digit = [&](std::size_t i) { return i < part.size() && part[i] >= '0' && part[i] <= '9'; };
  for (std::size_t i = 0; i < part.size();) {
    if (!digit(i) && !(part[i] == '-' && digit(i + 1))) {
      ++i;
      continue;
    }
    char* stop = nullptr;
    numbers.push_back(std::strtod(part.c_str() + i, &stop));
    i = static_cast<std::size_t>(stop - part.c_str());
  }
  return numbers;
}

void expect_golden(const char* folder, const std::string& golden_name, const std::string& our_name) {
  const fs::path shared = fs::path(CULPRIT_SOURCE_DIR).parent_path() / "shared";
  const fs::path golden = shared / "golden" / "compare";
  const fs::path input = shared / "corpus" / "latencyprism" / folder;
  if (!fs::exists(golden) || !fs::exists(input)) GTEST_SKIP() << "shared data missing: " << input;
  const fs::path out = fs::temp_directory_path() / ("culprit_golden_" + std::to_string(::getpid()) + our_name);
  const Outcome outcome = diff({input.string(), "--score", "suspicion", "-o", out.string()});
  ASSERT_EQ(outcome.code, 0) << outcome.error;

  const auto expected = rows_of(golden / (golden_name + ".csv"));
  const auto actual = rows_of(out / (our_name + ".csv"));
  ASSERT_GT(expected.size(), 200u);
  ASSERT_EQ(actual.size(), expected.size());
  for (const auto& [key, cells] : expected) {
    const auto found = actual.find(key);
    ASSERT_NE(found, actual.end()) << key[0];
    ASSERT_EQ(found->second.size(), cells.size());
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (key[0] == "Function Name" || cells[i].empty()) {
        EXPECT_EQ(found->second[i], cells[i]) << key[0];
      } else {
        EXPECT_NEAR(std::strtod(found->second[i].c_str(), nullptr), std::strtod(cells[i].c_str(), nullptr), 1.0001e-6)
            << key[0] << ' ' << key[1];
      }
    }
  }
  const std::string theirs = content(golden / (golden_name + ".md"));
  const std::string ours = content(out / (our_name + ".md"));
  const auto wanted = numbers_between(theirs, "## 1. High", "## 3. In-depth");
  const auto got = numbers_between(ours, "## 1. High", "## 3. In-depth");
  ASSERT_GT(wanted.size(), 40u);
  ASSERT_EQ(got.size(), wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], wanted[i], 1e-6) << i;
  EXPECT_LT(ours.size(), 200'000u);
  fs::remove_all(out);
}

TEST(Golden, StrictComparisonOfOneProcess) {
  expect_golden("SGLang/gpu_instability", "Processed_SGLang_gpu_instability_pid944615_strict_comparison",
                "gpu_instability_pid944615_strict_comparison");
}

TEST(Golden, CrossComparisonOfARestartedProcess) {
  expect_golden("vLLM/cpu_compute_squeeze_out",
                "Processed_vLLM_cpu_compute_squeeze_out_n_pid2300005_vs_a_pid2329762_cross_comparison",
                "cpu_compute_squeeze_out_n_pid2300005_vs_a_pid2329762_cross_comparison");
}

}  // namespace
}  // namespace culprit::cli
