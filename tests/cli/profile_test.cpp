// `culprit profile` and `culprit diff` on traces, as a user runs them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "support/program.h"
#include "support/shared_data.h"
#include "support/temp_file.h"

namespace culprit::cli {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing_support::run_program;

std::string text_in(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Steps of one kernel each, named by `marker`; the kernel takes `kernel_us`, the step 100.
std::string trace(const std::string& marker, int kernel_us, int pid = 7, const std::string& kernel = "gemm") {
  std::string events;
  for (int i = 0; i < 12; ++i) {
    const int at = 1000 + i * 100;
    const auto event = [&](const std::string& cat, const std::string& name, int ts, int dur, const std::string& where,
                           const std::string& args) {
      events += (events.empty() ? "" : ",\n");
      events += R"({"ph":"X","cat":")" + cat + R"(","name":")" + name + R"(","ts":)" + std::to_string(ts) +
                R"(,"dur":)" + std::to_string(dur) + "," + where + R"(,"args":{)" + args + "}}";
    };
    const std::string host = R"("pid":)" + std::to_string(pid) + R"(,"tid":1)";
    const std::string link = R"("correlation":)" + std::to_string(i + 1);
    event("user_annotation", marker + std::to_string(i), at, 98, host, "");
    event("cuda_runtime", "cudaLaunchKernel", at + 2, 3, host, link);
    event("kernel", kernel, at + 10, kernel_us + i % 3, R"("pid":0,"tid":7)", link + R"(,"device":0,"stream":7)");
  }
  return R"({"traceEvents":[)" + events + "]}";
}

TEST(ProfileVerb, ShowsAndWritesTheProfile) {
  const test::TempDir dir;
  const std::string file = dir.file("a.json", trace("ProfilerStep#", 40));
  const auto result = run_program("profile " + file + " -o " + dir.path("out") + " 2>&1");
  ASSERT_EQ(result.code, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("gemm"));
  for (const char* name : {"cycles.csv", "functions.csv", "resources.csv", "counters.csv", "profile.json"})
    EXPECT_TRUE(std::filesystem::exists(dir.path("out") + "/" + name)) << name;
  EXPECT_THAT(text_in(dir.path("out") + "/functions.csv"), HasSubstr("gemm"));
  const auto again = run_program("profile " + file + " -o " + dir.path("out") + " 2>&1");
  EXPECT_EQ(again.code, 2) << "files that exist are not overwritten";
  EXPECT_EQ(run_program("profile " + file + " --force -o " + dir.path("out") + " 2>&1").code, 0);
}

TEST(ProfileVerb, NamesFromTheTraceDoNotReachTheTerminalRaw) {
  const test::TempDir dir;
  const std::string file = dir.file("a.json", trace("ProfilerStep#", 40, 7, "\\u001b[31mgemm"));
  const auto result = run_program("profile " + file + " 2>&1");
  ASSERT_EQ(result.code, 0) << result.output;
  EXPECT_THAT(result.output, Not(HasSubstr("\x1b")));
}

TEST(ProfileVerb, SaysWhenThereIsNoCycle) {
  const test::TempDir dir;
  const std::string file =
      dir.file("a.json", R"({"traceEvents":[{"ph":"X","name":"a","ts":1,"dur":1,"pid":1,"tid":1}]})");
  const auto result = run_program("profile " + file + " 2>&1");
  EXPECT_EQ(result.code, 3);
  EXPECT_THAT(result.output, HasSubstr("no cycles"));
  EXPECT_EQ(run_program("profile " + file + " --compat deepdive -o " + dir.path("x") + " 2>&1").code, 3);
  EXPECT_EQ(run_program("profile " + file + " --compat deepdive 2>&1").code, 2) << "no directory";
  EXPECT_EQ(run_program("profile " + file + " --align 2>&1").code, 2) << "belongs to --compat";
}

TEST(ProfileVerb, CompatTablesCanBeCompared) {
  CULPRIT_NEEDS_SHARED("golden/deepdive/one.json");
  const test::TempDir dir;
  const std::string out = dir.path("out");
  ASSERT_EQ(run_program("profile " + test::shared("golden/deepdive/one.json") + " --compat deepdive -o " + out).code,
            0);
  const std::string table = out + "/one_decode_perf_data.csv";
  ASSERT_TRUE(std::filesystem::exists(table));
  EXPECT_TRUE(std::filesystem::exists(out + "/one_prefill_counters_data.csv"));
  const auto same =
      run_program("diff " + table + " " + test::shared("golden/deepdive/out_one/one_decode_perf_data.csv") +
                  " --score suspicion 2>&1");
  EXPECT_EQ(same.code, 0) << same.output;
  EXPECT_THAT(same.output, HasSubstr("Findings: none"));
}

TEST(DiffOnTraces, FindsTheSlowKernel) {
  const test::TempDir dir;
  const std::string a = dir.file("a.json", trace("ProfilerStep#", 30));
  const std::string b = dir.file("b.json", trace("ProfilerStep#", 60, 4711));
  const auto result = run_program("diff " + a + " " + b + " 2>&1");
  ASSERT_EQ(result.code, 0) << result.output;
  EXPECT_THAT(result.output, testing::ContainsRegex("gemm +.*x1.9"));
  EXPECT_EQ(run_program("diff " + a + " --vs " + b + " 2>&1").output, result.output);
}

TEST(DiffOnTraces, ReplicatesArePooled) {
  const test::TempDir dir;
  const std::string a = dir.file("a.json", trace("ProfilerStep#", 30));
  const std::string b = dir.file("b.json", trace("ProfilerStep#", 31, 8));
  const std::string c = dir.file("c.json", trace("ProfilerStep#", 30, 9));
  const auto result = run_program("diff " + a + " " + b + " --vs " + c + " 2>&1");
  ASSERT_EQ(result.code, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("No function is shown to have changed"));
  EXPECT_THAT(result.output, HasSubstr("2 recordings of the baseline are pooled"));
  EXPECT_EQ(run_program("diff " + a + " " + b + " " + a + " 2>&1").code, 2) << "where does the candidate begin?";
}

TEST(DiffOnTraces, RefusesOtherAnchors) {
  const test::TempDir dir;
  const std::string a = dir.file("a.json", trace("ProfilerStep#", 30));
  const std::string b = dir.file("b.json", trace("step[DECODE bs=4 toks=4] ", 30));
  const auto result = run_program("diff " + a + " " + b + " 2>&1");
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.output, HasSubstr("Not comparable"));
  EXPECT_THAT(result.output, HasSubstr("ProfilerStep#"));
  EXPECT_EQ(run_program("diff " + a + " " + b + " --fail-on not_comparable 2>&1").code, 5);
  EXPECT_THAT(run_program("diff " + a + " " + b + " --json").output, HasSubstr("\"outcome\": \"not_comparable\""));
}

TEST(DiffOnTraces, RefusesATraceAgainstATable) {
  const test::TempDir dir;
  const std::string a = dir.file("a.json", trace("ProfilerStep#", 30));
  const std::string t = dir.file("t.csv", "cycle\n");
  EXPECT_EQ(run_program("diff " + a + " " + t + " 2>&1").code, 2);
  EXPECT_EQ(run_program("diff " + a + " " + dir.path("missing.json") + " 2>&1").code, 3);
  const std::string empty = dir.path("empty");
  std::filesystem::create_directory(empty);
  EXPECT_EQ(run_program("diff " + a + " " + empty + " 2>&1").code, 2);
}

}  // namespace
}  // namespace culprit::cli
