// Which functions of two runs take another time per cycle, with error control over all of them.
#pragma once

#include <cstddef>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "compare/roles.h"
#include "core/string_table.h"
#include "model/comparison.h"
#include "model/profile.h"

namespace culprit::compare {

/// By how much the ratio of a function to all others of its steps differs between recordings of the same; 0.7 to 4 %
/// for the ten largest of vLLM's. Between recordings that lie minutes apart, and of few cycles (ten steps of a training
/// loop are 80 ms) that much more: there shares of functions moved by 6 to 10 % from trace to trace, and nothing inside
/// of one tells.
inline constexpr double kOwnDrift = 0.04;
inline constexpr double kLooseOwnDrift = 0.1;
inline constexpr std::size_t kFewToDrift = 16;
/// A function on a host has not changed when its difference is a smaller share of the cycle.
inline constexpr double kLeastImpact = 0.001;
inline constexpr double kAssumedDegrees = 4;

struct FunctionOptions {
  double tolerance = 0.05;        ///< relative change of a time per cycle that does not matter
  double cycle_tolerance = 0.03;  ///< the same of the cycle's
  double between = 0.01;          ///< relative spread between recordings of the same
  /// The same of a time on the host, which moves with the machine; 0: as `between`.
  double between_on_host = 0;
  /// With replicates: whether those of the two sides were recorded in turns.
  bool in_turns = false;
  double own_drift = kOwnDrift;  ///< of recordings that are not short
  double discovery = 0.05;       ///< rate of false discoveries among those called changed, new or gone
  /// What threads did by the scheduler's account is told elsewhere (HostChanges), once for all functions.
  bool without_scheduling = false;
  std::set<std::string, std::less<>> left_out{};  ///< kinds of functions that are not compared
};

/// Takes another time per call, and the same way in a cycle, each by more than `tolerance`.
bool lasts_otherwise(const model::FunctionFinding& finding, double tolerance);

/// One finding per function that ran in a phase of `phases`, in a process that both sides have. Ranges that only
/// enclose work (annotations) are left out. Per cycle of its process, absent = 0: Welch's interval of the difference of
/// means as of cycle times (series.h); p that the difference lies beyond the tolerance, and from that q over all
/// findings by Benjamini and Hochberg. A time on the host has changed only when that is more than the machine's doing:
/// beyond between_on_host, or against what the functions of its process share (the middle one's change of logarithms;
/// with fewer than five functions that of all others together), recordings of the same differing by kOwnDrift
/// (kLooseOwnDrift when some recording has fewer than kFewToDrift cycles) or as much as its ratio to the others drifts
/// inside of one. With kFewestRecordings or more on both sides that is measured on recordings instead: pooled t tests
/// of their mean logarithms and of these without what the functions of the process share in each recording, the
/// variance moderated by the assumed one at kAssumedDegrees of freedom. With fewer than kFewCycles effective values
/// only full separation tells. A function of one side is new or gone when so many of the cycles having it would all lie
/// on that side by chance too rarely. On a device one whose time in a cycle is not decided has changed when it surely
/// takes another time per call, at half the rate, the same way. `rests_on` says which of these the status was decided
/// by. O(uses + findings log findings).
std::vector<model::FunctionFinding> compare_functions(const model::Profile& base, const model::Profile& candidate,
                                                      const Roles& roles, const std::vector<model::Phase>& phases,
                                                      StringTable& texts, const FunctionOptions& options = {});

}  // namespace culprit::compare
