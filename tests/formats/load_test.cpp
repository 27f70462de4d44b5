// The registry and the two doors behind it.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <utility>

#include "formats/load.h"
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

std::string_view name_of(std::string_view start, std::string_view path) {
  const Format* format = detect(start, path);
  return format == nullptr ? "unrecognized" : format->name;
}

TEST(Registry, ContentDecidesNotTheName) {
  EXPECT_EQ(name_of(kLog, "trace.json"), "a kernel launch log");
  EXPECT_EQ(name_of(kNcu, "x.sqlite"), "Nsight Compute CSV");
  EXPECT_EQ(name_of(kSummary, "x"), "a profiler table");
  EXPECT_EQ(name_of(kJson, "x.csv"), "a JSON trace");
  EXPECT_EQ(name_of(std::string_view("SQLite format 3\0", 16), "x.json"), "an SQLite database");
  EXPECT_EQ(name_of(std::string_view("NVR\0abc", 7), "x"), "an Nsight Compute report");
  EXPECT_EQ(name_of("bytes", "x.nsys-rep"), "an Nsight Systems report");
  EXPECT_EQ(name_of("bytes", "x.txt"), "unrecognized");
  EXPECT_EQ(name_of("[INFO] started\n" + std::string(kNcu), "x"), "Nsight Compute CSV");
}

TEST(Load, KernelsWithoutTimelineAreNoTrace) {
  const TempDir dir;
  const auto trace = load_run({dir.file("a.txt", kLog)}, {.threads = 1});
  ASSERT_FALSE(trace);
  EXPECT_EQ(trace.error().kind, ErrorKind::input);
  EXPECT_NE(trace.error().remedy.find("culprit kernels"), std::string::npos);
}

Result<model::KernelLog> load_log(const std::vector<std::string>& paths) {
  auto data = load_kernel_data(paths, {.threads = 1});
  if (!data) return data.error();
  if (auto* log = std::get_if<model::KernelLog>(&*data)) return std::move(*log);
  return input_error("no log", paths.front());
}

TEST(LoadKernels, EveryKindOfLog) {
  const TempDir dir;
  const auto text = load_log({dir.file("a.txt", kLog)});
  ASSERT_TRUE(text) << to_string(text.error());
  EXPECT_EQ(text->source, model::KernelSource::text_log);
  const auto packed = load_log({dir.file("a.txt.gz", test::gzip(kLog))});
  ASSERT_TRUE(packed) << to_string(packed.error());
  EXPECT_EQ(packed->launches.size(), 1U);
  const auto ncu = load_log({dir.file("a.csv", kNcu)});
  ASSERT_TRUE(ncu) << to_string(ncu.error());
  EXPECT_EQ(ncu->launches[0].latency, 123);
  const auto summary = load_kernel_data({dir.file("t.txt", kSummary)}, {.threads = 1});
  ASSERT_TRUE(summary);
  EXPECT_TRUE(std::holds_alternative<model::KernelSummaries>(*summary));
  const auto trace = load_kernel_data({dir.file("a.json", kJson)}, {.threads = 1});
  ASSERT_TRUE(trace);
  EXPECT_TRUE(std::holds_alternative<Trace>(*trace));
  EXPECT_FALSE(load_log({dir.path("missing")}));
}

TEST(LoadKernels, DifferentKindsAreNoCapture) {
  const TempDir dir;
  const std::vector<std::string> files = {dir.file("a.csv", kNcu), dir.file("t.txt", kSummary),
                                          dir.file("a.json", kJson)};
  for (std::size_t i = 0; i < files.size(); ++i) {
    const auto mixed = load_kernel_data({files[i], files[(i + 1) % files.size()]}, {});
    ASSERT_FALSE(mixed);
    EXPECT_EQ(mixed.error().kind, ErrorKind::input);
    EXPECT_NE(mixed.error().what.find("different kinds"), std::string::npos);
  }
}

TEST(LoadKernels, SeveralFilesFollowEachOther) {
  const TempDir dir;
  const auto log = load_log({dir.file("a", kNcu), dir.file("b", std::string(kNcu) + "1,8,other,7\n")});
  ASSERT_TRUE(log) << to_string(log.error());
  ASSERT_EQ(log->launches.size(), 3U);
  EXPECT_EQ(log->names[log->launches[2].name], "other");
  EXPECT_EQ(log->processes[static_cast<std::size_t>(log->launches[2].process)].pid, 8);
  EXPECT_EQ(log->metrics.back().launch, 2U);
  EXPECT_EQ(log->inputs.size(), 2U);
}

