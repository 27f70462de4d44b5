#include "compare/machine.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

namespace culprit::compare {
namespace {

model::Recording with_probe(double ns, double wobble, const std::string& name = "host.speed.branches") {
  model::Recording r;
  model::HostCounter& counter = r.host.counters.emplace_back();
  counter.name = name;
  counter.samples = 40;
  for (int i = 0; i < 40; ++i) counter.windows.push_back(ns * (1 + wobble * ((i * 5) % 7 - 3) / 3));
  return r;
}

std::optional<model::MachineChange> of(const model::Recording& a, const model::Recording& b) {
  return machine_change({&a, 1}, {&b, 1});
}

TEST(Machine, SlowerAndFasterMirrorEachOther) {
  const auto slower = of(with_probe(10'000, 0.05), with_probe(12'000, 0.05));
  ASSERT_TRUE(slower.has_value());
  EXPECT_NEAR(slower->change, 0.2, 1e-9);
  EXPECT_GT(slower->low, 0.1);
  EXPECT_LT(slower->high, 0.3);
  const auto faster = of(with_probe(12'000, 0.05), with_probe(10'000, 0.05));
  ASSERT_TRUE(faster.has_value());
  EXPECT_NEAR((1 + slower->low) * (1 + faster->high), 1, 1e-9);
}

TEST(Machine, WhatSpreadsMoreThanItMovedIsNothing) {
  EXPECT_FALSE(of(with_probe(10'000, 0.9), with_probe(11'000, 0.9)).has_value());
}

TEST(Machine, LessThanATwentiethIsNothing) {
  EXPECT_FALSE(of(with_probe(10'000, 0.001), with_probe(10'400, 0.001)).has_value());
}

TEST(Machine, CpusThatAreNotAlikeAreHeldAgainstThemselves) {
  const auto on = [](double fast, double slow) {
    model::Recording r = with_probe(fast, 0.05, "host.cpu0.speed.branches");
    r.host.counters.push_back(with_probe(slow, 0.05, "host.cpu8.speed.branches").host.counters.front());
    return r;
  };
  // The recorder was on the slow CPUs only, as what it is told by does not tell.
  const auto slow_only = with_probe(20'000, 0.05, "host.cpu8.speed.branches");
  EXPECT_FALSE(of(on(10'000, 20'000), slow_only).has_value());
  const auto slower = of(on(10'000, 20'000), on(11'000, 22'000));
  ASSERT_TRUE(slower.has_value());
  EXPECT_NEAR(slower->change, 0.1, 1e-9);
  EXPECT_FALSE(of(with_probe(10'000, 0.05, "host.cpu0.speed.branches"), slow_only).has_value()) << "no CPU in common";
  model::Recording hardly = on(10'000, 22'000);
  hardly.host.counters[1].samples = 3;
  EXPECT_FALSE(of(on(10'000, 20'000), hardly).has_value()) << "three runs, however long they are held";
  // One that does not tell where is held against all of the other.
  model::Recording both = with_probe(12'000, 0.05, "host.cpu0.speed.branches");
  both.host.counters.push_back(with_probe(12'000, 0.05).host.counters.front());
  EXPECT_NEAR(of(with_probe(10'000, 0.05), both)->change, 0.2, 1e-9);
}

TEST(Machine, ItsMemoryIsToldApartAndOnlyWhereItDiffersByMuch) {
  const auto memory_of = [](double from, double to, const char* name = "host.speed.memory") {
    const model::Recording a = with_probe(from, 0.1, name);
    const model::Recording b = with_probe(to, 0.1, name);
    return memory_change({&a, 1}, {&b, 1});
  };
  ASSERT_TRUE(memory_of(15'000, 40'000));
  EXPECT_NEAR(memory_of(15'000, 40'000)->change, 40.0 / 15 - 1, 1e-9);
  EXPECT_LT(memory_of(40'000, 15'000)->high, -0.5);
  EXPECT_FALSE(memory_of(15'000, 25'000)) << "as recordings minutes apart do";
  EXPECT_FALSE(memory_of(15'000, 40'000, "host.speed.branches"));
  EXPECT_FALSE(of(with_probe(15'000, 0.1, "host.speed.memory"), with_probe(40'000, 0.1, "host.speed.memory")));
}

TEST(Machine, WithoutTheProbeNothingIsSaid) {
  EXPECT_FALSE(of(with_probe(10'000, 0.05, "other"), with_probe(12'000, 0.05, "other")).has_value());
  EXPECT_FALSE(of(model::Recording(), with_probe(12'000, 0.05)).has_value());
}

}  // namespace
}  // namespace culprit::compare
