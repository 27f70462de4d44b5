// `culprit diff` and `culprit cycles` on traces, as a user runs them.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/program.h"
#include "support/shared_data.h"
#include "support/temp_file.h"

namespace culprit::cli {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing_support::run_program;

struct Plan {
  std::vector<int> periods;  ///< microseconds
  std::vector<std::string> kernels{"gemm", "norm"};
  int kernel_us = 200;
  std::string device = "A100";
  int world = 1;
  std::string marker = "ProfilerStep#";
  int clock = 0;  ///< MHz; 0: not recorded
};

/// A trace with one marked step per period, in each of them every kernel once.
std::string trace(const Plan& plan) {
  std::string events;
  int at = 1000;
  int step = 0;
  int correlation = 0;
  for (const int period : plan.periods) {
    events += fmt::format(R"({{"ph":"X","cat":"user_annotation","name":"{}{}","pid":1,"tid":1,"ts":{},"dur":{}}},)",
                          plan.marker, ++step, at, period - 1);
    if (plan.clock > 0)
      events +=
          fmt::format(R"({{"ph":"C","name":"GPU 0 clock","pid":0,"ts":{},"args":{{"MHz":{}}}}},)", at + 50, plan.clock);
    int offset = 5;
    for (const std::string& kernel : plan.kernels) {
      ++correlation;
      events += fmt::format(
          R"({{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":{},"dur":2,"args":{{"correlation":{}}}}},
             {{"ph":"X","cat":"kernel","name":"{}","pid":0,"tid":7,"ts":{},"dur":{},"args":{{"device":0,"stream":7,"correlation":{}}}}},)",
          at + offset, correlation, kernel, at + offset + 10, plan.kernel_us + step % 2, correlation);
      offset += plan.kernel_us + 5;
    }
    at += period;
  }
  events.pop_back();
  return fmt::format(
      R"({{"deviceProperties":[{{"id":0,"name":"{}"}}],"distributedInfo":{{"rank":0,"world_size":{},"backend":"nccl"}},"traceEvents":[{}]}})",
      plan.device, plan.world, events);
}

std::vector<int> steps(int n, int period) {
  std::vector<int> periods;
  for (int i = 0; i < n; ++i) periods.push_back(period + i * 7 % 5);
  return periods;
}

struct DiffTraces : testing::Test {
  test::TempDir dir;
  std::string good = dir.file("good.json", trace({steps(24, 1000)}));
  std::string same = dir.file("same.json", trace({steps(24, 1000)}));
  std::string slow = dir.file("slow.json", trace({steps(24, 1300)}));
  std::string few = dir.file("few.json", trace({steps(4, 1300)}));

  static std::string content(const std::string& path) {
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), {}};
  }
};

TEST_F(DiffTraces, OutcomeComesFirstAndDecidesTheExitCode) {
  const auto plain = run_program("diff " + good + " " + slow + " 2>&1");
  EXPECT_EQ(plain.code, 0) << plain.output;
  EXPECT_THAT(plain.output, testing::StartsWith("Outcome (other): regression; cycle time +30.0 %"));
  EXPECT_EQ(run_program("diff " + good + " " + slow + " --fail-on regression").code, 1);
  EXPECT_EQ(run_program("diff " + slow + " " + good + " --fail-on regression").code, 0) << "an improvement";
  EXPECT_EQ(run_program("diff " + slow + " " + good + " --fail-on any").code, 1);
  EXPECT_EQ(run_program("diff " + good + " " + same + " --fail-on any").code, 0);
  EXPECT_EQ(run_program("diff " + good + " " + slow + " --fail-on inconclusive").code, 1) << "the strict one, too";
  EXPECT_EQ(run_program("diff " + slow + " " + good + " --fail-on inconclusive").code, 0);
}

