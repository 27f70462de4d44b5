#include "formats/nsys_sqlite/reader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

#include "support/database_maker.h"
#include "support/shared_data.h"
#include "support/temp_file.h"

namespace culprit::formats::nsys_sqlite {
namespace {

using test::ask_sql;
using test::global;
using test::run_sql;

const std::string kStrings =
    "CREATE TABLE StringIds(id INTEGER, value TEXT);"
    "INSERT INTO StringIds VALUES(1,'gemm<float>'),(2,'cudaLaunchKernel_v7000'),(3,'train'),(4,'main'),(5,'read');";
const std::string kKernels =
    "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INT, end INT, deviceId INT, contextId INT, streamId INT, "
    "correlationId "
    "INT, globalPid INT, demangledName INT, shortName INT, gridX INT, gridY INT, gridZ INT, blockX INT, blockY INT, "
    "blockZ "
    "INT, registersPerThread INT, staticSharedMemory INT, dynamicSharedMemory INT, graphNodeId INT);";
const std::string kRuntime =
    "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME(start INT, end INT, eventClass INT, globalTid INT, correlationId INT, "
    "nameId "
    "INT);";

std::string kernel(int begin, int end, int device, int correlation, std::int64_t pid) {
  return "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES(" + std::to_string(begin) + "," + std::to_string(end) + "," +
         std::to_string(device) + ",1,7," + std::to_string(correlation) + "," + global(pid) +
         ",1,1,8,4,2,128,1,1,40,16,32,NULL);";
}

std::string runtime(int begin, int end, int correlation, std::int64_t pid, std::int64_t tid) {
  return "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES(" + std::to_string(begin) + "," + std::to_string(end) + ",0," +
         global(pid, tid) + "," + std::to_string(correlation) + ",2);";
}

class NsysReader : public testing::Test {
 protected:
  Trace load(const std::string& sql) {
    run_sql(path_, sql);
    auto trace = read(path_);
    EXPECT_TRUE(trace) << to_string(trace.error());
    return trace ? std::move(*trace) : Trace{};
  }
  const Slice* find(const Trace& trace, std::string_view name) {
    for (std::size_t i = 0; i < trace.slices.size(); ++i)
      if (trace.name(trace.slices[i]) == name) return &trace.slices[i];
    return nullptr;
  }
  test::TempDir dir_;
  std::string path_ = dir_.path("a b?%#.sqlite");
};

TEST_F(NsysReader, KernelWithItsLauncher) {
  const Trace trace = load(kStrings + kKernels + kRuntime + runtime(10, 15, 9, 70, 71) + kernel(20, 50, 1, 9, 70));
  ASSERT_EQ(trace.gpu.size(), 1U);
  const GpuSlice& gpu = trace.gpu[0];
  EXPECT_EQ(trace.name(trace.slices[gpu.slice]), "gemm<float>");
  EXPECT_EQ(trace.slices[gpu.slice].duration, 30);
  EXPECT_EQ(gpu.device, 1);
  EXPECT_EQ(gpu.stream, 7);
  EXPECT_EQ(gpu.grid[0], 8U);
  EXPECT_EQ(gpu.block[0], 128);
  EXPECT_EQ(gpu.shared_memory, 48U);
  ASSERT_NE(gpu.launcher, kNone);
  EXPECT_EQ(trace.name(trace.slices[gpu.launcher]), "cudaLaunchKernel");
  const Track& thread = trace.tracks[trace.slices[gpu.launcher].track];
  EXPECT_EQ(thread.tid, 71);
  EXPECT_EQ(trace.processes[thread.process].pid, 70);
}

TEST_F(NsysReader, EqualCorrelationIdsOfTwoProcessesStayApart) {
  const Trace trace = load(kStrings + kKernels + kRuntime + runtime(10, 15, 9, 70, 71) + runtime(11, 16, 9, 80, 81) +
                           kernel(20, 50, 0, 9, 70) + kernel(21, 51, 1, 9, 80));
  ASSERT_EQ(trace.gpu.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    const Slice& launcher = trace.slices[trace.gpu[i].launcher];
    EXPECT_EQ(trace.processes[trace.tracks[launcher.track].process].pid, i == 0 ? 70 : 80);
  }
}

TEST_F(NsysReader, EqualProcessNumbersOfTwoMachinesStayApart) {
  const Trace trace = load(kStrings + kRuntime + runtime(10, 15, 9, 70, 71) +
                           "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES(10,15,0," + global(70, 71, 2) + ",9,2);");
  EXPECT_EQ(trace.processes.size(), 2U);
}

TEST_F(NsysReader, CopiesSetsAndSynchronisation) {
  const Trace trace = load(
      kStrings +
      "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY(start INT, end INT, deviceId INT, contextId INT, streamId INT, "
      "correlationId "
      "INT, globalPid INT, bytes INT, copyKind INT, srcKind INT, dstKind INT);"
      "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET(start INT, end INT, deviceId INT, contextId INT, streamId INT, "
      "correlationId "
      "INT, globalPid INT, bytes INT, memKind INT);"
      "CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION(start INT, end INT, deviceId INT, contextId INT, streamId INT, "
      "correlationId INT, globalPid INT, syncType INT);"
      "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES(1,3,0,1,7,5," +
      global(70) +
      ",4096,1,0,2);"
      "INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET VALUES(4,5,0,1,7,6," +
      global(70) +
      ",64,2);"
      "INSERT INTO CUPTI_ACTIVITY_KIND_SYNCHRONIZATION VALUES(4,9,0,1,4294967295,6," +
      global(70) + ",3);");
  const Slice* copy = find(trace, "Memcpy HtoD (Pageable -> Device)");
  ASSERT_NE(copy, nullptr);
  EXPECT_EQ(trace.gpu[copy->gpu].bytes, 4096U);
  EXPECT_EQ(trace.slice_class(*copy), SliceClass::memcpy);
  ASSERT_NE(find(trace, "Memset (Device)"), nullptr);
  const Slice* sync = find(trace, "Stream Sync");
  ASSERT_NE(sync, nullptr);
  EXPECT_EQ(trace.slice_class(*sync), SliceClass::gpu_sync);
  EXPECT_EQ(sync->gpu, kNone);
}

TEST_F(NsysReader, AStreamThatWaitsNamesTheEventOfAnother) {
  const std::string records =
      "CREATE TABLE CUPTI_ACTIVITY_KIND_CUDA_EVENT(timestamp INT, deviceId INT, contextId INT, streamId INT, "
      "correlationId INT, globalPid INT, eventId INT, eventSyncId INT);"
      "INSERT INTO CUPTI_ACTIVITY_KIND_CUDA_EVENT VALUES(1,1,2,20,8," +
      global(70) + ",3,40),(2,1,2,21,9," + global(70) + ",3,41),(2,1,2,22,8," + global(80) + ",3,40);";
  const std::string waits =
      "CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION(start INT, end INT, deviceId INT, contextId INT, streamId INT, "
      "correlationId INT, globalPid INT, syncType INT, eventId INT, eventSyncId INT);"
      "INSERT INTO CUPTI_ACTIVITY_KIND_SYNCHRONIZATION VALUES(4,9,0,1,7,10," +
      global(70) + ",2,3,41),(5,6,0,1,7,11," + global(70) + ",1,3,40),(5,6,0,1,7,12," + global(70) +
      ",2,4,42),(5,6,0,1,7,13," + global(80) + ",2,3,40);";
  const Trace trace = load(kStrings + kRuntime + runtime(1, 2, 9, 70, 71) + runtime(1, 2, 8, 80, 81) + records + waits);
  // Neither what the host waits for, nor an event of which nothing says where it was recorded.
  ASSERT_EQ(trace.stream_waits.size(), 2U);
  const auto recorded_by = [&](const StreamWait& wait) {
    for (std::size_t i = 0; i < trace.slices.size(); ++i)
      if (trace.slice_class(trace.slices[i]) == SliceClass::runtime && trace.slices[i].correlation == wait.recorded_by)
        return trace.processes[trace.tracks[trace.slices[i].track].process].pid;
    return std::int64_t{-1};
  };
  const StreamWait& first = trace.stream_waits[0];
  EXPECT_EQ(trace.slices[first.slice].begin, 4);
  EXPECT_EQ(recorded_by(first), 70);
  EXPECT_EQ(first.device, 0);
  EXPECT_EQ(first.stream, 7);
  EXPECT_EQ(first.event_device, 1);
  EXPECT_EQ(first.event_stream, 21);
  EXPECT_EQ(recorded_by(trace.stream_waits[1]), 80);
  EXPECT_EQ(trace.stream_waits[1].event_stream, 22);
  EXPECT_TRUE(trace.ranks[0].unread_tables.empty());
}

TEST_F(NsysReader, NvtxRangesMarksAndTexts) {
  const Trace trace = load(
      kStrings +
      "CREATE TABLE NVTX_EVENTS(start INT, end INT, eventType INT, text TEXT, textId INT, globalTid INT, domainId INT);"
      "INSERT INTO NVTX_EVENTS VALUES(1,9,59,'push',NULL," +
      global(70, 71) + ",0),(2,20,60,NULL,3," + global(70, 71) + ",0),(3,NULL,34,'mark',NULL," + global(70, 71) +
      ",0),(4,NULL,59,'open',NULL," + global(70, 71) + ",0),(0,NULL,75,'domain',NULL," + global(70, 71) + ",0);");
  ASSERT_NE(find(trace, "push"), nullptr);
  EXPECT_EQ(trace.slice_class(*find(trace, "push")), SliceClass::annotation);
  ASSERT_NE(find(trace, "train"), nullptr);
  EXPECT_NE(find(trace, "train")->track, find(trace, "push")->track);
  EXPECT_EQ(trace.instants.size(), 1U);
  ASSERT_NE(find(trace, "open"), nullptr);
  EXPECT_EQ(trace.losses[LossReason::begin_without_end], 1U);
  EXPECT_EQ(find(trace, "domain"), nullptr);
}

TEST_F(NsysReader, SchedulingOsRuntimeGraphsAndMetrics) {
  const Trace trace = load(
      kStrings +
      "CREATE TABLE SCHED_EVENTS(start INT, cpu INT, isSchedIn INT, globalTid INT);"
      "INSERT INTO SCHED_EVENTS VALUES(30,0,0," +
      global(70, 71) + "),(10,0,1," + global(70, 71) +
      ");"
      "CREATE TABLE OSRT_API(start INT, end INT, globalTid INT, nameId INT);"
      "INSERT INTO OSRT_API VALUES(1,5," +
      global(70, 71) +
      ",5);"
      "CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE(start INT, end INT, deviceId INT, contextId INT, streamId INT, "
      "correlationId INT, globalPid INT, graphId INT);"
      "INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES(1,8,0,1,7,3," +
      global(70) +
      ",12);"
      "CREATE TABLE TARGET_INFO_GPU_METRICS(typeId INT, metricId INT, metricName TEXT);"
      "INSERT INTO TARGET_INFO_GPU_METRICS VALUES(257,3,'SM Active [Throughput %]');"
      "CREATE TABLE GPU_METRICS(timestamp INT, typeId INT, metricId INT, value INT);"
      "INSERT INTO GPU_METRICS VALUES(5,257,3,40),(6,257,3,60),(7,257,3,'x');");
  const Slice* on_cpu = find(trace, "oncpu");
  ASSERT_NE(on_cpu, nullptr);
  EXPECT_EQ(on_cpu->begin, 10);
  EXPECT_EQ(on_cpu->duration, 20);
  ASSERT_NE(find(trace, "read"), nullptr);
  EXPECT_NE(find(trace, "read")->track, on_cpu->track);
  ASSERT_NE(find(trace, "CUDA graph 12"), nullptr);
  ASSERT_EQ(trace.counters.size(), 1U);
  EXPECT_EQ(trace.counters[0].samples.size(), 2U);
  EXPECT_EQ(trace.strings[trace.counters[0].name], "SM Active [Throughput %]");
  EXPECT_EQ(trace.losses[LossReason::counter_value_invalid], 1U);
}

TEST_F(NsysReader, NamesDevicesAndTheClock) {
  const Trace trace = load(
      kStrings + kRuntime + runtime(10, 15, 9, 70, 71) + "CREATE TABLE PROCESSES(globalPid INT, pid INT, name TEXT);" +
      "INSERT INTO PROCESSES VALUES(" + global(70) + ",70,'python3');" +
      "CREATE TABLE ThreadNames(nameId INT, globalTid INT);INSERT INTO ThreadNames VALUES(4," + global(70, 71) + ");" +
      "CREATE TABLE TARGET_INFO_GPU(id INT, name TEXT, totalMemory INT, smCount INT, computeMajor INT, computeMinor "
      "INT);" +
      "INSERT INTO TARGET_INFO_GPU VALUES(0,'H100',1024,132,9,0);" +
      "CREATE TABLE TARGET_INFO_SESSION_START_TIME(utcEpochNs INT);" +
      "INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES(1779787126655288414);");
  EXPECT_EQ(trace.strings[trace.processes[0].name], "python3");
  EXPECT_EQ(trace.strings[trace.tracks[0].name], "main");
  ASSERT_EQ(trace.devices.size(), 1U);
  EXPECT_EQ(trace.devices[0].name, "H100");
  EXPECT_EQ(trace.devices[0].compute_capability, "9.0");
  EXPECT_EQ(trace.base_ns, 1779787126655288414);
  EXPECT_EQ(trace.clock, "realtime");
}

TEST_F(NsysReader, WhatIsNotReadIsNamed) {
  const Trace trace = load(kStrings + "CREATE TABLE FUTURE_EVENTS(x INT);CREATE VIEW v AS SELECT 1;");
  EXPECT_EQ(trace.ranks[0].unread_tables, (std::vector<std::string>{"FUTURE_EVENTS", "v"}));
}

TEST_F(NsysReader, MissingColumnsAndBadValuesAreTolerated) {
  const Trace trace = load(
      "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INT, end INT, demangledName INT);"
      "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL "
      "VALUES(1,5,77),(9,3,77),(NULL,3,77),(9223372036854775807,1,77),('x',2,77);");
  EXPECT_EQ(trace.gpu.size(), 2U);
  EXPECT_EQ(trace.losses[LossReason::name_invalid], 2U);
  EXPECT_EQ(trace.losses[LossReason::duration_negative], 1U);
  EXPECT_EQ(trace.losses[LossReason::time_missing], 2U);
  EXPECT_EQ(trace.losses[LossReason::time_invalid], 1U);
  EXPECT_FALSE(trace.losses.first_seen(LossReason::name_invalid).empty());
}

TEST_F(NsysReader, NegativeCountsAreLeftOutAndCounted) {
  const Trace trace =
      load(kStrings + kKernels + "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES(1,5,0,1,7,1," + global(70) +
           ",1,1,-8,4,2,128,-1,1,-40,16,-32,NULL);"
           "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY(start INT, end INT, bytes INT, copyKind INT);"
           "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES(6,7,-1,1),(8,9,64,1);");
  ASSERT_EQ(trace.gpu.size(), 3U);
  EXPECT_EQ(trace.gpu[0].grid[0], 0U);
  EXPECT_EQ(trace.gpu[0].grid[1], 4U);
  EXPECT_EQ(trace.gpu[0].block[1], 0U);
  EXPECT_EQ(trace.gpu[0].registers, 0U);
  EXPECT_EQ(trace.gpu[0].shared_memory, 16U);
  EXPECT_EQ(trace.gpu[1].bytes + trace.gpu[2].bytes, 64U);
  EXPECT_EQ(trace.losses[LossReason::argument_invalid], 5U);
}

TEST_F(NsysReader, OtherDatabasesAreRefused) {
  run_sql(path_, "CREATE TABLE songs(x INT);");
  const auto trace = read(path_);
  ASSERT_FALSE(trace);
  EXPECT_EQ(trace.error().kind, ErrorKind::input);
}

TEST_F(NsysReader, DamagedAndCutDatabasesAreOneError) {
  std::string sql = kStrings + kKernels + "BEGIN;";
  for (int i = 0; i < 2000; ++i) sql += kernel(i, i + 1, 0, i, 70);
  run_sql(path_, sql + "COMMIT;");
  const auto size = std::filesystem::file_size(path_);
  const std::string cut = dir_.path("cut.sqlite");
  std::filesystem::copy_file(path_, cut);
  std::filesystem::resize_file(cut, size / 2);
  EXPECT_FALSE(read(cut));
  std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(size / 2 / 4096 * 4096));
  file << std::string(8192, '\x5a');
  file.close();
  const auto trace = read(path_);
  ASSERT_FALSE(trace);
  EXPECT_NE(to_string(trace.error()).find("SQLite"), std::string::npos);
  EXPECT_EQ(to_string(trace.error()).find('\n'), std::string::npos);
}

TEST_F(NsysReader, TheDatabaseIsNotTouched) {
  (void)load(kStrings);
  std::size_t files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(dir_.path())) ++files;
  EXPECT_EQ(files, 1U);
  std::filesystem::permissions(path_, std::filesystem::perms::owner_read);
  EXPECT_TRUE(read(path_));
}

