// The results of the kernel analyses as tables, for people and programs alike.
#pragma once

#include <cstddef>
#include <span>
#include <stop_token>

#include "kernels/classes.h"
#include "model/kernel_log.h"
#include "model/kernel_report.h"
#include "model/table.h"

namespace culprit::kernels {

struct NameTableOptions {
  std::size_t limit = 0;  ///< rows; 0 = all
  double low = 0.33;
};

/// One row per name: launches, time, share, spread, mean use weighted by time, class, and the side of the roofline
/// where FLOP and bytes are known. Columns that no launch has a value for are left out.
model::Table name_table(const model::KernelLog& log, const NameTableOptions& options);

/// Every launch in order.
model::Table launch_table(const model::KernelLog& log, const std::stop_token& stop = {});

/// Time per class; the shares sum to 1.
model::Table class_table(const model::UseReport& report);
/// Time per bin of compute and DRAM use; only what is known on both axes.
model::Table bin_table(const model::UseReport& report);
/// Time per 5 % of use.
model::Table histogram_table(const model::UseReport& report);

/// The structure of lanes, blocks inside blocks indented.
model::Table block_table(const model::KernelLog& log, std::span<const model::LaneBlocks> lanes);
/// Every position of every block that repeats; `only_unstable` leaves the others out.
model::Table position_table(const model::KernelLog& log, std::span<const model::LaneBlocks> lanes, bool only_unstable);

/// Candidates by bound; says where each stands in the blocks.
model::Table fusion_table(const model::KernelLog& log, const model::FusionReport& report,
                          std::span<const model::LaneBlocks> lanes, std::size_t limit);

/// Gaps by size, and what is said instead when begins are unknown.
model::Table gap_table(const model::KernelLog& log, const model::LaunchReport& report);
/// Stretches in which a device waited longer than it worked.
model::Table stretch_table(const model::KernelLog& log, const model::LaunchReport& report);

/// Names of two logs; with `all`, also those that did not change.
model::Table name_change_table(const model::LogComparison& comparison, bool all);
/// Positions that changed.
model::Table position_change_table(const model::LogComparison& comparison);

}  // namespace culprit::kernels
