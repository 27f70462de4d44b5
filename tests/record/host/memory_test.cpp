#include "record/host/memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "record/host/out.h"

namespace culprit::record {
namespace {

using test::FakeMachine;
using test::out_to;
using test::Samples;

struct Memory : testing::Test {
  FakeMachine machine;
  Samples samples;
  Emitter emitter{out_to(samples)};
};

TEST_F(Memory, MeminfoIsInBytes) {
  machine.put(
      "/proc/meminfo",
      "MemTotal: 1000 kB\nMemAvailable:   400 kB\nCached: 30 kB\nDirty: 2 kB\nSwapTotal: 100 kB\nSwapFree: 25 kB\n");
  MemorySampler memory(machine.root(), 4096);
  memory.sample(kSecond, emitter);
  EXPECT_EQ(samples.last("host.memory.available"), 400 * 1024);
  EXPECT_EQ(samples.last("host.memory.cached"), 30 * 1024);
  EXPECT_EQ(samples.last("host.memory.dirty"), 2 * 1024);
  EXPECT_EQ(samples.last("host.swap.used"), 75 * 1024);
}

TEST_F(Memory, SwapAndFaultsAreRates) {
  machine.put("/proc/vmstat",
              "pgfault 1000\npgmajfault 100\npswpin 10\npswpout 20\nnuma_miss 5\nallocstall_dma 1\n"
              "allocstall_normal 2\npgscan_direct 0\npgscan_direct_throttle 7\noom_kill 0\n");
  MemorySampler memory(machine.root(), 4096);
  memory.sample(kSecond, emitter);
  machine.put("/proc/vmstat",
              "pgfault 3000\npgmajfault 200\npswpin 11\npswpout 30\nnuma_miss 9\nallocstall_dma 2\n"
              "allocstall_normal 4\npgscan_direct 3\npgscan_direct_throttle 700\noom_kill 1\n");
  memory.sample(3 * kSecond, emitter);
  EXPECT_DOUBLE_EQ(samples.last("host.faults.major"), 50);
  EXPECT_DOUBLE_EQ(samples.last("host.faults.minor"), 950);
  EXPECT_DOUBLE_EQ(samples.last("host.swap.in"), 2048);
  EXPECT_DOUBLE_EQ(samples.last("host.swap.out"), 20480);
  EXPECT_DOUBLE_EQ(samples.last("host.memory.reclaim.stalls"), 1.5);
  EXPECT_DOUBLE_EQ(samples.last("host.memory.reclaim.direct"), 6144);
  EXPECT_DOUBLE_EQ(samples.last("host.numa.misses"), 2);
  EXPECT_DOUBLE_EQ(samples.last("host.memory.oom_kills"), 0.5);
}

TEST_F(Memory, PressureIsTheShareOfTheInterval) {
  const std::string rest = " avg10=0.00 avg60=0.00 avg300=0.00 total=";
  machine.put("/proc/pressure/io", "some" + rest + "1000000\nfull" + rest + "0\n");
  MemorySampler memory(machine.root(), 4096);
  memory.sample(kSecond, emitter);
  machine.put("/proc/pressure/io", "some" + rest + "1250000\nfull" + rest + "100000\n");
  memory.sample(2 * kSecond, emitter);
  EXPECT_DOUBLE_EQ(samples.last("host.pressure.io.some"), 0.25);
  EXPECT_DOUBLE_EQ(samples.last("host.pressure.io.full"), 0.1);
  std::vector<Sight> sights;
  memory.sights(sights);
  std::size_t seen = 0;
  for (const Sight& sight : sights) {
    if (sight.what.find("pressure") == std::string::npos) continue;
    EXPECT_EQ(sight.available, sight.what.find("(io)") != std::string::npos) << sight.what;
    ++seen;
  }
  EXPECT_EQ(seen, 3u);
}

TEST_F(Memory, PressureFilesThatDoNotAnswerAreNamed) {
  machine.put("/proc/pressure/cpu", "garbage\n");
  MemorySampler memory(machine.root(), 4096);
  std::vector<Sight> sights;
  memory.sights(sights);
  const auto cpu = std::ranges::find(sights, "pressure stall times (cpu)", &Sight::what);
  ASSERT_NE(cpu, sights.end());
  EXPECT_FALSE(cpu->available);
  EXPECT_THAT(cpu->why, testing::HasSubstr("expected form"));
  EXPECT_THAT(cpu->remedy, testing::HasSubstr("psi=1"));
}

TEST_F(Memory, HostileNumbersAreLeftOut) {
  machine.put("/proc/meminfo", "MemAvailable: -5 kB\nDirty: 99999999999999999999 kB\nCached:\nWriteback: x\n:::\n");
  machine.put("/proc/vmstat", "pgfault 5\npgmajfault 9\npswpin one\n\n \n");
  MemorySampler memory(machine.root(), 4096);
  memory.sample(kSecond, emitter);
  memory.sample(2 * kSecond, emitter);
  EXPECT_EQ(samples.find("host.memory.available"), nullptr);
  EXPECT_EQ(samples.find("host.memory.dirty"), nullptr);
  EXPECT_EQ(samples.find("host.faults.minor"), nullptr) << "less faults than major faults";
  EXPECT_EQ(samples.find("host.swap.in"), nullptr);
}

TEST_F(Memory, NodesAreCountedOneByOne) {
  for (const char* node : {"node0", "node1"})
    machine.put(std::string("/sys/devices/system/node/") + node + "/numastat",
                "numa_hit 10\nnuma_miss 1\nlocal_node 10\nother_node 0\n");
  machine.put("/sys/devices/system/node/online", "0-1\n");
  MemorySampler memory(machine.root(), 4096);
  memory.sample_nodes(kSecond, emitter);
  machine.put("/sys/devices/system/node/node1/numastat", "numa_hit 10\nnuma_miss 4\nlocal_node 30\nother_node 8\n");
  memory.sample_nodes(2 * kSecond, emitter);
  EXPECT_DOUBLE_EQ(samples.last("host.numa0.misses"), 0);
  EXPECT_DOUBLE_EQ(samples.last("host.numa1.misses"), 3);
  EXPECT_DOUBLE_EQ(samples.last("host.numa1.local"), 20);
  EXPECT_DOUBLE_EQ(samples.last("host.numa1.other"), 8);
}

}  // namespace
}  // namespace culprit::record