TEST(Load, UnrecognizedFilesAreToldWhatWouldBe) {
  const TempDir dir;
  const auto trace = load_run({dir.file("a.bin", "some words")}, {});
  ASSERT_FALSE(trace);
  EXPECT_EQ(trace.error().kind, ErrorKind::input);
  EXPECT_EQ(trace.error().what, "unrecognized format");
  for (const char* words : {"JSON trace", "recording", "SQLite export", "Nsight Compute CSV", "launch log", "table"})
    EXPECT_NE(trace.error().remedy.find(words), std::string::npos) << words;
  const std::string& remedy = trace.error().remedy;
  EXPECT_EQ(remedy.find(", or "), remedy.rfind(", or "));
}

TEST(Load, AProfileTableIsNamedWithWhatComparesIt) {
  const TempDir dir;
  const std::string header = "cycle,pid,hostname,beta_pct,function_name,metric_name,device\r\n";
  const std::string row = "1,7,,5,f,m,Host\r\n";
  for (const std::string& text : {header + row, header, "\xEF\xBB\xBF" + header + row}) {
    const std::string table = dir.file("t.csv", text);
    for (const Error& error : {load_run({table}, {}).error(), load_kernel_data({table}, {}).error()}) {
      EXPECT_EQ(error.kind, ErrorKind::input);
      EXPECT_NE(error.what.find("is a profile table"), std::string::npos) << error.what;
      EXPECT_NE(error.remedy.find("culprit diff"), std::string::npos) << error.remedy;
    }
  }
  const auto other = load_run({dir.file("o.csv", "cycle,pid,name\n1,7,beta_pct\n")}, {});
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().what, "unrecognized format");
}

/// One error of usage, whatever the two names of the file are.
void expect_one_file(const std::string& a, const std::string& b) {
  for (const unsigned threads : {1U, 2U}) {
    const auto trace = load_run({a, b}, {.threads = threads});
    ASSERT_FALSE(trace);
    EXPECT_EQ(trace.error().kind, ErrorKind::usage);
    EXPECT_NE(trace.error().what.find(a), std::string::npos);
    EXPECT_NE(trace.error().what.find(b), std::string::npos);
  }
  const auto kernels = load_kernel_data({a, b}, {});
  ASSERT_FALSE(kernels);
  EXPECT_EQ(kernels.error().kind, ErrorKind::usage);
}

TEST(Load, AFileUnderTwoNamesIsOneFile) {
  const TempDir dir;
  const std::string file = dir.file("a.json", kJson);
  std::filesystem::create_symlink(file, dir.path("symbolic.json"));
  std::filesystem::create_hard_link(file, dir.path("hard.json"));
  std::filesystem::create_directory(dir.path("sub"));
  expect_one_file(file, file);
  expect_one_file(file, dir.path("symbolic.json"));
  expect_one_file(dir.path("hard.json"), file);
  expect_one_file(file, dir.path("sub/../a.json"));
  expect_one_file(file, dir.path("./a.json"));
  expect_one_file("-", "-");
}

TEST(Load, ACopyIsAnotherRank) {
  const TempDir dir;
  const auto trace = load_run({dir.file("a.json", kJson), dir.file("b.json", kJson)}, {});
  ASSERT_TRUE(trace) << to_string(trace.error());
  EXPECT_EQ(trace->ranks.size(), 2U);
}

/// `content` comes out of a pipe with a name.
class Fifo {
 public:
  Fifo(const TempDir& dir, const std::string& name, std::string content) : path_(dir.path(name)) {
    EXPECT_EQ(::mkfifo(path_.c_str(), 0600), 0);
    writer_ = std::jthread(
        [path = path_, content = std::move(content)] { std::ofstream(path, std::ios::binary) << content; });
  }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
  std::jthread writer_;
};

TEST(Load, PipesAreReadOnce) {
  const TempDir dir;
  const Fifo one(dir, "one", std::string(kJson));
  const Fifo two(dir, "two", test::gzip(kJson));
  std::uint64_t total = 1;
  const auto trace = load_run({one.path(), two.path(), dir.file("three", kJson)},
                              {.threads = 2, .progress = [&](std::uint64_t, std::uint64_t all) { total = all; }});
  ASSERT_TRUE(trace) << to_string(trace.error());
  EXPECT_EQ(trace->gpu.size(), 6U);
  EXPECT_EQ(total, 0U) << "the size of a pipe is not known";
}

TEST(Load, KernelDataComesFromPipes) {
  const TempDir dir;
  for (const std::string_view text : {kLog, kNcu, kSummary, kJson}) {
    const Fifo pipe(dir, "pipe", std::string(text));
    const auto data = load_kernel_data({pipe.path()}, {});
    EXPECT_TRUE(data) << text << (data ? "" : to_string(data.error()));
    std::filesystem::remove(pipe.path());
  }
}

