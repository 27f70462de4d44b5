#include "compare/waterfall.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace culprit::compare {
namespace {

using model::LedgerState;
using model::Phase;

struct Line {
  std::string function;
  Ns time = 0;
  std::int64_t calls = 1;
  LedgerState state = LedgerState::function;
};

struct Side {
  model::Profile profile;

  void cycle(const std::vector<Line>& lines, std::int32_t device = -1, std::int64_t batch = -1) {
    model::ProfileCycle& row = profile.cycles.emplace_back();
    row.phase = Phase::decode;
    row.rank = 0;
    row.workload.batch = batch;
    window(lines, device);
  }
  void window(const std::vector<Line>& lines, std::int32_t device) {
    model::LedgerWindow& window = profile.ledger.windows.emplace_back();
    window.cycle = static_cast<std::uint32_t>(profile.cycles.size() - 1);
    window.device = device;
    window.first_line = profile.ledger.lines.size();
    for (const Line& line : lines) {
      window.length += line.time;
      profile.ledger.lines.push_back({line.state, profile.texts.intern(line.function), line.calls, line.time});
    }
  }
};

struct Waterfalls : ::testing::Test {
  Side base, candidate;
  StringTable texts;
  std::vector<model::Waterfall> all() { return waterfalls_of(base.profile, candidate.profile, {Phase::decode}, texts); }
  static double sum(const model::Waterfall& waterfall) {
    double sum = 0;
    for (const model::WaterfallLine& line : waterfall.lines) sum += line.change_ns;
    return sum;
  }
};

TEST_F(Waterfalls, ChangesSumToThatOfTheCycle) {
  base.cycle({{"mm", 60}, {"old", 40}});
  base.cycle({{"mm", 80}});
  candidate.cycle({{"mm", 100}, {"new", 30}});
  const auto found = all();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_DOUBLE_EQ(found[0].window_ns[0], 90);
  EXPECT_DOUBLE_EQ(found[0].window_ns[1], 130);
  EXPECT_DOUBLE_EQ(sum(found[0]), 40);
  ASSERT_EQ(found[0].lines.size(), 3U);
  EXPECT_EQ(texts[found[0].lines[0].function], "mm");
  EXPECT_EQ(texts[found[0].lines[1].function], "new");
  EXPECT_EQ(texts[found[0].lines[2].function], "old");
}

TEST_F(Waterfalls, MoreCallsAndLongerCallsAreToldApart) {
  base.cycle({{"mm", 60, 2}});
  candidate.cycle({{"mm", 120, 3}});
  const auto found = all();
  EXPECT_DOUBLE_EQ(found[0].lines[0].change_ns, 60);
  EXPECT_DOUBLE_EQ(found[0].lines[0].by_calls_ns, 30);
}

TEST_F(Waterfalls, TheDeviceThatIdlesLeastSpeaks) {
  for (Side* side : {&base, &candidate}) {
    side->cycle({{"idle", 90, 1, LedgerState::idle_unknown}, {"gemm", 10}}, 0);
    side->window({{"gemm", side == &base ? 80 : 95}, {"", 5, 1, LedgerState::idle_latency}}, 1);
    side->window({{"python", 100}}, -1);
  }
  const auto found = all();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].device, 1);
  EXPECT_DOUBLE_EQ(sum(found[0]), 15);
}

/// A step on two devices, of which one works for `first`, the other for `second` of 100 ns.
void step_on_two(Side& side, Ns first, Ns second, std::int32_t other = 1) {
  side.cycle({{"gemm", first}, {"", 100 - first, 1, LedgerState::idle_latency}}, 0);
  side.window({{"gemm", second}, {"", 100 - second, 1, LedgerState::idle_latency}}, other);
}

TEST_F(Waterfalls, TheSameDeviceSpeaksOnBothSides) {
  step_on_two(base, 90, 80);
  step_on_two(candidate, 60, 80);
  const auto found = all();
  EXPECT_EQ(found[0].device, 1) << "together it idles least";
  EXPECT_EQ(found[0].devices, (std::array<std::set<std::int32_t>, 2>{{{1}, {1}}}));
  EXPECT_DOUBLE_EQ(found[0].lines[0].change_ns, 0);
}

TEST_F(Waterfalls, OtherDevicesSpeakEachForTheirSide) {
  step_on_two(base, 90, 80);
  step_on_two(candidate, 60, 80, 2);
  const auto found = all();
  EXPECT_EQ(found[0].devices, (std::array<std::set<std::int32_t>, 2>{{{0}, {2}}}));
  EXPECT_DOUBLE_EQ(found[0].lines[0].time_ns[1], 80);
}

