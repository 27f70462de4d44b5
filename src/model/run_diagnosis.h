// What one run says of itself: where a step's time goes, what is wrong there without anything to hold it against, and
// from which step on it was another run. `library` fills it, `report` shows it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/units.h"
#include "model/comparison.h"
#include "model/cycles.h"
#include "model/verdict.h"

namespace culprit::model {

/// A part of the mean step. Parts of one `where` sum to the step, but for what was not seen.
struct StepPart {
  std::string where;  ///< "rank 2 GPU", "thread python3", "collectives of rank 2"
  std::string what;   ///< "gpu_compute", "idle", "waiting for a CPU"
  double time_ns = 0;
  double share = 0;  ///< of the step
};

/// The steps of one phase, beside those of the others.
struct PhaseTime {
  Phase phase = Phase::other;
  std::size_t steps = 0;  ///< whole ones; of several ranks one
  double step_ns = 0;     ///< mean
  double share = 0;       ///< of the time of all whole steps
  /// The part, as a StepPart, of which they have a larger share than the steps of the other phases, by most. Empty:
  /// none is larger by as much as stands out.
  std::string where;
  std::string what;
  double part_share = 0;    ///< of a step of this phase
  double others_share = 0;  ///< of a step of the other phases
};

/// Steps take another time from one of them on.
struct ChangePoint {
  std::uint32_t cycle = 0;   ///< number of the first one
  Ns at = 0;                 ///< its begin, since the first step's
  RunComparison comparison;  ///< the steps before it as baseline, those from it on as candidate, with their causes
};

struct RunDiagnosis {
  std::vector<std::string> files;
  CycleMethod method = CycleMethod::none;
  std::string anchor;
  std::size_t cycles = 0;  ///< of all ranks
  std::size_t steps = 0;   ///< whole ones, all where none is; of several ranks one
  double step_ns = 0;      ///< mean of whole steps; a second, where there are none
  bool per_second = false;
  std::string idle{};  ///< of a recording in which nothing ran: that, and what its threads slept in
  std::vector<StepPart> parts;
  std::vector<PhaseTime> phases;  ///< empty: there are no two of which enough steps were seen
  std::vector<Verdict> verdicts;  ///< of the run as a whole, largest impact first; `share` is of a step
  std::optional<ChangePoint> change;
};

}  // namespace culprit::model
