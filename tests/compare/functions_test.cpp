#include "compare/functions.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "compare/make_recording.h"

namespace culprit::compare {
namespace {

using model::FunctionFinding;
using model::FunctionStatus;
using model::Phase;

constexpr std::size_t kCycles = 40;

std::vector<double> noisy(double mean, double spread, std::uint64_t seed, std::size_t n = kCycles) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> of(mean, spread);
  std::vector<double> values;
  for (std::size_t i = 0; i < n; ++i) values.push_back(std::max(1.0, of(random)));
  return values;
}

struct Compared {
  StringTable texts;
  std::vector<FunctionFinding> findings;
  const FunctionFinding& operator[](const std::string& name) const {
    for (const FunctionFinding& f : findings)
      if (texts[f.function] == name) return f;
    ADD_FAILURE() << "no " << name;
    static const FunctionFinding none;
    return none;
  }
};

Compared compared(const Times& base, const Times& candidate, std::size_t base_cycles = kCycles,
                  std::size_t candidate_cycles = kCycles, const FunctionOptions& options = {}) {
  const model::Recording a = make_recording(std::vector<Ns>(base_cycles, 100'000), base);
  const model::Recording b = make_recording(std::vector<Ns>(candidate_cycles, 100'000), candidate, Phase::decode, 9);
  Compared result;
  result.findings = compare_functions(a.profile, b.profile, match_roles(a.profile, b.profile), {Phase::decode},
                                      result.texts, options);
  return result;
}

TEST(CompareFunctions, TheSlowerOneChangedAndTheOtherIsTheSame) {
  const Compared c = compared({{"gemm", noisy(30'000, 300, 1)}, {"norm", noisy(5'000, 50, 2)}},
                              {{"gemm", noisy(45'000, 450, 3)}, {"norm", noisy(5'000, 50, 4)}});
  ASSERT_EQ(c.findings.size(), 2U);
  EXPECT_EQ(c.texts[c.findings[0].function], "gemm") << "the largest impact first";
  EXPECT_EQ(c["gemm"].status, FunctionStatus::changed);
  EXPECT_NEAR(c["gemm"].impact_ns, 15'000, 500);
  EXPECT_LT(c["gemm"].low_ns, 15'000);
  EXPECT_GT(c["gemm"].high_ns, 15'000);
  EXPECT_NEAR(c["gemm"].work_ratio, 1.5, 0.02);
  EXPECT_NEAR(c["gemm"].per_call_ns[0], 15'000, 200) << "two calls per cycle";
  EXPECT_EQ(c["gemm"].calls[0], 2);
  EXPECT_EQ(c["norm"].status, FunctionStatus::same);
}

/// Twelve cycles, which call it less and less often; each call of the candidate lasts `times` as long.
std::array<model::Recording, 2> fewer_calls_each(double times) {
  std::array<model::Recording, 2> sides;
  for (std::size_t s = 0; s < 2; ++s) {
    std::vector<double> lasts;
    for (int i = 0; i < 12; ++i) lasts.push_back((i < 6 ? 1000 : 100) * (100 + i % 3) * (s == 0 ? 1 : times));
    sides[s] = make_recording(std::vector<Ns>(12, 1'000'000), {{"gemm", lasts}}, Phase::decode, s == 0 ? 7 : 9);
    for (model::FunctionUse& use : sides[s].profile.functions) use.count = use.cycle < 6 ? 1000 : 100;
  }
  return sides;
}

TEST(CompareFunctions, OnADeviceWhatACallTakesTellsWhereCyclesAreTooUnlike) {
  const auto finding = [](double times) {
    const auto [a, b] = fewer_calls_each(times);
    StringTable texts;
    const auto all = compare_functions(a.profile, b.profile, match_roles(a.profile, b.profile), {Phase::decode}, texts);
    EXPECT_EQ(all.size(), 1U);
    return all[0];
  };
  EXPECT_EQ(finding(3).status, FunctionStatus::changed);
  EXPECT_EQ(finding(3).rests_on, model::RestsOn::per_call);
  EXPECT_LT(finding(3).q, 0.05);
  EXPECT_EQ(finding(0.3).status, FunctionStatus::changed);
  EXPECT_EQ(finding(1).status, FunctionStatus::unknown);
  EXPECT_EQ(finding(1.02).status, FunctionStatus::unknown);
}

TEST(CompareFunctions, ALargerShareOfAShorterCycleIsNoChange) {
  const Times times = {{"gemm", noisy(30'000, 300, 1)}};
  const model::Recording a = make_recording(std::vector<Ns>(kCycles, 100'000), times);
  const model::Recording b = make_recording(std::vector<Ns>(kCycles, 50'000), {{"gemm", noisy(30'000, 300, 2)}});
  StringTable texts;
  const auto findings =
      compare_functions(a.profile, b.profile, match_roles(a.profile, b.profile), {Phase::decode}, texts);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].status, FunctionStatus::same);
}

TEST(CompareFunctions, SwappedSidesMirrorAroundTheTolerance) {
  for (const double slower : {1.01, 1.045, 1.049, 1.051, 1.055, 1.06, 1.3}) {
    const Times a = {{"gemm", noisy(30'000, 30, 1)}, {".mm", noisy(9'000, 9, 2)}};
    const Times b = {{"gemm", noisy(30'000 * slower, 30 * slower, 3)}, {".mm", noisy(9'000 * slower, 9 * slower, 4)}};
    const FunctionOptions options = {.between = 0.0001};
    const Compared there = compared(a, b, kCycles, kCycles, options);
    const Compared back = compared(b, a, kCycles, kCycles, options);
    for (const char* name : {"gemm", ".mm"}) {
      EXPECT_EQ(there[name].status, back[name].status) << name << " " << slower;
      EXPECT_NEAR(there[name].impact_ns, -back[name].impact_ns, 1e-6);
      EXPECT_NEAR(there[name].q, back[name].q, 1e-9);
    }
  }
}

TEST(CompareFunctions, KindsThatAreLeftOutAreNot) {
  const Times a = {{"gemm", noisy(30'000, 300, 1)}, {".mm", noisy(9'000, 90, 2)}};
  FunctionOptions options;
  options.left_out = {"cpu_op"};
  const Compared c = compared(a, {{"gemm", noisy(30'000, 300, 3)}}, kCycles, kCycles, options);
  ASSERT_EQ(c.findings.size(), 1U);
  EXPECT_EQ(c.texts[c.findings[0].function], "gemm");
}

TEST(CompareFunctions, NoiseIsUndecided) {
  const Compared c = compared({{"f", noisy(10'000, 8'000, 1)}}, {{"f", noisy(10'500, 8'000, 2)}});
  EXPECT_EQ(c["f"].status, FunctionStatus::unknown);
}

TEST(CompareFunctions, OneSideOnlyIsNewOrGone) {
  const Compared c = compared({{"norm", noisy(5'000, 50, 1)}, {"both", noisy(10, 1, 1)}},
                              {{"fresh", noisy(5'000, 50, 2)}, {"both", noisy(10, 1, 2)}});
  EXPECT_EQ(c["norm"].status, FunctionStatus::gone);
  EXPECT_EQ(c["fresh"].status, FunctionStatus::added);
  EXPECT_EQ(c["fresh"].time_ns[0], 0);
  EXPECT_TRUE(std::isnan(c["fresh"].work_ratio));
}

TEST(CompareFunctions, AKernelOfOtherTilesIsTheSameOne) {
  const Times base = {{"gemm_64x3_tn", noisy(30'000, 300, 1)}, {"norm", noisy(5'000, 50, 2)}};
  const Compared same = compared(base, {{"gemm_64x5_tn", noisy(30'000, 300, 3)}, {"norm", noisy(5'000, 50, 4)}});
  ASSERT_EQ(same.findings.size(), 2U);
  EXPECT_EQ(same["gemm_64x5_tn"].status, FunctionStatus::same);
  EXPECT_EQ(same.texts[same["gemm_64x5_tn"].was], "gemm_64x3_tn");
  EXPECT_EQ(same["norm"].was, 0U);
  const Compared slower = compared(base, {{"gemm_64x5_tn", noisy(45'000, 300, 3)}, {"norm", noisy(5'000, 50, 4)}});
  EXPECT_EQ(slower["gemm_64x5_tn"].status, FunctionStatus::changed);
  EXPECT_NEAR(slower["gemm_64x5_tn"].work_ratio, 1.5, 0.02);
}

TEST(CompareFunctions, ExactNamesComeFirst) {
  const Compared c = compared({{"triton_0", noisy(30'000, 300, 1)}, {"triton_1", noisy(5'000, 50, 2)}},
                              {{"triton_1", noisy(5'000, 50, 3)}, {"triton_2", noisy(30'000, 300, 4)}});
  ASSERT_EQ(c.findings.size(), 2U);
  EXPECT_EQ(c["triton_1"].was, 0U);
  EXPECT_EQ(c.texts[c["triton_2"].was], "triton_0");
}

/// With stacks the waiting is done far inside of it.
TEST(CompareFunctions, AnInputCountsWithAllThatItCalls) {
  const auto made = [](double wait) {
    model::Recording r = make_recording(std::vector<Ns>(kCycles, 100'000),
                                        {{".DataLoader.__next__", noisy(500, 5, 1)}, {".poll", noisy(wait, 50, 2)}});
    for (model::FunctionUse& use : r.profile.functions)
      if (r.profile.texts[use.function] == ".DataLoader.__next__") use.duration += static_cast<Ns>(wait);
    return r;
  };
  const model::Recording a = made(5'000);
  const model::Recording b = made(35'000);
  Compared c;
  c.findings = compare_functions(a.profile, b.profile, match_roles(a.profile, b.profile), {Phase::decode}, c.texts, {});
  EXPECT_EQ(c[".DataLoader.__next__"].status, FunctionStatus::changed);
  EXPECT_NEAR(c[".DataLoader.__next__"].impact_ns, 30'000, 500);
  EXPECT_NEAR(c[".poll"].impact_ns, 30'000, 500);
}

TEST(CompareFunctions, ARareCallMayBeMissedByTheOtherSide) {
  std::vector<double> once(kCycles, 0);
  once[17] = 90'000;
  const Compared c = compared({{"f", noisy(10'000, 100, 1)}}, {{"f", noisy(10'000, 100, 2)}, {"gc", once}});
  EXPECT_EQ(c["gc"].status, FunctionStatus::unknown) << "one cycle of 80: half of all recordings would look so";
}

TEST(CompareFunctions, CyclesWithoutTheFunctionCountAsZero) {
  std::vector<double> every_second = noisy(20'000, 200, 1);
  for (std::size_t i = 0; i < every_second.size(); i += 2) every_second[i] = 0;
  const Compared c = compared({{"f", every_second}}, {{"f", every_second}, {"g", noisy(1, 0.1, 3)}});
  EXPECT_NEAR(c["f"].time_ns[0], 10'000, 200);
  EXPECT_EQ(c["f"].calls[0], 1);
}

TEST(CompareFunctions, FewCyclesTellOnlyByFullSeparation) {
  EXPECT_EQ(compared({{"f", {10'000, 10'100}}}, {{"f", {20'000, 20'100}}}, 2, 2)["f"].status, FunctionStatus::unknown)
      << "two and two separate by chance in a third of all cases";
  EXPECT_EQ(
      compared({{"f", {10'000, 10'100, 9'900, 10'050}}}, {{"f", {20'000, 20'100, 20'050, 20'200}}}, 4, 4)["f"].status,
      FunctionStatus::changed);
}

TEST(CompareFunctions, SidesAreApartWhereEachCycleOfOneTakesLonger) {
  const auto apart = [](std::vector<double> base, std::vector<double> candidate) {
    return compared({{"f", base}}, {{"f", candidate}}, base.size(), candidate.size())["f"].apart;
  };
  EXPECT_TRUE(apart({10'000, 10'100, 9'900}, {20'000, 20'100, 19'000}));
  EXPECT_TRUE(apart({20'000, 20'100, 19'000}, {10'000, 10'100, 9'900}));
  EXPECT_FALSE(apart({10'000, 10'100, 19'900}, {20'000, 20'100, 19'000})) << "one takes as long";
  EXPECT_FALSE(apart({10'000, 10'100, 9'900}, {10'300, 10'400, 10'300})) << "that does not matter";
}

TEST(CompareFunctions, FalseDiscoveriesAreRareThoughManyAreAsked) {
  int reports = 0;
  constexpr int kReports = 40;
  for (int run = 0; run < kReports; ++run) {
    Times base;
    Times candidate;
    for (int f = 0; f < 100; ++f) {
      const auto seed = static_cast<std::uint64_t>(run * 1000 + f * 2);
      base["f" + std::to_string(f)] = noisy(10'000, 2'000, seed, 25);
      candidate["f" + std::to_string(f)] = noisy(10'000, 2'000, seed + 1, 25);
    }
    // Without tolerance and without an allowance for recordings that differ: the test alone keeps the promise.
    const Compared c = compared(base, candidate, 25, 25, {0, 0, 0.05});
    for (const FunctionFinding& f : c.findings)
      if (f.status == FunctionStatus::changed) {
        ++reports;
        break;
      }
  }
  EXPECT_LE(reports, 5) << "of " << kReports << " reports; 5 % of them are expected";
}

TEST(CompareFunctions, HostFunctionsCountWhatTheyDoThemselves) {
  model::Recording a = make_recording(std::vector<Ns>(kCycles, 100'000), {{".outer", noisy(50'000, 500, 1)}});
  model::Recording b = make_recording(std::vector<Ns>(kCycles, 100'000), {{".outer", noisy(50'000, 500, 2)}});
  for (model::FunctionUse& use : b.profile.functions) use.duration *= 2;  // what it called took longer
  StringTable texts;
  const auto findings =
      compare_functions(a.profile, b.profile, match_roles(a.profile, b.profile), {Phase::decode}, texts);
  EXPECT_EQ(findings[0].status, FunctionStatus::same);
  EXPECT_NEAR(findings[0].work_ratio, 1, 0.02);
}

TEST(CompareFunctions, TheOnlyDeviceNeedsNoNumber) {
  model::Recording a = make_recording({1000, 1000}, {{"f", {10, 10}}});
  model::Recording b = make_recording({1000, 1000}, {{"f", {10, 10}}});
  for (model::FunctionUse& use : b.profile.functions) use.device = b.profile.texts.intern("GPU 3");
  StringTable texts;
  const auto findings =
      compare_functions(a.profile, b.profile, match_roles(a.profile, b.profile), {Phase::decode}, texts);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(texts[findings[0].device], "GPU");
}

TEST(CompareFunctions, TheOnlyDeviceOfEachRecordingNeedsNoNumber) {
  model::Recording a = make_recording({1000, 1000, 1000, 1000}, {{"f", {10, 10, 10, 10}}});
  model::Recording b = make_recording({1000, 1000}, {{"f", {10, 10}}});
  for (model::FunctionUse& use : a.profile.functions)
    if (use.cycle >= 2) use.device = a.profile.texts.intern("GPU 1");
  for (std::size_t i = 2; i < 4; ++i) a.profile.cycles[i].recording = 1;
  StringTable texts;
  const auto findings =
      compare_functions(a.profile, b.profile, match_roles(a.profile, b.profile), {Phase::decode}, texts);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(texts[findings[0].device], "GPU");
}

TEST(CompareFunctions, SwappedSidesMirror) {
  const Times a = {{"f", noisy(10'000, 900, 1)}, {"g", noisy(700, 70, 2)}};
  const Times b = {{"f", noisy(14'000, 900, 3)}, {"h", noisy(700, 70, 4)}};
  const Compared there = compared(a, b);
  const Compared back = compared(b, a);
  EXPECT_DOUBLE_EQ(there["f"].impact_ns, -back["f"].impact_ns);
  EXPECT_NEAR(there["f"].work_ratio, 1 / back["f"].work_ratio, 1e-12);
  EXPECT_EQ(there["g"].status, FunctionStatus::gone);
  EXPECT_EQ(back["g"].status, FunctionStatus::added);
}

TEST(CompareFunctions, TenThousandNamesOfOneCycleEachTakeNoTime) {
  constexpr std::size_t kNames = 10'000;
  const model::Recording a = make_recording(std::vector<Ns>(200, 1000), {});
  // Dense sums over cycles would be 10^8 here and 10^11 for a day of steps.
  model::Recording b = make_recording(std::vector<Ns>(kNames, 1000), {});
  for (std::uint32_t i = 0; i < kNames; ++i) {
    model::FunctionUse use;
    use.cycle = i;
    use.function = use.short_name = b.profile.texts.intern("step " + std::to_string(i));
    use.device = b.profile.texts.intern("Host");
    use.kind = b.profile.texts.intern("cpu_op");
    use.count = 1;
    use.duration = use.own = 10;
    b.profile.functions.push_back(use);
  }
  StringTable texts;
  const auto findings =
      compare_functions(a.profile, b.profile, match_roles(a.profile, b.profile), {Phase::decode}, texts);
  EXPECT_EQ(findings.size(), kNames);
}

/// Six functions on a host of which one takes `ratio` times as long.
Compared on_host(double mean, double ratio, std::size_t cycles) {
  const auto zigzag = [&](double of) {
    std::vector<double> values;
    for (std::size_t i = 0; i < cycles; ++i) values.push_back(of * (i % 2 == 0 ? 0.99 : 1.01));
    return values;
  };
  Times base, candidate;
  for (int f = 0; f < 5; ++f) {
    const std::string name = ".op" + std::to_string(f);
    base[name] = candidate[name] = zigzag(9'000 + 100 * f);
  }
  base[".one"] = zigzag(mean);
  candidate[".one"] = zigzag(mean * ratio);
  FunctionOptions options;
  options.between_on_host = 0.25;
  return compared(base, candidate, cycles, cycles, options);
}

TEST(CompareFunctions, OnHostsAThousandthOfTheCycleIsNoChange) {
  EXPECT_NE(on_host(50, 2, 40)[".one"].status, FunctionStatus::changed) << "50 ns of 100 us";
  EXPECT_EQ(on_host(500, 2, 40)[".one"].status, FunctionStatus::changed);
}

TEST(CompareFunctions, FewCyclesOnHostsTellLessOfAShare) {
  EXPECT_NE(on_host(5'000, 1.3, 15)[".one"].status, FunctionStatus::changed);
  EXPECT_EQ(on_host(5'000, 1.3, 40)[".one"].status, FunctionStatus::changed);
  EXPECT_EQ(on_host(5'000, 3, 15)[".one"].status, FunctionStatus::changed);
}

TEST(CompareFunctions, SayWhatTheyRestOn) {
  using model::RestsOn;
  const Compared on_device = compared({{"gemm", noisy(30'000, 300, 1)}, {"norm", noisy(5'000, 50, 2)}},
                                      {{"gemm", noisy(45'000, 450, 3)}, {"fresh", noisy(5'000, 50, 4)}});
  EXPECT_EQ(on_device["gemm"].rests_on, RestsOn::time);
  EXPECT_EQ(on_device["norm"].rests_on, RestsOn::calls) << "gone";
  EXPECT_EQ(on_device["fresh"].rests_on, RestsOn::calls) << "new";
  const Compared one_of_many = on_host(5'000, 1.3, 40);
  EXPECT_EQ(one_of_many[".one"].rests_on, RestsOn::against_others);
  ASSERT_EQ(one_of_many[".op0"].status, FunctionStatus::same);
  EXPECT_EQ(one_of_many[".op0"].rests_on, RestsOn::time);
}

TEST(CompareFunctions, WhatAllShareRestsOnTime) {
  Times base, candidate;
  for (int f = 0; f < 6; ++f) {
    const std::string name = ".op" + std::to_string(f);
    const auto seed = static_cast<std::uint64_t>(f);
    base[name] = noisy(5'000 + 100 * f, 50, 2 * seed + 1);
    candidate[name] = noisy(2 * (5'000 + 100 * f), 50, 2 * seed + 2);
  }
  FunctionOptions options;
  options.between_on_host = 0.05;
  const Compared c = compared(base, candidate, kCycles, kCycles, options);
  for (const FunctionFinding& f : c.findings) {
    EXPECT_EQ(f.status, FunctionStatus::changed);
    EXPECT_EQ(f.rests_on, model::RestsOn::time);
  }
}

/// Replicates on a host whose level moves by a tenth from recording to recording, each function by 3 % of its own.
model::Profile replicates(double of_slow, std::mt19937_64& random) {
  std::normal_distribution<double> normal(0, 1);
  model::Profile all;
  for (int r = 0; r < 5; ++r) {
    Times times;
    const double level = std::exp(0.1 * normal(random));
    for (int f = 0; f < 12; ++f) {
      const double mean = 10'000 * (f + 1) * level * std::exp(0.03 * normal(random)) * (f == 3 ? of_slow : 1);
      times[".op" + std::to_string(f)] = noisy(mean, mean / 20, random(), 10);
    }
    model::Recording recording = make_recording(std::vector<Ns>(10, 1'000'000), times);
    if (r == 0)
      all = std::move(recording.profile);
    else
      append_replicate(all, recording.profile);
  }
  return all;
}

/// Names of those that changed.
std::vector<std::string> changed(const model::Profile& a, const model::Profile& b) {
  StringTable texts;
  FunctionOptions options;
  options.between_on_host = 0.1;
  options.in_turns = true;
  std::vector<std::string> names;
  for (const FunctionFinding& f : compare_functions(a, b, match_roles(a, b), {Phase::decode}, texts, options))
    if (f.status == FunctionStatus::changed) names.emplace_back(texts[f.function]);
  return names;
}

TEST(CompareFunctions, ReplicatesFindOneFunctionThoughTheMachineMovesAll) {
  std::mt19937_64 random(5);
  int found = 0;
  int others = 0;
  for (int pair = 0; pair < 40; ++pair) {
    const auto names = changed(replicates(1, random), replicates(1.35, random));
    found += std::ranges::count(names, ".op3") > 0 ? 1 : 0;
    others += names.size() > 1 ? 1 : 0;
  }
  EXPECT_GE(found, 38);
  EXPECT_LE(others, 4);
}

TEST(CompareFunctions, ReplicatesRestOnRecordings) {
  std::mt19937_64 random(7);
  const model::Profile a = replicates(1, random);
  const model::Profile b = replicates(2, random);
  StringTable texts;
  FunctionOptions options;
  options.between_on_host = 0.1;
  options.in_turns = true;
  for (const FunctionFinding& f : compare_functions(a, b, match_roles(a, b), {Phase::decode}, texts, options)) {
    if (f.status != FunctionStatus::same) {
      EXPECT_EQ(f.rests_on, model::RestsOn::recordings) << texts[f.function];
    }
    if (texts[f.function] == ".op3") {
      EXPECT_EQ(f.status, FunctionStatus::changed);
    }
  }
}

TEST(CompareFunctions, ReplicatesOfTheSameAccuseNobody) {
  std::mt19937_64 random(6);
  int accused = 0;
  for (int pair = 0; pair < 60; ++pair)
    accused += changed(replicates(1, random), replicates(1, random)).empty() ? 0 : 1;
  EXPECT_LE(accused, 3);
}

}  // namespace
}  // namespace culprit::compare
