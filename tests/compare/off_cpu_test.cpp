#include "compare/off_cpu.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "core/units.h"

namespace culprit::compare {
namespace {

using model::OffCpuChanged;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::size_t kWindows = 12;

/// Twelve windows of a second with ten steps each.
model::Recording of_steps() {
  model::Recording recording;
  recording.cycles.cycles.resize(10 * kWindows);
  model::OffCpu& off = recording.collected.off_cpu;
  off.seconds.assign(kWindows, 1);
  off.steps.assign(kWindows, 10);
  for (std::size_t w = 0; w <= kWindows; ++w) off.first.push_back(w);
  off.shortest = "10000";
  off.functions.emplace();
  off.wakers.emplace();
  off.rivals.emplace();
  return recording;
}

/// The same with units of work instead, `rate` in a window.
model::Recording of_requests(double rate) {
  model::Recording recording = of_steps();
  recording.cycles.cycles.clear();
  recording.collected.off_cpu.steps.clear();
  model::WorkUnits& work = recording.work.emplace();
  model::WorkUnit& unit = work.units.emplace_back();
  unit.kind = model::UnitKind::request;
  unit.process = "server";
  unit.per_window.assign(kWindows, rate);
  return recording;
}

/// `ns` and `count` in each window, which wobble by a hundredth.
void add(std::optional<model::NamedSums>& sums, const std::string& name, const std::string& call, double ns,
         double count) {
  model::WindowSums& row = (*sums)[{name, call}];
  for (std::size_t w = 0; w < kWindows; ++w) {
    const double wobble = 1 + 0.01 * static_cast<double>((w * 7) % 3) - 0.01;
    row.ns.push_back(ns * wobble);
    row.count.push_back(count * wobble);
  }
}

model::Recording waiting(double ns, double count = 20) {
  model::Recording recording = of_steps();
  add(recording.collected.off_cpu.functions, "get (queue.py)", "futex", ns, count);
  add(recording.collected.off_cpu.functions, "write_log", "fsync", 30 * kMs, 10);
  return recording;
}

model::OffCpuChanges changes(const model::Recording& a, const model::Recording& b,
                             const model::WorkUnit* unit = nullptr) {
  return off_cpu_changes({&a, 1}, {&b, 1}, unit);
}

TEST(OffCpuChanges, AFunctionInWhichStepsWaitLongerIsListedByStep) {
  const model::OffCpuChanges found = changes(waiting(40 * kMs), waiting(120 * kMs));
  EXPECT_EQ(found.per, "step");
  ASSERT_EQ(found.functions.size(), 1U) << "the other one is the same";
  const model::OffCpuChange& change = found.functions[0];
  EXPECT_EQ(change.name, "get (queue.py)");
  EXPECT_EQ(change.call, "futex");
  EXPECT_NEAR(change.ns_per_unit[0], 4 * kMs, 1e3);
  EXPECT_NEAR(change.ns_per_unit[1], 12 * kMs, 1e3);
  EXPECT_NEAR(change.per_unit[0], 2, 1e-3);
  EXPECT_EQ(change.changed, OffCpuChanged::longer);
  EXPECT_THAT(found.wakers, IsEmpty());
  EXPECT_THAT(found.rivals, IsEmpty());
}

TEST(OffCpuChanges, WhoHadCPUsOnOneSideAloneIsKnownThoughThatMayBeChance) {
  model::Recording before = of_steps();
  add(before.collected.off_cpu.rivals, "client", "", 2 * kMs, 5);
  model::Recording then = of_steps();
  add(then.collected.off_cpu.rivals, "client", "", 2 * kMs, 5);
  for (const char* name : {"backup", "cron"}) {
    model::WindowSums& row = (*then.collected.off_cpu.rivals)[{name, ""}];
    row.ns.assign(kWindows, 0);
    row.count.assign(kWindows, 0);
    row.ns[3] = name[0] == 'b' ? 60 * kMs : 5 * kMs;
    row.count[3] = 1;
  }
  const model::OffCpuChanges found = changes(before, then);
  EXPECT_THAT(found.rivals, IsEmpty());
  EXPECT_EQ(found.newcomers[0].name, "");
  EXPECT_EQ(found.newcomers[1].name, "backup");
  EXPECT_NEAR(found.newcomers[1].ns_per_unit[1], 60 * kMs / (10 * kWindows), 1);
  EXPECT_EQ(changes(then, before).newcomers[0].name, "backup");
}

TEST(OffCpuChanges, TheSameIsSilent) {
  const model::OffCpuChanges found = changes(waiting(40 * kMs), waiting(44 * kMs));
  EXPECT_EQ(found.per, "step");
  EXPECT_THAT(found.functions, IsEmpty());
}

TEST(OffCpuChanges, WhatVariesAsMuchInsideIsSilent) {
  model::Recording a = waiting(40 * kMs);
  model::Recording b = waiting(60 * kMs);
  for (model::Recording* recording : {&a, &b}) {
    std::vector<double>& ns = recording->collected.off_cpu.functions->begin()->second.ns;
    for (std::size_t w = 0; w < kWindows; ++w) ns[w] *= w % 2 == 0 ? 0.1 : 1.9;
  }
  EXPECT_THAT(changes(a, b).functions, IsEmpty());
}

TEST(OffCpuChanges, AStretchWithHardlyAnyUnitDoesNotOutweighTheOthers) {
  const model::Recording before = of_requests(1000);
  model::Recording then = of_requests(1000);
  model::WorkUnit& unit = then.work->units[0];
  for (const std::size_t w : {std::size_t{3}, std::size_t{8}}) unit.per_window[w] = 2;
  add(then.collected.off_cpu.functions, "lock", "futex", 300 * kMs, 10);
  const model::OffCpuChanges found = changes(before, then, &unit);
  ASSERT_EQ(found.functions.size(), 1U);
  EXPECT_NEAR(found.functions[0].ns_per_unit[1], kWindows * 300e6 / (10 * 1000 + 2 * 2), 0.01 * 360e3);
}

TEST(OffCpuChanges, WhatMakesLessThanHalfAPercentOfAStepIsNone) {
  EXPECT_THAT(changes(waiting(1 * kMs), waiting(5 * kMs)).functions, IsEmpty());
  EXPECT_EQ(changes(waiting(1 * kMs), waiting(8 * kMs)).functions.size(), 1U);
}

TEST(OffCpuChanges, HowTheyChangedIsWhatMovedMost) {
  const auto how = [](double ns, double count) {
    const model::OffCpuChanges found = changes(waiting(40 * kMs, 20), waiting(ns, count));
    return found.functions.empty() ? OffCpuChanged::gone : found.functions[0].changed;
  };
  EXPECT_EQ(how(160 * kMs, 80), OffCpuChanged::more_often);
  EXPECT_EQ(how(160 * kMs, 20), OffCpuChanged::longer);
  EXPECT_EQ(how(10 * kMs, 20), OffCpuChanged::shorter);
  EXPECT_EQ(how(10 * kMs, 5), OffCpuChanged::less_often);
}

TEST(OffCpuChanges, WhatOneSideAloneHasIsNewOrGone) {
  const model::Recording without = of_steps();
  const model::OffCpuChanges added = changes(without, waiting(40 * kMs));
  ASSERT_EQ(added.functions.size(), 2U);
  EXPECT_EQ(added.functions[0].name, "get (queue.py)") << "the largest change of time first";
  EXPECT_EQ(added.functions[0].changed, OffCpuChanged::added);
  EXPECT_DOUBLE_EQ(added.functions[0].ns_per_unit[0], 0);
  EXPECT_EQ(changes(waiting(40 * kMs), without).functions[0].changed, OffCpuChanged::gone);
}

TEST(OffCpuChanges, WakersAreHeldAgainstEachOtherByTheirNumber) {
  model::Recording a = of_steps();
  model::Recording b = of_steps();
  add(a.collected.off_cpu.wakers, "loader", "futex", 10 * kMs, 50);
  add(b.collected.off_cpu.wakers, "loader", "futex", 10 * kMs, 150);
  add(a.collected.off_cpu.wakers, "main", "futex", 10 * kMs, 50);
  add(b.collected.off_cpu.wakers, "main", "futex", 90 * kMs, 50);
  const model::OffCpuChanges found = changes(a, b);
  ASSERT_EQ(found.wakers.size(), 1U);
  EXPECT_EQ(found.wakers[0].name, "loader");
  EXPECT_NEAR(found.wakers[0].per_unit[1], 15, 1e-2);
  EXPECT_EQ(found.wakers[0].changed, OffCpuChanged::more_often);
}

TEST(OffCpuChanges, WhoHadTheCpusIsListedByProcess) {
  model::Recording a = of_steps();
  model::Recording b = of_steps();
  add(b.collected.off_cpu.rivals, "stress-ng-cpu", "", 500 * kMs, 30);
  const model::OffCpuChanges found = changes(a, b);
  ASSERT_EQ(found.rivals.size(), 1U);
  EXPECT_EQ(found.rivals[0].name, "stress-ng-cpu");
  EXPECT_NEAR(found.rivals[0].ns_per_unit[1], 50 * kMs, 1e4);
}

TEST(OffCpuChanges, AtMostTenOfEach) {
  model::Recording a = of_steps();
  model::Recording b = of_steps();
  for (int i = 0; i < 15; ++i) add(b.collected.off_cpu.rivals, "rival" + std::to_string(i), "", (100 + i) * kMs, 30);
  const model::OffCpuChanges found = changes(a, b);
  ASSERT_EQ(found.rivals.size(), 10U);
  EXPECT_EQ(found.rivals[0].name, "rival14");
}

TEST(OffCpuChanges, UnitsOfWorkCountWhereThereAreNoSteps) {
  model::Recording a = of_requests(1000);
  model::Recording b = of_requests(500);
  add(a.collected.off_cpu.functions, "fdatasync", "fdatasync", 100 * kMs, 1000);
  add(b.collected.off_cpu.functions, "fdatasync", "fdatasync", 100 * kMs, 500);
  const model::WorkUnit unit = a.work->units[0];
  const model::OffCpuChanges found = changes(a, b, &unit);
  EXPECT_EQ(found.per, "request");
  ASSERT_EQ(found.functions.size(), 1U) << "as much time for half of the requests";
  EXPECT_NEAR(found.functions[0].ns_per_unit[0], 0.1 * kMs, 1e2);
  EXPECT_NEAR(found.functions[0].ns_per_unit[1], 0.2 * kMs, 1e2);
  EXPECT_NEAR(found.functions[0].per_unit[1], 1, 1e-3);
  const model::OffCpuChanges by_time = changes(a, b);
  EXPECT_EQ(by_time.per, "second");
  EXPECT_THAT(by_time.functions, IsEmpty()) << "in a second it is the same";
}

TEST(OffCpuChanges, WindowsOfSeveralUnitsOfWorkArePutTogether) {
  model::Recording a = of_requests(0.25);
  model::Recording b = of_requests(0.25);
  add(a.collected.off_cpu.functions, "fsync", "fsync", 50 * kMs, 1);
  add(b.collected.off_cpu.functions, "fsync", "fsync", 200 * kMs, 1);
  const model::WorkUnit unit = a.work->units[0];
  EXPECT_THAT(changes(a, b, &unit).functions, IsEmpty()) << "three stretches say too little";
  for (model::Recording* recording : {&a, &b}) recording->work->units[0].per_window.assign(kWindows, 0.5);
  const model::OffCpuChanges found = changes(a, b, &unit);
  ASSERT_EQ(found.functions.size(), 1U);
  EXPECT_NEAR(found.functions[0].ns_per_unit[1], 400 * kMs, 1e6);
}

TEST(OffCpuChanges, UnlikeUnitsAreNotHeldAgainstEachOther) {
  const model::Recording steps = waiting(40 * kMs);
  model::Recording work = of_requests(100);
  add(work.collected.off_cpu.functions, "get (queue.py)", "futex", 400 * kMs, 20);
  EXPECT_EQ(changes(steps, work).per, "");
  EXPECT_THAT(changes(steps, work).functions, IsEmpty());
  model::WorkUnit other = work.work->units[0];
  other.process = "client";
  EXPECT_EQ(changes(work, work, &other).per, "") << "a unit that they do not have";
}

TEST(OffCpuChanges, WaitsThatAreToldFromAnotherLengthOnAreNotHeldAgainstEachOther) {
  model::Recording a = waiting(40 * kMs);
  model::Recording b = waiting(120 * kMs);
  add(b.collected.off_cpu.rivals, "rival", "", 500 * kMs, 30);
  b.collected.off_cpu.shortest = "200000";
  const model::OffCpuChanges found = changes(a, b);
  EXPECT_THAT(found.functions, IsEmpty());
  EXPECT_EQ(found.rivals.size(), 1U) << "which every recording tells";
}

TEST(OffCpuChanges, WhatOneSideDoesNotTellIsNotNew) {
  model::Recording a = of_steps();
  a.collected.off_cpu.functions.reset();
  a.collected.off_cpu.rivals.reset();
  model::Recording b = waiting(120 * kMs);
  add(b.collected.off_cpu.rivals, "rival", "", 500 * kMs, 30);
  EXPECT_THAT(changes(a, b).functions, IsEmpty());
  EXPECT_THAT(changes(a, b).rivals, IsEmpty());
}

TEST(OffCpuChanges, RecordingsOfASideArePooled) {
  const std::array base = {waiting(40 * kMs), waiting(40.2 * kMs)};
  const std::array candidate = {waiting(119.8 * kMs), waiting(120.2 * kMs)};
  const model::OffCpuChanges found = off_cpu_changes(base, candidate, nullptr);
  ASSERT_EQ(found.functions.size(), 1U);
  EXPECT_NEAR(found.functions[0].ns_per_unit[0], 4.01 * kMs, 1e3);
  EXPECT_NEAR(found.functions[0].ns_per_unit[1], 12 * kMs, 1e3);
}

TEST(OffCpuChanges, WhoEndedMostOfAWaitIsTold) {
  const model::NamedSums::key_type get = {"get (queue.py)", "futex"};
  const model::Recording a = waiting(40 * kMs);
  model::Recording b = waiting(120 * kMs);
  b.collected.off_cpu.ended_by[get] = {{"filler", 80 * kMs}, {"logger", 20 * kMs}};
  model::OffCpuChanges found = changes(a, b);
  ASSERT_EQ(found.functions.size(), 1U);
  EXPECT_EQ(found.functions[0].ended_by[0], "");
  EXPECT_EQ(found.functions[0].ended_by[1], "filler");
  b.collected.off_cpu.ended_by[get]["logger"] = 60 * kMs;
  EXPECT_EQ(changes(a, b).functions[0].ended_by[1], "") << "of two";
}

TEST(OffCpuChanges, WaitsForInputAreHeldAgainstEachOtherAlike) {
  model::Recording a = waiting(40 * kMs);
  model::Recording b = waiting(120 * kMs);
  EXPECT_THAT(changes(a, b).inputs, IsEmpty());
  a.collected.off_cpu.inputs.emplace();
  b.collected.off_cpu.inputs.emplace();
  add(b.collected.off_cpu.inputs, "next_batch (load.py)", "poll", 80 * kMs, 10);
  const model::OffCpuChanges found = changes(a, b);
  ASSERT_EQ(found.inputs.size(), 1U);
  EXPECT_EQ(found.inputs[0].name, "next_batch (load.py)");
  EXPECT_NEAR(found.inputs[0].ns_per_unit[1], 8 * kMs, 1e3);
}

}  // namespace
}  // namespace culprit::compare
