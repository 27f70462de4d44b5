#include "summary/recorded_tables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "stats/log_buckets.h"
#include "trace/builder.h"

namespace culprit::summary {
namespace {

using testing::ElementsAre;

Trace recorded() {
  TraceBuilder builder(Rank{});
  Trace& trace = builder.trace();
  const TrackId one = builder.track({.pid = 7, .tid = 8});
  const TrackId two = builder.track({.pid = 7, .tid = 9});
  const ProcessId server = builder.process(7, 0);
  const ProcessId host = builder.process(-1, builder.intern("host"));
  builder.name_process(server, builder.intern("server"));
  builder.name_thread(one, builder.intern("main"));
  builder.name_thread(two, builder.intern("worker"));
  const StringId read = builder.intern("read");
  trace.calls = {{1'000'000'000, read, one, 100, 1'000'000, 90'000},
                 {2'000'000'000, read, one, 100, 1'000'000, 95'000},
                 {2'000'000'000, read, two, 50, 4'000'000, 99'000},
                 {2'000'000'000, builder.intern("futex"), two, 1, 500, 500}};
  DurationCounts counts{read, 0, server, std::vector<std::uint64_t>(stats::kLogBuckets)};
  counts.buckets[stats::log_bucket_of(10'000)] = 240;
  counts.buckets[stats::log_bucket_of(90'000)] = 10;
  trace.durations.push_back(counts);
  const StringId vda = builder.intern("vda");
  trace.disks = {{1'000'000'000, vda, builder.intern("write"), server, 10, 40960, 1'000'000, 300'000},
                 {2'000'000'000, vda, builder.intern("write"), host, 5, 8192, 2'000'000, 900'000},
                 {2'000'000'000, vda, builder.intern("flush"), server, 2, 0, 100'000, 60'000}};
  for (const auto& [name, last] : {std::pair("page_faults.minor", 150.0), std::pair("page_faults.major", 12.0)}) {
    builder.add_counter(builder.intern(name), server, kNone, {0, 10});
    builder.add_counter(builder.intern(name), server, kNone, {2'000'000'000, last});
  }
  ThreadSched sched;
  sched.track = builder.track({.pid = 7, .tid = 9, .kind = TrackKind::sched});
  builder.name_thread(sched.track, builder.intern("worker"));
  sched.woken_by = {{builder.intern("main"), 8, 40, 0}, {0, 0, 3, 0}};
  sched.ran_instead = {{builder.intern("stress"), 77, 4, 5'000'000}};
  trace.sched.push_back(sched);
  return std::move(builder).finish();
}

std::vector<std::string> cells(const model::Table& table, std::string_view key) {
  std::vector<std::string> texts;
  for (std::size_t c = 0; c < table.columns.size(); ++c)
    if (table.columns[c].key == key)
      for (const auto& row : table.rows) {
        if (const auto* text = std::get_if<std::string>(&row[c])) texts.push_back(*text);
        if (const auto* number = std::get_if<std::int64_t>(&row[c])) texts.push_back(std::to_string(*number));
        if (const auto* number = std::get_if<double>(&row[c])) texts.push_back(std::to_string(*number).substr(0, 6));
        if (std::holds_alternative<std::monostate>(row[c])) texts.emplace_back("-");
      }
  return texts;
}

constexpr RecordedTableOptions kTwoSeconds = {.limit = 0, .duration = 2'000'000'000};

TEST(RecordedTables, CallsOfAProcessAreThoseOfItsThreads) {
  const model::Table table = call_table(recorded(), kTwoSeconds);
  EXPECT_THAT(cells(table, "call"), ElementsAre("read", "futex"));
  EXPECT_THAT(cells(table, "process"), ElementsAre("server", "server"));
  EXPECT_THAT(cells(table, "count"), ElementsAre("250", "1"));
  EXPECT_THAT(cells(table, "rate"), ElementsAre("125.00", "0.5000"));
  EXPECT_THAT(cells(table, "total_ns"), ElementsAre("6000000", "500"));
  EXPECT_THAT(cells(table, "mean_ns"), ElementsAre("24000.", "500.00"));
  EXPECT_THAT(cells(table, "longest_ns"), ElementsAre("99000", "500"));
}

TEST(RecordedTables, QuantilesOfCallsThatWereTimed) {
  const model::Table table = call_table(recorded(), kTwoSeconds);
  const auto p50 = cells(table, "p50_ns");
  const auto p99 = cells(table, "p99_ns");
  EXPECT_NEAR(std::stod(p50[0]), 10'000, 1250);
  EXPECT_NEAR(std::stod(p99[0]), 90'000, 11'250);
  EXPECT_EQ(p50[1], "-");
}

TEST(RecordedTables, CallsThatLastedLongerThanAnybodyLookedAreTold) {
  Trace trace = recorded();
  EXPECT_TRUE(cells(call_table(trace, kTwoSeconds), "unended").empty());
  trace.durations[0].unended = 3;
  const model::Table table = call_table(trace, kTwoSeconds);
  EXPECT_THAT(cells(table, "timed"), ElementsAre("250", "0"));
  EXPECT_THAT(cells(table, "unended"), ElementsAre("3", "0"));
  EXPECT_THAT(table.notes, ElementsAre(testing::HasSubstr("too low by the others")));
}

TEST(RecordedTables, CallsOfThreads) {
  const model::Table table = thread_call_table(recorded(), kTwoSeconds);
  EXPECT_THAT(cells(table, "thread"), ElementsAre("worker", "main", "worker"));
  EXPECT_THAT(cells(table, "count"), ElementsAre("50", "200", "1"));
}

TEST(RecordedTables, DisksByWhoIssuedTheRequest) {
  const model::Table table = disk_table(recorded(), kTwoSeconds);
  EXPECT_THAT(cells(table, "process"), ElementsAre("(kernel and others)", "server", "server"));
  EXPECT_THAT(cells(table, "operation"), ElementsAre("write", "write", "flush"));
  EXPECT_THAT(cells(table, "bytes"), ElementsAre("8192", "40960", "0"));
  EXPECT_THAT(cells(table, "count"), ElementsAre("5", "10", "2"));
}

TEST(RecordedTables, QuantilesOfRequestsAreThoseOfTheirDiskKindAndProcess) {
  Trace trace = recorded();
  const DiskTotal written = trace.disks.front();
  DurationCounts counts{written.operation, written.disk, written.process, {}};
  counts.buckets.resize(stats::kLogBuckets);
  counts.buckets[stats::log_bucket_of(100'000)] = 10;
  trace.durations.push_back(counts);
  const auto p50 = cells(disk_table(trace, kTwoSeconds), "p50_ns");
  ASSERT_EQ(p50.size(), 3U);
  EXPECT_EQ(p50[0], "-");
  EXPECT_NEAR(std::stod(p50[1]), 100'000, 12'500);
  EXPECT_EQ(p50[2], "-");
}

TEST(RecordedTables, PageFaultsAreThoseOfTheRecording) {
  const model::Table table = fault_table(recorded(), kTwoSeconds);
  EXPECT_THAT(cells(table, "minor"), ElementsAre("140"));
  EXPECT_THAT(cells(table, "major"), ElementsAre("2"));
}

TEST(RecordedTables, WhoWokeWhomAndWhoRanInstead) {
  const model::Table wakers = waker_table(recorded(), kTwoSeconds);
  EXPECT_THAT(cells(wakers, "thread"), ElementsAre("worker", "worker"));
  EXPECT_THAT(cells(wakers, "peer"), ElementsAre("main", "interrupt or idle"));
  const model::Table rivals = rival_table(recorded(), kTwoSeconds);
  EXPECT_THAT(cells(rivals, "peer"), ElementsAre("stress"));
  EXPECT_THAT(cells(rivals, "time_ns"), ElementsAre("5000000"));
}

TEST(RecordedTables, NobodyWhoRanInsteadIsNotTheLackOfScheduling) {
  EXPECT_THAT(rival_table(Trace{}, kTwoSeconds).notes, ElementsAre("No scheduling was recorded"));
  Trace starved = recorded();
  for (ThreadSched& thread : starved.sched) {
    thread.ran_instead.clear();
    thread.woken_by.clear();
  }
  EXPECT_THAT(rival_table(starved, kTwoSeconds).notes,
              ElementsAre(testing::HasSubstr("Nobody was seen to take a CPU")));
  EXPECT_THAT(waker_table(starved, kTwoSeconds).notes, ElementsAre("No thread was woken"));
}

/// A script that starts so many processes, beside one server; each was timed as often as its number in them.
Trace many_processes(int number) {
  TraceBuilder builder(Rank{});
  Trace& trace = builder.trace();
  const StringId read = builder.intern("read");
  const StringId execve = builder.intern("execve");
  for (int i = 0; i <= number; ++i) {
    const TrackId track = builder.track({.pid = 100 + i, .tid = 100 + i});
    const ProcessId process = builder.process(100 + i, 0);
    builder.name_process(process, builder.intern(i == number ? "server" : "sh"));
    trace.calls.push_back({1'000'000'000, read, track, 10, i == number ? 5'000'000 : 1'000'000, 200'000 + i});
    DurationCounts counts{read, 0, process, std::vector<std::uint64_t>(stats::kLogBuckets)};
    counts.buckets[stats::log_bucket_of(i == 0 ? 10'000 : 90'000)] = 1;
    trace.durations.push_back(counts);
    const StringId faults = builder.intern("page_faults.minor");
    builder.add_counter(faults, process, kNone, {0, 5});
    builder.add_counter(faults, process, kNone, {1'000'000'000, i == number ? 105.0 : 25.0});
    if (i == 3) trace.calls.push_back({1'000'000'000, execve, track, 1, 400, 400});
  }
  return std::move(builder).finish();
}

TEST(RecordedTables, ManyProcessesOfOneNameAreOneRowForPeople) {
  const Trace trace = many_processes(9);
  const model::Table table = recorded_table(trace, "call", 0, true);
  EXPECT_THAT(cells(table, "process"), ElementsAre("sh (9 processes)", "server", "sh"));
  EXPECT_THAT(cells(table, "call"), ElementsAre("read", "read", "execve"));
  EXPECT_THAT(cells(table, "pid"), ElementsAre("-", "109", "103"));
  EXPECT_THAT(cells(table, "count"), ElementsAre("90", "10", "1"));
  EXPECT_THAT(cells(table, "total_ns"), ElementsAre("9000000", "5000000", "400"));
  EXPECT_THAT(cells(table, "longest_ns"), ElementsAre("200008", "200009", "400"));
  EXPECT_NEAR(std::stod(cells(table, "p50_ns")[0]), 90'000, 11'250);
  EXPECT_THAT(table.notes, ElementsAre(testing::HasSubstr("--json has a row for each")));
  EXPECT_EQ(recorded_table(trace, "call", 0).rows.size(), 11U);
  EXPECT_EQ(recorded_table(trace, "thread-call", 0, true).rows.size(), 11U);
}

TEST(RecordedTables, PageFaultsOfManyProcessesOfOneNameAreOneRowForPeople) {
  const Trace trace = many_processes(9);
  const model::Table table = recorded_table(trace, "fault", 0, true);
  EXPECT_THAT(cells(table, "process"), ElementsAre("sh (9 processes)", "server"));
  EXPECT_THAT(cells(table, "pid"), ElementsAre("-", "109"));
  EXPECT_THAT(cells(table, "minor"), ElementsAre("180", "100"));
  EXPECT_THAT(table.notes, ElementsAre(testing::HasSubstr("--json has a row for each")));
  EXPECT_EQ(recorded_table(trace, "fault", 0).rows.size(), 10U);
  EXPECT_EQ(recorded_table(many_processes(8), "fault", 0, true).rows.size(), 9U);
}

TEST(RecordedTables, AFewProcessesOfOneNameHaveARowEach) {
  const model::Table table = recorded_table(many_processes(8), "call", 0, true);
  EXPECT_EQ(table.rows.size(), 10U);
  EXPECT_TRUE(table.notes.empty());
}

TEST(RecordedTables, WhatIsLeftOutIsSaid) {
  const model::Table table = call_table(recorded(), {.limit = 1, .duration = 1});
  EXPECT_EQ(table.rows.size(), 1U);
  EXPECT_THAT(table.notes, ElementsAre(testing::HasSubstr("1 more rows")));
}

TEST(RecordedTables, ATraceWithoutThemSaysSo) {
  for (const std::string& by : recorded_table_names()) {
    const model::Table table = recorded_table(Trace(), by, 0);
    EXPECT_TRUE(table.rows.empty()) << by;
    EXPECT_FALSE(table.notes.empty()) << by;
  }
  EXPECT_TRUE(recorded_facts(Trace()).empty());
}

TEST(RecordedTables, WhatWasCountedInWindowsIsCalledAnEstimate) {
  Trace trace = recorded();
  trace.ranks.resize(1);
  trace.ranks[0].metadata = {{"syscalls.count_error", "0.0213"}, {"syscalls.counted_share", "0.126"}};
  const auto notes = call_table(trace, kTwoSeconds).notes;
  EXPECT_TRUE(std::ranges::any_of(notes, [](const std::string& note) {
    return note ==
           "Counts and totals are estimates: counted in 13 % of the time, ± 2.1 % (95 %, of all calls together)";
  }));
  EXPECT_TRUE(recorded_facts(trace).front().value.ends_with("; counted in 13 % of the time, ± 2.1 %"));
  trace.ranks[0].metadata = {{"syscalls.counted_share", "0.126"}};
  EXPECT_TRUE(recorded_facts(trace).front().value.ends_with("too short to know the error"));
}

TEST(RecordedTables, ALoweredRateOfStacksIsToldAnotherIsNot) {
  Trace trace;
  trace.ranks.resize(1);
  trace.ranks[0].metadata = {
      {"samples.rate_hz", "99"}, {"samples.mean_rate_hz", "48.7"}, {"samples.lowest_rate_hz", "24.8"}};
  const auto facts = recorded_facts(trace);
  ASSERT_EQ(facts.size(), 1U);
  EXPECT_EQ(facts[0].what, "call stacks");
  EXPECT_EQ(facts[0].value, "48.7 a second and CPU on average, 24.8 at least, of 99");
  trace.ranks[0].metadata = {
      {"samples.rate_hz", "99"}, {"samples.mean_rate_hz", "99.0"}, {"samples.lowest_rate_hz", "99.0"}};
  EXPECT_TRUE(recorded_facts(trace).empty());
}

TEST(RecordedTables, FactsInALine) {
  const auto facts = recorded_facts(recorded());
  ASSERT_EQ(facts.size(), 2U);
  EXPECT_THAT(facts[0].value, testing::HasSubstr("most time in read"));
  EXPECT_THAT(facts[1].value, testing::HasSubstr("17 requests"));
  EXPECT_THAT(facts[1].value, testing::HasSubstr("2 flushes"));
}

}  // namespace
}  // namespace culprit::summary
