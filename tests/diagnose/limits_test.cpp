// Levels that are too high or too low in any run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/units.h"
#include "recording.h"

namespace culprit::diagnose {
namespace {

using model::Recording;
using model::VerdictState;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr Ns kSample = kSecond / 10;

/// One value every 100 ms.
void add_series(Recording& made, const std::string& metric, const std::vector<double>& values,
                const std::string& device = "Host", std::int32_t rank = -1) {
  model::ResourceSeries series;
  series.metric = made.profile.texts.intern(metric);
  series.device = made.profile.texts.intern(device);
  series.rank = rank;
  for (std::size_t i = 0; i < values.size(); ++i) series.times.push_back(static_cast<Ns>(i) * kSample);
  series.values = values;
  made.profile.series.push_back(series);
}

std::vector<double> always(double value, std::size_t samples = 30) { return std::vector<double>(samples, value); }

/// A run in which one thing was recorded.
Recording with(const std::string& metric, const std::vector<double>& values, const std::string& device = "Host") {
  Recording made = run(9, 0.1, 0.9);
  add_series(made, metric, values, device);
  return made;
}

/// So many samples of the first value, then of the second.
std::vector<double> first_then(std::size_t first, double of_first, std::size_t then, double of_then) {
  std::vector<double> values(first, of_first);
  values.insert(values.end(), then, of_then);
  return values;
}

TEST(Limits, AHotCpu) {
  const Recording hot = with("host.temperature.coretemp.Package_id_0", always(95));
  ASSERT_THAT(causes(hot), ElementsAre("cpu_frequency_drop/throttle_thermal"));
  const model::Verdict verdict = diagnose_run(hot)[0];
  EXPECT_EQ(verdict.state, VerdictState::latent);
  EXPECT_THAT(verdict.evidence[0], HasSubstr("95 degrees Celsius in the mean, and 90 or more for 100 % of the time"));
  EXPECT_THAT(verdict.against[0], HasSubstr("There is no baseline"));
  EXPECT_FALSE(verdict.next_step.empty());
  EXPECT_THAT(causes(with("cpu_temp", always(95))), ElementsAre("cpu_frequency_drop/throttle_thermal"));
  EXPECT_THAT(causes(with("host.temperature.coretemp.Package_id_0", always(85))), IsEmpty());
}

TEST(Limits, WhatIsHotBesideACpuIsNone) {
  EXPECT_THAT(causes(with("host.temperature.nvme.Composite", always(95))), IsEmpty());
  EXPECT_THAT(causes(with("host.temperature.amdgpu.edge", always(95))), IsEmpty());
}

TEST(Limits, APeakIsNoLevel) {
  EXPECT_THAT(causes(with("cpu_temp", first_then(10, 99, 20, 80))), IsEmpty());
  EXPECT_THAT(causes(with("cpu_temp", always(95, 4))), IsEmpty()) << "few samples";
  EXPECT_THAT(causes(with("cpu_temp", always(95, 9))), IsEmpty()) << "less than a second";
}

TEST(Limits, WhatWasSampledOftenCountsByItsTime) {
  Recording made = with("host.disk.vda.busy", first_then(30, 1, 8, 0));
  for (std::size_t i = 31; i < 38; ++i) made.profile.series[0].times[i] = made.profile.series[0].times[i - 1] + kSecond;
  EXPECT_THAT(causes(made), IsEmpty()) << "busy for 3 of 10 s";
}

TEST(Limits, WhatWasBeforeTheStepsIsNotTheirs) {
  Recording made = with("cpu_temp", first_then(100, 95, 50, 85));
  EXPECT_THAT(causes(made), ElementsAre("cpu_frequency_drop/throttle_thermal"));
  add_rank(made, 0);
  made.profile.cycles[0].begin = 11 * kSecond;
  made.profile.cycles[0].duration = 3 * kSecond;
  EXPECT_THAT(causes(made), IsEmpty());
}

TEST(Limits, ANetworkThatLosesSegments) {
  const auto sends = [](double again, double all) {
    Recording made = with("host.tcp.retransmits", always(again));
    add_series(made, "host.tcp.segments_sent", always(all));
    return made;
  };
  const Recording loses = sends(30, 600);
  ASSERT_THAT(causes(loses), ElementsAre("interconnect_contention/network"));
  const model::Verdict verdict = diagnose_run(loses)[0];
  EXPECT_EQ(verdict.state, VerdictState::latent);
  EXPECT_EQ(verdict.evidence[0], "30 of 600 TCP segments a second are sent again, 5.0 %");
  EXPECT_THAT(causes(sends(30, 40'000)), IsEmpty()) << "as any link";
  EXPECT_THAT(causes(sends(2, 20)), IsEmpty()) << "hardly anything is sent";
  Recording burst = with("host.tcp.retransmits", first_then(10, 200, 20, 0));
  add_series(burst, "host.tcp.segments_sent", always(600));
  EXPECT_THAT(causes(burst), IsEmpty());
}

TEST(Limits, AHotDevice) {
  const Recording hot = with("GPU temperature", always(88), "GPU 0");
  ASSERT_THAT(causes(hot), ElementsAre("gpu_clock_drop/throttle_thermal in GPU 0"));
  const model::Verdict verdict = diagnose_run(hot)[0];
  EXPECT_EQ(verdict.state, VerdictState::latent);
  EXPECT_THAT(verdict.evidence[0], HasSubstr("GPU 0 is 88 degrees Celsius in the mean, and 85 or more for"));
  EXPECT_THAT(verdict.against[0], HasSubstr("There is no baseline"));
  EXPECT_THAT(causes(with("GPU temperature", always(84), "GPU 0")), IsEmpty());
  EXPECT_THAT(causes(with("gpu_mem_temp", always(95), "GPU 0")), IsEmpty());
}

TEST(Limits, DevicesThatAreAsHotAreOneVerdict) {
  Recording made = run(9, 0.1, 0.9);
  for (std::int32_t rank = 0; rank < 4; ++rank) {
    add_rank(made, rank);
    add_series(made, "gpu_temp", always(86 + rank), "GPU 0", rank);
  }
  EXPECT_THAT(causes(made), ElementsAre("gpu_clock_drop/throttle_thermal"));
  EXPECT_THAT(diagnose_run(made)[0].evidence[0], HasSubstr("GPU 0 of rank 3 is 89 degrees Celsius"));
  EXPECT_THAT(diagnose_run(made)[0].evidence[0], HasSubstr("others that are as hot: 3"));
}

/// One CPU, its highest clock, what it works, and its clock.
Recording clocked(const char* highest_khz, double busy, double hertz) {
  Recording made = with("host.cpu0.busy", always(busy));
  add_series(made, "host.cpu0.frequency", always(hertz));
  if (*highest_khz != '\0') made.environment["env.cpu.cpuinfo_max_freq_khz"] = {highest_khz};
  return made;
}

TEST(Limits, AClockFarBelowTheHighest) {
  const Recording slow = clocked("3500000", 0.9, 1.4e9);
  ASSERT_THAT(causes(slow), ElementsAre("cpu_frequency_drop"));
  const model::Verdict verdict = diagnose_run(slow)[0];
  EXPECT_EQ(verdict.state, VerdictState::latent);
  EXPECT_THAT(verdict.evidence[0], HasSubstr("1.40 GHz in the mean, and half of the highest, 3.50 GHz"));
  EXPECT_THAT(verdict.against[0], HasSubstr("There is no baseline"));
  EXPECT_THAT(causes(clocked("3500000", 0.9, 2.5e9)), IsEmpty());
}

TEST(Limits, AnIdleCpuHasALowClockAndNoneIsKnownToBeLowWithoutTheHighest) {
  EXPECT_THAT(causes(clocked("3500000", 0.1, 8e8)), IsEmpty());
  EXPECT_THAT(causes(clocked("", 0.9, 8e8)), IsEmpty());
  EXPECT_THAT(causes(clocked("3500000, 2400000", 0.9, 1.4e9)), IsEmpty()) << "it may be one of the slower kind";
}

TEST(Limits, AHotCpuWhoseClockIsLowIsOneVerdict) {
  Recording made = clocked("3500000", 0.9, 1.4e9);
  add_series(made, "cpu_temp", always(97));
  ASSERT_THAT(causes(made), ElementsAre("cpu_frequency_drop/throttle_thermal"));
  EXPECT_THAT(diagnose_run(made)[0].evidence, Contains(HasSubstr("97 degrees Celsius")));
}

/// The machine's memory and how much of it is available, bytes.
Recording remembered(const char* total, double available) {
  Recording made = with("host.memory.available", always(available));
  if (*total != '\0') made.environment["env.memory.total_bytes"] = {total};
  return made;
}

TEST(Limits, LittleMemory) {
  Recording made = remembered("107374182400", 2147483648);
  ASSERT_THAT(causes(made), ElementsAre("host_memory_pressure/available"));
  model::Verdict verdict = diagnose_run(made)[0];
  EXPECT_EQ(verdict.state, VerdictState::latent);
  EXPECT_THAT(verdict.evidence[0], HasSubstr("2.00 GiB of 100.00 GiB of memory are available in the mean, and 5 %"));
  EXPECT_THAT(verdict.against[0], HasSubstr("There is no baseline"));
  made.host.step->on_cpu[kDecode] = 100 * 5 * kMs;
  made.host.step->blocked[kDecode] = 100 * 5 * kMs;
  add_state(made, "blocked in page_fault", 4);
  verdict = diagnose_run(made)[0];
  EXPECT_EQ(verdict.state, VerdictState::active);
  EXPECT_NEAR(verdict.impact_ns, 4 * kMs, 1);
  EXPECT_THAT(causes(remembered("107374182400", 1e10)), IsEmpty());
  EXPECT_THAT(causes(remembered("", 2e9)), IsEmpty()) << "little of what is not known";
}

/// A control group that uses so much of 4 GiB, and how often it meets that limit.
Recording grouped(double share, double hits, double refaults) {
  constexpr double kLimit = 4.0 * 1024 * 1024 * 1024;
  Recording made = with("cgroup.memory.used", always(share * kLimit));
  add_series(made, "cgroup.memory.limit", always(kLimit));
  add_counter(made, "cgroup.memory.limit_hits", hits);
  add_counter(made, "cgroup.memory.refaults", refaults);
  return made;
}

TEST(Limits, TheMemoryOfAControlGroup) {
  Recording made = grouped(0.995, 300, 4000);
  ASSERT_THAT(causes(made), ElementsAre("host_memory_pressure/memory_limit"));
  model::Verdict verdict = diagnose_run(made)[0];
  EXPECT_EQ(verdict.state, VerdictState::latent);
  EXPECT_THAT(verdict.evidence[0], HasSubstr("uses 3.98 GiB of its limit of 4.00 GiB of memory in the mean"));
  EXPECT_THAT(verdict.evidence[1], HasSubstr("4000 pages a second are read again"));
  EXPECT_THAT(verdict.against[0], HasSubstr("There is no baseline"));
  EXPECT_THAT(verdict.next_step, HasSubstr("memory.max"));
  made.host.step->on_cpu[kDecode] = 100 * 5 * kMs;
  made.host.step->blocked[kDecode] = 100 * 5 * kMs;
  add_state(made, "blocked in read, uninterruptible", 4);
  verdict = diagnose_run(made)[0];
  EXPECT_EQ(verdict.state, VerdictState::active);
  EXPECT_NEAR(verdict.impact_ns, 4 * kMs, 1);
}

TEST(Limits, AGroupThatIsFullOfFilesLacksNothing) {
  EXPECT_THAT(causes(grouped(0.995, 300, 2)), IsEmpty());
  EXPECT_THAT(causes(grouped(0.995, 0, 4000)), IsEmpty()) << "the machine pushes them out";
  EXPECT_THAT(causes(grouped(0.7, 300, 4000)), IsEmpty());
  Recording none = with("cgroup.memory.used", always(1e9));
  add_counter(none, "cgroup.memory.limit_hits", 300);
  add_counter(none, "cgroup.memory.refaults", 300);
  EXPECT_THAT(causes(none), IsEmpty()) << "there is no limit";
}

TEST(Limits, TheLimitOfAnotherGroupIsNotItsOwn) {
  Recording made = grouped(0.5, 300, 4000);
  add_series(made, "cgroup.memory.limit", always(1e9));
  made.profile.series.back().pid = 77;
  EXPECT_THAT(causes(made), IsEmpty());
}

TEST(Limits, PagesThatAreReadBackForALimitAreItsDoing) {
  Recording made = grouped(0.995, 300, 4000);
  made.host.step->blocked[kDecode] = 100 * 5 * kMs;
  add_counter(made, "target.faults.major", 900);
  add_state(made, "blocked in page_fault", 4);
  ASSERT_THAT(causes(made), ElementsAre("host_memory_pressure/memory_limit"));
  EXPECT_THAT(diagnose_run(made)[0].next_step, HasSubstr("raise the limit of its control group"));
  EXPECT_THAT(diagnose_run(made)[0].against, ElementsAre(HasSubstr("There is no baseline")));
  EXPECT_THAT(diagnose_run(made)[0].evidence, Contains(HasSubstr("4000 pages a second are read again")));
}

TEST(Limits, WaitsToSyncFilesAreNotForTheMemoryOfAGroup) {
  Recording made = grouped(0.995, 300, 4000);
  made.host.step->on_cpu[kDecode] = 100 * 5 * kMs;
  made.host.step->blocked[kDecode] = 100 * 5 * kMs;
  add_state(made, "blocked in rename", 4);
  ASSERT_THAT(causes(made), Contains("host_memory_pressure/memory_limit"));
  const auto verdicts = diagnose_run(made);
  const auto limit = std::ranges::find(verdicts, "memory_limit", &model::Verdict::detail);
  EXPECT_EQ(limit->state, VerdictState::latent);
}

TEST(Limits, TheLowestLimitOfManyGroupsIsFoundForEach) {
  constexpr double kGiB = 1024.0 * 1024 * 1024;
  Recording made = grouped(0.5, 300, 4000);
  for (std::int64_t pid = 100; pid < 2000; ++pid) {
    add_series(made, "cgroup.memory.used", always(1e9, 2));
    made.profile.series.back().pid = pid;
    add_series(made, "cgroup.memory.limit", always(1e12, 2));
    made.profile.series.back().pid = pid;
  }
  EXPECT_THAT(causes(made), IsEmpty());
  add_series(made, "cgroup.memory.high", always(2 * kGiB));
  EXPECT_THAT(causes(made), ElementsAre("host_memory_pressure/memory_limit"));
  EXPECT_THAT(diagnose_run(made)[0].evidence[0], HasSubstr("uses 2.00 GiB of its limit of 2.00 GiB"));
}

TEST(Limits, ABusyDisk) {
  Recording made = with("host.disk.nvme0n1.busy", always(0.95));
  ASSERT_THAT(causes(made), ElementsAre("disk_io/busy"));
  model::Verdict verdict = diagnose_run(made)[0];
  EXPECT_EQ(verdict.state, VerdictState::latent);
  EXPECT_THAT(verdict.evidence[0], HasSubstr("nvme0n1 has requests in flight for 95 % of the time in the mean"));
  EXPECT_THAT(verdict.evidence[0], HasSubstr("for 80 % or more"));
  EXPECT_THAT(verdict.against[0], HasSubstr("There is no baseline"));
  made.host.step->on_cpu[kDecode] = 100 * 5 * kMs;
  made.host.step->blocked[kDecode] = 100 * 5 * kMs;
  add_state(made, "blocked in pread64", 4);
  verdict = diagnose_run(made)[0];
  EXPECT_EQ(verdict.state, VerdictState::active);
  EXPECT_NEAR(verdict.impact_ns, 4 * kMs, 1);
  EXPECT_THAT(causes(with("host.disk.nvme0n1.busy", always(0.5))), IsEmpty());
  EXPECT_THAT(causes(with("disk_usage", always(0.95))), IsEmpty()) << "that is the space in use";
}

TEST(Limits, ACauseThatIsKnownGetsTheEvidence) {
  Recording made = run(5, 0, 5);
  add_state(made, "blocked in fsync", 4);
  add_series(made, "host.disk.vda.busy", always(0.95));
  ASSERT_THAT(causes(made), ElementsAre("disk_io/busy"));
  EXPECT_EQ(diagnose_run(made)[0].state, VerdictState::active);
  EXPECT_THAT(diagnose_run(made)[0].evidence, Contains(HasSubstr("in calls that sync files")));
  EXPECT_THAT(diagnose_run(made)[0].evidence, Contains(HasSubstr("requests in flight")));
}

}  // namespace
}  // namespace culprit::diagnose
