// Whether the cycles of two runs take different times, decided with error control: the first answer of a comparison.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "compare/series.h"
#include "compare/workload.h"
#include "model/comparison.h"
#include "model/cycles.h"
#include "model/run_picture.h"

namespace culprit::compare {

/// What one step took, without the time in which there was nothing to do, in ns: the window of the device that idles
/// least (a host that runs ahead and waits every few steps has uneven periods), without devices the period. Of several
/// ranks the slowest.
struct StepTime {
  model::Phase phase = model::Phase::other;
  bool guessed = false;  ///< the phase is
  WorkClass work;
  double time = 0;
  double period = 0;            ///< until the next one begins, waits included
  std::uint32_t recording = 0;  ///< of its side
  Ns begin = 0;                 ///< of the first rank's
  double prompts = 0;           ///< that it computes; 0: not known
  std::int64_t batch = -1;      ///< requests, or samples; -1: not known
};

/// One per number of a cycle, ascending: ranks of one step are no replicates. Partial and warm-up cycles, and the last
/// of every process, whose end is not known, are left out. `rank`, a row of the trace's ranks: of that one alone; what
/// it worked on any rank tells.
std::vector<StepTime> step_times(const model::Cycles& cycles, std::optional<std::uint16_t> rank = {});

/// The same as pages draw them, by begin.
std::vector<model::PictureStep> picture_steps(const model::Cycles& cycles);

/// How much recordings of the same differ, as earlier ones tell it: of their mean logarithms.
struct MeasuredSpread {
  double deviation = 0;  ///< standard deviation
  std::size_t recordings = 0;
};

inline constexpr double kFewestMeasured = 2;

struct CycleTimeOptions {
  double tolerance = 0.03;  ///< relative change that does not matter
  double between = 0.01;    ///< relative spread between recordings of the same; assumed when there are no replicates
  /// Independent values per side for an interval (with `measured` kFewestMeasured do); with fewer only full separation
  /// decides.
  double fewest = 4;
  double counts = 0;  ///< what the values of a side may be wrong by because they are estimates (standard deviation)
  /// What moved the values of a side is known (a quota throttled it): neighbours are alike because of that, and each
  /// counts whole. The question is what the side took, not what it would take again.
  std::array<bool, 2> disturbed = {};
  std::array<double, 2> counts_as = {1, 1};  ///< as how many independent ones each value counts, at most 1
  /// Instead of `between`; what spreads inside of the sides is added to it.
  std::optional<MeasuredSpread> measured = {};
};

/// Welch's interval (95 %) of the difference of mean logarithms (see series.h), with twice the variance between
/// recordings added. regression or improvement: the interval lies beyond the tolerance; no_change: inside it; else
/// inconclusive. With fewer than four effective cycles on a side only sides that separate fully, by more than the
/// tolerance and that spread count as different: those of so many independent values that this happens by chance in at
/// most 5 %, and those with a gap of 35 % that is twice as wide as what the values of a side range over.
/// Where that is inconclusive and these recordings differ by more than the tolerance, without what two recordings of
/// the same differ by, `these_differ` tells by how much. `smallest_seen` is found in four of five other comparisons of
/// the kind (cycle_time_test.cpp). Values that are not positive are left out.
model::CycleTimeOutcome judge_cycle_time(std::span<const double> base, std::span<const double> candidate,
                                         const CycleTimeOptions& options = {});

/// The times of one side and the recording that each is of.
struct RecordedTimes {
  std::span<const double> times;
  std::span<const std::uint32_t> recordings;
};

/// With kFewestRecordings or more on each side how much recordings of the same differ is measured, and need not be
/// assumed: Welch's interval (95 %) of the difference of the recordings' mean logarithms, one value each; outcomes as
/// above, `between` and `effective` as they were found. `assumed` is a further spread between the sides, for recordings
/// that were not taken in turns. nullopt: too few recordings.
std::optional<model::CycleTimeOutcome> judge_recordings(const RecordedTimes& base, const RecordedTimes& candidate,
                                                        double tolerance, double assumed);

/// Standard deviation of the logarithms of positive values; at most kMostDrift.
double spread_of_logs(std::span<const double> values);
/// How much eight stretches of a recording differ from each other (standard deviation of their mean logarithms): what
/// two recordings of the same differ by at least, where nothing else is known of that. 0 with fewer than 16 values; at
/// most kMostDrift.
double drift_inside(std::span<const double> values);
inline constexpr double kMostDrift = 0.25;

/// Of several phases: regression before inconclusive before improvement before no_change; inconclusive without any that
/// has cycles of like work on both sides.
model::Outcome overall(const std::vector<model::CycleTimeOutcome>& outcomes);

}  // namespace culprit::compare