TEST_F(Waterfalls, EachRankHasItsDevice) {
  for (const std::int32_t rank : {0, 1})
    for (Side* side : {&base, &candidate}) {
      const bool swapped = rank == 1;
      step_on_two(*side, swapped ? 50 : 90, swapped ? 90 : 50);
      side->profile.cycles.back().rank = rank;
    }
  EXPECT_EQ(all()[0].devices, (std::array<std::set<std::int32_t>, 2>{{{0, 1}, {0, 1}}}));
  EXPECT_DOUBLE_EQ(all()[0].window_ns[0], 100);
}

TEST_F(Waterfalls, ADeviceThatWaitsForAnotherIdles) {
  for (Side* side : {&base, &candidate}) {
    const Ns waits = side == &base ? 30 : 70;
    side->cycle({{"gemm", 50}, {"send", waits, 1, LedgerState::idle_dependency}}, 0);
    side->window({{"send", 90}, {"", 10, 1, LedgerState::idle_unknown}}, 1);
  }
  EXPECT_EQ(all()[0].device, 1);
  for (Side* side : {&base, &candidate}) side->profile.ledger.windows[1].device = -1;
  const model::WaterfallLine line = all()[0].lines[0];
  EXPECT_EQ(line.state, LedgerState::idle_dependency);
  EXPECT_EQ(texts[line.function], "send");
  EXPECT_DOUBLE_EQ(line.change_ns, 40);
  EXPECT_TRUE(line.apart);
}

TEST_F(Waterfalls, ADeviceThatIsSeldomUsedDoesNotSpeak) {
  for (Side* side : {&base, &candidate})
    for (int i = 0; i < 5; ++i) {
      side->cycle({{"gemm", 90}, {"", 10, 1, LedgerState::idle_latency}}, 0);
      if (i == 0) side->window({{"copy", 10}}, 1);
    }
  EXPECT_EQ(all()[0].device, 0);
}

TEST_F(Waterfalls, TimeWithoutWorkIsNoPartOfIt) {
  base.cycle({{"mm", 60}, {"", 10, 1, LedgerState::no_work}});
  candidate.cycle({{"mm", 70}, {"", 900, 1, LedgerState::no_work}});
  EXPECT_DOUBLE_EQ(all()[0].window_ns[1] - all()[0].window_ns[0], 10);
  EXPECT_EQ(all()[0].lines.size(), 1U);
}

TEST_F(Waterfalls, AFewStepsOfUnknownWorkDoNotSpeakForAll) {
  for (int i = 0; i < 3; ++i) base.cycle({{"mm", 100}});
  for (int i = 0; i < 4; ++i) candidate.cycle({{"mm", 200}}, -1, 4);
  candidate.cycle({{"mm", 100}});
  EXPECT_DOUBLE_EQ(all()[0].window_ns[1], 180);
}

TEST_F(Waterfalls, StepsOfUnknownWorkOfBothSidesCountAsTheirShare) {
  for (int i = 0; i < 4; ++i) base.cycle({{"mm", 100}}, -1, 4);
  for (int i = 0; i < 4; ++i) candidate.cycle({{"mm", 100}}, -1, 4);
  for (int i = 0; i < 4; ++i) base.cycle({{"mm", 100}});
  for (int i = 0; i < 4; ++i) candidate.cycle({{"mm", 140}});
  EXPECT_DOUBLE_EQ(all()[0].window_ns[1] - all()[0].window_ns[0], 20);
}

TEST_F(Waterfalls, AnotherMixOfWorkIsNoLine) {
  for (int i = 0; i < 9; ++i) base.cycle({{"mm", 100}}, -1, 1);
  base.cycle({{"mm", 200}}, -1, 4);
  candidate.cycle({{"mm", 100}}, -1, 1);
  for (int i = 0; i < 9; ++i) candidate.cycle({{"mm", 200}}, -1, 4);
  const auto found = all();
  EXPECT_DOUBLE_EQ(found[0].window_ns[0], 150);
  EXPECT_NEAR(found[0].lines[0].change_ns, 0, 1e-9);
}