TEST_F(DiffTraces, UndecidedPassesWithAWarningAndIsFiveWhenAskedFor) {
  const std::string pair = "diff " + few + " " + dir.file("few_too.json", trace({steps(5, 1300)}));
  EXPECT_EQ(run_program(pair).code, 0);
  for (const char* gate : {" --fail-on regression", " --fail-on any"}) {
    const auto passed = run_program(pair + gate + " 2>&1 >/dev/null");
    EXPECT_EQ(passed.code, 0) << gate;
    EXPECT_THAT(passed.output, HasSubstr("warning: nothing could be decided")) << gate;
  }
  EXPECT_EQ(run_program(pair + " --fail-on inconclusive").code, 5);
  EXPECT_EQ(run_program(pair + " --fail-on not_comparable").code, 0);
}

TEST_F(DiffTraces, TheToleranceIsAShareOrAPercentage) {
  const std::string pair = "diff " + good + " " + slow + " --fail-on regression --tolerance ";
  EXPECT_EQ(run_program(pair + "3%").code, 1);
  EXPECT_EQ(run_program(pair + "0.03").code, 1);
  EXPECT_EQ(run_program(pair + "50%").code, 0) << "no change beyond a half";
  EXPECT_EQ(run_program(pair + "0.5").code, 0);
  for (const char* wrong : {"0", "-1%", "much", "100%", "3%%"})
    EXPECT_EQ(run_program(pair + wrong + " 2>&1").code, 2) << wrong;
}

TEST_F(DiffTraces, OneRecordingOnBothSidesIsSaidToBeThat) {
  const std::string copy = dir.file("copy.json", content(good));
  std::filesystem::create_symlink(good, dir.path("link.json"));
  for (const std::string& other : {good, copy, dir.path("link.json")}) {
    const auto result = run_program("diff " + good + " " + other + " --fail-on any 2>&1");
    EXPECT_EQ(result.code, 0) << result.output;
    EXPECT_THAT(result.output, HasSubstr("warning: nothing was compared"));
    EXPECT_THAT(run_program("diff " + good + " " + other + " --fail-on any 2>/dev/null").output,
                testing::StartsWith("Baseline and candidate are the same recording"));
    for (const char* strict : {"inconclusive", "not_comparable"})
      EXPECT_EQ(run_program("diff " + good + " " + other + " --fail-on " + strict + " 2>&1").code, 5);
  }
  const json document = json::parse(run_program("diff " + good + " " + copy + " --json").output);
  EXPECT_EQ(document["same_recording"], true);
  EXPECT_EQ(document["outcome"], "no_change");
  const std::string broken = dir.file("broken.json", "no trace");
  EXPECT_EQ(run_program("diff " + broken + " " + broken + " 2>&1").code, 3) << "it still has to be one";
}

TEST_F(DiffTraces, OneRecordingCountsOnce) {
  const std::string copy = dir.file("copy.json", content(good));
  for (const std::string& sides : {good + " " + copy + " --vs " + slow, good + " " + same + " --vs " + copy}) {
    const auto result = run_program("diff " + sides + " 2>&1");
    EXPECT_EQ(result.code, 2) << result.output;
    EXPECT_THAT(result.output, HasSubstr("the same recording"));
  }
}

TEST_F(DiffTraces, RecordingsOfOneRunArePooled) {
  const std::string more = dir.file("more.json", trace({steps(25, 1000)}));
  const json document = json::parse(run_program("diff " + good + " " + more + " --vs " + slow + " --json").output);
  EXPECT_EQ(document["outcome"], "regression");
  EXPECT_EQ(document["baseline"]["recordings"], 2);
  EXPECT_EQ(document["cycle_time"][0]["n"], json({47, 23}));
}

