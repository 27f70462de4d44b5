// The times of steps of two sides, phase by phase, in steps of like work: which outcome each phase has.
#pragma once

#include <array>
#include <map>
#include <span>
#include <vector>

#include "compare/assumed.h"
#include "compare/compare_runs.h"
#include "compare/cycle_time.h"
#include "compare/workload.h"
#include "model/comparison.h"
#include "model/profile.h"

namespace culprit::compare {

/// What one side tells of its steps.
struct StepsOfSide {
  std::span<const StepTime> times;
  const model::Profile* profile = nullptr;  ///< that of the whole side
  Taken taken;
};

/// What else is known of how much two recordings of the same differ.
struct Known {
  std::vector<std::vector<StepTime>> earlier;  ///< steps of recordings
  bool machine_moved = false;                  ///< the recorder's fixed work took another time
};

struct HowToJudge {
  const std::vector<model::Phase>& phases;
  bool forget = false;   ///< guessed phases are not told apart
  bool on_host = false;  ///< neither side has work on a device
  const CompareOptions& options;
  const Known& known;
};

/// Which time of a step is judged, and whose drift tells how much two recordings of the same differ.
struct Judged {
  double StepTime::*time = &StepTime::time;
  std::array<bool, 2> disturbed = {};  ///< what made that side drift is known, the other's tells
};

/// Steps of like work, by phase; filled where there are any.
using WorkOfPhase = std::map<model::Phase, MatchedWork>;

/// One for each phase of which both sides have steps.
std::vector<model::CycleTimeOutcome> judge_phases(const std::array<StepsOfSide, 2>& sides, const HowToJudge& how,
                                                  WorkOfPhase& matched, const Judged& judged = {});

}  // namespace culprit::compare
