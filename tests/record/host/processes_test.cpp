#include "record/host/processes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "record/host/out.h"
#include "record/host/sampler.h"

namespace culprit::record {
namespace {

using test::FakeMachine;
using test::out_to;
using test::Samples;

TEST(ProcessStatText, NamesMayHoldAnything) {
  const auto stat =
      parse_process_stat("42 (a) S 1 (b) R 7 1 1 0 -1 0 11 0 12 0 13 14 15 16 20 0 17 0 18 1000 19 1 1 1\n");
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->name, "a) S 1 (b");
  EXPECT_EQ(stat->state, 'R');
  EXPECT_EQ(stat->parent, 7);
  EXPECT_EQ(stat->minor_faults, 11u);
  EXPECT_EQ(stat->major_faults, 12u);
  EXPECT_EQ(stat->user, 13u);
  EXPECT_EQ(stat->system, 14u);
  EXPECT_EQ(stat->children, 31u);
  EXPECT_EQ(stat->threads, 17u);
  EXPECT_EQ(stat->start, 18u);
  EXPECT_EQ(stat->resident_pages, 19u);
}

TEST(ProcessStatText, DamagedTextIsRefused) {
  for (const char* bad :
       {"", "42", "42 (x", "42 x) S 1", "42 (x) S 1 2 3", ")(", "42 (x) SS 1 1 1 0 -1 0 1 0 1 0 1 1 1 1 20 0 1 0 1 1 1",
        "42 (x) S 1 1 1 0 -1 0 a 0 1 0 1 1 1 1 20 0 1 0 1 1 1"})
    EXPECT_FALSE(parse_process_stat(bad)) << bad;
}

struct Processes : testing::Test {
  FakeMachine machine;
  Samples samples;
  Emitter emitter{out_to(samples)};
  ProcessOptions options() const {
    ProcessOptions o;
    o.root = machine.root();
    o.own_pid = 9;
    return o;
  }
};

TEST_F(Processes, TargetsAreSummed) {
  machine.process(42, "serve", 100, 20, 5, 1);
  machine.process(43, "worker", 50);
  ProcessSampler processes(options());
  processes.join({42, 777});
  processes.join({43, 777});
  EXPECT_FALSE(processes.sample(kSecond, emitter));
  machine.process(42, "serve", 140, 40, 25, 3);
  machine.process(43, "worker", 90);
  const auto cores = processes.sample(2 * kSecond, emitter);
  ASSERT_TRUE(cores);
  EXPECT_DOUBLE_EQ(*cores, 1.0);
  EXPECT_DOUBLE_EQ(samples.last("target.cpu"), 1.0);
  EXPECT_DOUBLE_EQ(samples.last("process.cpu", 42), 0.6);
  EXPECT_DOUBLE_EQ(samples.last("process.cpu.user", 42), 0.4);
  EXPECT_DOUBLE_EQ(samples.last("process.cpu.system", 42), 0.2);
  EXPECT_DOUBLE_EQ(samples.last("process.cpu", 43), 0.4);
  EXPECT_DOUBLE_EQ(samples.last("process.faults.minor", 42), 20);
  EXPECT_DOUBLE_EQ(samples.last("target.faults.major"), 2);
  EXPECT_DOUBLE_EQ(samples.last("process.memory.resident", 42), 256 * 4096);
}

TEST_F(Processes, AnEndedChildIsCountedOnce) {
  machine.process(42, "serve", 0);
  machine.process(50, "child", 0, 0, 0, 0, 0, 42);
  ProcessSampler processes(options());
  processes.join({42, 777});
  processes.join({50, 777});
  processes.sample(kSecond, emitter);
  machine.process(50, "child", 80, 0, 0, 0, 0, 42);
  processes.sample(2 * kSecond, emitter);
  EXPECT_DOUBLE_EQ(samples.last("target.cpu"), 0.8);
  // It ran 20 ticks more before it ended; the parent waited for it and for another child that nobody saw.
  processes.leave(50);
  machine.remove("/proc/50");
  machine.process(42, "serve", 0, 0, 0, 0, 130);
  processes.sample(3 * kSecond, emitter);
  EXPECT_DOUBLE_EQ(samples.last("target.cpu"), 0.5);
  processes.sample(4 * kSecond, emitter);
  EXPECT_DOUBLE_EQ(samples.last("target.cpu"), 0);
}

TEST_F(Processes, OthersAreShownFromFivePercentOn) {
  machine.process(42, "serve", 0);
  machine.process(100, "noisy", 0);
  machine.process(101, "calm", 0);
  machine.process(9, "culprit", 0);
  ProcessSampler processes(options());
  processes.join({42, 777});
  processes.sample_others(kSecond, emitter);
  machine.process(42, "serve", 90);
  machine.process(100, "noisy", 90);
  machine.process(101, "calm", 4);
  machine.process(9, "culprit", 90);
  machine.process(102, "young", 30);
  processes.sample_others(2 * kSecond, emitter);
  EXPECT_DOUBLE_EQ(samples.last("other.cpu", 100), 0.9);
  EXPECT_DOUBLE_EQ(samples.last("other.cpu", 102), 0.3);
  EXPECT_EQ(samples.processes, (std::map<std::int64_t, std::string>{{100, "noisy"}, {102, "young"}}));
  EXPECT_EQ(samples.series.size(), 2u);
  machine.remove("/proc/102");
  machine.process(100, "noisy", 91);
  processes.sample_others(3 * kSecond, emitter);
  EXPECT_EQ(samples.last("other.cpu", 100), 0) << "a step that has ended is written as 0";
  EXPECT_EQ(samples.last("other.cpu", 102), 0);
}

TEST_F(Processes, OnlyTheHeaviestOthersAreShown) {
  ProcessOptions o = options();
  o.other_most = 2;
  for (long pid = 100; pid < 110; ++pid) machine.process(pid, "p", 0);
  ProcessSampler processes(o);
  processes.sample_others(kSecond, emitter);
  for (long pid = 100; pid < 110; ++pid) machine.process(pid, "p", 10 + (pid % 3) * 20);
  processes.sample_others(2 * kSecond, emitter);
  EXPECT_EQ(samples.series.size(), 2u);
  EXPECT_NE(samples.find("other.cpu", 101), nullptr);
  EXPECT_NE(samples.find("other.cpu", 104), nullptr);
}

TEST_F(Processes, AReusedPidIsNoJump) {
  machine.process(100, "old", 5000);
  ProcessSampler processes(options());
  processes.sample_others(kSecond, emitter);
  machine.process(100, "new", 10);
  processes.sample_others(2 * kSecond, emitter);
  EXPECT_DOUBLE_EQ(samples.last("other.cpu", 100), 0.1);
}

TEST_F(Processes, HostileNamesAreRepaired) {
  machine.process(100, "\xff\xfe(evil) R 1", 0);
  ProcessSampler processes(options());
  processes.sample_others(kSecond, emitter);
  machine.process(100, "\xff\xfe(evil) R 1", 50);
  processes.sample_others(2 * kSecond, emitter);
  EXPECT_EQ(samples.processes[100], "\uFFFD\uFFFD(evil) R 1");
}

TEST_F(Processes, ATargetThatCannotBeReadIsASight) {
  ProcessSampler processes(options());
  processes.join({4242, 0});
  processes.sample(kSecond, emitter);
  processes.sample(2 * kSecond, emitter);
  std::vector<Sight> sights;
  processes.sights(sights);
  ASSERT_EQ(sights.size(), 1u);
  EXPECT_FALSE(sights[0].available);
}

TEST(HostSampler, SeesThisProcessOnTheRealMachine) {
  Samples samples;
  HostOptions options;
  options.interval = 1;
  HostSampler sampler(options, out_to(samples));
  sampler.join({getpid(), 0});
  Ns now = monotonic_now();
  ASSERT_TRUE(sampler.poll(now));
  const Ns end = now + 60'000'000;
  while ((now = monotonic_now()) < end) {
  }
  ASSERT_TRUE(sampler.poll(now));
  const double own = samples.last("process.cpu", getpid());
  EXPECT_GT(own, 0.05) << "it spun all the time";
  EXPECT_LE(own, 1.2);
  EXPECT_NEAR(samples.last("target.cpu"), own, 0.1);
  EXPECT_GT(samples.last("host.memory.available"), 1 << 20);
  EXPECT_GT(samples.last("process.memory.resident", getpid()), 1 << 20);
}

TEST(HostSampler, AShortRecordingKnowsWhoElseRan) {
  FakeMachine machine;
  Samples samples;
  HostOptions options;
  options.root = machine.root();
  HostSampler sampler(options, out_to(samples));
  machine.process(7, "busy", 100);
  ASSERT_TRUE(sampler.poll(5 * kSecond));
  machine.process(7, "busy", 130);
  sampler.finish(5 * kSecond + 600'000'000);
  EXPECT_NEAR(samples.last("other.cpu", 7), 0.5, 1e-9);
}

TEST(HostSampler, LooksAtOthersEverySecondHoweverLateItsSamplesAre) {
  FakeMachine machine;
  Samples samples;
  HostOptions options;
  options.root = machine.root();
  HostSampler sampler(options, out_to(samples));
  for (Ns i = 0; i < 10; ++i) {
    if (i == 1) machine.process(7, "brief", 10);
    if (i == 3) machine.process(7, "brief", 60);
    if (i == 5) machine.remove("/proc/7");
    ASSERT_TRUE(sampler.poll(5 * kSecond + i * 300'000'000));
  }
  ASSERT_TRUE(samples.processes.contains(7));
  EXPECT_EQ(samples.processes[7], "brief");
}

TEST(HostSampler, KeepsItsPace) {
  FakeMachine machine;
  Samples samples;
  HostOptions options;
  options.root = machine.root();
  HostSampler sampler(options, out_to(samples));
  const Ns begin = 5 * kSecond;
  int taken = 0;
  for (Ns t = 0; t < kSecond; t += 10'000'000) taken += sampler.poll(begin + t) ? 1 : 0;
  EXPECT_GE(taken, 9);
  EXPECT_LE(taken, 11);
  EXPECT_TRUE(sampler.poll(begin + 100 * kSecond));
  EXPECT_FALSE(sampler.poll(begin + 100 * kSecond + 1)) << "missed samples are not made up for";
}

}  // namespace
}  // namespace culprit::record