TEST_F(DiffTraces, WithTheReferencesScoreTracesGoItsWay) {
  const auto result = run_program("diff " + good + " " + slow + " --score suspicion 2>&1");
  EXPECT_EQ(run_program("diff " + good + " --vs " + slow + " --score suspicion 2>&1").output, result.output);
  EXPECT_EQ(result.code, 3) << "it finds no cycles without Python functions";
  EXPECT_THAT(result.output, AllOf(HasSubstr("no Python function"), HasSubstr("or leave out --score suspicion"),
                                   Not(HasSubstr("--compat"))));
  EXPECT_THAT(run_program("profile --compat deepdive " + good + " -o " + dir.path("none") + " 2>&1").output,
              HasSubstr("or leave out --compat"));
  EXPECT_EQ(run_program("diff " + good + " " + slow + " --score impact").code, 0);
  CULPRIT_NEEDS_SHARED("golden/deepdive/one.json");
  const std::string one = test::shared("golden/deepdive/one.json");
  const std::string kw = test::shared("golden/deepdive/kw.json");
  const auto tables = dir.path("tables");
  for (const std::string& file : {one, kw})
    ASSERT_EQ(run_program("profile --compat deepdive " + file + " -o " + tables).code, 0);
  const std::string direct = run_program("diff " + one + " " + kw + " --score suspicion --format csv").output;
  const auto table = [&](const char* phase) {
    return run_program("diff " + tables + "/one_" + phase + "_perf_data.csv " + tables + "/kw_" + phase +
                       "_perf_data.csv --score suspicion --format csv")
        .output;
  };
  EXPECT_EQ(direct, table("prefill") + table("decode")) << "the same as by way of the tables";
}

TEST_F(DiffTraces, JsonHoldsTheOutcome) {
  const auto result = run_program("diff " + good + " " + slow + " --json");
  const json document = json::parse(result.output);
  EXPECT_EQ(document["outcome"], "regression");
  ASSERT_EQ(document["cycle_time"].size(), 1U);
  EXPECT_NEAR(document["cycle_time"][0]["ratio"], 1.3, 0.01);
  EXPECT_EQ(document["cycle_time"][0]["n"], json({23, 23}));
}

TEST_F(DiffTraces, SharesThatFellWithTheCycleAreNoFindings) {
  const auto result = run_program("diff " + good + " " + slow + " 2>&1");
  EXPECT_THAT(result.output, AllOf(HasSubstr("No function is shown to have changed"), Not(HasSubstr("gemm"))));
  const std::string slower = dir.file("kernel.json", trace({steps(24, 1300), {"gemm", "norm"}, 350}));
  EXPECT_THAT(run_program("diff " + good + " " + slower).output,
              AllOf(testing::ContainsRegex("gemm .*150.0.*us.*x1.75"), testing::ContainsRegex("norm .*x1.75")));
}

TEST_F(DiffTraces, TheOrderOfEventsChangesNothing) {
  const std::string slower = trace({steps(24, 1300), {"gemm", "norm"}, 350});
  json shuffled = json::parse(slower);
  auto& events = shuffled["traceEvents"];
  std::reverse(events.begin(), events.end());
  const std::string a = dir.file("a.json", slower);
  const std::string b = dir.file("b.json", shuffled.dump());
  const auto of = [&](const std::string& file) {
    json document = json::parse(run_program("diff " + good + " " + file + " --json --threads 2").output);
    document["candidate"].erase("files");
    return document;
  };
  EXPECT_EQ(of(a), of(b));
}

TEST_F(DiffTraces, FunctionsOfOneSideAreNewOrGone) {
  const std::string other = dir.file("other.json", trace({steps(24, 1000), {"gemm", "fresh"}}));
  const auto result = run_program("diff " + good + " " + other + " 2>&1");
  EXPECT_THAT(result.output, testing::ContainsRegex("fresh .*new"));
  EXPECT_THAT(result.output, testing::ContainsRegex("norm .*gone"));
}

TEST_F(DiffTraces, OneCycleOnASideGivesNoRowsOfZeros) {
  const std::string one = dir.file("one.json", trace({{1000}}));
  const std::string another = dir.file("another.json", trace({{1100}}));
  const auto result = run_program("diff " + one + " " + another + " 2>&1");
  EXPECT_EQ(result.code, 0) << result.output;
  EXPECT_THAT(result.output, AllOf(HasSubstr("inconclusive: no phase has a whole cycle"), Not(HasSubstr("0.0000"))));
}