TEST_F(Waterfalls, WhatADeviceWaitsForIsHeldAgainstItsHost) {
  const auto step = [](Side& side, Ns waits, Ns host) {
    side.cycle({{"gemm", 50}, {"step", waits, 1, LedgerState::idle_host}}, 0);
    side.window({{"mm", 40}, {"step", host, 1, LedgerState::between}}, -1);
  };
  for (const Ns waits : {10, 14}) step(base, waits, 20);
  for (const Ns waits : {15, 90}) step(candidate, waits, 60);
  auto lines = all()[0].lines;
  ASSERT_EQ(texts[lines[0].function], "step");
  EXPECT_DOUBLE_EQ(lines[0].host_ns[0], 20);
  EXPECT_DOUBLE_EQ(lines[0].host_ns[1], 60);
  EXPECT_TRUE(lines[0].between);
  EXPECT_TRUE(lines[0].apart);
  EXPECT_TRUE(std::isnan(lines[1].host_ns[0]));  // of the device's own work nothing is asked
  step(candidate, 14, 60);
  EXPECT_FALSE(all()[0].lines[0].apart);
  candidate.cycle({{"gemm", 50}}, 0);  // one in which it did not wait at all
  EXPECT_FALSE(all()[0].lines[0].apart);
}

TEST_F(Waterfalls, WithoutWindowsOfAHostNothingIsKnownOfIt) {
  for (Side* side : {&base, &candidate}) side->cycle({{"gemm", 50}, {"step", 9, 1, LedgerState::idle_host}}, 0);
  const auto found = all();
  for (const auto& line : found[0].lines) EXPECT_TRUE(std::isnan(line.host_ns[0]));
}

TEST_F(Waterfalls, HostsThatDevicesWaitForHaveTheirOwn) {
  const auto step = [](Side& side, Ns works, LedgerState waits) {
    side.cycle({{"gemm", works}, {"mm", 100 - works, 1, waits}}, 0);
    side.window({{"mm", 90}, {"", 10, 1, LedgerState::between}}, -1);
  };
  step(base, 40, LedgerState::idle_host);
  step(candidate, 50, LedgerState::idle_launch);
  const auto of_hosts = [&] { return late_hosts_of(base.profile, candidate.profile, all(), texts); };
  ASSERT_EQ(of_hosts().size(), 1U);
  EXPECT_EQ(of_hosts()[0].device, -1);
  EXPECT_EQ(of_hosts()[0].phase, Phase::decode);
  EXPECT_DOUBLE_EQ(of_hosts()[0].window_ns[1], 100);
  step(candidate, 60, LedgerState::idle_host);
  EXPECT_TRUE(of_hosts().empty());
}

TEST_F(Waterfalls, SwappingTheSidesMirrorsEveryLine) {
  base.cycle({{"mm", 60, 2}, {"old", 40}}, -1, 1);
  base.cycle({{"mm", 90, 3}}, -1, 4);
  candidate.cycle({{"mm", 50, 2}, {"new", 7}}, -1, 1);
  candidate.cycle({{"mm", 95, 3}}, -1, 4);
  const auto one = all();
  std::swap(base, candidate);
  const auto other = all();
  ASSERT_EQ(one[0].lines.size(), other[0].lines.size());
  for (std::size_t i = 0; i < one[0].lines.size(); ++i) {
    EXPECT_EQ(one[0].lines[i].function, other[0].lines[i].function);
    EXPECT_DOUBLE_EQ(one[0].lines[i].change_ns, -other[0].lines[i].change_ns);
  }
}

TEST_F(Waterfalls, WhatLiesBetweenFunctionsIsDividedBySamples) {
  const auto sampled = [](Side& side, const std::string& function, std::int64_t count) {
    const auto last = static_cast<std::uint32_t>(side.profile.cycles.size() - 1);
    side.profile.ledger.samples.push_back(
        {last, side.profile.texts.intern("step"), side.profile.texts.intern(function), count});
  };
  base.cycle({{"mm", 60}, {"step", 40, 2, LedgerState::between}});
  candidate.cycle({{"mm", 60}, {"step", 80, 2, LedgerState::between}});
  for (Side* side : {&base, &candidate}) sampled(*side, "f (a.py)", side == &base ? 15 : 5);
  sampled(base, "g (a.py)", 5);
  EXPECT_EQ(all()[0].lines.front().state, LedgerState::between) << "five samples of the candidate are too few";
  sampled(candidate, "g (a.py)", 34);
  sampled(candidate, "rare", 1);
  const auto found = all();
  ASSERT_EQ(found[0].lines.size(), 4U);
  EXPECT_EQ(texts[found[0].lines[0].function], "g (a.py), in step");
  EXPECT_EQ(found[0].lines[0].state, LedgerState::sampled);
  EXPECT_DOUBLE_EQ(found[0].lines[0].time_ns[0], 10);
  EXPECT_DOUBLE_EQ(found[0].lines[0].time_ns[1], 68);
  EXPECT_EQ(texts[found[0].lines[1].function], "f (a.py), in step");
  EXPECT_DOUBLE_EQ(found[0].lines[1].change_ns, -20);
  EXPECT_EQ(texts[found[0].lines[2].function], "other code, in step");
  EXPECT_DOUBLE_EQ(sum(found[0]), 40);
}

