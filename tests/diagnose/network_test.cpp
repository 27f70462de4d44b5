// The network to other machines, and what looks like it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "comparison.h"
#include "diagnose/diagnose.h"

namespace culprit::diagnose {
namespace {

using model::Outcome;
using model::RunComparison;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr const char* kNetwork = "interconnect_contention/network";

/// Steps that wait 4 ms longer for an answer.
RunComparison waits_for_answers(std::array<double, 2> rtt_ms, std::array<double, 2> again = {0, 0}) {
  RunComparison c = comparison();
  set_step(c, {6, 6}, {0, 0}, {4, 8});
  add_state(c, "blocked in recvfrom", {4, 8});
  for (const char* rtt : {"target.tcp.rtt", "target.tcp.rtt_least"})
    add_counter(c, rtt, {rtt_ms[0] * 1e6, rtt_ms[1] * 1e6});
  add_counter(c, "target.tcp.retransmits", again);
  return c;
}

/// A server that is asked for less, as `idle` clients or a slow network do.
RunComparison asked_for_less(std::array<double, 2> rtt_ms) {
  RunComparison c = comparison(Outcome::inconclusive);
  model::WorkComparison& work = c.work.emplace();
  work.throughput = {"throughput", "1/s", {1000, 400}, -0.6, -0.7, -0.4};
  work.worked.value = {100e3, 105e3};
  work.parts = {{"on CPU", "ns", {100e3, 105e3}, {}, {}, {}}};
  for (const char* rtt : {"target.tcp.rtt", "target.tcp.rtt_least"})
    add_counter(c, rtt, {rtt_ms[0] * 1e6, rtt_ms[1] * 1e6});
  return c;
}

TEST(NetworkRules, WhoWaitsForAnswersThatComeFromFartherAway) {
  const RunComparison c = waits_for_answers({0.2, 4.2});
  EXPECT_THAT(causes(c), ElementsAre(kNetwork));
  const auto verdict = diagnose(c)[0];
  EXPECT_EQ(verdict.state, model::VerdictState::active);
  EXPECT_NEAR(verdict.impact_ns, 4e6, 1);
  EXPECT_THAT(verdict.evidence, Contains(HasSubstr("4.200ms instead of 200.000us at least, there and back")));
  EXPECT_THAT(causes(swapped(waits_for_answers({0.2, 4.2}))), ElementsAre(std::string("-") + kNetwork));
}

TEST(NetworkRules, WhatHasToBeSentAgainIsLate) {
  EXPECT_THAT(causes(waits_for_answers({0.2, 0.2}, {0, 12})), ElementsAre(kNetwork));
  EXPECT_THAT(causes(waits_for_answers({0.2, 0.2}, {0, 0.5})), ElementsAre("unknown")) << "one in two seconds";
  EXPECT_THAT(causes(waits_for_answers({0.2, 0.2}, {30, 40})), ElementsAre("unknown")) << "as before";
}

TEST(NetworkRules, WhatOthersOfTheMachineSendAgainIsNotItsOwn) {
  RunComparison c = waits_for_answers({0.2, 0.2});
  add_counter(c, "host.tcp.retransmits", {0.1, 20});
  EXPECT_THAT(causes(c), ElementsAre("unknown"));
}

TEST(NetworkRules, WhoTalksToOthersFartherAwayTooIsAsNear) {
  RunComparison c = waits_for_answers({0.5, 10});
  set_counter(c, "target.tcp.rtt_least", {0.2e6, 0.2e6});
  EXPECT_THAT(causes(c), ElementsAre("unknown"));
}

TEST(NetworkRules, AcknowledgementsThatComeLateAreNoNetwork) {
  EXPECT_THAT(causes(waits_for_answers({0.2, 40})), ElementsAre("unknown"));
  EXPECT_THAT(causes(waits_for_answers({0.2, 80})), ElementsAre(kNetwork));
}

TEST(NetworkRules, ANetworkThatIsAsFastIsNone) {
  EXPECT_THAT(causes(waits_for_answers({4.2, 5})), ElementsAre("unknown"));
  EXPECT_THAT(causes(waits_for_answers({0.02, 0.1})), ElementsAre("unknown")) << "a machine beside it";
  RunComparison unknown = waits_for_answers({0.2, 4.2});
  unknown.host->counters[0].value[0].reset();
  EXPECT_THAT(causes(unknown), ElementsAre("unknown")) << "the baseline talked to nobody";
}

TEST(NetworkRules, ANetworkThatNobodyWaitsForIsNone) {
  RunComparison c = waits_for_answers({0.2, 4.2});
  set_step(c, {6, 10}, {0, 0}, {4, 4});
  EXPECT_THAT(causes(c), Not(Contains(kNetwork)));
  RunComparison of_others = waits_for_answers({0.2, 4.2});
  of_others.host->states.pop_back();
  add_state(of_others, "blocked in futex", {4, 8});
  EXPECT_THAT(causes(of_others), Not(Contains(kNetwork)));
}

TEST(NetworkRules, AServerThatIsAskedForLessByWhoIsFartherAway) {
  const RunComparison c = asked_for_less({0.1, 5.1});
  EXPECT_THAT(causes(c), ElementsAre(kNetwork));
  const auto verdict = diagnose(c)[0];
  EXPECT_EQ(verdict.state, model::VerdictState::latent);
  EXPECT_TRUE(std::isnan(verdict.impact_ns));
  EXPECT_THAT(verdict.evidence, Contains(HasSubstr("60 % less got done")));
  EXPECT_EQ(verdict.against.size(), 2U);
  EXPECT_THAT(causes(asked_for_less({0.1, 0.1})), IsEmpty());
}

TEST(NetworkRules, AServerThatWorksLongerForEachIsSlowByItself) {
  RunComparison c = asked_for_less({0.1, 5.1});
  c.work->parts[0].value = {100e3, 1500e3};
  EXPECT_THAT(causes(c), Not(Contains(kNetwork)));
}

TEST(NetworkRules, CollectivesOfRanksOverIt) {
  RunComparison c = comparison();
  set_step(c, {10, 14}, {0, 0}, {0, 0});
  c.host->step.clear();
  for (const std::int32_t rank : {0, 1}) add_collectives(c, rank, {0.1, 0.1}, {1, 5}, {0.1, 0.1});
  EXPECT_THAT(causes(c), ElementsAre("interconnect_contention"));
  add_counter(c, "target.tcp.retransmits", {0, 30});
  EXPECT_THAT(causes(c), ElementsAre(kNetwork));
}

}  // namespace
}  // namespace culprit::diagnose