TEST_F(DiffTraces, OtherDevicesOrWorldsAreNotCompared) {
  const std::string other = dir.file("v100.json", trace({steps(24, 1000), {"gemm", "norm"}, 200, "V100", 2}));
  const auto result = run_program("diff " + good + " " + other + " 2>&1");
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.output, AllOf(HasSubstr("Not comparable: device model A100 against V100; world size 1 against 2"),
                                   Not(HasSubstr("--anchor")), HasSubstr("median period")));
  for (const char* what : {"not_comparable", "regression", "inconclusive"})
    EXPECT_EQ(run_program("diff " + good + " " + other + " --fail-on " + what).code, 5) << what;
  const json document = json::parse(run_program("diff " + good + " " + other + " --json").output);
  EXPECT_EQ(document["outcome"], "not_comparable");
  EXPECT_EQ(document["comparability"]["level"], "not_comparable");
  EXPECT_EQ(document["comparability"]["differences"][0]["what"], "device model");
}

TEST_F(DiffTraces, OtherAnchorsAreNotComparedAndTheRemedyHelps) {
  const std::string other =
      dir.file("iteration.json", trace({steps(24, 1000), {"gemm", "norm"}, 200, "A100", 1, "iteration "}));
  const auto result = run_program("diff " + good + " " + other + " 2>&1");
  EXPECT_THAT(result.output, AllOf(HasSubstr("Not comparable"), HasSubstr("iteration N"), HasSubstr("--anchor")));
  EXPECT_THAT(run_program("diff " + good + " " + other + " --anchor gemm").output, HasSubstr("Outcome"));
}

TEST_F(DiffTraces, OutputIsAFileOrADirectoryByItsName) {
  const std::string pair = "diff " + good + " " + slow;
  for (const char* name : {"r.md", "r.csv", "r.json"}) {
    const std::string path = dir.path(name);
    ASSERT_EQ(run_program(pair + " -o " + path + " 2>&1").code, 0) << name;
    EXPECT_FALSE(content(path).empty()) << name;
    EXPECT_EQ(run_program(pair + " -o " + path + " 2>&1").code, 2) << "never overwritten without --force";
    EXPECT_EQ(run_program(pair + " --force -o " + path + " 2>&1").code, 0);
  }
  EXPECT_TRUE(json::accept(content(dir.path("r.json"))));
  EXPECT_THAT(content(dir.path("r.md")), HasSubstr("Outcome"));
  ASSERT_EQ(run_program(pair + " -o " + dir.path("reports")).code, 0);
  for (const char* table : {"comparison", "cycle_time", "waterfall", "resources", "comparability", "environment",
                            "data_quality", "off_cpu"})
    EXPECT_TRUE(std::filesystem::exists(dir.path("reports") + "/" + table + ".csv")) << table;
  EXPECT_EQ(run_program(pair + " --force -o " + good + " 2>&1").code, 2) << "an input is never overwritten";
  EXPECT_EQ(run_program(pair + " --format markdown").output.substr(0, 2), "# ");
}

TEST_F(DiffTraces, WhatProfileWroteIsRefusedWithARemedy) {
  const std::string native = dir.path("native");
  ASSERT_EQ(run_program("profile " + good + " -o " + native).code, 0);
  for (const std::string& side : {native, native + "/functions.csv", native + "/profile.json"}) {
    const auto result = run_program("diff " + side + " " + side + " 2>&1");
    EXPECT_EQ(result.code, 2) << side;
    EXPECT_THAT(result.output, AllOf(HasSubstr("culprit profile"), HasSubstr("--compat deepdive"))) << side;
  }
}

TEST_F(DiffTraces, TablesAreNotJudgedByTheReferencesScore) {
  const std::string table = dir.file("a.csv",
                                     "cycle,pid,beta_pct,function_name,metric_name,device,mu_pct,anchor_dur_us,anchor_"
                                     "name\n1,7,5,f,m,GPU 0,1,1000,s\n");
  EXPECT_EQ(run_program("diff " + table + " " + table + " --score suspicion --fail-on regression 2>&1").code, 2);
}

