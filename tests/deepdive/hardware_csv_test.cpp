#include "deepdive/hardware_csv.h"

#include <gtest/gtest.h>

#include <string>

#include "support/shared_data.h"

namespace culprit::deepdive {
namespace {

constexpr const char* kHead = "name,category,loc1,config,inventory,details\n";

/// A row with JSON cells quoted for CSV.
std::string row(const std::string& category, const std::string& config, const std::string& inventory) {
  const auto quoted = [](const std::string& text) {
    std::string out = "\"";
    for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
    return out + "\"";
  };
  return "x," + category + ",1," + quoted(config) + "," + quoted(inventory) + ",\n";
}

const std::string kHost = R"({"env":{"hostname":"h"}})";

Hardware parse(const std::string& rows) {
  auto hardware = parse_hardware_csv(kHead + rows, "t.csv");
  EXPECT_TRUE(hardware.ok());
  return hardware ? *hardware : Hardware{};
}

TEST(HardwareCsv, AddsUpCoresAndMemory) {
  const Hardware hardware = parse(row("CAT_CPU", kHost, R"({"macro":{"freq":"4000 MHz","cores":32}})") +
                                  row("CAT_CPU", kHost, R"({"macro":{"freq":"3.5 GHz","cores":"32"}})") +
                                  row("CAT_MEMORY", kHost, R"({"macro":{"size":1024}})") +
                                  row("CAT_MEMORY", kHost, R"({"macro":{"size":0}})"));
  ASSERT_EQ(hardware.hosts.size(), 1u);
  const HostHardware& host = hardware.hosts.at("h");
  EXPECT_EQ(host.cores, 64);
  EXPECT_DOUBLE_EQ(host.max_cpu_hertz, 3.5e9);
  EXPECT_DOUBLE_EQ(host.memory_bytes, 1073741824);
}

TEST(HardwareCsv, KnowsTheDeviceOfAProcess) {
  const Hardware hardware = parse(row("CAT_XPU", kHost, R"({"macro":{"index":3,"memory_capacity":80}})") +
                                  row("CAT_PROCESS", kHost, R"({"macro":{"pid":1.06e+06,"gpu_index":3}})"));
  EXPECT_DOUBLE_EQ(hardware.device_memory_bytes.at({"h", 3}), 80);
  EXPECT_EQ(hardware.device_of_process.at({"h", 1060000}), 3);
}

TEST(HardwareCsv, DamagedCellsAreCounted) {
  const Hardware hardware =
      parse(row("CAT_CPU", "{", "{}") + row("CAT_CPU", "", "") + "short,row\n" +
            row("CAT_CPU", kHost, R"({"macro":{"freq":[],"cores":{}}})") + row("CAT_CPU", kHost, R"({"macro":7})") +
            row("CAT_XPU", kHost, R"({"macro":{"index":1e300,"memory_capacity":-1}})"));
  EXPECT_EQ(hardware.bad_rows, 2u);
  EXPECT_TRUE(hardware.device_memory_bytes.empty());
  EXPECT_EQ(hardware.hosts.at("h").cores, 0);
}

TEST(HardwareCsv, AnotherTableIsRefused) {
  const auto hardware = parse_hardware_csv("a,b\n1,2\n", "t.csv");
  ASSERT_FALSE(hardware.ok());
  EXPECT_EQ(hardware.error().kind, ErrorKind::input);
}

TEST(HardwareCsv, ReadsARealOne) {
  CULPRIT_NEEDS_SHARED("golden/deepdive/hw/topo_component.csv");
  const auto hardware = read_hardware_csv(test::shared("golden/deepdive/hw/topo_component.csv"));
  ASSERT_TRUE(hardware.ok());
  EXPECT_EQ(hardware->bad_rows, 0u);
  ASSERT_EQ(hardware->hosts.size(), 1u);
  EXPECT_EQ(hardware->hosts.begin()->second.cores, 64);
  EXPECT_DOUBLE_EQ(hardware->hosts.begin()->second.max_cpu_hertz, 4e9);
  EXPECT_NEAR(hardware->hosts.begin()->second.memory_bytes / 1073741824, 511.98, 0.01);
  EXPECT_EQ(hardware->device_memory_bytes.size(), 8u);
}

}  // namespace
}  // namespace culprit::deepdive
