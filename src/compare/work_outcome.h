// What a changed throughput means: that the program became slower, that others held it back, or that less was asked of
// it.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>

#include "model/comparison.h"
#include "model/recording.h"

namespace culprit::compare {

inline constexpr std::size_t kFewestStretches = 4;  ///< of which a drift could be told
inline constexpr double kLongerQueue = 0.25;
inline constexpr double kNoneLeft = 0.9;  ///< share of the CPUs that worked or were stolen

/// What is known of the stretches of both sides.
struct Stretches {
  std::size_t fewest = 0;         ///< of a side
  double typical = 0;             ///< change of the median time per unit
  std::array<bool, 2> held_back;  ///< the side by others, and it was the slower one
  /// The share of the side's stretches in which a unit took longer than in nine of ten of the other's.
  std::array<double, 2> slower{};
};

/// How long requests waited for their answers, ns, per side.
struct Answered {
  std::array<double, 2> median{};
  std::array<double, 2> mean{};
  std::array<double, 2> per_unit{};  ///< requests
  bool whole = true;                 ///< to the end of the answer
};

/// What was judged of throughput and work.
struct WorkJudged {
  model::Outcome time = model::Outcome::inconclusive;  ///< of the time per unit by throughput
  model::Outcome work = model::Outcome::inconclusive;  ///< of the time worked per unit
  double time_change = 0;
  double tolerance = 0;
  std::array<double, 2> busy{};  ///< share of the CPUs, of which some may be stolen
  Stretches stretches;
  std::optional<Answered> answered;
};

/// Fills `outcome`, `reading` and `why` of a comparison whose changes, parts, calls and others are known.
///
/// As many requests are being answered at a time as come in the time that one takes (Little). Where less is asked of a
/// program, fewer are; where it takes longer over each, as many or more. So a lower throughput is less demand when
/// neither the work of a request nor the wait for its answer grew with the time from one request to the next, and is
/// the program's own when one of them did, as logarithms, by kExplains or more (the wait by a quarter at least, or in
/// its mean alone by a tenth, and not by twice as much as that time: who waits long is no other one then). What a
/// program waits for meanwhile (a backend, a lock, a time) is no work, and is not told from waiting for the next
/// request: only the answers tell. Where work and waiting both grew so much, it is the work that is told, unless what
/// the requests that are answered at a time grew by in work is less than half of what an answer takes longer, and the
/// work fills less than half of the time by which the next answer comes later.
void decide_work(model::WorkComparison& result, const WorkJudged& judged);

/// Requests are counted by system calls: nothing is decided where more than `most_lost` (share) of those of a side
/// stand in no total.
void limit_by_uncounted(model::WorkComparison& result, std::span<const model::Recording> base,
                        std::span<const model::Recording> candidate, double most_lost);

}  // namespace culprit::compare
