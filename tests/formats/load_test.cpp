// The registry and the two doors behind it.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "formats/convert_report.h"
#include "formats/load.h"
#include "formats/load_kernels.h"
#include "formats/registry.h"
#include "support/database_maker.h"
#include "support/shared_data.h"
#include "support/temp_file.h"

namespace culprit::formats {
namespace {

using test::TempDir;

constexpr std::string_view kLog = "Kernel  Latency Tensor DRAM\ngemm | 5 0.1 0.2\n";
constexpr std::string_view kNcu = "ID,Process ID,Kernel Name,gpu__time_duration.sum\n0,7,k,123\n";
constexpr std::string_view kSummary =
    "------  ------------  \n  Name     Self CUDA  \n------  ------------  \n     a       1.000ms  \n------  "
    "------------  \n";
constexpr std::string_view kJson =
    R"({"traceEvents": [{"ph":"X","cat":"kernel","name":"late","pid":0,"tid":7,"ts":9,"dur":2,"args":{"device":0,"stream":7,
"est. achieved occupancy %": 40}},{"ph":"X","cat":"kernel","name":"early","pid":0,"tid":7,"ts":1,"dur":3,
"args":{"device":0,"stream":7,"grid":[2,1,1],"est. achieved occupancy %": 0}}]})";

/// Puts `folder` in front of PATH, or nothing but it.
class PathGuard {
 public:
  explicit PathGuard(const std::string& value) : old_(std::getenv("PATH")) { ::setenv("PATH", value.c_str(), 1); }
  ~PathGuard() { ::setenv("PATH", old_.c_str(), 1); }

 private:
  std::string old_;
};

void make_program(const TempDir& dir, const std::string& name, const std::string& script) {
  const std::string path = dir.file(name, "#!/bin/sh\n" + script);
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
}

TEST(Registry, ContentDecidesNotTheName) {
  EXPECT_EQ(detect(kLog, "trace.json"), Format::launch_log);
  EXPECT_EQ(detect(kNcu, "x.sqlite"), Format::ncu_csv);
  EXPECT_EQ(detect(kSummary, "x"), Format::summary_table);
  EXPECT_EQ(detect(kJson, "x.csv"), Format::kineto);
  EXPECT_EQ(detect(std::string_view("SQLite format 3\0", 16), "x.json"), Format::nsys_sqlite);
  EXPECT_EQ(detect(std::string_view("NVR\0abc", 7), "x"), Format::ncu_report);
  EXPECT_EQ(detect("bytes", "x.nsys-rep"), Format::nsys_report);
  EXPECT_EQ(detect("bytes", "x.txt"), Format::unknown);
  EXPECT_EQ(detect("[INFO] started\n" + std::string(kNcu), "x"), Format::ncu_csv);
}

TEST(Load, KernelsWithoutTimelineAreNoTrace) {
  const TempDir dir;
  const auto trace = load_run({dir.file("a.txt", kLog)}, {.threads = 1, .progress = {}});
  ASSERT_FALSE(trace);
  EXPECT_EQ(trace.error().kind, ErrorKind::input);
  EXPECT_NE(trace.error().remedy.find("culprit kernels"), std::string::npos);
}

TEST(LoadKernels, EveryKindOfLog) {
  const TempDir dir;
  const LoadOptions options{.threads = 1, .progress = {}};
  const auto text = load_kernel_log({dir.file("a.txt", kLog)}, options);
  ASSERT_TRUE(text) << to_string(text.error());
  EXPECT_EQ(text->source, model::KernelSource::text_log);
  const auto packed = load_kernel_log({dir.file("a.txt.gz", test::gzip(kLog))}, options);
  ASSERT_TRUE(packed) << to_string(packed.error());
  EXPECT_EQ(packed->launches.size(), 1U);
  const auto ncu = load_kernel_log({dir.file("a.csv", kNcu)}, options);
  ASSERT_TRUE(ncu) << to_string(ncu.error());
  EXPECT_EQ(ncu->launches[0].latency, 123);
  EXPECT_FALSE(load_kernel_log({dir.file("t.txt", kSummary)}, options));
  EXPECT_TRUE(load_kernel_summaries(dir.path("t.txt")));
  EXPECT_FALSE(load_kernel_summaries(dir.path("a.csv")));
  EXPECT_FALSE(load_kernel_log({dir.path("a.csv"), dir.path("t.txt")}, options));
  EXPECT_FALSE(load_kernel_log({dir.path("missing")}, options));
}

