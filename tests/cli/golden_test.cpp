// The program against counts and sums that plain Python computed from the same files.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "support/program.h"

namespace culprit {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing_support::run_program;

struct Expected {
  std::string path, top_name;
  std::uint64_t kernels = 0, unique = 0, memcpy = 0, top_count = 0;
  double kernel_us = 0, busy_us = 0, memcpy_us = 0, top_us = 0;
};

std::vector<Expected> read_expected(const fs::path& path) {
  std::vector<Expected> rows;
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  while (std::getline(in, line)) {
    std::istringstream cells(line);
    const auto cell = [&] {
      std::string text;
      std::getline(cells, text, '\t');
      return text;
    };
    Expected e;
    e.path = cell();
    e.kernels = std::stoull(cell());
    e.unique = std::stoull(cell());
    e.kernel_us = std::stod(cell());
    e.busy_us = std::stod(cell());
    e.memcpy = std::stoull(cell());
    e.memcpy_us = std::stod(cell());
    e.top_name = cell();
    e.top_count = std::stoull(cell());
    e.top_us = std::stod(cell());
    rows.push_back(e);
  }
  return rows;
}

struct GoldenTraces : testing::Test {
  fs::path shared = fs::path(CULPRIT_SOURCE_DIR) / "../shared";
  std::vector<Expected> expected;
  void SetUp() override {
    if (!fs::exists(shared / "golden/traces.tsv")) GTEST_SKIP() << "shared data missing: " << shared;
    expected = read_expected(shared / "golden/traces.tsv");
    ASSERT_GE(expected.size(), 10u);
  }
};

TEST_F(GoldenTraces, InfoAndTopAgree) {
  for (const Expected& e : expected) {
    SCOPED_TRACE(e.path);
    const std::string file = (shared / "corpus" / e.path).string();
    const auto result = run_program("info --json " + file);
    ASSERT_EQ(result.code, 0);
    const json info = json::parse(result.output);
    const double per_event = 1.0;  // ns
    EXPECT_EQ(info["kernels"], e.kernels);
    EXPECT_EQ(info["unique_names"], e.unique);
    EXPECT_EQ(info["memcpy"], e.memcpy);
    EXPECT_EQ(info["top_count"], e.top_count);
    EXPECT_TRUE(info["top_name"].get<std::string>().starts_with(e.top_name));
    const auto kernels = static_cast<double>(e.kernels + 1);
    EXPECT_NEAR(info["kernel_sum_ns"].get<double>(), e.kernel_us * 1e3, kernels * per_event);
    EXPECT_NEAR(info["memcpy_sum_ns"].get<double>(), e.memcpy_us * 1e3, static_cast<double>(e.memcpy + 1) * per_event);
    EXPECT_NEAR(info["busy_union_ns"].get<double>(), e.busy_us * 1e3,
                (kernels + static_cast<double>(e.memcpy)) * per_event);
    EXPECT_NEAR(info["top_sum_ns"].get<double>(), e.top_us * 1e3, static_cast<double>(e.top_count + 1) * per_event);

    const json rows = json::parse(run_program("top --json --class kernels " + file).output)["tables"][0]["rows"];
    EXPECT_EQ(rows.size(), e.unique);
    std::uint64_t calls = 0;
    std::int64_t sum = 0;
    double share = 0;
    for (const json& row : rows) {
      calls += row["calls"].get<std::uint64_t>();
      sum += row["self_ns"].get<std::int64_t>();
      share += row["share"].get<double>();
      EXPECT_LE(row["min_ns"], row["median_ns"]);
      EXPECT_LE(row["median_ns"], row["max_ns"]);
    }
    EXPECT_EQ(calls, e.kernels);
    EXPECT_EQ(sum, info["kernel_sum_ns"]);
    if (!rows.empty()) {
      EXPECT_EQ(rows[0]["self_ns"], info["top_sum_ns"]);
      EXPECT_NEAR(share, 1, 1e-9);
    }
  }
}

TEST_F(GoldenTraces, ExportedTracesLoadAsTheSame) {
  const fs::path out = fs::temp_directory_path() / ("culprit_export_" + std::to_string(getpid()) + ".json.gz");
  constexpr std::uintmax_t kLarge = 1 << 20;
  std::set<fs::path> folders_of_large_ones;
  for (const Expected& e : expected) {
    SCOPED_TRACE(e.path);
    const fs::path file = shared / "corpus" / e.path;
    // A second one of the same program and profiler tells no more, and takes its seconds.
    if (fs::file_size(file) > kLarge && !folders_of_large_ones.insert(file.parent_path()).second) continue;
    ASSERT_EQ(run_program("export " + file.string() + " --force -o " + out.string()).code, 0);
    json before = json::parse(run_program("info --json " + file.string()).output);
    json after = json::parse(run_program("info --json " + out.string()).output);
    for (const char* key :
         {"input_bytes", "text_bytes", "events", "ranks", "losses", "names", "processes", "threads"}) {
      before.erase(key);  // what the file was, what it lost, and what no event refers to
      after.erase(key);
    }
    EXPECT_EQ(before, after);
    const std::string top = "top --class all --by category --format csv ";
    EXPECT_EQ(run_program(top + file.string()).output, run_program(top + out.string()).output);
  }
  fs::remove(out);
}

TEST_F(GoldenTraces, CausesOfPublishedPairs) {
  const auto verdicts = [&](const std::string& folder) {
    const auto result = run_program("diff --json " + (shared / "corpus/latencyprism" / folder).string());
    EXPECT_EQ(result.code, 0);
    return json::parse(result.output)["comparisons"][0]["verdicts"];
  };
  const json clock = verdicts("SGLang/gpu_instability");
  ASSERT_EQ(clock.size(), 1u);
  EXPECT_EQ(clock[0]["cause"], "gpu_clock_drop");
  EXPECT_EQ(clock[0]["scope"]["device"], "GPU 7");
  EXPECT_EQ(clock[0]["state"], "latent");
  EXPECT_NEAR(clock[0]["work_ratio"].get<double>(), 3.6, 0.1);
  const json cpu = verdicts("vLLM/cpu_compute_squeeze_out");
  ASSERT_EQ(cpu.size(), 1u);
  EXPECT_EQ(cpu[0]["cause"], "cpu_contention");
  EXPECT_EQ(cpu[0]["detail"], "other_processes");
  EXPECT_EQ(cpu[0]["state"], "active");
}

TEST_F(GoldenTraces, RunsOfTheSameHaveNoCause) {
  const std::string folder = (shared / "corpus/kineto/xdit_flux_null").string();
  const auto result = run_program(fmt::format("diff --json {0}/iteration_0.json.gz {0}/iteration_1.json.gz", folder));
  ASSERT_EQ(result.code, 0);
  EXPECT_TRUE(json::parse(result.output)["verdicts"].empty());
}

}  // namespace
}  // namespace culprit
