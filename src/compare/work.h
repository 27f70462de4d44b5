// Compares recordings of programs that mark no steps by their units of work.
//
// Throughput alone does not tell a slow program from one that less was asked of, so it is judged together with the
// time that the program worked for each unit: in the run queue, on a CPU, blocked inside the work.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "compare/comparable.h"
#include "model/comparison.h"
#include "model/recording.h"

namespace culprit::compare {

struct WorkOptions {
  double tolerance = 0.03;        ///< relative change that does not matter
  double least_confidence = 0.8;  ///< that a unit is one of the program's: below it there is no outcome
  double between = 0.05;          ///< relative spread between two recordings of the same; assumed (when_apart())
  std::span<const model::Recording* const> earlier = {};  ///< tell it, instead
};

/// Whether all recordings have units of work instead of cycles.
bool are_of_work(std::span<const model::Recording> base, std::span<const model::Recording> candidate);

/// Why units of work must not be held against each other; nothing when both sides have one in common.
std::optional<Refusal> why_no_common_work(std::span<const model::Recording> base,
                                          std::span<const model::Recording> candidate);

/// That one side did nothing at all while the other worked; nothing: neither, or both.
std::optional<Refusal> why_one_is_idle(std::span<const model::Recording> base,
                                       std::span<const model::Recording> candidate);

/// Compares the first unit of the baseline that the candidate has, too. Per side several recordings are pooled. With
/// kFewestRecordings or more on each side t and w are judged by recording, each counting once (judge_recordings()):
/// `between` is measured then, and assumed once more where the sides were not recorded in turns.
/// The outcome, with t the time per unit by throughput, w the time worked per unit, both judged as cycle times are over
/// windows of about a second (see judge_cycle_time()):
/// * t longer: regression, when w grew at least half as much (of logarithms), or when processes beside took half a CPU
///   more and the run queue took a quarter longer, or nine tenths of the CPUs were busy, or when requests waited longer
///   for their answers, at least half as much by median and mean, or by their mean about as much; no change, when that
///   grew less than a quarter of it: less work arrived; else inconclusive (decide_work());
/// * t shorter: improvement, when one of them shrank at least half as much; no change, when waiting for answers shrank
///   less than a quarter of it: more arrived;
/// * t not shown to differ, nor by more than kSameThroughput, nor against w: regression or improvement when w changed
/// by
///   more than kWorkAlone and is judged so.
model::WorkComparison compare_work(std::span<const model::Recording> base, std::span<const model::Recording> candidate,
                                   const WorkOptions& options = {});

/// Whether more than five minutes lie between the windows of the sides (far_apart()).
bool work_far_apart(std::span<const model::Recording> base, std::span<const model::Recording> candidate);

/// What its intervals rest on beside what was measured; empty: nothing.
std::string assumption_of(const model::WorkComparison& work);

/// A sentence for each side whose units may be counted by answers, where system calls were looked at in windows only.
std::vector<std::string> estimate_notes(std::span<const model::Recording> base,
                                        std::span<const model::Recording> candidate);

inline constexpr double kExplains = 0.5;
inline constexpr double kDoesNotExplain = 0.25;
inline constexpr double kWorkAlone = 0.25;
inline constexpr double kSameThroughput = 0.1;

}  // namespace culprit::compare