TEST_F(DiffTraces, CyclesAndProfileAgreeOnTracesWithoutCycles) {
  const std::string none =
      dir.file("none.json", R"([{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":1,"dur":1}])");
  const auto cycles = run_program("cycles " + none);
  EXPECT_EQ(cycles.code, 3);
  EXPECT_THAT(cycles.output, HasSubstr("nothing repeats"));
  EXPECT_EQ(json::parse(run_program("cycles " + none + " --json").output)["method"], "none");
  EXPECT_EQ(run_program("profile " + none + " 2>&1").code, 3);
  EXPECT_EQ(run_program("top --by cycle " + none + " 2>&1").code, 3);
  for (const char* verb : {"cycles ", "profile "})
    for (const char* choice : {" --phase prefill", " --skip 24"}) {
      const auto result = run_program(verb + good + choice + " 2>&1");
      EXPECT_EQ(result.code, 2) << verb << choice;
      EXPECT_THAT(result.output, AllOf(HasSubstr("no cycle fits"), HasSubstr("24 other"))) << verb << choice;
    }
}

TEST_F(DiffTraces, ResourcesOfDevicesAreComparedWhateverTheStepsAre) {
  const std::string fast = dir.file("fast.json", trace({.periods = steps(24, 1000), .clock = 1410}));
  const std::string lowered =
      dir.file("lowered.json", trace({.periods = steps(24, 1300), .marker = "train iteration ", .clock = 705}));
  const auto found = json::parse(run_program("diff " + fast + " " + lowered + " --json").output);
  EXPECT_EQ(found["outcome"], "not_comparable");
  ASSERT_EQ(found["resources"].size(), 1U);
  EXPECT_EQ(found["resources"][0]["metric"], "GPU clock");
  EXPECT_EQ(found["resources"][0]["candidate"], 705e6);
  EXPECT_EQ(found["whole_run"]["kernels"], (json{48.0, 48.0}));
  const std::string other = dir.file(
      "other.json", trace({.periods = steps(24, 1300), .device = "V100", .marker = "train iteration ", .clock = 705}));
  EXPECT_EQ(json::parse(run_program("diff " + fast + " " + other + " --json").output)["resources"].size(), 0U);
}

TEST_F(DiffTraces, CyclesSayWhatTheirPeriodsLeaveOut) {
  const auto result = run_program("cycles " + good);
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.output, HasSubstr("Periods leave out 1 of 24 cycles: 1 last of its process"));
  const auto given = run_program("cycles " + good + " --anchor 'ProfilerStep#N'");
  EXPECT_THAT(given.output, AllOf(HasSubstr("given by the user"), HasSubstr("99% that a cycle is one"),
                                  HasSubstr("found without being named")));
  EXPECT_EQ(json::parse(run_program("cycles " + good + " --json --anchor gemm").output)["anchor_given"], true);
}

TEST(CorpusPairs, OtherHardwareIsRefusedAndUnmarkedBlocksAreCompared) {
  const std::string kineto = "corpus/kineto/";
  CULPRIT_NEEDS_SHARED(kineto + "hta_trace_diff/control.json.gz");
  CULPRIT_NEEDS_SHARED("corpus/nsys/mfu_2gpu_before.sqlite");
  const auto pair = [](const std::string& a, const std::string& b) {
    return run_program("diff " + test::shared(a) + " " + test::shared(b) + " --fail-on not_comparable 2>&1");
  };
  const auto hta = pair(kineto + "hta_trace_diff/control.json.gz", kineto + "hta_trace_diff/test.json.gz");
  EXPECT_EQ(hta.code, 5);
  EXPECT_THAT(hta.output, AllOf(HasSubstr("A100"), HasSubstr("V100"), HasSubstr("world size 8 against 2")));
  const auto vendors = pair(kineto + "qwen_h100_vs_mi300/h100.json.gz", kineto + "qwen_h100_vs_mi300/mi300.json.gz");
  EXPECT_EQ(vendors.code, 5);
  EXPECT_THAT(vendors.output, AllOf(HasSubstr("H100"), HasSubstr("MI300X"), Not(HasSubstr("--anchor"))));
  const auto blocks = pair("corpus/nsys/mfu_2gpu_before.sqlite", "corpus/nsys/mfu_2gpu_after.sqlite");
  EXPECT_EQ(blocks.code, 0) << blocks.output;
  EXPECT_THAT(blocks.output, testing::StartsWith("Outcome: inconclusive: it is not sure that a cycle"));
}

