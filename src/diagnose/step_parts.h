// Where the time of a step goes: in each device, in the thread that runs the steps, in collectives; of all steps, and
// of those of one phase beside those of the others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "diagnose/run_times.h"
#include "model/recording.h"
#include "model/run_diagnosis.h"

namespace culprit::diagnose {

/// Number of a rank, and a device of it.
using RankDevice = std::pair<std::int32_t, std::string>;

/// "GPU 0 of rank 3"; without the rank where there is one only.
std::string place_text(const RankDevice& place, bool ranks);

/// Whether there are several ranks, which are to be named.
bool has_ranks(const model::Recording& run);

/// Cycles of a rank; at least 1.
double cycles_of_rank(const model::Recording& run, std::int32_t rank, const Phases& phases = kAllPhases);

/// A step of a device, which is from its first operation in one to that in the next: where the host runs ahead that is
/// not when the host's begins and ends.
struct DeviceStep {
  double length = 0;                    ///< mean, ns
  std::map<std::string, double> kinds;  ///< mean, ns, while nothing more important ran there
  [[nodiscard]] double idle() const;    ///< mean, ns
};
std::map<RankDevice, DeviceStep> device_steps(const model::Recording& run, const Phases& phases = kAllPhases);

/// Where the mean step goes: each device, the thread that runs the steps, collectives. Largest part first in each
/// place; at most kMostPlaces places of a kind.
std::vector<model::StepPart> step_parts(const model::Recording& run);
inline constexpr std::size_t kMostPlaces = 8;

/// The phases that have five whole steps or more, held against each other; empty: there are not two of them.
std::vector<model::PhaseTime> phase_times(const model::Recording& run);

}  // namespace culprit::diagnose
