#include "compare/other_load.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace culprit::compare {
namespace {

using model::Outcome;
using model::Phase;

/// A phase of 100 cycles on each side.
model::CycleTimeOutcome phase(Phase phase, Outcome outcome = Outcome::inconclusive) {
  model::CycleTimeOutcome o;
  o.phase = phase;
  o.outcome = outcome;
  o.cycles = {100, 100};
  return o;
}

using Judged = std::array<bool, 2>;

TEST(OtherLoad, HalfOfAllStepsDecide) {
  std::vector<model::CycleTimeOutcome> outcomes = {phase(Phase::decode), phase(Phase::prefill)};
  outcomes[0].other_share = 0.9;
  outcomes[0].requests = {4, 11};
  EXPECT_EQ(may_be_slower_by_load(outcomes, false), (Judged{false, false}));
  outcomes[0].cycles = {900, 5};
  outcomes[0].other_work = {95, 530};
  EXPECT_EQ(may_be_slower_by_load(outcomes, false), (Judged{false, true}));
  EXPECT_EQ(may_be_slower_by_load(outcomes, true), (Judged{false, false})) << "all take longer, and wait together";
  outcomes[0].most_requests = {4, 4};
  EXPECT_EQ(may_be_slower_by_load(outcomes, true), (Judged{false, false}));
  outcomes[0].most_requests = {4, 5};
  EXPECT_EQ(may_be_slower_by_load(outcomes, true), (Judged{false, true})) << "there is a client more";
  outcomes[0].cycles = {900, 2};
  outcomes[0].other_work = {0, 0};
  EXPECT_EQ(may_be_slower_by_load(outcomes, false), (Judged{false, false})) << "two steps do not tell what is usual";
  EXPECT_EQ(may_be_slower_by_load({}, false), (Judged{false, false}));
}

TEST(OtherLoad, FewStepsOfLikeWorkAreNoSampleOfEitherSide) {
  std::vector<model::CycleTimeOutcome> outcomes = {phase(Phase::decode)};
  outcomes[0].other_share = 0.8;
  outcomes[0].requests = {4, 11};
  outcomes[0].cycles = {8, 6};
  outcomes[0].other_work = {637, 524};
  EXPECT_EQ(may_be_slower_by_load(outcomes, false), (Judged{true, true})) << "those of the larger load are faster";
  outcomes[0].cycles = {80, 6};
  EXPECT_EQ(may_be_slower_by_load(outcomes, false), (Judged{false, true}));
}

TEST(OtherLoad, WhoLooksBackAtMoreHasMoreToDo) {
  std::vector<model::CycleTimeOutcome> outcomes = {phase(Phase::decode, Outcome::regression)};
  outcomes[0].other_share = 0.82;
  outcomes[0].requests = {4, 4};
  outcomes[0].cycles = {8, 47};
  outcomes[0].other_work = {540, 340};
  EXPECT_EQ(may_be_slower_by_load(outcomes, false), (Judged{false, false}));
  outcomes[0].looked_back = {512, 600};
  EXPECT_EQ(may_be_slower_by_load(outcomes, false), (Judged{false, false})) << "as under the same load";
  outcomes[0].looked_back = {512, 1024};
  EXPECT_EQ(may_be_slower_by_load(outcomes, false), (Judged{false, true}));
  EXPECT_EQ(may_be_slower_by_load(outcomes, true), (Judged{false, true})) << "no wait makes contexts longer";
  outcomes[0].requests = {2, 4};
  EXPECT_EQ(may_be_slower_by_load(outcomes, true), (Judged{false, false})) << "each looks back at as much";
}

TEST(OtherLoad, OfTheSideThatHasLessToDoNothingIsTheLoads) {
  std::vector<model::CycleTimeOutcome> outcomes = {phase(Phase::decode)};
  outcomes[0].other_share = 0.6;
  outcomes[0].other_work = {110, 110};
  outcomes[0].requests = {4, 2};
  EXPECT_EQ(may_be_slower_by_load(outcomes, false), (Judged{true, false}));
  outcomes[0].prompt_tokens = {60, 200};
  EXPECT_EQ(may_be_slower_by_load(outcomes, false), (Judged{true, true})) << "fewer requests with longer prompts";
  outcomes[0].requests = {3.89, 3.92};
  outcomes[0].prompt_tokens = {60, 62};
  EXPECT_EQ(may_be_slower_by_load(outcomes, false), (Judged{false, false})) << "both differ by chance";
  outcomes[0].requests = outcomes[0].prompt_tokens = {};
  EXPECT_EQ(may_be_slower_by_load(outcomes, false), (Judged{true, true})) << "nobody knows";
}

TEST(OtherLoad, WhereMostStepsHaveTheirLikeHowManyOfEachThereAreDoesNotMatter) {
  std::vector<model::CycleTimeOutcome> outcomes = {phase(Phase::decode)};
  outcomes[0].other_share = 0.6;
  outcomes[0].requests = {4, 4.4};
  outcomes[0].cycles = {359, 185};
  outcomes[0].other_work = {215, 6};
  EXPECT_EQ(may_be_slower_by_load(outcomes, false), (Judged{false, false}));
  outcomes[0].other_work = {400, 6};
  EXPECT_EQ(may_be_slower_by_load(outcomes, false), (Judged{false, true})) << "less than half of the baseline's";
}

TEST(OtherLoad, StepsThatWaitForThemselvesHaveTheirLikeAllTheSame) {
  std::vector<model::CycleTimeOutcome> outcomes = {phase(Phase::decode), phase(Phase::prefill)};
  outcomes[0].other_share = 0.6;
  outcomes[0].requests = {3.9, 4};
  outcomes[0].cycles = {359, 185};
  outcomes[0].other_work = {215, 6};
  outcomes[1].cycles = {0, 0};
  outcomes[1].other_work = {38, 12};
  EXPECT_EQ(may_be_slower_by_load(outcomes, true), (Judged{false, false})) << "not the few prefills alone are asked";
}

TEST(OtherLoad, StepsBehindLongerPromptsAreNotDecided) {
  std::vector<model::CycleTimeOutcome> outcomes = {phase(Phase::prefill, Outcome::regression),
                                                   phase(Phase::decode, Outcome::regression)};
  EXPECT_THAT(leave_open_longer_contexts(outcomes), testing::IsEmpty()) << "nothing tells how long prompts are";
  outcomes[0].prompt_tokens = {96, 419};
  EXPECT_THAT(leave_open_longer_contexts(outcomes),
              testing::ElementsAre(testing::HasSubstr("Prompts of the candidate are longer, and steps (decode)")));
  EXPECT_EQ(outcomes[0].outcome, Outcome::regression) << "a prefill tells its tokens";
  EXPECT_EQ(outcomes[1].outcome, Outcome::inconclusive);
  outcomes[1] = phase(Phase::decode, Outcome::regression);
  outcomes[0].prompts = {1, 4};
  EXPECT_THAT(leave_open_longer_contexts(outcomes), testing::IsEmpty()) << "more of them at once are no longer";
  outcomes[0].prompts = {};
  outcomes[1] = phase(Phase::decode, Outcome::regression);
  outcomes[1].knows_context = true;
  EXPECT_THAT(leave_open_longer_contexts(outcomes), testing::IsEmpty());
}

TEST(OtherLoad, WhoIsFasterBehindLongerPromptsIs) {
  std::vector<model::CycleTimeOutcome> outcomes = {phase(Phase::prefill), phase(Phase::decode, Outcome::improvement)};
  outcomes[0].prompt_tokens = {96, 419};
  EXPECT_THAT(leave_open_longer_contexts(outcomes), testing::IsEmpty());
  outcomes[0].prompt_tokens = {419, 96};
  EXPECT_THAT(leave_open_longer_contexts(outcomes), testing::SizeIs(1)) << "the mirror";
}

}  // namespace
}  // namespace culprit::compare
