// Whether two traces hold slices of one recording: a copy that was cut must not look like one more recording.
#pragma once

#include <compare>
#include <cstdint>
#include <vector>

#include "trace/trace.h"

namespace culprit::library {

/// One slice by when and where it was, and what it is called.
struct ChosenSlice {
  std::uint64_t when = 0;
  std::uint64_t name = 0;
  auto operator<=>(const ChosenSlice&) const = default;
};

/// The slices of a trace whose hashes are least, ascending: every copy that still has one of them chooses it, too. None
/// where the clock does not tell the moment (it begins with the trace): what such traces share may be chance.
/// O(slices).
std::vector<ChosenSlice> choose_slices(const Trace& trace);

/// Nine tenths of the slices of the one that has fewer are those of the other, as far as at least 50 chosen ones tell.
bool are_of_one_recording(const std::vector<ChosenSlice>& a, const std::vector<ChosenSlice>& b);

}  // namespace culprit::library
