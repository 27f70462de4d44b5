// How long at least one of many overlapping spans was running.
#pragma once

#include <vector>

#include "core/units.h"

namespace culprit::summary {

struct Span {
  Ns begin = 0;
  Ns end = 0;
  bool operator==(const Span&) const = default;
  bool operator<(const Span& other) const { return begin != other.begin ? begin < other.begin : end < other.end; }
};

/// Length of the union of `spans`, which are sorted in place (no sorting when they are in order already).
Ns union_length(std::vector<Span>& spans);

}  // namespace culprit::summary
