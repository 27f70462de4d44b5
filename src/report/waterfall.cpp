#include "report/waterfall.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <utility>

#include "core/units.h"
#include "model/table_rows.h"

namespace culprit::report {

namespace {

using model::Cell;
using model::ColumnType;
using model::Outcome;
using model::RunComparison;
using model::Waterfall;

constexpr double kLeastLine = 0.01;  ///< of the change: smaller lines are told together

struct Row {
  std::string what;
  double before = 0;
  double after = 0;
  std::string calls;
};

std::string calls_text(const model::WaterfallLine& line) {
  const auto& [before, after] = line.calls;
  if (std::isnan(before)) return {};
  return std::abs(after - before) < 0.05 ? fmt::format("{:.1f}", before)
                                         : fmt::format("{:.1f} -> {:.1f}", before, after);
}

/// "device 0", "devices 0, 1".
std::string devices_text(const std::set<std::int32_t>& devices) {
  return fmt::format("device{} {}", devices.size() == 1 ? "" : "s", fmt::join(devices, ", "));
}

/// Whose time it is.
std::string where_text(const Waterfall& waterfall, std::size_t ranks) {
  const auto& [base, candidate] = waterfall.devices;
  std::string text = waterfall.device < 0 ? "the thread of the cycles"
                     : base == candidate  ? devices_text(base)
                                          : fmt::format("{} of the baseline, {} of the candidate", devices_text(base),
                                                        devices_text(candidate));
  if (ranks > 1) text += fmt::format(", mean of {} ranks", ranks);
  return text;
}

bool differs(const RunComparison& comparison, model::Phase phase) {
  return std::ranges::any_of(comparison.cycle_times, [&](const model::CycleTimeOutcome& o) {
    return o.phase == phase && (o.outcome == Outcome::regression || o.outcome == Outcome::improvement);
  });
}

/// The outcome's change is that of mean logarithms. Empty: the means of times changed by nearly as much.
std::string other_mean(const RunComparison& comparison, const Waterfall& waterfall) {
  constexpr double kNearly = 0.1;  // of the change
  constexpr double kLittle = 0.01;
  const auto outcome = std::ranges::find(comparison.cycle_times, waterfall.phase, &model::CycleTimeOutcome::phase);
  const auto [before, after] = waterfall.window_ns;
  if (outcome == comparison.cycle_times.end() || !std::isfinite(outcome->change) || !(before > 0) || !(after > 0))
    return {};
  const double judged = std::log1p(outcome->change);
  const double away = std::abs(std::log(after / before) - judged);
  if (away <= kLittle || away <= kNearly * std::abs(judged)) return {};
  return fmt::format(
      "Means of times: {:+.1f} %. The outcome, {:+.1f} %, is of mean logarithms, in which few long cycles count less.",
      (after / before - 1) * 100, outcome->change * 100);
}

/// The lines are means, which few long cycles move. Empty: half of the cycles take about as long as the mean.
std::string medians_note(const RunComparison& comparison, const Waterfall& waterfall) {
  constexpr double kNearly = 0.1;  // of logarithms
  const auto outcome = std::ranges::find(comparison.cycle_times, waterfall.phase, &model::CycleTimeOutcome::phase);
  if (outcome == comparison.cycle_times.end()) return {};
  const auto& [before, after] = outcome->median_ns;
  if (!(before > 0) || !(after > 0)) return {};
  const auto is_near = [&](std::size_t side) {
    return std::abs(std::log(waterfall.window_ns.at(side) / outcome->median_ns.at(side))) <= kNearly;
  };
  if (is_near(0) && is_near(1)) return {};
  return fmt::format(
      "All are means per cycle. Half of the cycles take no more than {} in the baseline, {} in the candidate.",
      format_duration(before), format_duration(after));
}

std::vector<Row> rows_of(const RunComparison& comparison, const Waterfall& waterfall, std::size_t most) {
  std::vector<Row> rows;
  Row rest{"all else", 0, 0, {}};
  const double least = kLeastLine * std::abs(waterfall.window_ns[1] - waterfall.window_ns[0]);
  for (const model::WaterfallLine& line : waterfall.lines) {
    if (most == 0 || (rows.size() < most && std::abs(line.change_ns) >= least)) {
      rows.push_back({ledger_line_name(line.state, comparison.texts[line.function]), line.time_ns[0], line.time_ns[1],
                      calls_text(line)});
    } else {
      rest.before += line.time_ns[0];
      rest.after += line.time_ns[1];
    }
  }
  if (rows.size() < waterfall.lines.size()) rows.push_back(std::move(rest));
  rows.push_back({"cycle", waterfall.window_ns[0], waterfall.window_ns[1], {}});
  return rows;
}

}  // namespace

std::vector<model::Table> waterfall_tables(const RunComparison& comparison, std::size_t most_lines) {
  std::vector<model::Table> tables;
  const auto ns = [](double value) { return Cell(std::int64_t{std::llround(value)}); };
  for (const Waterfall& waterfall : comparison.waterfalls) {
    if (!differs(comparison, waterfall.phase)) continue;
    const std::string where = where_text(waterfall, model::count_ranks(comparison.processes));
    tables.push_back(model::make_table<Row>(
        fmt::format("Where the difference comes from, {} ({})", where, phase_name(waterfall.phase)),
        fmt::format("waterfall_{}", phase_name(waterfall.phase)),
        {{{"Time in", "what", ColumnType::name}, &Row::what},
         {{"Baseline", "baseline_ns", ColumnType::time}, [=](const Row& row) { return ns(row.before); }},
         {{"Candidate", "candidate_ns", ColumnType::time}, [=](const Row& row) { return ns(row.after); }},
         {{"Change", "change_ns", ColumnType::time}, [=](const Row& row) { return ns(row.after - row.before); }},
         {{"Calls", "calls"}, &Row::calls}},
        rows_of(comparison, waterfall, most_lines)));
    for (std::string note : {other_mean(comparison, waterfall), medians_note(comparison, waterfall)})
      if (!note.empty()) tables.back().notes.push_back(std::move(note));
  }
  return tables;
}

}  // namespace culprit::report
