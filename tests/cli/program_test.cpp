#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "support/program.h"

namespace culprit {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing_support::run_program;

constexpr const char* kTrace = R"json({"schemaVersion": 1, "traceEvents": [
{"ph":"X","cat":"user_annotation","name":"ProfilerStep#1","pid":1,"tid":1,"ts":0,"dur":100},
{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":1,"tid":1,"ts":1,"dur":20},
{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":5,"dur":2,"args":{"correlation":7}},
{"ph":"X","cat":"kernel","name":"\u001b[2J</script>|=gemm","pid":0,"tid":7,"ts":10.5,"dur":30.25,
 "args":{"device":0,"stream":7,"correlation":7,"grid":[1,2,3],"block":[4,5,6]}},
{"ph":"X","cat":"cpu_op","name":"MmBackward0","pid":1,"tid":2,"ts":50,"dur":20},
{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":2,"ts":55,"dur":2,"args":{"correlation":8}},
{"ph":"X","cat":"kernel","name":"gemm_backward","pid":0,"tid":7,"ts":60,"dur":10,
 "args":{"device":0,"stream":7,"correlation":8}},
{"ph":"X","cat":"gpu_memcpy","name":"Memcpy HtoD (Pageable -> Device)","pid":0,"tid":7,"ts":80,"dur":1,
 "args":{"device":0,"stream":7,"bytes":64}}
]})json";

struct Program : testing::Test {
  fs::path dir = fs::temp_directory_path() / ("culprit_program_" + std::to_string(getpid()));
  std::string trace = dir / "trace.json";
  void SetUp() override {
    fs::create_directories(dir);
    std::ofstream(trace) << kTrace;
  }
  void TearDown() override { fs::remove_all(dir); }
  static std::string text_of(const fs::path& path) {
    std::ostringstream out;
    out << std::ifstream(path).rdbuf();
    return out.str();
  }
};

TEST_F(Program, VersionAndHelp) {
  EXPECT_THAT(run_program("--version").output, HasSubstr("culprit 0."));
  for (const char* verb : {"info", "top", "export"}) {
    const auto help = run_program(std::string("help ") + verb);
    EXPECT_EQ(help.code, 0);
    EXPECT_THAT(help.output,
                AllOf(HasSubstr(std::string("culprit ") + verb), HasSubstr("Example:"), HasSubstr("Exit codes:")));
    EXPECT_EQ(run_program(std::string(verb) + " --help").output, help.output);
  }
}

TEST_F(Program, BadUsageSuggests) {
  const auto error = [&](const std::string& arguments) {
    const auto result = run_program(arguments + " 2>&1");
    EXPECT_EQ(result.code, 2) << arguments;
    EXPECT_EQ(std::ranges::count(result.output, '\n'), 1) << result.output;
    return result.output;
  };
  EXPECT_EQ(error("tpo x"), "culprit: unknown verb 'tpo' (did you mean 'top'?)\n");
  EXPECT_THAT(error("top --limt 3 x"), HasSubstr("did you mean '--limit'?"));
  EXPECT_THAT(error("top"), HasSubstr("culprit top --help"));
  EXPECT_THAT(error(""), HasSubstr("no verb given"));
  EXPECT_THAT(error("top x --sort colour"), HasSubstr("'colour' is none of avg, calls, "));
  EXPECT_THAT(error("top x --stacks offcpu"),
              HasSubstr("--stacks: 'offcpu' is none of on-cpu, off-cpu: did you mean 'off-cpu'?"));
  EXPECT_THAT(error("record redis-server"), HasSubstr("a process that runs is given with -p"));
  EXPECT_THAT(error("$(printf 'a\\033[2Jb')"), AllOf(Not(HasSubstr("\x1b")), HasSubstr("a\\x1b[2Jb")));
  EXPECT_THAT(error("top --split fwd-bwd --class python x"), HasSubstr("--split"));
}

TEST_F(Program, BadInputSaysWhereAndExitsWith3) {
  const auto missing = run_program("info " + (dir / "no.json").string() + " 2>&1");
  EXPECT_EQ(missing.code, 3);
  EXPECT_THAT(missing.output, HasSubstr("no.json"));
  std::ofstream(dir / "text.txt") << "hello";
  EXPECT_EQ(run_program("top " + (dir / "text.txt").string() + " 2>/dev/null").code, 3);
  std::ofstream(dir / "empty.json") << "";
  EXPECT_EQ(run_program("top " + (dir / "empty.json").string() + " 2>/dev/null").code, 3);
}

TEST_F(Program, InfoCountsAndSums) {
  const auto info = json::parse(run_program("info --json " + trace).output);
  EXPECT_EQ(info["kernels"], 2);
  EXPECT_EQ(info["unique_names"], 2);
  EXPECT_EQ(info["kernel_sum_ns"], 40250);
  EXPECT_EQ(info["memcpy"], 1);
  EXPECT_EQ(info["memcpy_sum_ns"], 1000);
  EXPECT_EQ(info["memset"], 0);
  EXPECT_EQ(info["busy_union_ns"], 41250);
  EXPECT_EQ(info["top_sum_ns"], 30250);
  EXPECT_EQ(info["duration_ns"], 100000);
  EXPECT_THAT(run_program("info --all " + trace).output, AllOf(HasSubstr("Categories"), Not(HasSubstr("\x1b"))));
  EXPECT_EQ(json::parse(run_program("info --json - < " + trace).output)["kernels"], 2);
}

TEST_F(Program, TopInEveryFormatIsSafe) {
  for (const char* format : {"terminal", "markdown", "csv", "json"}) {
    const auto result = run_program("top --format " + std::string(format) + " " + trace);
    EXPECT_EQ(result.code, 0);
    EXPECT_THAT(result.output, AllOf(HasSubstr("gemm"), Not(HasSubstr("\x1b")))) << format;
  }
  const auto top = json::parse(run_program("top --json " + trace).output);
  const auto& row = top["tables"][0]["rows"][0];
  EXPECT_EQ(row["name"], "\x1b[2J</script>|=gemm");
  EXPECT_EQ(row["self_ns"], 30250);
  EXPECT_EQ(row["calls"], 1);
}

TEST_F(Program, TopSplitsThePasses) {
  const auto top = json::parse(run_program("top --json --split fwd-bwd " + trace).output);
  ASSERT_EQ(top["tables"].size(), 3u);
  EXPECT_EQ(top["tables"][0]["title"], "forward only:");
  EXPECT_EQ(top["tables"][0]["rows"].size(), 0u);
  EXPECT_EQ(top["tables"][1]["rows"][0]["name"], "gemm_backward");
  EXPECT_EQ(top["tables"][2]["rows"].size(), 2u);
  std::ofstream(dir / "plain.json") << R"([{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":1,"dur":1}])";
  const auto none = run_program("top --split fwd-bwd " + (dir / "plain.json").string() + " 2>&1");
  EXPECT_EQ(none.code, 2);
  EXPECT_THAT(none.output, HasSubstr("nothing in this trace tells forward from backward"));
}

