// The repeating structure of a launch sequence: layers, micro-batches, steps.
//
// How it is found: blocks_regions.h gives the stretches that repeat, for three ways to call launches alike (the same
// kernel with its size, the same name, the same family). The stretch that explains the most launches is taken first,
// stricter likeness before looser; every stretch taken becomes one element, and the search goes on among the elements,
// so that steps of layers are found above layers. Blocks whose launches are nearly the same get the same shape,
// whatever their number of copies and wherever their begin was set. Inside the first copy the search repeats for finer
// structure.
//
// A sequence alone has no natural beginning: a block begins at the first launch that repeats.
#pragma once

#include <cstdint>
#include <stop_token>
#include <string>
#include <vector>

#include "kernels/launch_identity.h"
#include "model/kernel_log.h"
#include "model/kernel_report.h"

namespace culprit::kernels {

struct BlockOptions {
  double unstable = 0.10;  ///< coefficient of variation above which a position is unstable
  std::stop_token stop{};  ///< when it is requested some blocks are missing
};

/// The blocks of one lane. Near-linear in launches.
model::LaneBlocks find_blocks(const model::KernelLog& log, model::Lane lane, const LaunchIds& ids,
                              const BlockOptions& options);

/// "12 x [38 launches, 1.83 ms]".
std::string block_label(const model::BlockNode& node);

}  // namespace culprit::kernels
