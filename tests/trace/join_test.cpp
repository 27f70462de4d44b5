// A trace and a recording of the same seconds.
#include "trace/join.h"

#include <gmock/gmock.h>

#include <utility>
#include <vector>

#include "trace/build.h"

namespace culprit {
namespace {

using test::Building;
using test::row_of;

constexpr Ns kBase = 1'700'000'000'000'000'000;

/// Operators of thread 101 of process 100 from 1000 to 3000, and a GPU, which is "process 1".
Trace trace_of(Ns base = kBase) {
  Building b;
  b.builder.rank().path = "trace.json";
  b.builder.rank().has_base = base != 0;
  b.builder.rank().base_ns = base;
  b.builder.rank().rank = 3;
  b.slice(b.thread(100, 101), "cpu_op", "forward", 1000, 900);
  b.slice(b.thread(100, 101), "cpu_op", "backward", 2000, 1000);
  b.kernel(b.thread(1, 7), "kernel", 2000, 500, 5);
  return b.finish();
}

/// Scheduling of that thread, of init, and of a bystander.
Trace recording_of(Ns base = kBase - 500, std::int64_t pid = 100, Ns length = 5000) {
  Building b;
  b.builder.rank().path = "run.pftrace";
  b.builder.rank().format = "Perfetto";
  b.builder.rank().has_base = true;
  b.builder.rank().base_ns = base;
  b.builder.rank().metadata = {{"env.hostname", "here"}, {"record.version", "1"}};
  const auto sched = [&](std::int64_t process, std::int64_t tid) {
    return b.builder.track({.pid = process, .tid = tid, .kind = TrackKind::sched});
  };
  b.slice(sched(1, 1), "sched", "oncpu", 0, 100);
  b.slice(sched(pid, 101), "sched", "oncpu", 100, length - 100);
  b.slice(sched(200, 200), "sched", "runq", 0, length);
  b.slice(b.thread(pid, 101), "nvtx", "mark", 1600, 10);
  b.builder.add_counter(b.builder.intern("process.cpu"), b.builder.process(pid, 0), kNone, {100, 0.5});
  Trace trace = b.finish();
  ThreadSched bystander;
  bystander.track = trace.slices[row_of(trace, "runq")].track;
  bystander.switches = 7;
  trace.sched.push_back(std::move(bystander));
  CallTotal call;
  call.at = 100;
  call.name = trace.strings.intern("read");
  call.track = trace.slices[row_of(trace, "mark")].track;
  call.count = 4;
  trace.calls.push_back(call);
  return trace;
}

std::int64_t pid_of(const Trace& trace, TrackId track) { return trace.processes[trace.tracks[track].process].pid; }

TEST(Join, ThreadsAndProcessesOfOneIdAreOne) {
  const Trace run = join(trace_of(), recording_of());
  ASSERT_EQ(run.ranks.size(), 1U);
  EXPECT_EQ(run.ranks[0].path, "trace.json");
  ASSERT_EQ(run.ranks[0].recordings.size(), 1U);
  EXPECT_EQ(run.ranks[0].recordings[0].path, "run.pftrace");
  EXPECT_TRUE(is_recording(run));
  std::vector<std::int64_t> pids;
  for (const Process& process : run.processes) pids.push_back(process.pid);
  EXPECT_THAT(pids, testing::UnorderedElementsAre(1, 100, 1, 200));  // the GPU 1 is not the process 1

  const Slice& forward = run.slices[row_of(run, "forward")];
  const Slice& mark = run.slices[row_of(run, "mark")];
  EXPECT_EQ(mark.track, forward.track);
  EXPECT_EQ(run.tracks[forward.track].tid, 101);
  EXPECT_EQ(run.tracks[forward.track].slices, 3U);
  EXPECT_EQ(run.calls.at(0).track, forward.track);
  EXPECT_EQ(pid_of(run, run.sched.at(0).track), 200);
  EXPECT_EQ(run.processes[run.counters.at(0).process].pid, 100);
  for (std::size_t i = 0; i < run.slices.size(); ++i) EXPECT_EQ(run.slices[i].rank, 0);
  EXPECT_EQ(run.losses[LossReason::recording_partial], 0U);
  EXPECT_EQ(run.losses[LossReason::clock_unknown], 0U);
}

TEST(Join, TimesAreOnOneClock) {
  const Trace run = join(trace_of(), recording_of());
  const auto at = [&](const char* name) { return run.base_ns + run.slices[row_of(run, name)].begin; };
  EXPECT_EQ(at("forward"), kBase + 1000);
  EXPECT_EQ(at("mark"), kBase - 500 + 1600);
  EXPECT_EQ(run.base_ns + run.counters.at(0).samples.at(0).at, kBase - 400);
}

TEST(Join, WhatTheRecordingMissesIsALoss) {
  EXPECT_EQ(join(trace_of(), recording_of(kBase - 500, 100, 3510)).losses[LossReason::recording_partial], 0U);
  EXPECT_EQ(join(trace_of(), recording_of(kBase - 500, 100, 2500)).losses[LossReason::recording_partial], 1U);
  EXPECT_EQ(join(trace_of(), recording_of(kBase + 1500)).losses[LossReason::recording_partial], 1U);
}

std::string why_not(const Trace& trace, const Trace& recording) {
  const Status status = belong_together(trace, recording);
  return status ? "" : status.error().what;
}

TEST(Join, OnlyWhatBelongsTogether) {
  EXPECT_EQ(why_not(trace_of(), recording_of()), "");
  EXPECT_THAT(why_not(trace_of(0), recording_of()), testing::HasSubstr("cannot be put on one clock"));
  EXPECT_THAT(why_not(trace_of(), recording_of(kBase + 3000)), testing::HasSubstr("are of different times"));
  EXPECT_THAT(why_not(trace_of(), recording_of(kBase - 5000)), testing::HasSubstr("are of different times"));
  EXPECT_THAT(why_not(trace_of(), recording_of(kBase, 300)), testing::HasSubstr("no process in common"));
  Trace elsewhere = trace_of();
  elsewhere.ranks[0].host = "there";
  EXPECT_THAT(why_not(elsewhere, recording_of()), testing::HasSubstr("of different machines"));
}

TEST(Join, ASecondRecordingOfTheRunJoins) {
  const Trace run = join(join(trace_of(), recording_of()), recording_of(kBase + 100));
  EXPECT_EQ(run.ranks.size(), 1U);
  EXPECT_EQ(run.ranks[0].recordings.size(), 2U);
  EXPECT_EQ(run.slices[row_of(run, "forward")].track, 0U + run.slices[row_of(run, "backward")].track);
}

}  // namespace
}  // namespace culprit
