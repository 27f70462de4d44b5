// What makes two launches "the same kernel". A name is not enough: cutlass writes `Kernel` for every matrix product,
// and one name serves every size. A launch is its name, its grid and block when they are known, and the group in which
// its latency and utilisation fall.
//
// Fixed buckets would cut groups that straddle a border, so the groups are found per name: latencies in order, cut
// where the next one is more than a fixed ratio longer; the same on utilisation within each group.
#pragma once

#include <cstdint>
#include <vector>

#include "model/kernel_log.h"
#include "model/kernel_report.h"

namespace culprit::kernels {

/// Numbers that stand for launches; equal numbers = alike. Dense, in order of first appearance.
struct LaunchIds {
  std::vector<std::uint32_t> kernel;  ///< name, grid, block, latency and utilisation group
  std::vector<std::uint32_t> name;    ///< name
  std::vector<std::uint32_t> family;  ///< what the kernel computes; the name where that is not known
};

/// One entry per launch of the log. n log n.
LaunchIds launch_ids(const model::KernelLog& log);

/// Launches by process, device and stream, lanes with the most time first; within a lane by begin where known, else in
/// the order of the log.
std::vector<model::Lane> lanes_of(const model::KernelLog& log);

/// The name to show and to match by: the short form of the source or of the demangled name.
std::string shown_name(const model::KernelLog& log, const model::KernelLaunch& launch);

}  // namespace culprit::kernels
