#include "compare/run_facts.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace culprit::compare {
namespace {

using model::RunFacts;

TEST(Differences, EqualOrUnknownFactsAreNone) {
  const RunFacts a{{"A100"}, 8, {3}};
  EXPECT_TRUE(differences_of(a, a).empty());
  EXPECT_TRUE(differences_of(a, {}).empty()) << "what a recording does not say differs from nothing";
  EXPECT_TRUE(differences_of({}, a).empty());
}

TEST(Differences, OtherDevicesAndWorldSizesBlock) {
  const auto d = differences_of({{"A100"}, 8, {3}}, {{"V100"}, 2, {1}});
  ASSERT_EQ(d.size(), 3U);
  EXPECT_TRUE(d[0].blocks);
  EXPECT_TRUE(d[1].blocks);
  EXPECT_FALSE(d[2].blocks);
  EXPECT_EQ(d[0].what, "device model");
  EXPECT_EQ(d[0].base, "A100");
  EXPECT_EQ(d[0].candidate, "V100");
  EXPECT_EQ(d[1].what, "world size");
  EXPECT_EQ(d[2].what, "recorded ranks");
}

TEST(Differences, WorkOnGpusOfOneSideOnlyBlocks) {
  RunFacts with;
  with.gpu_work = true;
  const auto d = differences_of(RunFacts{}, with);
  ASSERT_EQ(d.size(), 1U);
  EXPECT_TRUE(d[0].blocks);
  EXPECT_EQ(d[0].base, "none");
  EXPECT_EQ(d[0].candidate, "recorded");
  EXPECT_TRUE(differences_of(with, with).empty());
}

TEST(Differences, AnotherRankOfTheSameWorldDoesNotBlock) {
  const auto d = differences_of({{"A100"}, 8, {3}}, {{"A100"}, 8, {4}});
  ASSERT_EQ(d.size(), 1U);
  EXPECT_FALSE(d[0].blocks);
}

TEST(Differences, FunctionsThatOneSideAloneCapturedAreSaidFirstAndLeftOut) {
  RunFacts a;
  a.functions = {"cpu_op"};
  RunFacts b = a;
  EXPECT_TRUE(differences_of(a, b).empty());
  EXPECT_TRUE(captured_on_one_side(a, b).empty());
  b.functions.insert("python");
  const auto d = differences_of(a, b);
  ASSERT_EQ(d.size(), 1U);
  EXPECT_TRUE(d[0].first);
  EXPECT_EQ(d[0].candidate, "cpu_op, python");
  EXPECT_EQ(captured_on_one_side(b, a), (std::set<std::string, std::less<>>{"between", "python"}));
  EXPECT_EQ(captured_on_one_side(RunFacts{}, a), (std::set<std::string, std::less<>>{"between", "cpu_op"}));
}

TEST(Differences, WhatOneProfilerAloneRecordedIsSaidFirstAndKept) {
  RunFacts a;
  a.functions = {"cpu_op"};
  a.options = {"record_shapes"};
  RunFacts b = a;
  b.functions.insert("python");
  b.options.insert("with_stack");
  const auto d = differences_of(a, b);
  ASSERT_EQ(d.size(), 2U);
  EXPECT_EQ(d[1].what, "options of the profiler");
  EXPECT_EQ(d[1].base, "record_shapes");
  EXPECT_TRUE(d[1].first);
  EXPECT_TRUE(profiled_alone(a, b)[0].empty());
  EXPECT_EQ(profiled_alone(a, b)[1], (std::vector<std::string>{"with_stack", "python"}));
  EXPECT_EQ(profiled_alone(b, a)[0], (std::vector<std::string>{"with_stack", "python"}));
  b.presets = {"deep"};  // a recording of Culprit's
  EXPECT_TRUE(profiled_alone(a, b)[1].empty());
}

TEST(Differences, AnotherPresetOrSetOfCollectorsIsSaidFirst) {
  RunFacts a;
  a.programs = {"redis-server"};
  a.presets = {"deep"};
  a.collectors = {"sched", "syscalls"};
  RunFacts b = a;
  EXPECT_TRUE(differences_of(a, b).empty());
  EXPECT_TRUE(differences_of(a, {}).empty());
  b.presets = {"watch"};
  b.collectors = {"sched"};
  const auto d = differences_of(a, b);
  ASSERT_EQ(d.size(), 2U);
  EXPECT_EQ(d[0].what, "preset");
  EXPECT_EQ(d[1].base, "sched, syscalls");
  EXPECT_EQ(d[1].candidate, "sched");
  for (const model::Difference& one : d) EXPECT_TRUE(one.first && !one.blocks);
}

}  // namespace
}  // namespace culprit::compare
