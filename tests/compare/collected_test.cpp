#include "compare/collected.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>

#include "stats/log_buckets.h"

namespace culprit::compare {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// Shares of `f`, the rest of `g`, in ten windows that wobble by a hundredth.
model::Recording running(double f) {
  model::Recording recording;
  model::Collected& collected = recording.collected;
  collected.seconds = 10;
  collected.windows = 10;
  for (int w = 0; w < 10; ++w) {
    const double share = f * (1 + 0.01 * ((w * 7) % 3 - 1));
    if (f > 0) collected.functions["f"].push_back(share);
    collected.functions["g"].push_back(1 - share);
  }
  return recording;
}

std::vector<model::ShareChange> shares(const model::Recording& a, const model::Recording& b) {
  return share_changes({&a, 1}, {&b, 1}, &model::Collected::functions);
}

TEST(ShareChanges, WhatRanMoreIsListed) {
  const auto changes = shares(running(0.10), running(0.20));
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(changes[0].function, "f");
  EXPECT_NEAR(changes[0].share[0], 0.10, 1e-3);
  EXPECT_NEAR(changes[0].share[1], 0.20, 2e-3);
}

TEST(ShareChanges, AFunctionOfOneSideHadNothingOfTheOther) {
  const auto changes = shares(running(0), running(0.30));
  ASSERT_EQ(changes.size(), 2U);
  EXPECT_EQ(changes[0].function, "f");
  EXPECT_DOUBLE_EQ(changes[0].share[0], 0);
  EXPECT_EQ(changes[1].function, "g");
}

TEST(ShareChanges, FunctionsOfPythonAreHeldAgainstEachOtherAlike) {
  model::Recording a = running(0.10);
  model::Recording b = running(0.20);
  for (model::Recording* r : {&a, &b}) r->collected.python["forward (m.py)"] = r->collected.functions["f"];
  const auto changes = share_changes({&a, 1}, {&b, 1}, &model::Collected::python);
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(changes[0].function, "forward (m.py)");
}

TEST(ShareChanges, WhetherThreadsWaitWhereAFunctionRanIsTold) {
  model::Recording a = running(0.10);
  model::Recording b = running(0.20);
  b.collected.functions_in["f"] = {10, 4, 0};
  EXPECT_DOUBLE_EQ(shares(a, b)[0].in_waiting[1], 0.4);
  EXPECT_TRUE(std::isnan(shares(a, b)[0].in_waiting[0]));
  for (model::Recording* r : {&a, &b}) r->collected.python["f"] = r->collected.functions["f"];
  b.collected.python_in["f"] = {10, 4, 1};
  EXPECT_DOUBLE_EQ(share_changes({&a, 1}, {&b, 1}, &model::Collected::python)[0].in_waiting[1], 0.1);
}

TEST(ShareChanges, WhetherThreadsOfTheStepsRanItIsTold) {
  model::Recording a = running(0.10);
  model::Recording b = running(0.20);
  a.collected.functions_in["f"] = {10, 0, 0};
  b.collected.functions_in["f"] = {10, 0, 0, 4};
  EXPECT_TRUE(std::isnan(shares(a, b)[0].in_steps[0])) << "none is known";
  EXPECT_DOUBLE_EQ(shares(a, b)[0].in_steps[1], 0.4);
  b.collected.sampled_in = {100, 0, 0, 25};
  EXPECT_DOUBLE_EQ(shares(a, b)[0].in_steps[1], 1.6) << "four threads run the code of the program alike";
}

TEST(ShareChanges, TheSameIsSilent) { EXPECT_THAT(shares(running(0.2), running(0.21)), IsEmpty()); }

TEST(ShareChanges, LessThanAHundredthIsNothing) { EXPECT_THAT(shares(running(0.001), running(0.01)), IsEmpty()); }

TEST(ShareChanges, OneThatWobblesAsMuchIsNothing) {
  model::Recording a = running(0.2);
  model::Recording b = running(0.3);
  for (std::size_t w = 0; w < 10; ++w) b.collected.functions["f"][w] *= w % 2 == 0 ? 0.2 : 1.8;
  a.collected.functions.erase("g");
  b.collected.functions.erase("g");
  EXPECT_THAT(shares(a, b), IsEmpty());
}

TEST(DiskChanges, AreRatesAndTimesOfOneRequest) {
  model::Recording a;
  a.collected.seconds = 2;
  a.collected.disks["vda write"] = {10, 40960, 1000, {}};
  model::Recording b;
  b.collected.seconds = 1;
  b.collected.disks["vda write"] = {10, 40960, 4000, {}};
  b.collected.disks["vda flush"] = {1, 0, 9000, {}};
  b.collected.disks["vda flush"].buckets.resize(stats::kLogBuckets);
  b.collected.disks["vda flush"].buckets[stats::log_bucket_of(9000)] = 1;
  const auto disks = disk_changes({&a, 1}, {&b, 1});
  ASSERT_EQ(disks.size(), 2U);
  EXPECT_EQ(disks[0].name, "vda flush") << "the most time per second";
  EXPECT_THAT(disks[0].per_second, ElementsAre(0, 1));
  EXPECT_NEAR(disks[0].p99_ns[1], 9000, 9000 / 8.0);
  EXPECT_THAT(disks[1].per_second, ElementsAre(5, 10));
  EXPECT_THAT(disks[1].bytes_per_second, ElementsAre(20480, 40960));
  EXPECT_THAT(disks[1].mean_ns, ElementsAre(100, 400));
}

TEST(Quantiles, ComeToTheirCalls) {
  model::Recording a;
  a.collected.calls["read"].buckets.resize(stats::kLogBuckets);
  a.collected.calls["read"].buckets[stats::log_bucket_of(1000)] = 100;
  const model::Recording b;
  std::vector<model::CallChange> calls(2);
  calls[0].name = "write";
  calls[1].name = "read";
  add_quantiles({&a, 1}, {&b, 1}, calls);
  EXPECT_THAT(calls[0].p99_ns, ElementsAre(0, 0));
  EXPECT_NEAR(calls[1].p99_ns[0], 1000, 1000 / 8.0);
  EXPECT_DOUBLE_EQ(calls[1].p99_ns[1], 0);
}

model::CountedDurations counted(std::size_t count, double ns, bool waits = false) {
  model::CountedDurations durations;
  durations.count = count;
  durations.total_ns = static_cast<double>(count) * ns;
  durations.waits = waits;
  return durations;
}

/// `steps` steps of two fsync of `ns` each, four writes, and one wait of a thousand times as long.
model::Recording calling(std::size_t steps, double ns) {
  model::Recording recording;
  recording.cycles.cycles.resize(steps);
  model::Collected& collected = recording.collected;
  collected.calls["fsync"] = counted(2 * steps, ns);
  collected.calls["write"] = counted(4 * steps, 50);
  collected.calls["epoll_wait"] = counted(steps, ns * 1e3, true);
  return recording;
}

TEST(CallChanges, OfAStepLargestDifferenceFirstAndWaitsLast) {
  const model::Recording a = calling(100, 1000);
  const model::Recording b = calling(40, 3000);
  const auto changes = call_changes({&a, 1}, {&b, 1});
  ASSERT_EQ(changes.size(), 3U);
  EXPECT_EQ(changes[0].name, "fsync");
  EXPECT_THAT(changes[0].per_unit, ElementsAre(2, 2));
  EXPECT_THAT(changes[0].per_call_ns, ElementsAre(1000, 3000));
  EXPECT_EQ(changes[1].name, "write");
  EXPECT_THAT(changes[1].per_call_ns, ElementsAre(50, 50));
  EXPECT_EQ(changes[2].name, "epoll_wait");
}

TEST(CallChanges, ACallOfOneSideHasNothingOfTheOther) {
  const model::Recording a = calling(10, 1000);
  model::Recording b = calling(10, 1000);
  b.collected.calls["openat"] = counted(20, 5e4);
  const auto changes = call_changes({&a, 1}, {&b, 1});
  ASSERT_EQ(changes.size(), 4U);
  EXPECT_EQ(changes[0].name, "openat");
  EXPECT_THAT(changes[0].per_unit, ElementsAre(0, 2));
}

TEST(CallChanges, WithoutStepsThereAreNone) {
  const model::Recording a = calling(10, 1000);
  const model::Recording b = calling(0, 1000);
  EXPECT_THAT(call_changes({&a, 1}, {&b, 1}), IsEmpty());
}

/// `steps` steps, and so many reads of 4 KiB and `ns` each.
model::Recording reading(std::size_t steps, std::size_t reads, double ns) {
  model::Recording recording = calling(steps, 1000);
  model::CountedDurations own = counted(reads, ns);
  own.bytes = reads * 4096;
  recording.collected.own_disks["vda read"] = own;
  recording.collected.disks["vda read"] = own;
  return recording;
}

model::OwnDiskChanges own_disks(const model::Recording& a, const model::Recording& b,
                                const model::WorkUnit* unit = nullptr) {
  return own_disk_changes({&a, 1}, {&b, 1}, unit);
}

TEST(OwnDiskChanges, AreOfAStepLargestDifferenceFirst) {
  model::Recording a = reading(100, 200, 1e5);
  model::Recording b = reading(40, 160, 3e5);
  a.collected.own_disks["vda write"] = counted(100, 1e5);
  b.collected.own_disks["vda write"] = counted(40, 1e5);
  const model::OwnDiskChanges changes = own_disks(a, b);
  EXPECT_EQ(changes.per, "step");
  ASSERT_EQ(changes.requests.size(), 2U);
  const model::OwnDiskChange& read = changes.requests[0];
  EXPECT_EQ(read.name, "vda read");
  EXPECT_THAT(read.count, ElementsAre(200, 160));
  EXPECT_THAT(read.per_unit, ElementsAre(2, 4));
  EXPECT_THAT(read.bytes_per_unit, ElementsAre(8192, 16384));
  EXPECT_THAT(read.mean_ns, ElementsAre(1e5, 3e5));
  EXPECT_EQ(changes.requests[1].name, "vda write");
  EXPECT_THAT(changes.requests[1].per_unit, ElementsAre(1, 1));
}

TEST(OwnDiskChanges, RecordingsOfASideArePooled) {
  const std::array base = {reading(10, 20, 1e5), reading(30, 20, 3e5)};
  const model::Recording candidate = reading(20, 20, 1e5);
  const model::OwnDiskChanges changes = own_disk_changes(base, {&candidate, 1}, nullptr);
  ASSERT_EQ(changes.requests.size(), 1U);
  EXPECT_THAT(changes.requests[0].per_unit, ElementsAre(1, 1));
  EXPECT_THAT(changes.requests[0].mean_ns, ElementsAre(2e5, 1e5));
}

TEST(OwnDiskChanges, OfAHandfulNothingIsTold) {
  const model::OwnDiskChanges changes = own_disks(reading(100, 4, 1e5), reading(100, 4, 9e6));
  EXPECT_EQ(changes.per, "step");
  EXPECT_THAT(changes.requests, IsEmpty());
}

TEST(OwnDiskChanges, TheTimeOfTooFewIsLeftOut) {
  const model::OwnDiskChanges changes = own_disks(reading(100, 4, 9e6), reading(100, 500, 1e5));
  ASSERT_EQ(changes.requests.size(), 1U);
  EXPECT_THAT(changes.requests[0].per_unit, ElementsAre(0.04, 5));
  EXPECT_THAT(changes.requests[0].mean_ns, ElementsAre(0, 1e5));
}

TEST(OwnDiskChanges, ASideThatReadsNothingAsksForNothing) {
  model::Recording a = reading(100, 0, 0);
  a.collected.own_disks.clear();
  a.collected.disks.clear();
  const model::OwnDiskChanges changes = own_disks(a, reading(100, 500, 1e5));
  ASSERT_EQ(changes.requests.size(), 1U);
  EXPECT_THAT(changes.requests[0].per_unit, ElementsAre(0, 5));
}

TEST(OwnDiskChanges, WhatTheKernelOrOthersAskForIsNotTheProgramsOwn) {
  model::Recording a = reading(100, 500, 1e5);
  model::Recording b = reading(100, 5000, 9e5);
  for (model::Recording* recording : {&a, &b}) recording->collected.own_disks.clear();
  EXPECT_THAT(own_disks(a, b).requests, IsEmpty());
}

TEST(OwnDiskChanges, ARecordingThatDidNotLookIsNotOneWithoutRequests) {
  model::Recording a = reading(100, 500, 1e5);
  a.collected = {};
  const model::OwnDiskChanges changes = own_disks(a, reading(100, 500, 1e5));
  EXPECT_EQ(changes.per, "");
  EXPECT_THAT(changes.requests, IsEmpty());
}

TEST(OwnDiskChanges, WithoutStepsThereAreNone) {
  EXPECT_EQ(own_disks(reading(100, 500, 1e5), reading(0, 500, 1e5)).per, "");
}

/// The same, of so many units of work instead.
model::Recording serving(std::uint64_t units, std::size_t reads, model::UnitKind kind = model::UnitKind::request) {
  model::Recording recording = reading(0, reads, 1e5);
  model::WorkUnit& unit = recording.work.emplace().units.emplace_back();
  unit.kind = kind;
  unit.process = "server";
  unit.count = units;
  return recording;
}

TEST(OwnDiskChanges, OfProgramsWithoutStepsAreByTheirUnitOfWork) {
  const model::Recording a = serving(1000, 500);
  const model::Recording b = serving(500, 500);
  const model::OwnDiskChanges changes = own_disks(a, b, &a.work->units.front());
  EXPECT_EQ(changes.per, "request");
  ASSERT_EQ(changes.requests.size(), 1U);
  EXPECT_THAT(changes.requests[0].per_unit, ElementsAre(0.5, 1));
  EXPECT_EQ(own_disks(a, reading(0, 500, 1e5), &a.work->units.front()).per, "") << "no such unit";
}

TEST(OwnDiskChanges, StretchesOfTimeAreNoUnit) {
  const model::Recording a = serving(40, 500, model::UnitKind::window);
  EXPECT_EQ(own_disks(a, a, &a.work->units.front()).per, "");
}

}  // namespace
}  // namespace culprit::compare