class Corpus : public testing::TestWithParam<const char*> {};

TEST_P(Corpus, TotalsAreThoseOfPlainSql) {
  CULPRIT_NEEDS_SHARED(std::string("corpus/nsys/") + GetParam());
  const std::string path = test::shared(std::string("corpus/nsys/") + GetParam());
  const auto trace = read(path);
  ASSERT_TRUE(trace) << to_string(trace.error());
  const auto check = [&](SliceClass wanted, const std::string& table, const std::string& where) {
    std::int64_t count = 0, sum = 0;
    for (std::size_t i = 0; i < trace->slices.size(); ++i) {
      if (trace->slice_class(trace->slices[i]) != wanted) continue;
      ++count;
      sum += trace->slices[i].duration;
    }
    // A table that the file does not have gives -1.
    EXPECT_EQ(count, std::max<std::int64_t>(0, ask_sql(path, "SELECT count(*) FROM " + table + where))) << table;
    EXPECT_EQ(sum, std::max<std::int64_t>(0, ask_sql(path, "SELECT total(end-start) FROM " + table + where))) << table;
  };
  check(SliceClass::kernel, "CUPTI_ACTIVITY_KIND_KERNEL", "");
  check(SliceClass::memcpy, "CUPTI_ACTIVITY_KIND_MEMCPY", "");
  check(SliceClass::memset, "CUPTI_ACTIVITY_KIND_MEMSET", "");
  check(SliceClass::gpu_sync, "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", "");
  check(SliceClass::runtime, "CUPTI_ACTIVITY_KIND_RUNTIME", " WHERE eventClass = 0");
  check(SliceClass::driver, "CUPTI_ACTIVITY_KIND_RUNTIME", " WHERE eventClass = 1");
  check(SliceClass::annotation, "NVTX_EVENTS", " WHERE eventType IN (59, 60)");
  std::int64_t launched = 0;
  for (std::size_t i = 0; i < trace->gpu.size(); ++i) {
    const bool kernel = trace->slice_class(trace->slices[trace->gpu[i].slice]) == SliceClass::kernel;
    if (kernel && trace->gpu[i].launcher != kNone) ++launched;
  }
  EXPECT_EQ(launched, ask_sql(path,
                              "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL k WHERE EXISTS (SELECT 1 FROM "
                              "CUPTI_ACTIVITY_KIND_RUNTIME r WHERE r.correlationId = k.correlationId AND "
                              "r.globalTid >> 24 = k.globalPid >> 24)"));
}

