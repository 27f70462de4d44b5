// How the cycles of a run look: how they were found, one row per cycle and device, the distribution of their periods.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/cycles.h"
#include "model/run_picture.h"
#include "model/table.h"

namespace culprit {
class JsonWriter;
}

namespace culprit::report {

std::string_view to_string(model::Phase phase);
std::string_view to_string(model::CycleMethod method);

/// One row per cycle and device (one without device when it has none). Begins count from the first cycle. Notes are
/// those of `cycles` and what the columns mean. `ranks`: their numbers by row (trace/rank_numbers.h).
model::Table cycles_table(const model::Cycles& cycles, const std::vector<std::int32_t>& ranks);

/// Periods of whole cycles of one phase: all but partial ones, warm-up and the last of each rank, whose period is
/// unknown.
struct PeriodDistribution {
  model::Phase phase = model::Phase::other;
  std::vector<Ns> periods;  ///< ascending
};
/// By phase, in the order of model::Phase; phases without whole cycles are left out.
std::vector<PeriodDistribution> period_distributions(const model::Cycles& cycles);

/// How the cycles were found, for a terminal: escaped, ends in a line break.
std::string cycles_heading(const model::Cycles& cycles);
/// Histograms for a terminal, one per phase, with p50, p90 and p99; empty when there is nothing to show.
std::string period_plot(const std::vector<PeriodDistribution>& distributions);

/// The same cycles as a page draws them, for each phase that has any.
std::vector<model::PictureCycles> drawn_cycles(const model::Cycles& cycles);

/// Why fewer periods are shown than there are cycles, as a line; empty when all are.
std::string left_out_of_periods(const model::Cycles& cycles);

/// The members "method", "anchor", "anchor_given", "period_confidence", "phase_confidence", "reason", "notes",
/// "origin_ns" and "periods" of the object that is open.
void write_cycles(JsonWriter& json, const model::Cycles& cycles);

}  // namespace culprit::report
