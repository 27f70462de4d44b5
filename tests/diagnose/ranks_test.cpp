// Ranks that wait for each other, and loads that changed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "comparison.h"
#include "diagnose/diagnose.h"

namespace culprit::diagnose {
namespace {

using model::Outcome;
using model::RunComparison;
using model::Verdict;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> causes_of_ranks(const RunComparison& c) {
  std::vector<std::string> names;
  for (const Verdict& v : diagnose(c))
    names.push_back(v.cause + (v.detail.empty() ? "" : "/" + v.detail) + (v.where.empty() ? "" : " of " + v.where));
  return names;
}

/// Steps of 10 ms that became 14 ms long, of four ranks.
RunComparison four_ranks() {
  RunComparison c = comparison();
  set_step(c, {10, 14}, {0, 0}, {0, 0});
  c.host->step.clear();
  return c;
}

RunComparison late_rank() {
  RunComparison c = four_ranks();
  for (const std::int32_t rank : {0, 1, 3}) add_collectives(c, rank, {0.1, 4}, {1, 1}, {0.1, 0});
  add_collectives(c, 2, {0.1, 0}, {1, 1}, {0.1, 4});
  return c;
}

TEST(RankRules, WhoHoldsAllOthersUpIsTheStraggler) {
  const auto verdicts = diagnose(late_rank());
  ASSERT_EQ(verdicts.size(), 1U);
  EXPECT_EQ(verdicts[0].cause, "straggler");
  EXPECT_EQ(verdicts[0].where, "rank 2");
  EXPECT_EQ(verdicts[0].rank, 2);
  EXPECT_EQ(verdicts[0].scope, model::VerdictScope::rank);
  EXPECT_EQ(verdicts[0].state, model::VerdictState::active);
  EXPECT_NEAR(verdicts[0].impact_ns, 3.9e6, 1);
}

TEST(RankRules, TheBaselineMayHaveTheStraggler) {
  const auto verdicts = diagnose(swapped(late_rank()));
  ASSERT_EQ(verdicts.size(), 1U);
  EXPECT_EQ(verdicts[0].side, 0U);
  EXPECT_EQ(verdicts[0].where, "rank 2");
}

TEST(RankRules, RanksThatAreLateInTurnsAreNone) {
  RunComparison c = four_ranks();
  for (const std::int32_t rank : {0, 1, 2, 3}) add_collectives(c, rank, {0.1, 2}, {1, 1}, {0.1, 1});
  EXPECT_THAT(causes_of_ranks(c), ElementsAre("unknown"));
}

TEST(RankRules, TransfersThatTakeLongerAreTheLinks) {
  RunComparison c = four_ranks();
  for (const std::int32_t rank : {0, 1, 2, 3}) add_collectives(c, rank, {0.1, 0.1}, {1, 5}, {0.1, 0.1});
  EXPECT_THAT(causes_of_ranks(c), ElementsAre("interconnect_contention"));
  EXPECT_NEAR(diagnose(c)[0].work_ratio, 5, 1e-9);
}

TEST(RankRules, MoreCollectivesAreNoSlowerLink) {
  RunComparison c = four_ranks();
  for (const std::int32_t rank : {0, 1, 2, 3}) {
    add_collectives(c, rank, {0.1, 0.1}, {1, 5}, {0.1, 0.1});
    c.collectives.back().calls = {10, 50};
  }
  EXPECT_THAT(causes_of_ranks(c), ElementsAre("unknown"));
}

RunComparison slower_collectives(std::array<double, 2> calls, std::array<double, 2> elements) {
  RunComparison c = four_ranks();
  for (const std::int32_t rank : {0, 1, 2, 3}) {
    add_collectives(c, rank, {0.1, 0.1}, {2, 4}, {0.1, 0.1});
    c.collectives.back().calls = calls;
    c.collectives.back().elements = elements;
  }
  return c;
}

TEST(RankRules, ALinkIsSlowerByWhatItSends) {
  const auto verdicts = diagnose(slower_collectives({10, 10}, {1000, 1250}));
  ASSERT_EQ(verdicts.size(), 1U);
  EXPECT_EQ(verdicts[0].cause, "interconnect_contention");
  EXPECT_NEAR(verdicts[0].work_ratio, 1.6, 1e-9);
  EXPECT_NEAR(verdicts[0].impact_ns, 1.5e6, 1);
  EXPECT_THAT(verdicts[0].evidence[1], HasSubstr("sent x1.25 elements"));
}

TEST(RankRules, WhoSendsMoreHasNoSlowerLink) {
  EXPECT_THAT(causes_of_ranks(slower_collectives({10, 10}, {1000, 2000})), ElementsAre("unknown"));
}

/// Fewer and larger ones.
TEST(RankRules, CollectivesThatWerePutTogetherAreNoSlowerLink) {
  RunComparison c = four_ranks();
  for (const std::int32_t rank : {0, 1, 2, 3}) {
    add_collectives(c, rank, {0.1, 0.1}, {4, 4}, {0.1, 0.1});
    c.collectives.back().calls = {10, 5};
  }
  EXPECT_THAT(causes_of_ranks(c), ElementsAre("unknown"));
}

TEST(RankRules, WithoutElementsAnotherLoadIsNoSlowerLink) {
  RunComparison c = slower_collectives({10, 10}, {model::kNoNumber, model::kNoNumber});
  EXPECT_THAT(causes_of_ranks(c), ElementsAre("interconnect_contention"));
  for (const char* name : {"sgemm", "softmax", "norm"}) {
    add_function(c, name, "gpu_compute", "GPU", {2, 3}, {4, 4}, model::FunctionStatus::changed);
    c.functions.back().size = {1000, 1500};
  }
  EXPECT_THAT(causes_of_ranks(c), ElementsAre("workload_changed"));
}

TEST(RankRules, WaitingForOthersIsNoSlowLink) {
  RunComparison c = four_ranks();
  for (const std::int32_t rank : {0, 1, 2, 3}) add_collectives(c, rank, {0.1, 4}, {1, 1}, {0.1, 0.1});
  EXPECT_THAT(causes_of_ranks(c), testing::Not(testing::Contains(HasSubstr("interconnect"))));
}

/// A clock that fell on the device of one rank alone.
TEST(RankRules, ItsOwnCauseIsWhyItIsLate) {
  RunComparison c = late_rank();
  for (std::int32_t rank = 0; rank < 4; ++rank) {
    c.processes.push_back({rank, {100, 200}});
    for (const char* name : {"gemm", "softmax", "norm"}) {
      const double times = rank == 2 ? 2 : 1;
      add_function(c, name, "gpu_compute", "GPU", {2, 2 * times}, {4, 4},
                   rank == 2 ? model::FunctionStatus::changed : model::FunctionStatus::same);
      c.functions.back().process = static_cast<std::uint32_t>(rank);
    }
    add_resource(c, "GPU clock", "GPU", {1.4e9, rank == 2 ? 0.7e9 : 1.4e9});
    c.resources.back().rank = rank;
  }
  const auto verdicts = diagnose(c);
  ASSERT_EQ(verdicts.size(), 1U);
  EXPECT_EQ(verdicts[0].cause, "straggler");
  EXPECT_EQ(verdicts[0].detail, "gpu_clock_drop");
  EXPECT_NEAR(verdicts[0].work_ratio, 2, 1e-9);
}

RunComparison other_load(double other_share) {
  RunComparison c = comparison(Outcome::inconclusive);
  set_step(c, {10, 10}, {0, 0}, {0, 0});
  c.host->step.clear();
  model::CycleTimeOutcome& time = c.cycle_times[0];
  time.usual_work = {"8 requests", "32 requests"};
  time.all_ns = {10e6, 18e6};
  time.other_share = other_share;
  return c;
}

/// A batch twice as large: products have more threads and take longer; the optimizer, more than half of the time, does
/// not.
RunComparison larger_batch() {
  RunComparison c = comparison();
  set_step(c, {10, 14}, {0, 0}, {0, 0});
  c.host->step.clear();
  const auto add = [&](const char* name, std::array<double, 2> ms, std::array<double, 2> threads) {
    add_function(c, name, "gpu_compute", "GPU", ms, {4, 4},
                 ms[1] > ms[0] ? model::FunctionStatus::changed : model::FunctionStatus::same);
    c.functions.back().size = threads;
  };
  for (const char* name : {"sgemm_a", "sgemm_b"}) add(name, {1.5, 3}, {1000, 1430});
  for (const char* name : {"softmax", "norm"}) add(name, {0.25, 0.5}, {1000, 2000});
  add("multi_tensor_apply", {4, 4}, {1000, 1000});
  return c;
}

TEST(LoadRules, StepsOfOtherWorkAreAChangeOfLoad) {
  const auto verdicts = diagnose(other_load(0.9));
  ASSERT_EQ(verdicts.size(), 1U);
  EXPECT_EQ(verdicts[0].cause, "workload_changed");
  EXPECT_NEAR(verdicts[0].impact_ns, 8e6, 1);
  EXPECT_THAT(verdicts[0].evidence[0], HasSubstr("32 requests instead of 8 requests"));
}

TEST(LoadRules, OtherWorkMadeNothingOfWhatLikeStepsTakeLonger) {
  RunComparison c = other_load(0.9);
  set_step(c, {10, 10.01}, {0, 0}, {0, 0});
  c.host->step.clear();
  c.cycle_times[0].usual_work = {"8 requests", "32 requests"};
  c.cycle_times[0].all_ns = {10e6, 18e6};
  c.cycle_times[0].other_share = 0.9;
  const auto verdicts = diagnose(c);
  ASSERT_EQ(verdicts.size(), 1U);
  EXPECT_EQ(verdicts[0].state, model::VerdictState::active);
  EXPECT_TRUE(std::isnan(verdicts[0].share));
  EXPECT_THAT(verdicts[0].evidence, testing::Contains(HasSubstr("18.000ms instead of 10.000ms in the mean")));
}

TEST(LoadRules, WithoutStepsOfLikeWorkTheLoadIsStillTold) {
  RunComparison c = other_load(0.9);
  c.host.reset();  // a trace of which nothing is held against each other
  c.cycle_times[0].time_ns = {model::kNoNumber, model::kNoNumber};
  c.cycle_times[0].change = model::kNoNumber;
  c.cycle_times[0].cycles = {0, 0};
  c.cycle_times[0].other_work = {69, 55};
  const auto verdicts = diagnose(c);
  ASSERT_EQ(verdicts.size(), 1U);
  EXPECT_EQ(verdicts[0].cause, "workload_changed");
  EXPECT_EQ(verdicts[0].state, model::VerdictState::active);
  EXPECT_NEAR(verdicts[0].impact_ns, 8e6, 1);
}

TEST(LoadRules, LargerKernelsThatMakeNoStepLongerAreLatent) {
  RunComparison c = larger_batch();
  c.outcome = c.cycle_times[0].outcome = Outcome::inconclusive;
  EXPECT_EQ(diagnose(c)[0].state, model::VerdictState::active);
  EXPECT_NEAR(diagnose(c)[0].share, 0.875, 1e-9);
  c.cycle_times[0].time_ns[1] = 10.01e6;
  ASSERT_EQ(causes_of_ranks(c).size(), 1U);
  EXPECT_EQ(causes_of_ranks(c)[0], "workload_changed");
  EXPECT_EQ(diagnose(c)[0].state, model::VerdictState::latent);
}

TEST(LoadRules, AFewStepsOfOtherWorkAreNone) { EXPECT_THAT(causes_of_ranks(other_load(0.2)), IsEmpty()); }

TEST(LoadRules, OtherWorkThatTakesNoLongerIsNone) {
  RunComparison c = other_load(0.9);
  c.cycle_times[0].all_ns = {10e6, 10.1e6};
  EXPECT_THAT(causes_of_ranks(c), IsEmpty());
}

TEST(LoadRules, LargerKernelsAreMoreWork) {
  RunComparison c = comparison(Outcome::inconclusive);
  set_step(c, {10, 14}, {0, 0}, {0, 0});
  c.host->step.clear();
  for (const char* name : {"sgemm", "softmax", "norm"}) {
    add_function(c, name, "gpu_compute", "GPU", {2, 3}, {4, 4}, model::FunctionStatus::changed);
    c.functions.back().size = {1000, 1500};
  }
  EXPECT_THAT(causes_of_ranks(c), ElementsAre("workload_changed"));
  for (model::FunctionFinding& f : c.functions) f.size = {1000, 1000};
  EXPECT_THAT(causes_of_ranks(c), testing::Not(testing::Contains("workload_changed")));
}

TEST(LoadRules, ALargerBatchIsMoreWorkThoughTheOptimizerDoesAsMuchAsBefore) {
  EXPECT_THAT(causes_of_ranks(larger_batch()), ElementsAre("workload_changed"));
  EXPECT_THAT(causes_of_ranks(swapped(larger_batch())), ElementsAre("workload_changed"));
  EXPECT_EQ(diagnose(swapped(larger_batch()))[0].side, 0U);
  EXPECT_EQ(diagnose(larger_batch())[0].state, model::VerdictState::active);
  EXPECT_NEAR(diagnose(larger_batch())[0].work_ratio, 2, 1e-9);
  RunComparison c = larger_batch();
  for (model::FunctionFinding& f : c.functions) f.size = {1000, 1000};
  EXPECT_THAT(causes_of_ranks(c), testing::Not(testing::Contains("workload_changed")));
}

/// Four steps in a hundred compute prompts, none like the other side's; an operator of the others takes longer.
RunComparison other_prompts(std::array<double, 2> tokens, double prefill_ms) {
  RunComparison c = comparison(Outcome::inconclusive);
  set_step(c, {16, 21}, {0, 0}, {0, 0});
  c.host->step.clear();
  model::CycleTimeOutcome& decode = c.cycle_times[0];
  decode.phase = model::Phase::decode;
  decode.cycles = {48, 48};
  decode.usual_work = {"4 requests", "4 requests"};
  decode.all_ns = decode.time_ns;
  model::CycleTimeOutcome prefill;
  prefill.phase = model::Phase::prefill;
  prefill.other_work = {2, 4};
  prefill.usual_work = {"108 to 152 prompt tokens", "862 to 1217 prompt tokens"};
  prefill.all_ns = {28e6, prefill_ms * 1e6};
  prefill.prompt_tokens = tokens;
  c.cycle_times.push_back(prefill);
  for (const char* name : {"a", "b", "c"}) add_function(c, name, "cpu_op", "Host", {2, 2}, {1, 1});
  add_function(c, "aten::index", "cpu_op", "Host", {1, 2.4}, {1, 1}, model::FunctionStatus::changed);
  for (model::FunctionFinding& f : c.functions) f.phase = model::Phase::decode;
  return c;
}

TEST(LoadRules, LongerPromptsAreOtherWorkAndNoFunctionsFault) {
  const auto verdicts = diagnose(other_prompts({128, 1024}, 57));
  ASSERT_EQ(verdicts.size(), 1U);
  EXPECT_EQ(verdicts[0].cause, "workload_changed");
  EXPECT_EQ(verdicts[0].state, model::VerdictState::active);
  EXPECT_THAT(verdicts[0].evidence[0], HasSubstr("1024 instead of 128 tokens of prompts"));
  EXPECT_THAT(causes_of_ranks(swapped(other_prompts({128, 1024}, 57))), ElementsAre("workload_changed"));
  EXPECT_EQ(diagnose(other_prompts({128, 1024}, 40))[0].state, model::VerdictState::latent);
  EXPECT_THAT(causes_of_ranks(other_prompts({128, 256}, 29)), IsEmpty());  // that is nothing of the whole
  EXPECT_THAT(causes_of_ranks(other_prompts({128, 128}, 57)), ElementsAre("host_bound/function of aten::index"));
  RunComparison at_once = other_prompts({128, 1024}, 57);
  at_once.cycle_times.back().prompts = {1, 8};
  EXPECT_THAT(causes_of_ranks(at_once), ElementsAre("host_bound/function of aten::index"))
      << "more at once are no longer";
  RunComparison few = other_prompts({128, 1024}, 57);
  few.cycle_times.back().other_work = {51, 2};
  EXPECT_THAT(causes_of_ranks(few), ElementsAre("host_bound/function of aten::index")) << "two steps are no sample";
  few.cycle_times.back().other_work = {5, 2};
  EXPECT_THAT(causes_of_ranks(few), ElementsAre("workload_changed")) << "nor are there more";
  RunComparison c = other_prompts({128, 1024}, 57);
  c.cycle_times[0].knows_context = true;  // and like ones were compared
  EXPECT_THAT(causes_of_ranks(c), testing::Contains("host_bound/function of aten::index"));
}

TEST(LoadRules, WhatACacheHoldsIsNoOtherLoadUnlessItMatters) {
  RunComparison little = other_prompts({19, 151}, 40);
  little.cycle_times.back().cached_prompts = {0.6, 0.1};
  EXPECT_THAT(causes_of_ranks(little), IsEmpty());
  RunComparison much = other_prompts({19, 151}, 57);
  much.cycle_times.back().cached_prompts = {0.6, 0.1};
  EXPECT_THAT(causes_of_ranks(much), testing::Not(testing::Contains("workload_changed"))) << "nothing is called slower";
  much.outcome = model::Outcome::regression;
  const auto verdicts = diagnose(much);
  ASSERT_FALSE(verdicts.empty());
  EXPECT_EQ(verdicts[0].cause, "workload_changed");
  EXPECT_EQ(verdicts[0].state, model::VerdictState::active);
  EXPECT_THAT(
      verdicts[0].evidence,
      testing::Contains("10 % instead of 60 % of them compute hardly a token of a prompt: the rest was in a cache"));
  RunComparison few = other_prompts({19, 151}, 40);
  few.cycle_times.back().cached_prompts = {0.2, 0.1};
  EXPECT_EQ(diagnose(few)[0].state, model::VerdictState::latent) << "some short prompts are no cache";
}

TEST(LoadRules, AKernelThatTakesLongerByItsThreadsIsNotSlower) {
  RunComparison c = comparison();
  set_step(c, {10, 14}, {0, 0}, {0, 0});
  c.host->step.clear();
  for (const char* name : {"a", "b", "c"}) add_function(c, name, "gpu_compute", "GPU", {2, 2}, {1, 1});
  add_function(c, "attention", "gpu_compute", "GPU", {3, 6.9}, {8, 8}, model::FunctionStatus::changed);
  c.cycle_times[0].usual_work = {"4 requests", "4 requests"};  // these tell it, and not how long the contexts are
  EXPECT_THAT(causes_of_ranks(c), ElementsAre("kernel_regression of attention"));
  c.functions.back().size = {1000, 2270};
  EXPECT_THAT(causes_of_ranks(c), ElementsAre("unknown"));
  c.functions.back().size = {1000, 1500};
  EXPECT_THAT(causes_of_ranks(c), ElementsAre("kernel_regression of attention"));
}

TEST(LoadRules, WhereMarkersTellTheWorkNothingElseDoes) {
  RunComparison c = other_load(0.2);
  for (const char* name : {"sgemm", "softmax", "norm"}) {
    add_function(c, name, "gpu_compute", "GPU", {2, 3}, {4, 4}, model::FunctionStatus::same);
    c.functions.back().size = {1000, 1500};
  }
  EXPECT_THAT(causes_of_ranks(c), testing::Not(testing::Contains("workload_changed")));
}

/// A large part of the kernels spreads, and is as much slower as the others.
TEST(DeviceRules, KernelsThatAreNotSureCountAsWhatTheyAreNearerTo) {
  RunComparison c = comparison();
  set_step(c, {10, 12}, {0, 0}, {0, 0});
  c.host->step.clear();
  for (const char* name : {"sgemm_a", "sgemm_b", "softmax_a", "norm_b"})
    add_function(c, name, "gpu_compute", "GPU", {1, 1.2}, {4, 4}, model::FunctionStatus::changed);
  add_function(c, "flash_copy", "gpu_compute", "GPU", {3, 3.5}, {4, 4}, model::FunctionStatus::unknown);
  add_resource(c, "GPU clock", "GPU", {1.4e9, 1.4e9});
  EXPECT_THAT(causes_of_ranks(c), ElementsAre("gpu_contention/other_process of GPU"));
  c.functions.back().work_ratio = 1;
  EXPECT_THAT(causes_of_ranks(c), testing::Not(testing::Contains("gpu_contention/other_process of GPU")));
}

TEST(RankRules, AKernelThatIsSlowerOnTheLateRankAloneIsWhyItIsLate) {
  RunComparison c = late_rank();
  for (std::int32_t rank = 0; rank < 4; ++rank) {
    c.processes.push_back({rank, {100, 200}});
    for (const char* name : {"a", "b", "c"}) {
      add_function(c, name, "gpu_compute", "GPU", {2, 2}, {4, 4}, model::FunctionStatus::same);
      c.functions.back().process = static_cast<std::uint32_t>(rank);
    }
  }
  add_function(c, "attention", "gpu_compute", "GPU", {1, 5}, {4, 4}, model::FunctionStatus::changed);
  c.functions.back().process = 2;
  const auto verdicts = diagnose(c);
  ASSERT_EQ(verdicts.size(), 1U);
  EXPECT_EQ(verdicts[0].cause, "straggler");
  EXPECT_EQ(verdicts[0].detail, "kernel_regression");
}

/// `decode` inside of `get` inside of the loader.
/// Four ranks that wait for their input, `of_others`: ms on all but the third.
RunComparison late_input(const char* name, double of_others) {
  RunComparison c = late_rank();
  for (std::int32_t rank = 0; rank < 4; ++rank) {
    c.processes.push_back({rank, {100 + rank, 200 + rank}});
    const double ms = rank == 2 ? 5 : of_others;
    add_function(c, name, "annotation", "Host", {1, ms}, {1, 1},
                 ms > 1 ? model::FunctionStatus::changed : model::FunctionStatus::same);
    c.functions.back().process = static_cast<std::uint32_t>(rank);
  }
  return c;
}

TEST(RankRules, AKernelThatIsSlowerOnAllRanksIsNoRanks) {
  RunComparison c = late_rank();
  for (std::int32_t rank = 0; rank < 4; ++rank) {
    c.processes.push_back({rank, {100, 200}});
    add_function(c, "attention", "gpu_compute", "GPU", {1, rank == 2 ? 5.1 : 5}, {4, 4},
                 model::FunctionStatus::changed);
    c.functions.back().process = static_cast<std::uint32_t>(rank);
    for (const char* name : {"a", "b", "c"}) {
      add_function(c, name, "gpu_compute", "GPU", {1, 1}, {4, 4}, model::FunctionStatus::same);
      c.functions.back().process = static_cast<std::uint32_t>(rank);
    }
  }
  EXPECT_THAT(causes_of_ranks(c),
              testing::UnorderedElementsAre("straggler of rank 2", "kernel_regression of attention"));
}

TEST(RankRules, OfSeveralCausesOfALateRankTheLargestIsWhy) {
  RunComparison c = late_input("tokenize", 1);
  for (const char* name : {"gemm", "softmax", "norm"}) {
    add_function(c, name, "gpu_compute", "GPU", {0.5, 0.6}, {4, 4}, model::FunctionStatus::changed);
    c.functions.back().process = 2;
  }
  add_resource(c, "GPU clock", "GPU", {1.4e9, 1.1e9});
  c.resources.back().rank = 2;
  const auto verdicts = diagnose(c);
  ASSERT_EQ(verdicts.size(), 1U);
  EXPECT_EQ(verdicts[0].detail, "host_bound");
  EXPECT_THAT(verdicts[0].evidence, testing::Contains(HasSubstr("The clock of GPU of rank 2")));
}

TEST(RankRules, WhereNoStepIsLikeAnotherNobodyIsLate) {
  RunComparison c = late_rank();
  c.cycle_times[0].time_ns = {model::kNoNumber, model::kNoNumber};
  c.cycle_times[0].cycles = {0, 0};
  EXPECT_THAT(causes_of_ranks(c), testing::Not(testing::Contains(HasSubstr("straggler"))));
}

TEST(RankRules, AnInputOrAFunctionThatIsLateOnOneRankIsWhyItIsLate) {
  for (const char* name : {"enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", "tokenize"}) {
    const auto verdicts = diagnose(late_input(name, 1));
    ASSERT_EQ(verdicts.size(), 1U) << name;
    EXPECT_EQ(verdicts[0].cause, "straggler");
    EXPECT_EQ(verdicts[0].detail, "host_bound");
    EXPECT_EQ(verdicts[0].rank, 2);
  }
  const auto all = diagnose(late_input("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", 4.5));
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].detail, "data_input");
  EXPECT_EQ(all[0].rank, -1);
  EXPECT_EQ(all[1].cause, "straggler");
}