TEST_P(Corpus, EveryTableIsReadOrNamed) {
  CULPRIT_NEEDS_SHARED(std::string("corpus/nsys/") + GetParam());
  const std::string path = test::shared(std::string("corpus/nsys/") + GetParam());
  const auto trace = read(path);
  ASSERT_TRUE(trace);
  const auto& unread = trace->ranks[0].unread_tables;
  std::int64_t read_tables = 0;
  for (const char* name :
       {"StringIds", "PROCESSES", "ThreadNames", "META_DATA_EXPORT", "TARGET_INFO_SESSION_START_TIME",
        "TARGET_INFO_SYSTEM_ENV", "TARGET_INFO_GPU", "TARGET_INFO_CUDA_DEVICE", "CUPTI_ACTIVITY_KIND_RUNTIME",
        "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMSET",
        "CUPTI_ACTIVITY_KIND_CUDA_EVENT", "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", "NVTX_EVENTS", "PROFILER_OVERHEAD",
        "CUPTI_ACTIVITY_KIND_OVERHEAD"}) {
    EXPECT_EQ(std::ranges::count(unread, name), 0) << name;
    read_tables += ask_sql(path, std::string("SELECT count(*) FROM sqlite_master WHERE name = '") + name + "'");
  }
  EXPECT_EQ(read_tables + static_cast<std::int64_t>(unread.size()),
            ask_sql(path, "SELECT count(*) FROM sqlite_master WHERE type = 'table'"));
}

INSTANTIATE_TEST_SUITE_P(Files, Corpus,
                         testing::Values("mock.sqlite", "mfu_2gpu_before.sqlite", "mfu_2gpu_after.sqlite"));

}  // namespace
}  // namespace culprit::formats::nsys_sqlite
