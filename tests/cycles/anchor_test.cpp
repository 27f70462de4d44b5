// `--anchor`: what the user names, how it may be written, and how sure it is that it comes once per step.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "cycles/find.h"
#include "support/trace_maker.h"

namespace culprit::cycles {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing_support::TraceMaker;

Result<Found> find_by(const Trace& trace, const std::string& anchor) {
  FindOptions options;
  options.anchor = anchor;
  return find_cycles(trace, order_slices(trace), options);
}

Trace every(const std::vector<Ns>& lengths, const std::string& name, bool numbered = false) {
  TraceMaker maker;
  const TrackId thread = maker.thread(1, 1);
  Ns at = 0;
  int i = 0;
  for (const Ns length : lengths) {
    maker.slice(thread, "python_function", numbered ? name + std::to_string(i++) : name, at, length - 1);
    at += length;
  }
  return std::move(maker.trace());
}

TEST(GivenAnchor, SaysThatItWasGivenAndIsAsSureAsItIsRegular) {
  const auto regular = find_by(every(std::vector<Ns>(12, 1000), "Engine.step"), "Engine.step");
  ASSERT_TRUE(regular.ok());
  EXPECT_TRUE(regular->cycles.anchor_given);
  EXPECT_THAT(regular->cycles.reason, HasSubstr("given by the user"));
  EXPECT_NEAR(regular->cycles.period_confidence, 0.95, 1e-9);
  EXPECT_EQ(regular->cycles.phase_confidence, 1);
  const auto wild = find_by(every({100, 9000, 300, 2500, 40, 7000, 1200, 80}, "Engine.step"), "Engine.step");
  ASSERT_TRUE(wild.ok());
  EXPECT_LT(wild->cycles.period_confidence, 0.6);
  const auto some = find_by(every({1000, 1200, 900, 1000, 1100, 800, 1000, 1300}, "Engine.step"), "Engine.step");
  EXPECT_GT(some->cycles.period_confidence, wild->cycles.period_confidence);
  EXPECT_LT(some->cycles.period_confidence, regular->cycles.period_confidence);
}

TEST(GivenAnchor, TwoSayNothingAboutRegularity) {
  const auto found = find_by(every({1000, 1000}, "Engine.step"), "Engine.step");
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->cycles.period_confidence, 0.5);
}

TEST(GivenAnchor, APartOfAModelIsRegularAndYetNoStep) {
  const auto named = find_by(every(std::vector<Ns>(12, 1000), "DecoderLayer.forward"), "DecoderLayer.forward");
  ASSERT_TRUE(named.ok());
  EXPECT_LT(named->cycles.period_confidence, 0.5);
  const auto numbered = find_by(every(std::vector<Ns>(12, 1000), "h.layers.", true), "h.layers.N");
  ASSERT_TRUE(numbered.ok());
  EXPECT_EQ(numbered->cycles.cycles.size(), 12U);
  EXPECT_LT(numbered->cycles.period_confidence, 0.5);
  EXPECT_THAT(numbered->cycles.notes, Contains(HasSubstr("part of a step")));
}

TEST(GivenAnchor, WhatIsChosenByItselfIsNotCalledGiven) {
  TraceMaker maker;
  const TrackId thread = maker.thread(1, 1);
  for (int i = 0; i < 4; ++i) maker.slice(thread, "user_annotation", "ProfilerStep#" + std::to_string(i), i * 10, 9);
  const auto found = find_by(maker.trace(), "");
  ASSERT_TRUE(found.ok());
  EXPECT_FALSE(found->cycles.anchor_given);
}

