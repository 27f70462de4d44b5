// Statistics of every position of a repeated block over its copies.
#pragma once

#include <cstdint>
#include <span>

#include "model/kernel_log.h"
#include "model/kernel_report.h"

namespace culprit::kernels {

/// Fills period, time, positions and changed_copies of a node whose `starts` are set. `rows` are the lane's launches,
/// `names` their names as numbers; both indexed by position in the lane. Copies that differ from the model copy (the
/// first one of the usual length) are aligned to it.
void fill_positions(const model::KernelLog& log, std::span<const std::uint32_t> rows,
                    std::span<const std::uint32_t> names, double unstable, model::BlockNode& node);

}  // namespace culprit::kernels
