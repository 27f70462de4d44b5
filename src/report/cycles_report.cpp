#include "report/cycles_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "core/display_width.h"
#include "core/escape.h"
#include "core/json_writer.h"
#include "model/table_rows.h"
#include "stats/quantile.h"

namespace culprit::report {

namespace {

constexpr std::size_t kBins = 12;
constexpr std::size_t kBarWidth = 48;

std::string marks_of(const model::Cycle& cycle) {
  std::string marks = cycle.partial ? "partial" : "";
  if (cycle.warm_up) marks += marks.empty() ? "warm-up" : ", warm-up";
  if (cycle.stands_still) marks += marks.empty() ? "stands still" : ", stands still";
  return marks;
}

/// A cycle on one of its devices; null: on none.
struct CycleRow {
  const model::Cycle* cycle;
  const model::DeviceWindow* device;
};

Ns origin_of(const model::Cycles& cycles) {
  Ns origin = 0;
  for (std::size_t i = 0; i < cycles.cycles.size(); ++i)
    origin = i == 0 ? cycles.cycles[i].begin : std::min(origin, cycles.cycles[i].begin);
  return origin;
}

}  // namespace

std::string_view to_string(model::Phase phase) { return model::phase_name(phase); }

std::string_view to_string(model::CycleMethod method) {
  switch (method) {
    case model::CycleMethod::marker:
      return "marker";
    case model::CycleMethod::host_function:
      return "host_function";
    case model::CycleMethod::launch_sequence:
      return "launch_sequence";
    case model::CycleMethod::operator_sequence:
      return "operator_sequence";
    case model::CycleMethod::work_unit:
      return "work_unit";
    case model::CycleMethod::none:
      break;
  }
  return "none";
}

model::Table cycles_table(const model::Cycles& cycles, const std::vector<std::int32_t>& ranks) {
  using enum model::ColumnType;
  std::vector<CycleRow> rows;
  for (const model::Cycle& cycle : cycles.cycles) {
    if (cycle.devices.empty()) rows.push_back({&cycle, nullptr});
    for (const model::DeviceWindow& device : cycle.devices) rows.push_back({&cycle, &device});
  }
  // What tells the rows of one cycle apart is not left out for want of room.
  const bool one_row_each = rows.size() == cycles.cycles.size();
  const Ns origin = origin_of(cycles);
  const auto of_cycle = [](auto give) { return [give](const CycleRow& row) { return std::invoke(give, *row.cycle); }; };
  const auto of_device = [](auto give) {
    return [give](const CycleRow& row) {
      return row.device != nullptr ? model::cell_of(std::invoke(give, *row.device)) : model::Cell();
    };
  };
  using model::Cycle;
  using model::DeviceWindow;
  model::Table table = model::make_table<CycleRow>(
      "", "cycles",
      {{{"Cycle", "number", count}, of_cycle(&Cycle::number)},
       {{"Rank", "rank", count},
        of_cycle([&](const Cycle& c) { return c.rank < ranks.size() ? ranks[c.rank] : std::int32_t{c.rank}; })},
       {{"Phase", "phase", text}, of_cycle([](const Cycle& c) { return to_string(c.phase); })},
       {{"Batch", "batch", count, 3, true},
        of_cycle([](const Cycle& c) { return model::known_cell(c.workload.batch); })},
       {{"Tokens", "tokens", count, 3, true},
        of_cycle([](const Cycle& c) { return model::known_cell(c.workload.tokens); })},
       {{"Begin", "begin_ns", time}, of_cycle([origin](const Cycle& c) { return c.begin - origin; })},
       {{"Period", "period_ns", time}, of_cycle(&Cycle::period)},
       {{"Span", "span_ns", time, 3, true}, of_cycle([](const Cycle& c) { return c.span_end - c.span_begin; })},
       {{"No work", "no_work_ns", time, 3, true}, of_cycle(&Cycle::no_work)},
       {{"Device", "device", count, 3, one_row_each}, of_device(&DeviceWindow::device)},
       {{"GPU ops", "operations", count, 3, true}, of_device(&DeviceWindow::operations)},
       {{"Window", "device_window_ns", time, 3, true},
        of_device([](const DeviceWindow& d) { return d.end - d.begin; })},
       {{"Busy", "device_busy_ns", time}, of_device(&DeviceWindow::busy)},
       {{"Idle", "device_idle_ns", time}, of_device(&DeviceWindow::idle)},
       {{"Marks", "marks", text}, of_cycle(marks_of)}},
      rows);
  table.notes = cycles.notes;
  return table;
}

std::vector<PeriodDistribution> period_distributions(const model::Cycles& cycles) {
  const std::vector<bool> whole = model::whole_periods(cycles);
  std::vector<PeriodDistribution> out;
  for (const model::Phase phase : model::kPhases) {
    PeriodDistribution d;
    d.phase = phase;
    for (std::size_t i = 0; i < cycles.cycles.size(); ++i)
      if (whole[i] && cycles.cycles[i].phase == phase) d.periods.push_back(cycles.cycles[i].period);
    if (d.periods.empty()) continue;
    std::ranges::sort(d.periods);
    out.push_back(std::move(d));
  }
  return out;
}

std::vector<model::PictureCycles> drawn_cycles(const model::Cycles& cycles) {
  const std::vector<bool> whole = model::whole_periods(cycles);
  const Ns origin = origin_of(cycles);
  std::vector<model::PictureCycles> out;
  for (const model::Phase phase : model::kPhases) {
    model::PictureCycles drawn;
    drawn.phase = phase;
    std::vector<const model::Cycle*> chosen;
    for (std::size_t i = 0; i < cycles.cycles.size(); ++i)
      if (whole[i] && cycles.cycles[i].phase == phase) chosen.push_back(&cycles.cycles[i]);
    std::ranges::stable_sort(chosen, {}, &model::Cycle::begin);
    for (const model::Cycle* cycle : chosen) {
      drawn.at.push_back(cycle->begin - origin);
      drawn.period.push_back(cycle->period);
    }
    drawn.all = chosen.size();
    if (drawn.all > 0) out.push_back(std::move(drawn));
  }
  return out;
}

std::string cycles_heading(const model::Cycles& cycles) {
  if (cycles.method == model::CycleMethod::none)
    return fmt::format("No cycles found: {}\n", escape_terminal(cycles.reason));
  const std::string_view how = cycles.method == model::CycleMethod::marker              ? "marker"
                               : cycles.method == model::CycleMethod::host_function     ? "host function"
                               : cycles.method == model::CycleMethod::operator_sequence ? "sequence of operators"
                               : cycles.method == model::CycleMethod::work_unit         ? "units of work"
                                                                                        : "sequence of launches";
  if (cycles.anchor_given)
    return fmt::format(
        "Found by {}: {}\nConfidence: where a step begins was given by the user; {:.0f}% that a cycle is one step\n"
        "Reason: {}\n",
        how, shorten(escape_terminal(cycles.anchor), 160), cycles.period_confidence * 100,
        escape_terminal(cycles.reason));
  return fmt::format(
      "Found by {}: {}\nConfidence: {:.0f}% that a cycle is one step, {:.0f}% that a step begins where the cycle does\n"
      "Reason: {}\n",
      how, shorten(escape_terminal(cycles.anchor), 160), cycles.period_confidence * 100, cycles.phase_confidence * 100,
      escape_terminal(cycles.reason));
}

std::string period_plot(const std::vector<PeriodDistribution>& distributions) {
  std::string out;
  for (const PeriodDistribution& d : distributions) {
    const Ns low = d.periods.front();
    const Ns high = d.periods.back();
    out += fmt::format("\nPeriods, {}: {} cycle{}, p50 {}, p90 {}, p99 {}\n", to_string(d.phase), d.periods.size(),
                       d.periods.size() == 1 ? "" : "s", format_duration(stats::quantile_of_sorted(d.periods, 0.5)),
                       format_duration(stats::quantile_of_sorted(d.periods, 0.9)),
                       format_duration(stats::quantile_of_sorted(d.periods, 0.99)));
    const std::size_t bins = high > low ? std::min<std::size_t>(kBins, d.periods.size()) : 1;
    const double width = std::max(1.0, static_cast<double>(high - low) / static_cast<double>(bins));
    std::vector<std::size_t> counts(bins, 0);
    for (const Ns p : d.periods)
      ++counts[std::min(bins - 1, static_cast<std::size_t>(static_cast<double>(p - low) / width))];
    const std::size_t most = *std::ranges::max_element(counts);
    for (std::size_t b = 0; b < bins; ++b) {
      const std::size_t bar = (counts[b] * kBarWidth + most - 1) / most;
      std::string line =
          fmt::format("{:>12} | {:<{}} {}", format_duration(low + static_cast<Ns>(width * static_cast<double>(b))),
                      std::string(bar, '#'), kBarWidth, counts[b]);
      out += line + "\n";
    }
  }
  return out;
}

std::string left_out_of_periods(const model::Cycles& cycles) {
  const std::vector<bool> whole = model::whole_periods(cycles);
  std::size_t partial = 0;
  std::size_t warm_up = 0;
  std::size_t last = 0;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    if (whole[i]) continue;
    ++(cycles.cycles[i].partial ? partial : cycles.cycles[i].warm_up ? warm_up : last);
  }
  std::string parts;
  for (const auto& [n, what] : {std::pair(partial, "partial"), std::pair(warm_up, "warm-up"),
                                std::pair(last, "last of its process, whose end is not known")})
    if (n > 0) parts += fmt::format("{}{} {}", parts.empty() ? "" : ", ", n, what);
  return parts.empty()
             ? ""
             : fmt::format("Periods leave out {} of {} cycles: {}\n", partial + warm_up + last, whole.size(), parts);
}

void write_cycles(JsonWriter& json, const model::Cycles& cycles) {
  json.member("method", to_string(cycles.method));
  json.member("anchor", cycles.anchor);
  json.member("anchor_given", cycles.anchor_given);
  json.key("period_confidence");
  json.fixed(cycles.period_confidence, 4);
  json.key("phase_confidence");
  json.fixed(cycles.phase_confidence, 4);
  json.member("reason", cycles.reason);
  json.member("notes", cycles.notes);
  json.member("origin_ns", origin_of(cycles));
  json.begin_array("periods");
  for (const PeriodDistribution& d : period_distributions(cycles)) {
    json.begin_object(JsonForm::line);
    json.member("phase", to_string(d.phase));
    json.member("cycles", d.periods.size());
    json.member("min_ns", d.periods.front());
    json.member("p50_ns", stats::quantile_of_sorted(d.periods, 0.5));
    json.member("p90_ns", stats::quantile_of_sorted(d.periods, 0.9));
    json.member("p99_ns", stats::quantile_of_sorted(d.periods, 0.99));
    json.member("max_ns", d.periods.back());
    json.end_object();
  }
  json.end_array();
}

}  // namespace culprit::report
