// The sentences of an outcome.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "report/run_comparison_tables.h"

namespace culprit::report {
namespace {

using testing::HasSubstr;
using testing::Not;

/// The answer about steps of 100 ms on the baseline, ms of the candidate and of the medians.
std::string answer_of(double candidate, double median_before, double median_after) {
  model::RunComparison c;
  model::CycleTimeOutcome& o = c.cycle_times.emplace_back();
  o.time_ns = {100e6, candidate * 1e6};
  o.median_ns = {median_before * 1e6, median_after * 1e6};
  o.change = candidate / 100 - 1;
  o.cycles = {12, 10};
  o.effective = {12, 10};
  return outcome_text(c).answer.at(0);
}

TEST(OutcomeText, MediansStandBesideMeansThatTellSomethingElse) {
  EXPECT_THAT(answer_of(104.2, 100.1, 100.2),
              HasSubstr("cycle time +4.2 %, from 12 and 10 whole cycles; medians 100.100ms -> 100.200ms, +0.1 %"));
  EXPECT_THAT(answer_of(150, 80, 120), HasSubstr("medians 80.000ms -> 120.000ms, +50.0 %")) << "far from the means";
}

TEST(OutcomeText, MediansThatTellTheSameAreLeftOut) {
  EXPECT_THAT(answer_of(104.2, 99, 103), Not(HasSubstr("medians")));
  EXPECT_THAT(answer_of(185, 99, 186), Not(HasSubstr("medians"))) << "a tenth of the change";
  EXPECT_THAT(answer_of(104.2, std::nan(""), 90), Not(HasSubstr("medians"))) << "not known";
}

}  // namespace
}  // namespace culprit::report