TEST_F(Program, TopCutsFiltersAndGroups) {
  EXPECT_THAT(run_program("top --limit 1 " + trace).output, HasSubstr("2 more rows with 11.000us (26.67%)"));
  EXPECT_THAT(run_program("top --filter nothing " + trace).output, HasSubstr("No name matches 'nothing'"));
  const auto kinds = json::parse(run_program("top --json --by kind " + trace).output)["tables"][0]["rows"];
  EXPECT_EQ(kinds[0]["kind"], "gpu_compute");
  EXPECT_EQ(kinds[1]["kind"], "gpu_memcpy_h2d");
  const auto ops = json::parse(run_program("top --json --class cpu_op " + trace).output)["tables"][0]["rows"];
  EXPECT_EQ(ops[0]["self_ns"], 18000);
  EXPECT_EQ(ops[0]["total_ns"], 20000);
}

TEST_F(Program, OutputFiles) {
  EXPECT_EQ(run_program("top " + trace + " -o " + (dir / "t.csv").string()).code, 0);
  EXPECT_TRUE(text_of(dir / "t.csv").starts_with("name,self_ns,"));
  const auto same = run_program("top " + trace + " -o " + trace + " 2>&1");
  EXPECT_EQ(same.code, 2);
  EXPECT_THAT(same.output, HasSubstr("is an input file"));
  EXPECT_EQ(text_of(trace), kTrace);
  EXPECT_EQ(run_program("export " + trace + " -o " + trace + " 2>/dev/null").code, 2);
  EXPECT_EQ(run_program("top " + trace + " -o " + (dir / "no" / "t.csv").string() + " 2>/dev/null").code, 4);
}

TEST_F(Program, ClosedAndFullOutputs) {
  EXPECT_EQ(run_program("top " + trace + " >&- 2>/dev/null").code, 4);
  EXPECT_EQ(run_program("top " + trace + " >/dev/full 2>/dev/null").code, 4);
  const std::string big = dir / "big.json";
  {
    std::ofstream out(big);
    out << "[";
    for (int i = 0; i < 20000; ++i)
      out << (i == 0 ? "" : ",") << R"({"ph":"X","cat":"cpu_op","name":"op","pid":1,"tid":1,"ts":)" << i
          << R"(,"dur":1})";
    out << "]";
  }
  const std::string errors = dir / "errors";
  EXPECT_EQ(run_program("export " + big + " -o - 2>" + errors + " | head -c 1").output, "{");
  EXPECT_EQ(text_of(errors), "");
}

TEST_F(Program, ExportLoadsAsTheSameTrace) {
  for (const char* name : {"out.json", "out.json.gz"}) {
    ASSERT_EQ(run_program("export " + trace + " -o " + (dir / name).string()).code, 0);
    EXPECT_EQ(run_program("top --csv --format csv " + trace + " 2>/dev/null").code, 2);
    for (const std::string verb : {"top --class all --format csv ", "top --by stream --format csv "})
      EXPECT_EQ(run_program(verb + (dir / name).string()).output, run_program(verb + trace).output) << name;
    struct stat status {};
    ASSERT_EQ(stat((dir / name).c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0600u);
  }
  EXPECT_TRUE(json::accept(run_program("export " + trace + " -o -").output));
  EXPECT_EQ(run_program("export " + trace + " -o " + (dir / "out.txt").string() + " 2>/dev/null").code, 2);
}

TEST_F(Program, SeveralRanksAreExportedToADirectory) {
  const std::string second = dir / "second.json";
  std::ofstream(second) << kTrace;
  const std::string out = dir / "ranks";
  ASSERT_EQ(run_program("export " + trace + " " + second + " -o " + out).code, 0);
  EXPECT_TRUE(fs::exists(dir / "ranks" / "rank0.json.gz"));
  EXPECT_TRUE(fs::exists(dir / "ranks" / "rank1.json.gz"));
  EXPECT_EQ(json::parse(run_program("info --json " + out + "/rank1.json.gz").output)["kernels"], 2);
  EXPECT_EQ(run_program("export " + trace + " " + second + " -o - 2>/dev/null").code, 2);
}

}  // namespace
}  // namespace culprit