TEST(InputRules, WhatLiesInsideOfAnInputIsTheInputs) {
  RunComparison c = comparison();
  set_step(c, {10, 14}, {0, 0}, {0, 0});
  c.host->step.clear();
  const char* loader = "DataLoader.__next__";
  add_function(c, loader, "python", "Host", {0.5, 4.5}, {1, 1}, model::FunctionStatus::changed);
  add_function(c, "Queue.get", "python", "Host", {0.1, 0.1}, {1, 1}, model::FunctionStatus::same);
  c.functions.back().parent = c.texts.intern(loader);
  add_function(c, "decode", "python", "Host", {0.4, 4.4}, {1, 1}, model::FunctionStatus::changed);
  c.functions.back().parent = c.texts.intern("Queue.get");
  EXPECT_THAT(causes_of_ranks(c), ElementsAre("host_bound/data_input of DataLoader.__next__"));
  c.functions[2].parent = c.texts.intern("serve");
  EXPECT_THAT(causes_of_ranks(c), testing::Contains("host_bound/function of decode"));
}

TEST(InputRules, WhatAnInputMayBeCalled) {
  for (const char* name :
       {"DataLoader.__next__", "torch/utils/data/_utils/fetch.py(42): fetch", "WebDataset.decode", "IteratorGetNext",
        "train.py(12): get_batch", "default_collate", "nvidia/dali/plugin/pytorch.py(200): __next__",
        "DALIGenericIterator.__next__", "data_prefetcher.next", "train.py(31): next_batch", "batch-generator",
        "mmap_reader.py(10): read_sample", "datasets/iterable.py(1): __iter__",
        "site-packages/datasets/arrow_dataset.py(2866): __getitem__", "train.py(44): get_train_batch"})
    EXPECT_TRUE(model::is_input(name)) << name;
  for (const char* name : {"poll",
                           "get_next_batch_to_run",
                           "prepare_inputs",
                           "aten::linear",
                           "",
                           "upload_data",
                           "/mnt/datasets/exp/train.py(88): train_step",
                           "target_batch",
                           "torch/utils/data/_utils/pin_memory.py(31): do_one_step",
                           "batch_norm",
                           "aten::native_batch_norm",
                           "next_token",
                           "sample_next_token",
                           "scheduler.get_next_batch_to_run",
                           "vllm/core/scheduler.py(800): next_batch",
                           "prefetch_kernel",
                           "engine.py(9): train_batch",
                           "kv_prefetcher.next",
                           "get_sampling_params",
                           "/home/datasets/train.py(3): forward",
                           "torch/nn/modules/container.py(300): __iter__",
                           "next_batch_size",
                           "mydatasets/model.py(7): __getitem__"})
    EXPECT_FALSE(model::is_input(name)) << name;
}

