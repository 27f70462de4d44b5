#include "faults/catalog.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "core/file.h"
#include "core/text.h"
#include "faults/cpu_frequency.h"
#include "faults/text.h"
#include "faults/workers.h"
#include "support/child_process.h"

namespace culprit::faults {
namespace {

TEST(FaultTable, NamesOnlyCausesAndDetailsThatAVerdictCanHave) {
  const std::map<std::string_view, std::set<std::string_view>> verdicts = {
      {"gpu_clock_drop", {"throttle_thermal", "throttle_power", "locked"}},
      {"gpu_contention", {"other_process", "memory_pressure"}},
      {"interconnect_contention", {"nvlink", "pcie", "network"}},
      {"cpu_contention", {"other_processes", "throttled", "steal", "affinity"}},
      {"cpu_frequency_drop", {""}},
      {"host_memory_pressure", {"swap", "reclaim", "major_faults", "bandwidth"}},
      {"disk_io", {""}},
      {"process_stopped", {""}},
      {"host_bound", {"function", "gc", "gil", "lock", "data_input"}}};
  std::set<std::string_view> names;
  for (const FaultInfo& fault : fault_table()) {
    EXPECT_TRUE(names.insert(fault.name).second) << fault.name;
    ASSERT_TRUE(verdicts.contains(fault.cause)) << fault.name;
    EXPECT_TRUE(verdicts.at(fault.cause).contains(fault.detail)) << fault.name;
    EXPECT_EQ(find_fault(fault.name), &fault);
  }
  EXPECT_EQ(find_fault("cpux"), nullptr);
}

TEST(FaultTable, TheDocumentationHasExactlyItsRows) {
  const auto page = read_beginning(std::string(CULPRIT_SOURCE_DIR) + "/docs/faults.md");
  ASSERT_TRUE(page);
  std::vector<std::string> documented;
  for (const std::string_view line : split_lines(*page)) {
    if (line.starts_with("## The request")) break;
    if (line.starts_with("| `")) documented.emplace_back(line);
  }
  std::vector<std::string> expected;
  for (const FaultInfo& fault : fault_table()) {
    std::string needs = fault.needs_target ? "`--target`" : "";
    if (!fault.needs.empty()) needs += (needs.empty() ? "" : ", ") + std::string(fault.needs);
    expected.push_back(fmt::format("| `{}` | {} | {} | {} | {} | {} |", fault.name, fault.does, fault.severity,
                                   fault.cause, fault.detail, needs));
  }
  EXPECT_EQ(documented, expected);
}

TEST(Workers, AShareBecomesWholeThreadsAndARemainder) {
  EXPECT_EQ(duties_of_share(1, 2), (std::vector<double>{1, 1}));
  EXPECT_EQ(duties_of_share(0.5, 2), (std::vector<double>{1}));
  ASSERT_EQ(duties_of_share(0.8, 2).size(), 2U);
  EXPECT_NEAR(duties_of_share(0.8, 2)[1], 0.6, 1e-9);
  EXPECT_EQ(duties_of_share(0.1, 10), (std::vector<double>{1}));  // no 0.9999 by rounding
  EXPECT_TRUE(duties_of_share(0.001, 2).empty());
}

TEST(Workers, AThreadRestsForTheRestOfItsTime) {
  // Who wakes up late for want of a CPU does less; not each time.
  constexpr int kTries = 10;
  bool enough = false;
  for (int i = 0; i < kTries && !enough; ++i) {
    Workers workers;
    const Ns begin = monotonic_now();
    ASSERT_TRUE(workers.start({0.25}, {}, [](std::size_t, WorkDone& done) {
      usleep(1000);
      done.rounds.fetch_add(1);
    }));
    usleep(600'000);
    workers.stop();
    const double elapsed = static_cast<double>(monotonic_now() - begin);
    const double share = static_cast<double>(workers.sum(&WorkDone::busy_ns)) / elapsed;
    EXPECT_LT(share, 0.40);
    enough = workers.sum(&WorkDone::rounds) > 10 && share > 0.05;
  }
  EXPECT_TRUE(enough);
}

TEST(CpuFrequency, LimitsGoDownByTheSeverityAndNeverUp) {
  const test::Folder folder;
  for (const auto& [policy, now] : std::map<std::string, std::string>{{"policy0", "3000000"}, {"policy1", "1200000"}}) {
    folder.write(policy + "/cpuinfo_min_freq", "1000000\n");
    folder.write(policy + "/cpuinfo_max_freq", "3000000\n");
    folder.write(policy + "/scaling_max_freq", now + "\n");
  }
  folder.write("boost", "1");
  const auto limits = clock_limits(folder.path, 0.5);
  ASSERT_EQ(limits.size(), 2U);
  EXPECT_EQ(limits[0].wanted_khz, 2'000'000);
  EXPECT_EQ(limits[0].before_khz, 3'000'000);
  EXPECT_EQ(limits[1].wanted_khz, 1'200'000);
  EXPECT_TRUE(clock_limits(folder.path + "/none", 0.5).empty());
}

TEST(FaultText, NumbersBecomeRanges) {
  EXPECT_EQ(ranges_text({0, 1, 2, 5}), "0-2,5");
  EXPECT_EQ(ranges_text({7}), "7");
  EXPECT_EQ(ranges_text({}), "");
  EXPECT_NE(unique_text(), unique_text());
}

}  // namespace
}  // namespace culprit::faults
