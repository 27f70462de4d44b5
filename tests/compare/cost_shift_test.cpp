#include "compare/cost_shift.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "compare/functions.h"
#include "compare/make_recording.h"

namespace culprit::compare {
namespace {

using model::FunctionFinding;
using model::FunctionStatus;

constexpr double kMayRemain = 3'000;

struct Findings {
  StringTable texts;
  std::vector<FunctionFinding> all;

  Findings& add(const std::string& name, const std::string& parent, double impact,
                FunctionStatus status = FunctionStatus::changed, const std::string& kind = "cpu_op") {
    FunctionFinding f;
    f.function = texts.intern(name);
    f.parent = texts.intern(parent);
    f.device = texts.intern("Host");
    f.kind = texts.intern(kind);
    f.impact_ns = impact;
    f.status = status;
    f.calls = {status == FunctionStatus::added ? 0.0 : 10.0, status == FunctionStatus::gone ? 0.0 : 10.0};
    // Who takes over is called more often, by default.
    if (status == FunctionStatus::changed) f.calls[impact > 0 ? 1 : 0] = 12;
    all.push_back(f);
    return *this;
  }
  /// By function: inside of whom its cost moved.
  std::vector<std::string> moved() {
    mark_cost_shifts(all, {{FunctionFinding().phase, kMayRemain}}, texts);
    std::vector<std::string> inside;
    for (const FunctionFinding& f : all) inside.emplace_back(texts[f.moved_inside]);
    return inside;
  }
};

using Names = std::vector<std::string>;

TEST(CostShift, WhatOneLostAnotherOfTheSameParentGained) {
  EXPECT_EQ(
      Findings().add("split", "forward", 1000).add("fused", "forward", -900).add("other", "backward", 700).moved(),
      (Names{"forward", "forward", ""}));
}

TEST(CostShift, NewAndGoneFunctionsTakeOver) {
  EXPECT_EQ(Findings()
                .add("a", "forward", -400, FunctionStatus::gone)
                .add("b", "forward", -600, FunctionStatus::gone)
                .add("ab", "forward", 1000, FunctionStatus::added)
                .moved(),
            (Names{"forward", "forward", "forward"}));
}

/// Of what a graph holds nobody is known to have launched it; some of the shapes of a kernel have other tiles now.
TEST(CostShift, KernelsOfOneNameTakeOverWhereNoParentIsKnown) {
  const auto made = [](const std::string& other) {
    Findings f;
    f.texts.intern("");
    f.add("gemm_64x3_tn", "", -1000).add(other, "", 1050, FunctionStatus::added);
    for (FunctionFinding& finding : f.all) finding.device = f.texts.intern("GPU");
    return f;
  };
  EXPECT_EQ(made("gemm_64x5_tn").moved(), (Names{"gemm_#_tn", "gemm_#_tn"}));
  EXPECT_EQ(made("gemm_64x5_nn").moved(), (Names{"", ""}));
  Findings slower = made("gemm_64x5_tn");
  slower.all[1].impact_ns = 2000;
  EXPECT_EQ(slower.moved(), (Names{"", ""})) << "what became slower is no cost that moved";
}

TEST(CostShift, WhatANewFunctionCallsCountsForItsParent) {
  EXPECT_EQ(Findings()
                .add("mm", "dense", -1000, FunctionStatus::gone)
                .add("addmm", "dense", 900, FunctionStatus::added)
                .add("copy", "addmm", 90, FunctionStatus::added)
                .moved(),
            (Names{"dense", "dense", "dense"}));
  EXPECT_EQ(Findings()
                .add("mm", "dense", -1000, FunctionStatus::gone)
                .add("addmm", "dense", 900, FunctionStatus::added)
                .add("copy", "addmm", 500, FunctionStatus::added)
                .moved(),
            (Names{"", "", ""}))
      << "with what it calls it costs more";
}

TEST(CostShift, KernelsOfOperatorsThatReplaceEachOtherHaveOneParent) {
  Findings f;
  f.add("mm", "dense", 0, FunctionStatus::gone).add("addmm", "dense", 0, FunctionStatus::added);
  f.add("gemm", "mm", -1000, FunctionStatus::gone).add("gemm_bias", "addmm", 950, FunctionStatus::added);
  f.all[2].device = f.all[3].device = f.texts.intern("GPU");
  EXPECT_EQ(f.moved(), (Names{"", "", "dense", "dense"}));
}

TEST(CostShift, FunctionsThatCallEachOtherHaveNoCommonParent) {
  EXPECT_EQ(Findings().add("a", "b", 1000, FunctionStatus::added).add("b", "a", -1000, FunctionStatus::gone).moved(),
            (Names{"", ""}));
}

TEST(CostShift, TheParentItselfTakesPart) {
  EXPECT_EQ(Findings().add("forward", "step", 1000).add("inlined", "forward", -1000).moved(),
            (Names{"forward", "forward"}));
}

TEST(CostShift, ACallerThatTookOverWhatItCalledNeedNotBeCalledMore) {
  Findings f;
  f.add("forward", "step", 1000).add("inlined", "forward", -1000, FunctionStatus::gone);
  f.all[0].calls = {10, 10};
  EXPECT_EQ(f.moved(), (Names{"forward", "forward"}));
}

TEST(CostShift, PlainPythonOfARangeThatTookOverNeedNotBeCalledMore) {
  Findings f;
  f.add("between functions: dense", "dense", 1000, FunctionStatus::changed, "between");
  f.add("aten::add", "dense", -1000, FunctionStatus::gone);
  f.all[0].calls = {10, 10};
  EXPECT_EQ(f.moved(), (Names{"dense", "dense"}));
}

TEST(CostShift, FunctionsThatAreCalledAsBeforeHaveBothChanged) {
  Findings f;
  f.add("slower", "step", 1000).add("faster", "step", -1000);
  f.all[0].calls = f.all[1].calls = {10, 10};
  EXPECT_EQ(f.moved(), (Names{"", ""}));
  Findings one;
  one.add("new", "step", 1000, FunctionStatus::added).add("faster", "step", -1000);
  one.all[1].calls = {10, 10};
  EXPECT_EQ(one.moved(), (Names{"", ""})) << "nothing tells where the new one's work came from";
}

TEST(CostShift, OneLossPaysForOneGain) {
  // f's loss went to h, which it calls; what g gained is g's.
  for (const auto& [inner, outer] : {std::pair("f", "step"), {"z", "a"}})
    for (const bool outer_first : {false, true})
      for (const bool reversed : {false, true}) {
        Findings f;
        if (outer_first) f.texts.intern(outer);
        f.add(inner, outer, -1000).add("h", inner, 1000, FunctionStatus::added);
        f.add("g", outer, 1000, FunctionStatus::added);
        if (reversed) std::ranges::reverse(f.all);
        Names expected = {inner, inner, ""};
        if (reversed) std::ranges::reverse(expected);
        EXPECT_EQ(f.moved(), expected);
      }
}

TEST(CostShift, TheInnermostComesFirstHoweverDeep) {
  Findings f;
  for (int level = 0; level < 40; ++level)
    f.add("level" + std::to_string(level + 1), "level" + std::to_string(level), 0, FunctionStatus::same);
  f.add("z", "level40", -1000)
      .add("h", "z", 1000, FunctionStatus::added)
      .add("g", "level40", 1000, FunctionStatus::added);
  const Names moved = f.moved();
  EXPECT_EQ(Names(moved.end() - 3, moved.end()), (Names{"z", "z", ""}));
}

TEST(CostShift, WhatDidNotMoveInsideMayMoveOutside) {
  EXPECT_EQ(Findings()
                .add("f", "step", -1000)
                .add("h", "f", 300, FunctionStatus::added)
                .add("g", "step", 1000, FunctionStatus::added)
                .moved(),
            (Names{"step", "", "step"}));
}

TEST(CostShift, WhatRemainsMustNotMatterToTheCycle) {
  EXPECT_EQ(Findings().add("big", "step", 22'900).add("other", "step", -20'000).moved(), (Names{"step", "step"}));
  EXPECT_EQ(Findings().add("big", "step", 23'100).add("other", "step", -20'000).moved(), (Names{"", ""}))
      << "more than may remain";
}

TEST(CostShift, WhatRemainsOfSeveralParentsAddsUp) {
  EXPECT_EQ(Findings()
                .add("a", "first", 22'000)
                .add("b", "first", -20'000)
                .add("c", "second", 22'000)
                .add("d", "second", -20'000)
                .moved(),
            (Names{"first", "first", "", ""}));
  EXPECT_EQ(Findings()
                .add("a", "first", 22'000)
                .add("b", "first", -20'000)
                .add("c", "second", 20'000)
                .add("d", "second", -22'000)
                .moved(),
            (Names{"first", "first", "second", "second"}));
}

TEST(CostShift, AFunctionOfBothSidesIsNoneOfOneSideForItsOtherKind) {
  Findings f;
  f.add("addmm", "dense", 10, FunctionStatus::changed).add("addmm", "dense", 5, FunctionStatus::added, "python");
  f.add("mm", "dense", -1000, FunctionStatus::gone).add("copy", "addmm", 985, FunctionStatus::added);
  EXPECT_EQ(f.moved(), (Names{"", "", "", ""})) << "copy lies in addmm, which both have";
}

TEST(CostShift, ARecursiveFunctionCountsOnce) {
  EXPECT_EQ(Findings().add("walk", "walk", 1000).add("visit", "walk", -2000, FunctionStatus::gone).moved(),
            (Names{"", ""}));
}

TEST(CostShift, OnADeviceThereIsNoParentThatTakesPart) {
  Findings f;
  f.add("gemm", "linear", -1000, FunctionStatus::gone).add("linear", "", 1000, FunctionStatus::added);
  f.all[0].device = f.all[1].device = f.texts.intern("GPU");
  EXPECT_EQ(f.moved(), (Names{"", ""}));
}

TEST(CostShift, MoreThanAQuarterLeftIsNoShift) {
  EXPECT_EQ(Findings().add("slower", "forward", 1260).add("faster", "forward", -1000).moved(), (Names{"", ""}));
  EXPECT_EQ(Findings().add("slower", "forward", 1240).add("faster", "forward", -1000).moved(),
            (Names{"forward", "forward"}));
}

TEST(CostShift, AllInOneDirectionAreNoShift) {
  EXPECT_EQ(Findings().add("a", "forward", 500).add("b", "forward", 400).moved(), (Names{"", ""}));
}

TEST(CostShift, OtherParentsUnknownParentsAndOtherDevicesShareNothing) {
  EXPECT_EQ(Findings().add("a", "forward", 500).add("b", "backward", -500).moved(), (Names{"", ""}));
  EXPECT_EQ(Findings().add("a", "", 500).add("b", "", -500).moved(), (Names{"", ""}));
  Findings devices;
  devices.add("a", "forward", 500).add("b", "forward", -500);
  devices.all[1].device = devices.texts.intern("GPU");
  EXPECT_EQ(devices.moved(), (Names{"", ""}));
}

TEST(CostShift, WhatIsNotShownToHaveChangedAndWhoWaitsGiveNothing) {
  EXPECT_EQ(Findings()
                .add("slower", "forward", 1000)
                .add("perhaps faster", "forward", -1000, FunctionStatus::unknown)
                .add("waits less", "forward", -1000, FunctionStatus::changed, "sync")
                .moved(),
            (Names{"", "", ""}));
}

TEST(CostShift, SidesMayBeSwapped) {
  EXPECT_EQ(Findings().add("split", "forward", -1000).add("fused", "forward", 900).moved(),
            (Names{"forward", "forward"}));
}

/// Recordings of 40 steps with functions on the device, all launched by `parent`.
model::Recording launched(const Times& times, const std::string& parent, std::int64_t pid) {
  model::Recording r = make_recording(std::vector<Ns>(40, 100'000), times, model::Phase::decode, pid);
  for (model::FunctionUse& use : r.profile.functions) {
    use.parent = r.profile.texts.intern(parent);
    use.inside = use.duration;
  }
  return r;
}

std::vector<double> steady(double mean) {
  std::vector<double> values;
  for (int i = 0; i < 40; ++i) values.push_back(mean * (1 + 0.001 * (i % 7)));
  return values;
}

TEST(CostShift, IsFoundFromTheProfilesOfTheSides) {
  const Times two = {{"bias", steady(10'000)}, {"gemm", steady(30'000)}, {"norm", steady(5'000)}};
  const Times fused = {{"gemm_bias", steady(40'300)}, {"norm", steady(5'000)}};
  const auto inside = [&](const std::string& before, const std::string& after, bool swapped = false, Ns of_time = 100) {
    model::Recording a = launched(two, before, 7);
    model::Recording b = launched(fused, after, 9);
    for (model::FunctionUse& use : b.profile.functions) use.inside = use.duration * of_time / 100;
    if (swapped) std::swap(a, b);
    StringTable texts;
    std::map<std::string, std::string> moved;
    for (const FunctionFinding& f :
         compare_functions(a.profile, b.profile, match_roles(a.profile, b.profile), {model::Phase::decode}, texts))
      moved[std::string(texts[f.function])] = texts[f.moved_inside];
    return moved;
  };
  using Moved = std::map<std::string, std::string>;
  EXPECT_EQ(inside("linear", "linear"),
            (Moved{{"bias", "linear"}, {"gemm", "linear"}, {"gemm_bias", "linear"}, {"norm", ""}}));
  EXPECT_EQ(inside("linear", "attention"), (Moved{{"bias", ""}, {"gemm", ""}, {"gemm_bias", ""}, {"norm", ""}}))
      << "another parent has taken it over";
  EXPECT_EQ(inside("linear", "linear", true), inside("linear", "linear"));
  EXPECT_EQ(inside("linear", "attention", true), inside("linear", "attention"));
  EXPECT_EQ(inside("linear", "linear", false, 51), inside("linear", "linear"));
  EXPECT_EQ(inside("linear", "linear", false, 50)["gemm_bias"], "") << "no more than half of its time lay there";
}

}  // namespace
}  // namespace culprit::compare
