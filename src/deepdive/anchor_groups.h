// From the anchors of a trace to the intervals of its cycles, by the reference's rules.
#pragma once

#include <vector>

#include "deepdive/reference_cycles.h"

namespace culprit::deepdive {

/// One call of an anchor function.
struct Anchor {
  SliceIndex slice = 0;
  Ns begin = 0;
  Ns end = 0;
  std::int64_t pid = -1;
  model::Phase phase = model::Phase::other;
  [[nodiscard]] Ns duration() const { return end - begin; }
};

/// The interval of a cycle and the anchors that it is made of.
struct CycleInterval {
  Ns begin = 0;
  Ns end = 0;
  model::Phase phase = model::Phase::other;
  std::vector<std::uint32_t> anchors;  ///< rows of the anchors given
};

/// Marks each anchor as prefill or decode by duration: prefill are those above the 80th percentile and three times the
/// median, when the longest is more than three times the median of at least three calls longer than 1 ms. False when
/// that does not apply; then all stay as they are.
bool type_by_duration(std::vector<Anchor>& anchors);

/// Intervals in time order. `anchors` are in time order, all typed.
std::vector<CycleInterval> cycle_intervals(const std::vector<Anchor>& anchors, bool align);

/// Gives untyped cycles the phase of their neighbours; of two different ones that of the neighbour whose duration is
/// nearer.
void repair_phases(std::vector<ReferenceCycle>& cycles);

}  // namespace culprit::deepdive
