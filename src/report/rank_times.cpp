#include "report/rank_times.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "model/cycles.h"
#include "model/table_rows.h"

namespace culprit::report {

namespace {

using model::Cell;
using model::ColumnType;
using model::CycleTimeOutcome;

bool are_apart(const std::vector<CycleTimeOutcome>& ranks) {
  const auto [least, most] = std::ranges::minmax(ranks, {}, &CycleTimeOutcome::change);
  return std::log1p(most.change) - std::log1p(least.change) > std::log1p(least.tolerance);
}

}  // namespace

std::vector<model::Table> rank_time_tables(const model::RunComparison& comparison, std::size_t most_rows) {
  std::vector<model::Table> tables;
  for (const CycleTimeOutcome& all : comparison.cycle_times) {
    std::vector<CycleTimeOutcome> ranks;
    for (const CycleTimeOutcome& rank : comparison.rank_times)
      if (rank.phase == all.phase && model::is_judged(rank)) ranks.push_back(rank);
    if (ranks.size() < 2 || !are_apart(ranks)) continue;
    const std::size_t known = ranks.size();
    if (most_rows > 0 && known > most_rows) {
      std::ranges::stable_sort(ranks, std::greater{}, [](const auto& rank) { return std::abs(rank.change); });
      ranks.resize(most_rows);
      std::ranges::sort(ranks, {}, &CycleTimeOutcome::rank);
    }
    const auto ns = [](std::size_t side) {
      return [side](const CycleTimeOutcome& rank) { return Cell(std::int64_t{std::llround(rank.time_ns[side])}); };
    };
    const auto percent = [](const CycleTimeOutcome& rank) { return fmt::format("{:+.1f} %", rank.change * 100); };
    const auto interval = [](const CycleTimeOutcome& rank) {
      return std::isfinite(rank.low) ? fmt::format("{:+.1f} to {:+.1f} %", rank.low * 100, rank.high * 100)
                                     : std::string();
    };
    model::Table table = model::make_table<CycleTimeOutcome>(
        fmt::format("A step on each rank ({})", phase_name(all.phase)), fmt::format("ranks_{}", phase_name(all.phase)),
        {{{"Rank", "rank", ColumnType::count}, [](const CycleTimeOutcome& rank) { return rank.rank; }},
         {{"Baseline", "baseline_ns", ColumnType::time}, ns(0)},
         {{"Candidate", "candidate_ns", ColumnType::time}, ns(1)},
         {{"Change", "change"}, percent},
         {{"95 % interval", "interval"}, interval}},
        ranks);
    if (known > ranks.size())
      table.notes.push_back(fmt::format("{} more ranks changed less: --json shows them.", known - ranks.size()));
    tables.push_back(std::move(table));
  }
  return tables;
}

}  // namespace culprit::report
