// The program against counts and sums that plain Python computed from the same files.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

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
  const auto comparison = [&](const std::string& folder) {
    const auto result = run_program("diff --json " + (shared / "corpus/latencyprism" / folder).string());
    EXPECT_EQ(result.code, 0);
    return json::parse(result.output);
  };
  const json instability = comparison("SGLang/gpu_instability");
  ASSERT_TRUE(instability["outcome"].is_string());
  EXPECT_FALSE(instability["outcome"].get<std::string>().empty());
  EXPECT_NE(instability["outcome"], "regression");
  const json& clock = instability["verdicts"];
  ASSERT_EQ(clock.size(), 1u);
  EXPECT_EQ(clock[0]["cause"], "gpu_clock_drop");
  EXPECT_EQ(clock[0]["scope"]["device"], "GPU 7");
  EXPECT_EQ(clock[0]["state"], "latent");
  EXPECT_NEAR(clock[0]["work_ratio"].get<double>(), 3.6, 0.1);
  // The multiplications ran at 1187 MHz before; the mean of all that ran there is a little less.
  std::smatch megahertz;
  const auto evidence = clock[0]["evidence"][0].get<std::string>();
  ASSERT_TRUE(std::regex_search(evidence, megahertz, std::regex("([0-9]+) instead of ([0-9]+) MHz"))) << evidence;
  EXPECT_NEAR(std::stod(megahertz[1]), 210, 1);
  EXPECT_NEAR(std::stod(megahertz[2]), 1187, 20);
  const json cpu = comparison("vLLM/cpu_compute_squeeze_out")["verdicts"];
  ASSERT_EQ(cpu.size(), 1u);
  EXPECT_EQ(cpu[0]["cause"], "cpu_contention");
  EXPECT_EQ(cpu[0]["detail"], "other_processes");
  EXPECT_EQ(cpu[0]["state"], "active");
}

/// Sum over the findings on devices, ns per cycle of a side.
double on_devices(const json& comparison, std::size_t side) {
  double sum = 0;
  for (const json& f : comparison["findings"])
    if (f["kind"].get<std::string>().starts_with("gpu")) sum += f["ns_per_cycle"][side].get<double>();
  return sum;
}

struct PublishedPairs : GoldenTraces {
  json by_impact(const std::string& folder) const {
    const auto result = run_program("diff --json " + (shared / "corpus/latencyprism" / folder).string());
    EXPECT_EQ(result.code, 0);
    json document = json::parse(result.output);
    return document.contains("comparisons") ? document["comparisons"][0] : document;
  }
};

TEST_F(PublishedPairs, ALockedClockIsLatentWhereStepsAreNotLonger) {
  const json c = by_impact("SGLang/gpu_instability");
  EXPECT_NE(c["outcome"], "regression");
  EXPECT_NE(c["outcome"], "improvement");
  ASSERT_EQ(c["cycle_time"].size(), 1u);
  EXPECT_LT(c["cycle_time"][0]["ratio"], 1.05) << "two long cycles of ten";
  EXPECT_NEAR(on_devices(c, 1) / on_devices(c, 0), 3.6, 0.1);
  ASSERT_EQ(c["verdicts"].size(), 1u);
  EXPECT_EQ(c["verdicts"][0]["state"], "latent");
  const auto tables =
      run_program("diff --json --score suspicion " + (shared / "corpus/latencyprism/SGLang/gpu_instability").string());
  const auto median = [](const json& cycles) {
    auto times = cycles.get<std::vector<double>>();
    std::ranges::sort(times);
    return (times[(times.size() - 1) / 2] + times[times.size() / 2]) / 2;
  };
  const json pair = json::parse(tables.output)["comparisons"][0];
  EXPECT_NEAR(median(pair["candidate"]["cycle_us"]) / median(pair["baseline"]["cycle_us"]), 1, 0.005);
}

TEST_F(PublishedPairs, ACompetitorOnTheCpusAccusesNoMultiplication) {
  const json c = by_impact("vLLM/cpu_compute_squeeze_out");
  EXPECT_EQ(c["outcome"], "regression");
  ASSERT_EQ(c["cycle_time"].size(), 1u);
  EXPECT_NEAR(c["cycle_time"][0]["ratio"], 1.9, 0.1);
  EXPECT_NEAR(on_devices(c, 1) / on_devices(c, 0), 1, 0.01);
  std::size_t multiplications = 0;
  for (const json& f : c["findings"]) {
    if (f["function"].get<std::string>().find("gemm") == std::string::npos) continue;
    ++multiplications;
    EXPECT_NE(f["status"], "changed") << f["function"];
  }
  EXPECT_GT(multiplications, 0u);
}

TEST_F(GoldenTraces, RunsOfTheSameHaveNoCause) {
  const std::string folder = (shared / "corpus/kineto/xdit_flux_null").string();
  for (const auto& [base, candidate] : {std::pair(0, 1), std::pair(1, 0)}) {
    const auto result = run_program(
        fmt::format("diff --json {0}/iteration_{1}.json.gz {0}/iteration_{2}.json.gz", folder, base, candidate));
    ASSERT_EQ(result.code, 0);
    const json c = json::parse(result.output);
    EXPECT_TRUE(c["outcome"] == "inconclusive" || c["outcome"] == "no_change") << c["outcome"];
    EXPECT_TRUE(c["verdicts"].empty());
    for (const json& f : c["findings"]) EXPECT_TRUE(f["status"] == "same" || f["status"] == "unknown") << f["function"];
  }
}

}  // namespace
}  // namespace culprit