TEST_F(Waterfalls, SamplesThatStandForMoreDivideMore) {
  const auto sampled = [](Side& side, const std::string& function, std::int64_t count, Ns time) {
    side.profile.ledger.samples.push_back(
        {0, side.profile.texts.intern("step"), side.profile.texts.intern(function), count, time});
  };
  for (Side* side : {&base, &candidate}) {
    side->cycle({{"mm", 60}, {"step", 40, 2, LedgerState::between}});
    sampled(*side, "f (a.py)", 30, side == &base ? 300 : 100);
    sampled(*side, "g (a.py)", 10, side == &base ? 100 : 300);
  }
  const auto found = all();
  std::map<std::string, std::array<double, 2>> times;
  for (const model::WaterfallLine& line : found[0].lines)
    if (line.state == LedgerState::sampled) times[std::string(texts[line.function])] = line.time_ns;
  EXPECT_EQ(times, (decltype(times){{"f (a.py), in step", {30, 10}}, {"g (a.py), in step", {10, 30}}}));
}

TEST_F(Waterfalls, SamplesOfOtherPhasesAndOfOtherWorkDivideNothing) {
  const auto sampled = [](Side& side, const std::string& function) {
    const auto last = static_cast<std::uint32_t>(side.profile.cycles.size() - 1);
    side.profile.ledger.samples.push_back(
        {last, side.profile.texts.intern(""), side.profile.texts.intern(function), 40});
  };
  for (Side* side : {&base, &candidate}) {
    side->cycle({{"", 100, 2, LedgerState::between}}, -1, 4);
    sampled(*side, "decode.py");
  }
  base.cycle({{"", 900, 2, LedgerState::between}}, -1, 64);
  sampled(base, "of work that the candidate has none of");
  candidate.cycle({{"", 900, 2, LedgerState::between}});
  candidate.profile.cycles.back().phase = Phase::prefill;
  sampled(candidate, "prefill.py");
  const auto found = all();
  ASSERT_EQ(found[0].lines.size(), 1U);
  EXPECT_EQ(texts[found[0].lines[0].function], "decode.py");
  EXPECT_DOUBLE_EQ(found[0].lines[0].change_ns, 0);
}

TEST_F(Waterfalls, WithoutALedgerOnBothSidesThereIsNone) {
  base.cycle({{"mm", 60}});
  EXPECT_TRUE(all().empty());
}

TEST_F(Waterfalls, WhatTheSidesCallByTwoNamesIsOneLine) {
  for (int i = 0; i < 3; ++i) {
    base.cycle({{"gemm_64x3", 50}, {"norm", 50}});
    candidate.cycle({{"gemm_64x5", 70}, {"norm", 50}});
  }
  model::FunctionFinding finding;
  finding.phase = Phase::decode;
  finding.function = texts.intern("gemm_64x5");
  finding.was = texts.intern("gemm_64x3");
  finding.calls = {1, 1};
  use_new_names(base.profile, {finding}, texts);
  const auto waterfalls = all();
  ASSERT_EQ(waterfalls.size(), 1U);
  ASSERT_EQ(waterfalls[0].lines.size(), 2U);
  EXPECT_EQ(texts[waterfalls[0].lines[0].function], "gemm_64x5");
  EXPECT_DOUBLE_EQ(waterfalls[0].lines[0].change_ns, 20);
  // Another process has it under its old name on both sides.
  model::FunctionFinding other = finding;
  other.process = 1;
  other.function = finding.was;
  other.was = 0;
  Side again;
  again.cycle({{"gemm_64x3", 50}});
  use_new_names(again.profile, {finding, other}, texts);
  EXPECT_EQ(again.profile.texts[again.profile.ledger.lines[0].function], "gemm_64x3");
}

}  // namespace
}  // namespace culprit::compare
