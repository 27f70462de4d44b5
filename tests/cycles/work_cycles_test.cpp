#include "cycles/work_cycles.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>

#include "core/units.h"
#include "cycles/find.h"
#include "trace/builder.h"

namespace culprit::cycles {
namespace {

/// A thread that is woken `times` times, works 4 ms and waits 6 ms, and whose calls are counted when it is said how
/// many. Its garbage is collected now and then.
Trace server(int times, std::uint64_t requests, int threads = 1, int collections = 0) {
  TraceBuilder builder{Rank{}};
  const auto add = [&](TrackId track, Ns begin, Ns length, std::string_view name, std::string_view category) {
    Slice slice;
    slice.begin = begin;
    slice.duration = length;
    slice.name = builder.intern(name);
    slice.track = track;
    slice.category = builder.category(category);
    builder.add(slice);
  };
  for (int t = 0; t < threads; ++t) {
    const std::int64_t id = 7 + t;
    const TrackId sched = builder.track({.pid = id, .tid = id, .kind = TrackKind::sched});
    const TrackId blocked =
        builder.track({.pid = id, .tid = id, .tid_text = builder.intern("blocked"), .kind = TrackKind::async});
    const TrackId totals = builder.track(
        {.pid = id, .tid = id, .tid_text = builder.intern("system call totals"), .kind = TrackKind::async});
    builder.name_process(builder.process(id, 0), builder.intern("server"));
    builder.name_thread(sched, builder.intern("server"));
    for (int i = 0; i < times; ++i) {
      const Ns at = i * 10 * kMs;
      add(sched, at, 6 * kMs, "blocked", "sched");
      add(blocked, at, 6 * kMs, "blocked:epoll_wait", "blocked");
      add(sched, at + 6 * kMs, 4 * kMs, "oncpu", "sched");
    }
    const TrackId python = builder.track({.pid = id, .tid = id});
    for (int i = 0; i < collections; ++i) add(python, i * 100 * kMs + 7 * kMs, kMs, "gc generation 2", "python");
    for (const std::string_view call : {"recvfrom", "sendto"})
      if (requests > 0)
        builder.trace().calls.push_back({times * 10 * kMs, builder.intern(call), totals, requests, 0, 0});
  }
  return std::move(builder).finish();
}

Found cycles_of(const Trace& trace, const FindOptions& options = {}) {
  auto found = find_cycles(trace, order_slices(trace), options);
  EXPECT_TRUE(found);
  return std::move(*found);
}

TEST(WorkCycles, AProgramThatMarksNoStepsHasItsRequestsAsCycles) {
  const Trace trace = server(100, 100);
  const Found found = cycles_of(trace);
  EXPECT_EQ(found.cycles.method, model::CycleMethod::work_unit);
  EXPECT_GE(found.cycles.period_confidence, 0.8);
  ASSERT_EQ(found.cycles.cycles.size(), 100U);
  EXPECT_EQ(found.cycles.cycles[0].begin, 6 * kMs) << "a cycle begins with work, not with a wait";
  EXPECT_EQ(found.cycles.cycles[1].period, 10 * kMs);
  ASSERT_TRUE(found.work);
  EXPECT_EQ(found.work->units.front().kind, model::UnitKind::request);
}

TEST(WorkCycles, CollectionsOfGarbageAreNoSteps) {
  const Found found = cycles_of(server(100, 100, 1, 5));
  EXPECT_EQ(found.cycles.method, model::CycleMethod::work_unit);
  EXPECT_EQ(found.cycles.cycles.size(), 100U);
}

TEST(WorkCycles, SeveralRequestsInOneWakeUpAreNotSaidToBeOne) {
  const Found found = cycles_of(server(100, 1000));
  EXPECT_EQ(found.cycles.method, model::CycleMethod::work_unit);
  EXPECT_LT(found.cycles.period_confidence, 0.5);
  EXPECT_FALSE(found.cycles.notes.empty());
}

TEST(WorkCycles, ThreadsThatWorkSideBySideHaveWindows) {
  const Trace trace = server(100, 100, 3);
  const Found found = cycles_of(trace);
  EXPECT_EQ(found.cycles.method, model::CycleMethod::work_unit);
  EXPECT_EQ(found.cycles.cycles.size(), found.work->windows.size());
  std::size_t inside = 0;
  for (const std::uint32_t c : found.cycle_of_slice) inside += c != kNone ? 1U : 0U;
  EXPECT_EQ(inside, trace.slices.size()) << "windows fill the recording";
}

TEST(WorkCycles, ThousandsInAWindowAreWrittenOut) {
  model::WorkUnits work;
  work.recorded = true;
  work.windows = {{.begin = 0, .end = kSecond}};
  work.units.resize(1);
  work.units[0].kind = model::UnitKind::request;
  work.units[0].count = 12'345;
  const auto cutting = cut_by_work(work);
  ASSERT_TRUE(cutting);
  ASSERT_EQ(cutting->notes.size(), 1U);
  EXPECT_NE(cutting->notes[0].find("with 12345 requests each"), std::string::npos) << cutting->notes[0];
}

TEST(WorkCycles, ManyWakeUpsShareACycle) {
  model::WorkUnits work;
  work.recorded = true;
  work.windows = {{.begin = 0, .end = kSecond}};
  work.units.resize(1);
  work.units[0].kind = model::UnitKind::wakeup;
  work.units[0].count = 250'000;
  for (Ns i = 0; i < 250'000; ++i) work.starts.push_back(i * 4000);
  const auto cutting = cut_by_work(work);
  ASSERT_TRUE(cutting);
  EXPECT_LE(cutting->lanes[0].cuts.size(), kMostWorkCycles);
  EXPECT_GT(cutting->lanes[0].cuts.size(), kMostWorkCycles / 2);
}

TEST(WorkCycles, AnIdleProgramHasNone) {
  model::WorkUnits work;
  work.recorded = true;
  work.idle = true;
  work.windows = {{.begin = 0, .end = kSecond}};
  work.units.resize(1);
  EXPECT_FALSE(cut_by_work(work));
}

TEST(WorkCycles, ComparisonsDoNotTakeThemForSteps) {
  FindOptions options;
  options.work_units = false;
  const Found found = cycles_of(server(100, 100), options);
  EXPECT_EQ(found.cycles.method, model::CycleMethod::none);
  EXPECT_TRUE(found.cycles.cycles.empty());
}

}  // namespace
}  // namespace culprit::cycles