TEST(GivenAnchor, WhatReportsShowIsUnderstood) {
  for (const std::string& name :
       {std::string("ProfilerStep#"), std::string("train iteration "), std::string("run, op_id = "),
        std::string("step 3 of 7: pass "), std::string("Node N part ")}) {
    TraceMaker maker;
    const TrackId thread = maker.thread(1, 1);
    for (int i = 0; i < 5; ++i) maker.slice(thread, "user_annotation", name + std::to_string(i), i * 1000, 900);
    std::string shown;  // digits as N, as `info` and `cycles` show them
    for (const char c : name + "N") shown += c >= '0' && c <= '9' ? 'N' : c;
    for (const std::string& anchor : {shown, name + "3"}) {
      const auto found = find_by(maker.trace(), anchor);
      ASSERT_TRUE(found.ok()) << anchor;
      // "...3" alone is one slice of that exact name, and its siblings are taken as well.
      EXPECT_EQ(found->cycles.cycles.size(), 5U) << anchor;
    }
    const auto automatic = find_by(maker.trace(), "");
    ASSERT_TRUE(automatic.ok());
    if (automatic->cycles.cycles.empty()) continue;
    const auto again = find_by(maker.trace(), automatic->cycles.anchor);
    ASSERT_TRUE(again.ok()) << automatic->cycles.anchor;
    EXPECT_EQ(again->cycles.cycles.size(), 5U) << automatic->cycles.anchor;
  }
}

TEST(GivenAnchor, TheHashOfOlderReportsIsStillANumber) {
  EXPECT_TRUE(find_by(every(std::vector<Ns>(3, 100), "work, op_id = ", true), "work, op_id = #").ok());
}

TEST(GivenAnchor, OtherWordsThatDifferInLettersAreNotTaken) {
  EXPECT_FALSE(find_by(every(std::vector<Ns>(3, 100), "work "), "work N").ok());
  EXPECT_FALSE(find_by(every(std::vector<Ns>(3, 100), "work x"), "work N").ok());
  EXPECT_FALSE(find_by(every(std::vector<Ns>(3, 100), "w"), "N").ok());
}

TEST(GivenAnchor, ChoosingNoneOfTheCyclesIsBadUsageThatSaysWhatThereIs) {
  TraceMaker maker;
  const TrackId thread = maker.thread(1, 1);
  for (int i = 0; i < 4; ++i) maker.slice(thread, "user_annotation", "step[DECODE bs=2 toks=2]", i * 10, 9);
  FindOptions options;
  options.phase = model::Phase::prefill;
  const auto no_phase = find_cycles(maker.trace(), order_slices(maker.trace()), options);
  ASSERT_FALSE(no_phase.ok());
  EXPECT_EQ(no_phase.error().kind, ErrorKind::usage);
  EXPECT_THAT(no_phase.error().what, testing::AllOf(HasSubstr("--phase prefill"), HasSubstr("4 decode")));
  options.phase.reset();
  options.skip = 4;
  const auto all_skipped = find_cycles(maker.trace(), order_slices(maker.trace()), options);
  ASSERT_FALSE(all_skipped.ok());
  EXPECT_THAT(all_skipped.error().what, HasSubstr("--skip 4"));
  options.skip = 3;
  EXPECT_TRUE(find_cycles(maker.trace(), order_slices(maker.trace()), options).ok());
}

TEST(GivenAnchor, WithoutCyclesThereIsNothingToChooseAndNoError) {
  FindOptions options;
  options.skip = 4;
  const Trace nothing;
  EXPECT_TRUE(find_cycles(nothing, order_slices(nothing), options).ok());
}

TEST(Notes, WorkOfUnknownLaunchesThatLiesInNoCycleIsCalledSo) {
  TraceMaker maker;
  const TrackId thread = maker.thread(1, 1);
  const TrackId stream = maker.stream(0, 7);
  maker.gpu(stream, "kernel", "early", -500, 20);
  maker.gpu(stream, "kernel", "early", -400, 20);
  for (int i = 0; i < 3; ++i) {
    maker.slice(thread, "user_annotation", "ProfilerStep#" + std::to_string(i), i * 1000, 1000);
    const SliceIndex launcher = maker.slice(thread, "cuda_runtime", "cudaLaunchKernel", i * 1000 + 5, 5, 1U + i);
    maker.gpu(stream, "kernel", "k", i * 1000 + 50, 20, launcher);
  }
  const auto found = find_by(maker.trace(), "");
  ASSERT_TRUE(found.ok());
  EXPECT_THAT(found->cycles.notes,
              Contains(HasSubstr("2 of 5 GPU operations (40% of their time) lie in no cycle; the launch of each")));
  EXPECT_THAT(found->cycles.reason, HasSubstr("100% of the recorded GPU launches"));
}

}  // namespace
}  // namespace culprit::cycles