TEST(ProgramRules, AKernelOfAnotherNameThatIsSlowerWasChanged) {
  RunComparison c = comparison();
  set_step(c, {10, 14}, {0, 0}, {0, 0});
  c.host->step.clear();
  add_function(c, "gemm_64x5", "gpu_compute", "GPU", {2, 6}, {4, 4}, model::FunctionStatus::changed);
  c.functions.back().was = c.texts.intern("gemm_64x3");
  const auto verdicts = diagnose(c);
  ASSERT_FALSE(verdicts.empty());
  EXPECT_EQ(verdicts[0].cause, "kernel_changed");
  EXPECT_THAT(verdicts[0].evidence[1], HasSubstr("gemm_64x3 in the baseline is gemm_64x5 in the candidate"));
}

TEST(InputRules, WaitingForTheNextBatchIsTheInputs) {
  RunComparison c = comparison();
  set_step(c, {10, 14}, {0, 0}, {0, 0});
  c.host->step.clear();
  add_function(c, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", "user_annotation", "Host", {0.5, 4.5},
               {1, 1}, model::FunctionStatus::changed);
  EXPECT_THAT(causes_of_ranks(c)[0], HasSubstr("host_bound/data_input"));
  c.functions[0].function = c.functions[0].short_name = c.texts.intern("optimizer.step");
  EXPECT_THAT(causes_of_ranks(c), testing::Not(testing::Contains(HasSubstr("data_input"))));
}

}  // namespace
}  // namespace culprit::diagnose
