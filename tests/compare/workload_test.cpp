#include "compare/workload.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace culprit::compare {
namespace {

using model::Phase;
using model::Workload;

WorkClass of(std::int64_t requests, std::int64_t prompt_tokens, Phase phase) {
  Workload w;
  w.batch = requests;
  w.context_tokens = prompt_tokens;
  return work_class(w, phase);
}

TEST(WorkClass, FewRequestsAreExactManyCoarse) {
  EXPECT_NE(of(3, -1, Phase::decode), of(4, -1, Phase::decode));
  EXPECT_NE(of(8, -1, Phase::decode), of(9, -1, Phase::decode));
  EXPECT_EQ(of(100, -1, Phase::decode), of(104, -1, Phase::decode));
  EXPECT_NE(of(100, -1, Phase::decode), of(150, -1, Phase::decode));
  EXPECT_LT(of(100, -1, Phase::decode), of(1'000'000, -1, Phase::decode));
}

TEST(WorkClass, EachPhaseHasItsMeasure) {
  EXPECT_EQ(of(4, 100, Phase::decode), of(4, 5000, Phase::decode));
  EXPECT_EQ(of(1, 100, Phase::prefill), of(3, 105, Phase::prefill)) << "tokens are what a prefill computes";
  EXPECT_NE(of(1, 100, Phase::prefill), of(1, 1000, Phase::prefill));
  EXPECT_NE(of(1, -1, Phase::prefill), of(3, -1, Phase::prefill)) << "where tokens are not known";
  EXPECT_NE(of(4, 100, Phase::mixed), of(4, 1000, Phase::mixed));
  EXPECT_NE(of(4, 100, Phase::mixed), of(5, 100, Phase::mixed));
  EXPECT_EQ(of(-1, -1, Phase::decode), WorkClass());
}

TEST(WorkClass, DecodeLooksBackAtTokens) {
  const auto behind = [](std::int64_t cached) {
    Workload w;
    w.batch = 4;
    w.cached_tokens = cached;
    return work_class(w, Phase::decode);
  };
  EXPECT_NE(behind(400), behind(1000));
  EXPECT_EQ(behind(400), behind(410));
  EXPECT_NE(behind(400), behind(-1));
  EXPECT_EQ(work_text(behind(400)), "4 requests behind 305 to 430 tokens");
}

TEST(WorkClass, SaysWhatItStandsFor) {
  EXPECT_EQ(work_text(of(1, -1, Phase::decode)), "1 request");
  EXPECT_EQ(work_text(of(8, -1, Phase::decode)), "8 requests");
  EXPECT_EQ(work_text(of(12, -1, Phase::decode)), "11 to 12 requests");
  EXPECT_EQ(work_text(of(2, 100, Phase::mixed)), "2 requests with 77 to 107 prompt tokens");
  EXPECT_EQ(work_text(of(4, -1, Phase::train_step)), "4 samples");
  EXPECT_EQ(work_text(of(64, -1, Phase::train_step)), "59 to 69 samples");
  EXPECT_EQ(work_text(of(-1, -1, Phase::train_step)), "");
  EXPECT_EQ(work_text(WorkClass()), "");
  for (std::int64_t n = 1; n < 3000; ++n) {  // every number lies in what its class says
    const std::string text = work_text(of(n, -1, Phase::decode));
    const std::int64_t least = std::stoll(text);
    const auto to = text.find(" to ");
    const std::int64_t most = to == std::string::npos ? least : std::stoll(text.substr(to + 4));
    ASSERT_TRUE(least <= n && n <= most) << n << ": " << text;
  }
}

std::vector<WorkedTime> steps(std::int32_t requests, double time, std::size_t n) {
  return std::vector<WorkedTime>(n, {{requests, -1}, time});
}

std::vector<WorkedTime> operator+(std::vector<WorkedTime> a, const std::vector<WorkedTime>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

double mean_log(const std::vector<double>& values) {
  double sum = 0;
  for (const double v : values) sum += std::log(v);
  return sum / static_cast<double>(values.size());
}

TEST(MatchWork, OfOneClassNothingIsTouched) {
  const auto m = match_work(steps(4, 100, 5), steps(4, 120, 6));
  EXPECT_EQ(m.times[0], std::vector<double>(5, 100));
  EXPECT_EQ(m.times[1], std::vector<double>(6, 120));
  EXPECT_FALSE(m.mix_differs);
}

TEST(MatchWork, UnknownWorkOnASideIsNoReasonToLeaveOut) {
  const auto m = match_work(steps(-1, 100, 5), steps(4, 120, 6) + steps(5, 130, 1));
  EXPECT_EQ(m.times[0].size(), 5U);
  EXPECT_EQ(m.times[1].size(), 7U);
  EXPECT_EQ(m.left_out[1], 0U);
}

TEST(MatchWork, OtherWorkIsLeftOutAndNamed) {
  const auto m = match_work(steps(4, 100, 50) + steps(2, 60, 2), steps(12, 180, 30) + steps(2, 60, 9));
  EXPECT_TRUE(m.times[0].empty());
  EXPECT_TRUE(m.times[1].empty()) << "two steps tell nothing of a class";
  EXPECT_EQ(m.left_out[0], 52U);
  EXPECT_EQ(m.left_out[1], 39U);
  EXPECT_EQ(m.most_often[0], "4 requests");
  EXPECT_TRUE(m.mix_differs);
}

TEST(MatchWork, ABatchThatAllStepsOfItsClassHaveIsToldExactly) {
  const auto of_batch = [](std::int64_t batch, std::size_t n) {
    Workload w;
    w.batch = batch;
    return std::vector<WorkedTime>(n, {.work = work_class(w, Phase::train_step), .time = 100, .batch = batch});
  };
  const auto twice = match_work(of_batch(64, 9), of_batch(128, 9));
  EXPECT_EQ(twice.most_often[0], "64 samples");
  EXPECT_EQ(twice.most_often[1], "128 samples");
  const auto others = match_work(of_batch(64, 9) + of_batch(63, 1), of_batch(128, 9));
  EXPECT_EQ(others.most_often[0], "59 to 69 samples") << "the last one of a round is smaller, and of the same class";
  const auto alike = match_work(of_batch(64, 9), of_batch(65, 9));
  EXPECT_EQ(alike.most_often[0], alike.most_often[1]) << "these are held against each other, so they are told as one";
}

TEST(MatchWork, SaysHowLongPromptsAreAndWhetherContextsAreKnown) {
  const auto step = [](std::int64_t tokens, Phase phase, std::int64_t cached = -1) {
    Workload w;
    w.batch = 4;
    w.context_tokens = tokens;
    w.cached_tokens = cached;
    return WorkedTime{work_class(w, phase), 100};
  };
  const std::vector<WorkedTime> base = {step(128, Phase::prefill), step(128, Phase::prefill)};
  const std::vector<WorkedTime> candidate = {step(1024, Phase::prefill), step(512, Phase::prefill)};
  EXPECT_NEAR(match_work(base, candidate).prompt_tokens[0], 128, 1e-9);
  EXPECT_NEAR(match_work(base, candidate).prompt_tokens[1], 768, 1e-9);
  EXPECT_EQ(match_work(base, candidate).looked_back[0], 0) << "prefills do not";
  EXPECT_FALSE(match_work(base, candidate).knows_context);
  const std::vector<WorkedTime> knows = {step(-1, Phase::decode, 400)};
  const std::vector<WorkedTime> does_not = {step(-1, Phase::decode, 400), step(-1, Phase::decode)};
  EXPECT_TRUE(match_work(knows, knows).knows_context);
  EXPECT_FALSE(match_work(knows, does_not).knows_context);
  EXPECT_EQ(match_work(knows, knows).prompt_tokens[0], 0);
  EXPECT_NEAR(match_work(knows, does_not).looked_back[0], 362, 1) << "a class is half of a doubling wide";
  EXPECT_EQ(match_work(knows, does_not).looked_back[1], 0) << "one of them does not tell";
}

TEST(MatchWork, PromptsThatWereCachedAreHardlyComputed) {
  const auto step = [](std::int64_t tokens, double prompts) {
    Workload w;
    w.context_tokens = tokens;
    return WorkedTime{work_class(w, Phase::prefill), 100, 0, prompts};
  };
  const std::vector<WorkedTime> mostly = {step(1, 1), step(4, 0), step(12, 3), step(128, 1)};
  const std::vector<WorkedTime> never = {step(16, 1), step(128, 2)};
  const auto m = match_work(mostly, never);
  EXPECT_EQ(m.cached_prompts[0], 0.75);
  EXPECT_EQ(m.cached_prompts[1], 0);
}

TEST(MatchWork, PromptsAreCountedWhereAllStepsTellThem) {
  Workload w;
  w.batch = 5;
  EXPECT_EQ(prompts_of(w, Phase::prefill), 5);
  EXPECT_EQ(prompts_of(w, Phase::mixed), 0) << "some of them generate, nobody tells how many";
  EXPECT_EQ(prompts_of(w, Phase::decode), 0);
  w.decode_tokens = 2;
  EXPECT_EQ(prompts_of(w, Phase::mixed), 3);
  const auto step = [](double prompts) { return WorkedTime{WorkClass{4, -1}, 100, 0, prompts}; };
  const std::vector<WorkedTime> told = {step(1), step(3)};
  const std::vector<WorkedTime> half = {step(1), step(0)};
  EXPECT_EQ(match_work(told, half).prompts[0], 2);
  EXPECT_EQ(match_work(told, half).prompts[1], 0);
  EXPECT_EQ(match_work(told, half).requests[0], 4);
}

TEST(MatchWork, TheMostRequestsAtOnceAreNoRarity) {
  const auto m = match_work(steps(4, 100, 98) + steps(5, 120, 2), steps(4, 100, 99) + steps(5, 120, 1));
  EXPECT_EQ(m.most_requests, (std::array<double, 2>{5, 4}));
  EXPECT_EQ(match_work(steps(-1, 100, 3), steps(4, 100, 3)).most_requests, (std::array<double, 2>{0, 4}));
}

TEST(MatchWork, AnotherMixOfTheSameStepsIsNoDifference) {
  const auto m = match_work(steps(2, 60, 10) + steps(4, 100, 40), steps(2, 60, 40) + steps(4, 100, 10));
  EXPECT_NEAR(mean_log(m.times[0]), mean_log(m.times[1]), 1e-12);
  EXPECT_TRUE(m.mix_differs);
  EXPECT_EQ(m.left_out[0] + m.left_out[1], 0U);
}

TEST(MatchWork, TheDifferenceIsThatInsideTheClasses) {
  // x1.1 for steps of two, x1.3 for steps of four; shares 0.2 and 0.8 on one side, 0.6 and 0.4 on the other.
  const auto m = match_work(steps(2, 60, 20) + steps(4, 100, 80), steps(2, 66, 60) + steps(4, 130, 40));
  EXPECT_NEAR(mean_log(m.times[1]) - mean_log(m.times[0]), 0.4 * std::log(1.1) + 0.6 * std::log(1.3), 1e-12);
}

TEST(MatchWork, AFewStepsThatSpeakForManyCountAsFew) {
  const auto m = match_work(steps(2, 60, 300) + steps(4, 100, 3), steps(2, 60, 3) + steps(4, 100, 300));
  EXPECT_NEAR(m.counts_as[0] * 303, 12, 0.5);
  EXPECT_NEAR(m.counts_as[1] * 303, 12, 0.5);
  const auto alike = match_work(steps(2, 60, 30) + steps(4, 100, 10), steps(2, 60, 60) + steps(4, 100, 20));
  EXPECT_NEAR(alike.counts_as[0], 1, 1e-12);
  EXPECT_NEAR(alike.counts_as[1], 1, 1e-12);
}

TEST(MatchWork, SwappedSidesMirror) {
  std::mt19937_64 random(5);
  std::vector<WorkedTime> a;
  std::vector<WorkedTime> b;
  for (int i = 0; i < 200; ++i) {
    (i % 3 == 0 ? a : b)
        .push_back({{static_cast<std::int32_t>(random() % 4), -1}, 50 + static_cast<double>(random() % 50)});
  }
  const auto there = match_work(a, b);
  const auto back = match_work(b, a);
  EXPECT_EQ(there.times[0], back.times[1]);
  EXPECT_EQ(there.times[1], back.times[0]);
  EXPECT_EQ(there.left_out[0], back.left_out[1]);
}

TEST(MatchWork, TimesThatAreNoneAreLeftOut) {
  const auto m = match_work(steps(2, 0, 5) + steps(4, 100, 5), steps(2, 60, 5) + steps(4, 100, 5));
  EXPECT_EQ(m.times[0].size(), 5U);
  EXPECT_EQ(m.times[1].size(), 5U);
}

}  // namespace
}  // namespace culprit::compare
