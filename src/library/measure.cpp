#include "library/measure.h"

#include <culprit/profile.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>

#include "core/units.h"
#include "library/columns.h"
#include "library/run_data.h"
#include "profile/profile_tables.h"
#include "profile/run_profile.h"
#include "trace/rank_numbers.h"

namespace culprit {

namespace library {

Result<cycles::Found> find(const Run& run, const CycleOptions& options) {
  cycles::FindOptions find;
  find.anchor = options.anchor;
  find.skip = options.skip;
  find.task = options.task;
  if (!options.phase.empty()) {
    const auto phase = std::ranges::find(model::kPhases, options.phase, model::phase_name);
    if (phase == model::kPhases.end())
      return usage_error("unknown phase '" + options.phase + "'",
                         "there are prefill, decode, mixed, train_step, other");
    find.phase = *phase;
  }
  const Trace& trace = run.data().trace;
  return cycles::find_cycles(trace, order_slices(trace), find);
}

Result<Measured> measure(const Run& run, const CycleOptions& options, bool ledger) {
  auto found = find(run, options);
  if (!found) return found.error();
  if (found->cycles.cycles.empty())
    return input_error(fmt::format("holds no cycles: {}", found->cycles.reason), path_of(run),
                       "name what begins a cycle, or record more cycles");
  profile::RunProfileOptions how;
  how.task = options.task;
  how.ledger = ledger;
  Measured measured{std::move(*found), {}};
  measured.profile = profile::run_profile(run.data().trace, measured.found, how);
  if (options.task.stop.stop_requested()) return cancelled_error();
  return measured;
}

}  // namespace library

Result<Cycles> find_cycles(const Run& run, const CycleOptions& options) {
  const auto found = library::find(run, options);
  if (!found) return found.error();
  const model::Cycles& cycles = found->cycles;
  Cycles out{cycles.anchor, cycles.period_confidence, cycles.phase_confidence, cycles.reason, cycles.notes, {}};
  const std::vector<bool> whole = model::whole_periods(cycles);
  const std::vector<std::int32_t> ranks = rank_numbers(run.data().trace);
  for (std::size_t i = 0; i < cycles.cycles.size(); ++i) {
    const model::Cycle& c = cycles.cycles[i];
    out.cycles.push_back({c.number, rank_number(ranks, c.rank), std::string(model::phase_name(c.phase)),
                          c.workload.batch, c.workload.tokens, c.begin, c.period, c.no_work, c.partial, c.warm_up,
                          whole[i]});
  }
  return out;
}

Result<Profile> profile_run(const Run& run, const CycleOptions& options) {
  const auto measured = library::measure(run, options, true);
  if (!measured) return measured.error();
  const model::Profile& profile = measured->profile;
  const std::stop_token& stop = options.task.stop;
  const auto columns = [&](model::Table (*made)(const model::Profile&)) {
    return stop.stop_requested() ? Table() : library::columns_of(made(profile), stop);
  };
  Profile out{columns(profile::cycles_table), columns(profile::functions_table), columns(profile::resources_table),
              columns(profile::counters_table), columns(profile::ledger_table)};
  if (stop.stop_requested()) return cancelled_error();
  const model::Cycles& cycles = measured->found.cycles;
  out.cycles.notes.push_back(fmt::format("Cycles begin at '{}': {}", cycles.anchor, cycles.reason));
  out.cycles.notes.insert(out.cycles.notes.end(), cycles.notes.begin(), cycles.notes.end());
  if (const std::uint64_t placed = measured->found.placed_by_time; placed != 0)
    out.functions.notes.push_back(
        fmt::format("{} GPU operations without a known launch were placed by time", format_count(placed)));
  std::set<std::uint32_t> told;
  for (const model::LedgerWindow& window : profile.ledger.windows) told.insert(window.cycle);
  if (const std::size_t without = profile.cycles.size() - told.size(); without > 0)
    out.ledger.notes.push_back(
        fmt::format("{} of {} cycles have no rows: their period is not known, as that of the last of a rank",
                    format_count(without), format_count(profile.cycles.size())));
  return out;
}

}  // namespace culprit
