#include "report/diagnosis_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "report/render.h"

namespace culprit::report {
namespace {

using model::Phase;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

model::RunDiagnosis diagnosis() {
  model::RunDiagnosis result;
  result.steps = 60;
  result.step_ns = 1e7;
  result.anchor = "step";
  model::PhaseTime prefill;
  prefill.phase = Phase::prefill;
  prefill.steps = 10;
  prefill.step_ns = 2e7;
  prefill.share = 0.25;
  prefill.where = "GPU 0";
  prefill.what = "gpu_compute";
  prefill.part_share = 0.9;
  prefill.others_share = 0.4;
  model::PhaseTime decode;
  decode.phase = Phase::decode;
  decode.steps = 50;
  decode.step_ns = 1.2e7;
  decode.share = 0.75;
  result.phases = {prefill, decode};
  return result;
}

TEST(DiagnosisReport, PhasesAreARowEach) {
  const std::vector<model::Table> tables = {phases_table(diagnosis())};
  const std::string text = render_terminal(tables, {});
  EXPECT_THAT(text, HasSubstr("Phases against each other"));
  EXPECT_THAT(text, HasSubstr("20.000ms"));
  EXPECT_THAT(text, HasSubstr("gpu_compute"));
  EXPECT_EQ(render_csv(tables),
            "phase,steps,step_ns,share,where,what,part_share,others_share\n"
            "prefill,10,20000000,0.25,GPU 0,gpu_compute,0.9,0.4\n"
            "decode,50,12000000,0.75,,,,\n");
}

TEST(DiagnosisReport, WhatStandsOutInAPhaseIsExplainedWhereSomethingDoes) {
  model::RunDiagnosis run = diagnosis();
  EXPECT_EQ(phases_table(run).notes.size(), 1U);
  run.phases.erase(run.phases.begin());
  EXPECT_EQ(phases_table(run).notes.size(), 0U);
}

TEST(DiagnosisReport, WhatIsNotKnownToBeFeltIsCalledLatent) {
  model::RunDiagnosis run = diagnosis();
  model::Verdict hot;
  hot.cause = "gpu_clock_drop";
  hot.detail = "throttle_thermal";
  hot.where = "GPU 0";
  hot.state = model::VerdictState::latent;
  hot.confidence = 0.3;
  run.verdicts = {hot};
  EXPECT_THAT(diagnosis_lines(run),
              Contains("gpu_clock_drop (throttle_thermal) in GPU 0, latent: whether steps are longer "
                       "by it is not known, confidence 30 %"));
  run.verdicts[0].state = model::VerdictState::active;
  EXPECT_THAT(diagnosis_lines(run), Not(Contains(HasSubstr("latent"))));
}

TEST(DiagnosisReport, WhereNothingRanThatStandsFirst) {
  model::RunDiagnosis run;
  run.idle = "idle: none of its threads ran, they slept in accept4 (1)";
  EXPECT_EQ(diagnosis_lines(run).front(), "No steps: idle: none of its threads ran, they slept in accept4 (1)");
}

}  // namespace
}  // namespace culprit::report