TEST(CorpusPairs, OfUnmarkedBlocksNoKernelAndNoTransferIsAccused) {
  CULPRIT_NEEDS_SHARED("corpus/nsys/mfu_2gpu_before.sqlite");
  const auto run = run_program("diff --json " + test::shared("corpus/nsys/mfu_2gpu_before.sqlite") + " " +
                               test::shared("corpus/nsys/mfu_2gpu_after.sqlite"));
  ASSERT_EQ(run.code, 0);
  const json result = json::parse(run.output);
  EXPECT_THAT(result["outcome"], testing::AnyOf("inconclusive", "no_change"));
  EXPECT_THAT(result["verdicts"], testing::IsEmpty());
  std::size_t on_devices = 0;
  for (const json& f : result["findings"]) {
    if (!f["kind"].get<std::string>().starts_with("gpu")) continue;
    ++on_devices;
    EXPECT_THAT(f["status"], testing::AnyOf("same", "unknown")) << f["function"];
  }
  EXPECT_GT(on_devices, 0U);
}

/// Traces of vLLM and SGLang on one noisy machine, seconds apart.
class CorpusServers : public testing::Test {
 protected:
  static json compared(const std::string& a, const std::string& b) {
    const auto path = [](const std::string& name) { return test::shared("corpus/real/" + name + ".trace.json.gz"); };
    const auto run = run_program("diff " + path(a) + " " + path(b) + " --json");
    EXPECT_EQ(run.code, 0);
    return json::parse(run.output);
  }
  static std::vector<std::string> changed(const json& result) {
    std::vector<std::string> names;
    for (const json& f : result["findings"])
      if (f["status"] != "same" && f["status"] != "unknown") names.push_back(f["function"]);
    return names;
  }
};

TEST_F(CorpusServers, NothingChangedAndNobodyIsAccused) {
  CULPRIT_NEEDS_SHARED("corpus/real/vllm-n1.trace.json.gz");
  for (const std::string server : {"vllm", "sglang"})
    for (const auto& [a, b] : {std::pair("-n1", "-n2"), std::pair("-n2", "-n1")}) {
      const json result = compared(server + a, server + b);
      EXPECT_THAT(result["outcome"], testing::AnyOf("inconclusive", "no_change")) << server << a;
      EXPECT_THAT(changed(result), testing::IsEmpty()) << server << a;
      EXPECT_THAT(result["verdicts"], testing::IsEmpty()) << server << a;
    }
}

TEST_F(CorpusServers, ACompetitorIsARegression) {
  CULPRIT_NEEDS_SHARED("corpus/real/vllm-cpu.trace.json.gz");
  EXPECT_EQ(compared("vllm-n1", "vllm-cpu")["outcome"], "regression");
  EXPECT_EQ(compared("sglang-n1", "sglang-cpu")["outcome"], "regression");
  EXPECT_EQ(compared("sglang-n2", "sglang-cpu")["outcome"], "regression");
  // n2 of vLLM drifts by a quarter itself: whoever is compared with it is not judged, and not acquitted.
  EXPECT_EQ(compared("vllm-n2", "vllm-cpu")["outcome"], "inconclusive");
}

TEST_F(CorpusServers, MoreClientsAreNoRegression) {
  CULPRIT_NEEDS_SHARED("corpus/real/vllm-many.trace.json.gz");
  const json result = compared("vllm-n1", "vllm-many");
  EXPECT_EQ(result["outcome"], "inconclusive");
  EXPECT_EQ(result["why"], "the sides have no steps of like work");
  EXPECT_EQ(result["cycle_time"][0]["usual_work"], json::array({"4 requests", "11 to 12 requests"}));
  EXPECT_THAT(changed(result), testing::IsEmpty());
}

TEST_F(CorpusServers, LongerPromptsShowInTheFunctionThatReadsThem) {
  CULPRIT_NEEDS_SHARED("corpus/real/sglang-long.trace.json.gz");
  const json result = compared("sglang-n1", "sglang-long");
  EXPECT_EQ(result["outcome"], "inconclusive");
  EXPECT_THAT(changed(result), testing::ElementsAre("aten::index"));
}

}  // namespace
}  // namespace culprit::cli
