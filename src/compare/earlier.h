// Earlier recordings of the same workload, as a team keeps them of every build: how much two of them differ is how much
// two recordings of the same differ on that machine, and need not be assumed then. Their level does not count, only
// their spread: between them the program may have become faster or slower once and for all, which makes the spread
// larger and the answer more careful, never less.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compare/cycle_time.h"
#include "compare/workload.h"
#include "model/recording.h"

namespace culprit::compare {

/// Standard deviation of mean logarithms, with one degree of freedom less than there are recordings. nullopt: fewer
/// than kFewestRecordings.
std::optional<MeasuredSpread> spread_among(std::span<const double> means);

/// The same of steps of one phase, against steps that are compared: only their like count. Recordings without any are
/// left out.
std::optional<MeasuredSpread> spread_of_steps(std::span<const WorkedTime> compared,
                                              std::span<const std::vector<WorkedTime>> earlier);

/// Those that may be held against both sides, and why others may not. A machine is another one when its CPUs, its
/// product name or its host name are others; what a recording does not tell differs from nothing.
struct EarlierRecordings {
  std::vector<const model::Recording*> of_the_same;
  std::size_t sides = 0;      ///< left out: they are a side of this comparison, or were given before
  std::size_t others = 0;     ///< left out: they cannot be compared with both sides
  std::string why_not;        ///< of the first of `others`
  std::size_t elsewhere = 0;  ///< left out: of another machine than a side
  std::string where;          ///< what differs, of the first of `elsewhere`
};
EarlierRecordings choose_earlier(std::span<const model::Recording> earlier, std::span<const model::Recording> base,
                                 std::span<const model::Recording> candidate);

/// What was left out, and that there are too few, as sentences.
std::vector<std::string> notes_on(const EarlierRecordings& earlier);

}  // namespace culprit::compare
