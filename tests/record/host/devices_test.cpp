#include "record/host/devices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "record/host/out.h"

namespace culprit::record {
namespace {

using test::FakeMachine;
using test::out_to;
using test::Samples;

struct Devices : testing::Test {
  FakeMachine machine;
  Samples samples;
  Emitter emitter{out_to(samples)};
};

TEST_F(Devices, ADiskIsMeasuredInBytesAndShares) {
  machine.put("/sys/block/vda/size", "1");
  machine.put("/proc/diskstats",
              " 254 0 vda 100 0 1000 5 200 0 3000 6 0 1000 5000 0 0 0 0 0 0\n"
              " 254 1 vda1 100 0 1000 5 200 0 3000 6 0 1000 5000\n"
              "   7 0 loop0 0 0 0 0 0 0 0 0 0 0 0\n");
  DiskSampler disks(machine.root());
  disks.sample(kSecond, emitter);
  machine.put("/proc/diskstats",
              " 254 0 vda 110 0 1100 5 220 0 3400 6 3 1500 9000 0 0 0 0 0 0\n"
              " 254 1 vda1 110 0 1100 5 220 0 3400 6 3 1500 9000\n"
              "   7 0 loop0 0 0 0 0 0 0 0 0 0 0 0\n");
  disks.sample(2 * kSecond, emitter);
  EXPECT_DOUBLE_EQ(samples.last("host.disk.vda.read"), 51200);
  EXPECT_DOUBLE_EQ(samples.last("host.disk.vda.written"), 204800);
  EXPECT_DOUBLE_EQ(samples.last("host.disk.vda.reads"), 10);
  EXPECT_DOUBLE_EQ(samples.last("host.disk.vda.writes"), 20);
  EXPECT_DOUBLE_EQ(samples.last("host.disk.vda.busy"), 0.5);
  EXPECT_DOUBLE_EQ(samples.last("host.disk.vda.queue"), 4);
  EXPECT_EQ(samples.find("host.disk.vda1.read"), nullptr) << "a partition is counted with its disk";
  EXPECT_EQ(samples.find("host.disk.loop0.read"), nullptr);
}

TEST_F(Devices, DamagedDiskLinesAreLeftOut) {
  machine.put("/proc/diskstats", "254 0 vda 1 2\n254 0\n\n254 0 x\x1b[2J 1 0 1 5 2 0 3 6 0 1 q\n");
  DiskSampler disks(machine.root());
  disks.sample(kSecond, emitter);
  disks.sample(2 * kSecond, emitter);
  EXPECT_TRUE(samples.series.empty());
}

TEST_F(Devices, NetworksCountBytesAndDrops) {
  const std::string head = "Inter-| Receive | Transmit\n face |bytes packets errs drop |bytes\n";
  machine.put("/proc/net/dev",
              head + "  eth0: 1000 1 1 2 0 0 0 0 500 1 0 3 0 0 0 0\n idle0: 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n");
  machine.put("/proc/net/snmp", "Ip: Forwarding\nIp: 1\nTcp: RtoMin OutSegs RetransSegs InErrs\nTcp: 200 100 5 0\n");
  NetworkSampler networks(machine.root());
  networks.sample(kSecond, emitter);
  machine.put("/proc/net/dev",
              head + "  eth0: 3000 1 3 4 0 0 0 0 1500 1 1 9 0 0 0 0\n idle0: 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n");
  machine.put("/proc/net/snmp", "Ip: Forwarding\nIp: 1\nTcp: RtoMin OutSegs RetransSegs InErrs\nTcp: 200 300 9 0\n");
  networks.sample(3 * kSecond, emitter);
  EXPECT_DOUBLE_EQ(samples.last("host.net.eth0.received"), 1000);
  EXPECT_DOUBLE_EQ(samples.last("host.net.eth0.sent"), 500);
  EXPECT_DOUBLE_EQ(samples.last("host.net.eth0.receive_drops"), 1);
  EXPECT_DOUBLE_EQ(samples.last("host.net.eth0.send_drops"), 3);
  EXPECT_DOUBLE_EQ(samples.last("host.net.eth0.errors"), 1.5);
  EXPECT_DOUBLE_EQ(samples.last("host.tcp.retransmits"), 2);
  EXPECT_DOUBLE_EQ(samples.last("host.tcp.segments_sent"), 100);
  EXPECT_EQ(samples.find("host.net.idle0.sent"), nullptr);
}

TEST_F(Devices, TemperaturesComeFromHwmon) {
  machine.put("/sys/class/hwmon/hwmon0/name", "k10temp\n");
  machine.put("/sys/class/hwmon/hwmon0/temp1_input", "45250\n");
  machine.put("/sys/class/hwmon/hwmon0/temp1_label", "Tctl\n");
  machine.put("/sys/class/hwmon/hwmon1/name", "k10temp\n");
  machine.put("/sys/class/hwmon/hwmon1/temp1_input", "-3000\n");
  machine.put("/sys/class/hwmon/hwmon1/temp1_label", "Tctl\n");
  machine.put("/sys/class/thermal/thermal_zone0/temp", "99000\n");
  SensorSampler sensors(machine.root());
  sensors.sample(kSecond, emitter);
  EXPECT_DOUBLE_EQ(samples.last("host.temperature.k10temp.Tctl"), 45.25);
  EXPECT_DOUBLE_EQ(samples.last("host.temperature.k10temp.Tctl_2"), -3);
  EXPECT_EQ(samples.series.size(), 2u);
}

TEST_F(Devices, ThermalZonesAreTheFallback) {
  machine.put("/sys/class/thermal/thermal_zone0/temp", "51000\n");
  machine.put("/sys/class/thermal/thermal_zone0/type", "x86_pkg_temp\n");
  SensorSampler sensors(machine.root());
  sensors.sample(kSecond, emitter);
  EXPECT_DOUBLE_EQ(samples.last("host.temperature.x86_pkg_temp"), 51);
  EXPECT_EQ(samples.find("host.temperature.x86_pkg_temp")->unit, "celsius");
}

TEST_F(Devices, PowerSurvivesTheWrapOfItsCounter) {
  machine.put("/sys/class/powercap/intel-rapl:0/name", "package-0\n");
  machine.put("/sys/class/powercap/intel-rapl:0/energy_uj", "262143000000\n");
  machine.put("/sys/class/powercap/intel-rapl:0/max_energy_range_uj", "262143328850\n");
  machine.put("/sys/class/powercap/intel-rapl:0:0/name", "dram\n");
  machine.put("/sys/class/powercap/intel-rapl:0:0/energy_uj", "1000000\n");
  machine.put("/sys/class/powercap/intel-rapl/name", "intel-rapl\n");
  SensorSampler sensors(machine.root());
  sensors.sample(kSecond, emitter);
  machine.put("/sys/class/powercap/intel-rapl:0/energy_uj", "99671150\n");
  machine.put("/sys/class/powercap/intel-rapl:0:0/energy_uj", "4000000\n");
  sensors.sample(2 * kSecond, emitter);
  EXPECT_DOUBLE_EQ(samples.last("host.power.package-0"), 100);
  EXPECT_DOUBLE_EQ(samples.last("host.power.0_0-dram"), 3);
  EXPECT_EQ(samples.find("host.power.package-0")->unit, "W");
}

TEST_F(Devices, WhatIsNotThereIsSaid) {
  DiskSampler disks(machine.root());
  NetworkSampler networks(machine.root());
  SensorSampler sensors(machine.root());
  disks.sample(kSecond, emitter);
  networks.sample(kSecond, emitter);
  sensors.sample(kSecond, emitter);
  std::vector<Sight> sights;
  disks.sights(sights);
  networks.sights(sights);
  sensors.sights(sights);
  ASSERT_EQ(sights.size(), 4u);
  for (const Sight& sight : sights) {
    EXPECT_FALSE(sight.available) << sight.what;
    EXPECT_FALSE(sight.why.empty()) << sight.what;
    EXPECT_FALSE(sight.remedy.empty()) << sight.what;
  }
}

}  // namespace
}  // namespace culprit::record