TEST(LoadKernels, SeveralFilesFollowEachOther) {
  const TempDir dir;
  const auto log = load_kernel_log({dir.file("a", kNcu), dir.file("b", std::string(kNcu) + "1,8,other,7\n")},
                                   {.threads = 1, .progress = {}});
  ASSERT_TRUE(log) << to_string(log.error());
  ASSERT_EQ(log->launches.size(), 3U);
  EXPECT_EQ(log->names[log->launches[2].name], "other");
  EXPECT_EQ(log->processes[static_cast<std::size_t>(log->launches[2].process)].pid, 8);
  EXPECT_EQ(log->metrics.back().launch, 2U);
  EXPECT_EQ(log->inputs.size(), 2U);
}

TEST(LoadKernels, TracesGiveLaunchesInOrderOfBegin) {
  const TempDir dir;
  const auto log = load_kernel_log({dir.file("a.json", kJson)}, {.threads = 1, .progress = {}});
  ASSERT_TRUE(log) << to_string(log.error());
  ASSERT_EQ(log->launches.size(), 2U);
  EXPECT_EQ(log->names[log->launches[0].name], "early");
  EXPECT_EQ(log->launches[0].begin, 0);
  EXPECT_EQ(log->launches[1].begin, 8000);
  EXPECT_FLOAT_EQ(log->launches[1].occupancy, 0.4F);
  EXPECT_FLOAT_EQ(log->launches[0].occupancy, 0);
  EXPECT_EQ(log->launches[0].grid[0], 2U);
  EXPECT_TRUE(std::isnan(log->launches[0].dram));
}

TEST(LoadKernels, ProfilerRangesCountForTheirKernels) {
  const TempDir dir;
  const std::string text =
      R"({"traceEvents": [{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":1,"dur":2,"args":{"device":0,"stream":7}},
{"ph":"X","cat":"cuda_profiler_range","name":"k","pid":0,"tid":0,"ts":100,"dur":50,
"args":{"dram__throughput.avg.pct_of_peak_sustained_elapsed": 25.0, "dram__bytes.sum": 1024}}]})";
  const auto log = load_kernel_log({dir.file("a.json", text)}, {.threads = 1, .progress = {}});
  ASSERT_TRUE(log) << to_string(log.error());
  EXPECT_FLOAT_EQ(log->launches[0].dram, 0.25F);
  EXPECT_DOUBLE_EQ(log->launches[0].dram_bytes, 1024);
  EXPECT_EQ(log->launches[0].latency, 2000);
}

TEST(LoadKernels, RangesOfOtherKernelsAreNotUsed) {
  const TempDir dir;
  const std::string text =
      R"({"traceEvents": [{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":1,"dur":2,"args":{"device":0,"stream":7}},
{"ph":"X","cat":"cuda_profiler_range","name":"other","pid":0,"tid":0,"ts":100,"dur":50,"args":{"dram__bytes.sum": 1024}}]})";
  const auto log = load_kernel_log({dir.file("a.json", text)}, {.threads = 1, .progress = {}});
  ASSERT_TRUE(log);
  EXPECT_TRUE(std::isnan(log->launches[0].dram_bytes));
  EXPECT_EQ(log->notes.size(), 1U);
}

TEST(Load, CountersOfProfilerRangesAreKept) {
  CULPRIT_NEEDS_SHARED("corpus/kineto/hta_small/cupti_profiler");
  const auto trace = load_run(
      {test::shared("corpus/kineto/hta_small/cupti_profiler/benchmark_result_924719_1679055439_trace.json.gz")},
      {.threads = 1, .progress = {}});
  ASSERT_TRUE(trace);
  EXPECT_EQ(trace->metrics.size(), 77U * 9U);
  const SliceMetric& first = trace->metrics[0];
  EXPECT_EQ(trace->slice_class(trace->slices[first.slice]), SliceClass::counter_range);
}

