// The first screen of info holds what there is room for, and leaves out what matters least.
#include "cli/info_summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <variant>

namespace culprit::cli {
namespace {

using testing::Contains;
using testing::Not;

/// A trace of one device.
model::TraceInfo trace() {
  model::TraceInfo info;
  info.duration = 10'000'000'000;
  info.slices = 100;
  model::RankInfo rank;
  rank.path = "trace.json";
  info.ranks = {rank};
  model::DeviceInfo device;
  device.device = 0;
  device.busy_union = 4'000'000'000;
  info.devices = {device};
  info.kernels = {50, 4'000'000'000};
  info.top = {20, 2'000'000'000};
  info.top_name = "gemm";
  return info;
}

/// The same with a recording of the same seconds, of a server with units of work, beside another program.
model::TraceInfo joined() {
  model::TraceInfo info = trace();
  model::JoinedFile recording;
  recording.path = "recording.pftrace";
  info.ranks.front().recordings = {recording};
  model::WorkUnits work;
  work.recorded = true;
  work.seconds = 10;
  work.units.resize(1);
  work.units.front().kind = model::UnitKind::request;
  work.units.front().count = 100;
  work.units.front().reason = "receives and sends alternate";
  work.windows.resize(1);
  work.windows.front().on_cpu = 1e9;
  work.windows.front().blocked = 1e9;
  work.latencies = {1000, 2000, 3000};
  work.others = {{.name = "stress", .cpus = 1}};
  info.work = work;
  info.recorded_facts = {
      {"requests", "100"}, {"system calls", "1000"}, {"disks", "3"}, {"call stacks", "of 99"}, {"recorder", "1 %"}};
  info.losses = {{"time_missing", "warning", "no time", "", "", 1}};
  return info;
}

std::vector<std::string> column(const model::Table& table, std::size_t number) {
  std::vector<std::string> texts;
  for (const auto& row : table.rows) texts.push_back(std::get<std::string>(row[number]));
  return texts;
}

TEST(InfoSummary, ATraceAloneLosesNothing) {
  const auto what = column(info_summary(trace()), 0);
  for (const char* row :
       {"file", "duration", "slices", "devices", "GPU busy", "kernels", "memcpy, memset", "most GPU time", "losses"})
    EXPECT_THAT(what, Contains(row));
}

TEST(InfoSummary, OfATraceWithItsRecordingTheLeastImportantIsLeftOut) {
  const model::Table table = info_summary(joined());
  EXPECT_EQ(table.rows.size(), 20U);
  const auto what = column(table, 0);
  for (const char* row : {"throughput", "CPUs", "beside", "file", "recording", "devices", "kernels", "most GPU time",
                          "requests", "losses"})
    EXPECT_THAT(what, Contains(row));
  EXPECT_THAT(what, Not(Contains("memcpy, memset")));
  EXPECT_THAT(what, Not(Contains("GPU busy")));
}

TEST(InfoSummary, OfARecordingWithStepsTheyComeFirst) {
  model::TraceInfo info = trace();
  model::CyclesInfo& cycles = info.cycles.emplace();
  cycles.count = 470;
  cycles.anchor = "step";
  EXPECT_EQ(column(info_summary(info), 0).front(), "file") << "a trace alone";
  cycles.step.emplace().period = 20e6;
  const model::Table table = info_summary(info);
  EXPECT_EQ(column(table, 0).front(), "steps");
  EXPECT_THAT(column(table, 1).front(), testing::EndsWith(", 47 per s"));
  EXPECT_EQ(std::ranges::count(column(table, 0), "steps"), 1);
}

}  // namespace
}  // namespace culprit::cli
