// What two recordings counted over their whole time, held against each other: system calls and requests one by one, and
// the functions that ran.
#pragma once

#include <span>
#include <vector>

#include "model/comparison.h"
#include "model/recording.h"

namespace culprit::compare {

/// Gives each call the duration below which 99 of 100 of that side lie, where that was counted.
void add_quantiles(std::span<const model::Recording> base, std::span<const model::Recording> candidate,
                   std::vector<model::CallChange>& calls);

/// Requests of all kinds, those whose time per second differs most first.
std::vector<model::DiskChange> disk_changes(std::span<const model::Recording> base,
                                            std::span<const model::Recording> candidate);

/// Functions whose share of the samples moved by a hundredth and surely (see surely_apart()); at most `most`, largest
/// difference first.
std::vector<model::ShareChange> share_changes(std::span<const model::Recording> base,
                                              std::span<const model::Recording> candidate, std::size_t most = 10);

}  // namespace culprit::compare
