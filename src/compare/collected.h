// What two recordings counted over their whole time, held against each other: system calls and requests one by one, and
// the functions that ran.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "model/collected.h"
#include "model/comparison.h"
#include "model/recording.h"

namespace culprit::compare {

/// Gives each call the duration below which 99 of 100 of that side lie, where that was counted.
void add_quantiles(std::span<const model::Recording> base, std::span<const model::Recording> candidate,
                   std::vector<model::CallChange>& calls);

/// System calls by step (cycle) of recordings that have both, in the order of sort_calls(); waits are those that a
/// thread may sleep in for anything but a device.
std::vector<model::CallChange> call_changes(std::span<const model::Recording> base,
                                            std::span<const model::Recording> candidate);

/// Largest difference of time per unit first, waits last.
void sort_calls(std::vector<model::CallChange>& calls);

/// Requests of all kinds, those whose time per second differs most first.
std::vector<model::DiskChange> disk_changes(std::span<const model::Recording> base,
                                            std::span<const model::Recording> candidate);

/// So many requests of a kind a side must have issued for its mean time, and one of the sides to be listed.
inline constexpr std::uint64_t kFewestRequests = 5;

/// Requests of all kinds that the recorded processes issued themselves, by step (cycle), or by `unit` of their work;
/// those whose time per unit differs most first. Nothing where a recording did not look at requests, or has no steps or
/// no such unit.
model::OwnDiskChanges own_disk_changes(std::span<const model::Recording> base,
                                       std::span<const model::Recording> candidate, const model::WorkUnit* unit);

/// Shares of the samples, by function.
using Functions = std::map<std::string, std::vector<double>> model::Collected::*;

/// Of `functions` those whose share of the samples moved by a hundredth and surely (see surely_apart()); at most
/// `most`, largest difference first.
std::vector<model::ShareChange> share_changes(std::span<const model::Recording> base,
                                              std::span<const model::Recording> candidate, Functions functions,
                                              std::size_t most = 10);

/// All of that, and what the threads waited for, of recordings that may be compared. `unit`: of their work, by which
/// its system calls are listed elsewhere; null: they have steps.
void compare_collected(std::span<const model::Recording> base, std::span<const model::Recording> candidate,
                       const model::WorkUnit* unit, model::RunComparison& result);

}  // namespace culprit::compare
