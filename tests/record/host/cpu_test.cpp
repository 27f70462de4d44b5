#include "record/host/cpu.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "record/host/out.h"

namespace culprit::record {
namespace {

using test::FakeMachine;
using test::out_to;
using test::Samples;

struct Cpu : testing::Test {
  FakeMachine machine;
  Samples samples;
  Emitter emitter{out_to(samples)};
  void stat(const std::string& text) const { machine.put("/proc/stat", text); }
};

TEST_F(Cpu, SharesOfAnIntervalSumToOne) {
  stat("cpu 0 0 0 0 0 0 0 0 0 0\ncpu0 100 10 50 1000 5 1 2 3 0 0\nctxt 1000\nprocs_running 3\nprocs_blocked 1\n");
  CpuSampler cpu(machine.root());
  cpu.sample(kSecond, emitter);
  EXPECT_EQ(samples.find("host.cpu0.busy"), nullptr);
  stat("cpu 0\ncpu0 130 20 60 1030 7 2 5 17 0 0\nctxt 1500\nprocs_running 4\nprocs_blocked 0\n");
  cpu.sample(2 * kSecond, emitter);
  // 30 user, 10 nice, 10 system, 30 idle, 2 iowait, 1 irq, 3 softirq, 14 steal: 100
  EXPECT_DOUBLE_EQ(samples.last("host.cpu0.user"), 0.40);
  EXPECT_DOUBLE_EQ(samples.last("host.cpu0.system"), 0.10);
  EXPECT_DOUBLE_EQ(samples.last("host.cpu0.idle"), 0.30);
  EXPECT_DOUBLE_EQ(samples.last("host.cpu0.iowait"), 0.02);
  EXPECT_DOUBLE_EQ(samples.last("host.cpu0.irq"), 0.01);
  EXPECT_DOUBLE_EQ(samples.last("host.cpu0.softirq"), 0.03);
  EXPECT_DOUBLE_EQ(samples.last("host.cpu0.steal"), 0.14);
  EXPECT_DOUBLE_EQ(samples.last("host.cpu0.busy"), 0.54);
  EXPECT_EQ(samples.find("host.cpu0.busy")->unit, "fraction");
  EXPECT_DOUBLE_EQ(samples.last("host.cpu.used"), 0.54);
  EXPECT_DOUBLE_EQ(samples.last("host.cpu.switches"), 500);
  EXPECT_EQ(samples.last("host.cpu.runnable"), 4);
  EXPECT_EQ(samples.last("host.cpu.blocked"), 0);
}

TEST_F(Cpu, TheHostIsTheMeanOfItsCores) {
  stat("cpu0 0 0 0 0 0 0 0 0\ncpu1 0 0 0 0 0 0 0 0\n");
  CpuSampler cpu(machine.root());
  cpu.sample(kSecond, emitter);
  stat("cpu0 100 0 0 0 0 0 0 0\ncpu1 0 0 0 100 0 0 0 0\n");
  cpu.sample(2 * kSecond, emitter);
  EXPECT_DOUBLE_EQ(samples.last("host.cpu.busy"), 0.5);
  EXPECT_DOUBLE_EQ(samples.last("host.cpu.used"), 1.0);
  ASSERT_TRUE(cpu.used());
  EXPECT_EQ(cpu.used()->begin, kSecond);
}

TEST_F(Cpu, IdleThatGoesBackIsNoNegativeShare) {
  stat("cpu0 10 0 0 1000 50 0 0 0\n");
  CpuSampler cpu(machine.root());
  cpu.sample(kSecond, emitter);
  stat("cpu0 20 0 0 999 49 0 0 0\n");
  cpu.sample(2 * kSecond, emitter);
  EXPECT_DOUBLE_EQ(samples.last("host.cpu0.user"), 1);
  EXPECT_DOUBLE_EQ(samples.last("host.cpu0.idle"), 0);
  EXPECT_EQ(emitter.odd(), 0u);
}

TEST_F(Cpu, UserTimeThatGoesBackIsCounted) {
  stat("cpu0 100 0 0 1000 0 0 0 0\n");
  CpuSampler cpu(machine.root());
  cpu.sample(kSecond, emitter);
  stat("cpu0 90 0 0 1100 0 0 0 0\n");
  cpu.sample(2 * kSecond, emitter);
  EXPECT_EQ(emitter.odd(), 1u);
  EXPECT_DOUBLE_EQ(samples.last("host.cpu0.user"), 0);
}

TEST_F(Cpu, ACoreThatWasAwayBringsNoJump) {
  const std::string first = "cpu0 0 0 0 0 0 0 0 0\n";
  stat(first + "cpu1 0 0 0 100 0 0 0 0\n");
  CpuSampler cpu(machine.root());
  cpu.sample(kSecond, emitter);
  stat("cpu0 0 0 0 100 0 0 0 0\n");
  cpu.sample(2 * kSecond, emitter);
  stat("cpu0 0 0 0 200 0 0 0 0\ncpu1 5000 0 0 100 0 0 0 0\n");
  cpu.sample(3 * kSecond, emitter);
  EXPECT_EQ(samples.find("host.cpu1.user"), nullptr);
  stat("cpu0 0 0 0 300 0 0 0 0\ncpu1 5000 0 0 200 0 0 0 0\n");
  cpu.sample(4 * kSecond, emitter);
  EXPECT_DOUBLE_EQ(samples.last("host.cpu1.idle"), 1);
  EXPECT_DOUBLE_EQ(samples.last("host.cpu1.user"), 0);
}

TEST_F(Cpu, ACoreThatComesLaterIsSeenFromItsSecondReading) {
  stat("cpu0 0 0 0 0 0 0 0 0\n");
  CpuSampler cpu(machine.root());
  cpu.sample(kSecond, emitter);
  stat("cpu0 0 0 0 100 0 0 0 0\ncpu7 70 0 0 7 0 0 0 0\n");
  cpu.sample(2 * kSecond, emitter);
  EXPECT_EQ(samples.find("host.cpu7.busy"), nullptr);
  stat("cpu0 0 0 0 200 0 0 0 0\ncpu7 170 0 0 7 0 0 0 0\n");
  cpu.sample(3 * kSecond, emitter);
  EXPECT_DOUBLE_EQ(samples.last("host.cpu7.busy"), 1);
}

TEST_F(Cpu, HostileTextIsLeftOut) {
  CpuStat parsed;
  parse_cpu_stat(
      "cpu99999999999999999999 1 2 3 4\ncpu-1 1 2 3 4\ncpux 1 2 3 4\ncpu2 1 2\ncpu3 1 2 3 99999999999999999999999\n"
      "cpu4 -1 2 3 4 5\nctxt\nprocs_running abc\ncpu5 1 2 3 4\n\n\nintr 1 2 3",
      parsed);
  ASSERT_EQ(parsed.cores.size(), 1u);
  EXPECT_EQ(parsed.cores[0].first, 5);
  EXPECT_EQ(parsed.cores[0].second[kIdle], 4u);
  EXPECT_EQ(parsed.cores[0].second[kSteal], 0u);
  EXPECT_FALSE(parsed.switches);
  EXPECT_FALSE(parsed.running);
}

TEST_F(Cpu, AMachineWithoutProcIsASightAndNoCrash) {
  CpuSampler cpu(machine.root());
  cpu.sample(kSecond, emitter);
  cpu.sample_frequencies(kSecond, emitter);
  std::vector<Sight> sights;
  cpu.sights(sights);
  ASSERT_EQ(sights.size(), 2u);
  EXPECT_FALSE(sights[0].available);
  EXPECT_THAT(sights[0].why, testing::HasSubstr("No such file"));
  EXPECT_FALSE(sights[1].available);
  EXPECT_FALSE(sights[1].remedy.empty());
}

TEST_F(Cpu, FrequencyOfCpufreqIsInHertz) {
  machine.put("/sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "2450000\n");
  machine.put("/sys/devices/system/cpu/cpu11/cpufreq/scaling_cur_freq", "1200000\n");
  machine.put("/sys/devices/system/cpu/cpuidle/x", "");
  CpuSampler cpu(machine.root());
  cpu.sample_frequencies(1, emitter);
  cpu.sample_frequencies(2, emitter);
  EXPECT_EQ(samples.last("host.cpu0.frequency"), 2.45e9);
  EXPECT_EQ(samples.last("host.cpu11.frequency"), 1.2e9);
  EXPECT_EQ(samples.find("host.cpu0.frequency")->unit, "Hz");
}

TEST_F(Cpu, FrequencyOfCpuinfoIsTheFallback) {
  machine.put("/proc/cpuinfo", "processor\t: 0\ncpu MHz\t\t: 2445.406\n\nprocessor\t: 1\ncpu MHz\t\t: broken\n\n");
  CpuSampler cpu(machine.root());
  cpu.sample_frequencies(1, emitter);
  EXPECT_EQ(samples.last("host.cpu0.frequency"), 2445406000.0);
  EXPECT_EQ(samples.find("host.cpu1.frequency"), nullptr);
}

}  // namespace
}  // namespace culprit::record