TEST(Load, OccupancyOfEveryKernelIsKept) {
  CULPRIT_NEEDS_SHARED("corpus/kineto/train_a100_graphs/rank0.json.gz");
  const auto trace =
      load_run({test::shared("corpus/kineto/train_a100_graphs/rank0.json.gz")}, {.threads = 1, .progress = {}});
  ASSERT_TRUE(trace);
  EXPECT_EQ(trace->metrics.size(), 6080U);
}

TEST(Report, WithoutTheProgramTheErrorNamesTheCommand) {
  const TempDir dir;
  const PathGuard guard(dir.path());
  const auto trace = load_run({dir.file("a.nsys-rep", "bytes")}, {.threads = 1, .progress = {}});
  ASSERT_FALSE(trace);
  EXPECT_NE(trace.error().remedy.find("nsys export"), std::string::npos);
  const auto log =
      load_kernel_log({dir.file("a.ncu-rep", std::string_view("NVR\0x", 5))}, {.threads = 1, .progress = {}});
  ASSERT_FALSE(log);
  EXPECT_NE(log.error().remedy.find("ncu --import"), std::string::npos);
}

TEST(Report, IsConvertedAndTheCopyRemoved) {
  const TempDir dir;
  test::run_sql(dir.path("source"),
                "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INT, end INT);INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL "
                "VALUES(1,5);");
  // nsys export --type sqlite --force-overwrite true --output FILE REPORT
  make_program(dir, "nsys", "cp '" + dir.path("source") + "' \"$7\" && echo \"$7\" > '" + dir.path("seen") + "'\n");
  make_program(dir, "ncu", "printf 'ID,Process ID,Kernel Name,gpu__time_duration.sum\\n0,7,k,123\\n'\n");
  const PathGuard guard(dir.path() + ":" + std::getenv("PATH"));
  const auto trace = load_run({dir.file("a.nsys-rep", "bytes")}, {.threads = 1, .progress = {}});
  ASSERT_TRUE(trace) << to_string(trace.error());
  EXPECT_EQ(trace->gpu.size(), 1U);
  EXPECT_EQ(trace->ranks[0].path, dir.path("a.nsys-rep"));
  auto seen = std::filesystem::path(dir.path("seen"));
  std::string copy;
  std::ifstream(seen) >> copy;
  EXPECT_FALSE(copy.empty());
  EXPECT_FALSE(std::filesystem::exists(copy));
  const auto log =
      load_kernel_log({dir.file("a.ncu-rep", std::string_view("NVR\0x", 5))}, {.threads = 1, .progress = {}});
  ASSERT_TRUE(log) << to_string(log.error());
  EXPECT_EQ(log->launches[0].latency, 123);
}

TEST(Report, AFailingProgramIsQuoted) {
  const TempDir dir;
  make_program(dir, "nsys", "echo 'report is from a newer version' >&2; exit 1\n");
  const PathGuard guard(dir.path() + ":" + std::getenv("PATH"));
  const auto trace = load_run({dir.file("a.nsys-rep", "bytes")}, {.threads = 1, .progress = {}});
  ASSERT_FALSE(trace);
  EXPECT_NE(trace.error().what.find("newer version"), std::string::npos);
}

TEST(Load, DatabasesOfNsightSystems) {
  CULPRIT_NEEDS_SHARED("corpus/nsys/mock.sqlite");
  const auto log = load_kernel_log({test::shared("corpus/nsys/mock.sqlite")}, {.threads = 1, .progress = {}});
  ASSERT_TRUE(log) << to_string(log.error());
  EXPECT_EQ(log->launches.size(), 2U);
  EXPECT_LE(log->launches[0].begin, log->launches[1].begin);
}

}  // namespace
}  // namespace culprit::formats