TEST(Load, WhatNeedsAFileSaysSo) {
  const TempDir dir;
  for (const std::string_view text : {std::string_view("SQLite format 3\0", 16), std::string_view("NVR\0", 4)}) {
    const Fifo pipe(dir, "pipe", std::string(text));
    const auto data = load_kernel_data({pipe.path()}, {});
    ASSERT_FALSE(data);
    EXPECT_EQ(data.error().kind, ErrorKind::input);
    EXPECT_NE(data.error().what.find("pipe"), std::string::npos);
    std::filesystem::remove(pipe.path());
    const auto packed = load_kernel_data({dir.file("packed", test::gzip(text))}, {});
    ASSERT_FALSE(packed);
    EXPECT_NE(packed.error().remedy.find("decompress"), std::string::npos);
  }
}

TEST(Load, WhatAFileExpandsToIsLimited) {
  const TempDir dir;
  std::string packets;
  for (int i = 0; i < 3'000'000; ++i) packets.append("\x0a\x00", 2);
  const std::string bomb = dir.file("bomb.pftrace", test::gzip("\x0a\x04\x52\x02\x08\x01" + packets));
  const auto refused = load_run({bomb}, {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::input);
  EXPECT_NE(refused.error().what.find("200 times"), std::string::npos);
  EXPECT_NE(refused.error().remedy.find("--max-expansion"), std::string::npos);
  EXPECT_TRUE(load_run({bomb}, {.max_expansion = 0}));
}

TEST(Load, CountersOfProfilerRangesAreKept) {
  CULPRIT_NEEDS_SHARED("corpus/kineto/hta_small/cupti_profiler");
  const auto trace = load_run(
      {test::shared("corpus/kineto/hta_small/cupti_profiler/benchmark_result_924719_1679055439_trace.json.gz")},
      {.threads = 1});
  ASSERT_TRUE(trace);
  EXPECT_EQ(trace->metrics.size(), 77U * 9U);
  const SliceMetric& first = trace->metrics[0];
  EXPECT_EQ(trace->slice_class(trace->slices[first.slice]), SliceClass::counter_range);
}

TEST(Load, OccupancyOfEveryKernelIsKept) {
  CULPRIT_NEEDS_SHARED("corpus/kineto/train_a100_graphs/rank0.json.gz");
  const auto trace = load_run({test::shared("corpus/kineto/train_a100_graphs/rank0.json.gz")}, {.threads = 1});
  ASSERT_TRUE(trace);
  EXPECT_EQ(trace->metrics.size(), 6080U);
}

TEST(Report, WithoutTheProgramTheErrorNamesTheCommand) {
  const TempDir dir;
  const PathGuard guard(dir.path());
  const auto trace = load_run({dir.file("a.nsys-rep", "bytes")}, {.threads = 1});
  ASSERT_FALSE(trace);
  EXPECT_NE(trace.error().remedy.find("nsys export"), std::string::npos);
  const auto log = load_log({dir.file("a.ncu-rep", std::string_view("NVR\0x", 5))});
  ASSERT_FALSE(log);
  EXPECT_NE(log.error().remedy.find("ncu --import"), std::string::npos);
}

TEST(Report, IsConvertedAndTheCopyRemoved) {
  const TempDir dir;
  test::run_sql(dir.path("source"),
                "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INT, end INT);INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL "
                "VALUES(1,5);");
  // nsys export --type sqlite --output FILE REPORT
  make_program(dir, "nsys", "cp '" + dir.path("source") + "' \"$5\" && echo \"$5\" > '" + dir.path("seen") + "'\n");
  make_program(dir, "ncu", "printf 'ID,Process ID,Kernel Name,gpu__time_duration.sum\\n0,7,k,123\\n'\n");
  const PathGuard guard(dir.path() + ":" + std::getenv("PATH"));
  const auto trace = load_run({dir.file("a.nsys-rep", "bytes")}, {.threads = 1});
  ASSERT_TRUE(trace) << to_string(trace.error());
  EXPECT_EQ(trace->gpu.size(), 1U);
  EXPECT_EQ(trace->ranks[0].path, dir.path("a.nsys-rep"));
  auto seen = std::filesystem::path(dir.path("seen"));
  std::string copy;
  std::ifstream(seen) >> copy;
  EXPECT_FALSE(copy.empty());
  EXPECT_FALSE(std::filesystem::exists(copy));
  const auto log = load_log({dir.file("a.ncu-rep", std::string_view("NVR\0x", 5))});
  ASSERT_TRUE(log) << to_string(log.error());
  EXPECT_EQ(log->launches[0].latency, 123);
}

TEST(Report, AFailingProgramIsQuoted) {
  const TempDir dir;
  make_program(dir, "nsys", "echo 'report is from a newer version' >&2; exit 1\n");
  const PathGuard guard(dir.path() + ":" + std::getenv("PATH"));
  const auto trace = load_run({dir.file("a.nsys-rep", "bytes")}, {.threads = 1});
  ASSERT_FALSE(trace);
  EXPECT_NE(trace.error().what.find("newer version"), std::string::npos);
}

}  // namespace
}  // namespace culprit::formats
