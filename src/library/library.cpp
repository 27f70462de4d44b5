// The public calls: each stands on the stages that the program stands on, and adds nothing.
#include <culprit/cycles.h>
#include <culprit/kernels.h>
#include <culprit/load.h>
#include <culprit/profile.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "cycles/find.h"
#include "formats/load.h"
#include "kernels/classes.h"
#include "kernels/launch_tables.h"
#include "kernels/trace_log.h"
#include "library/columns.h"
#include "library/run_data.h"
#include "profile/profile_tables.h"
#include "profile/run_profile.h"
#include "summary/function_stats.h"
#include "summary/function_table.h"

namespace culprit {

namespace {

using library::columns_of;

std::string path_of(const Trace& trace) { return trace.ranks.empty() ? "" : trace.ranks.front().path; }

Result<cycles::Found> find(const Trace& trace, const CycleOptions& options) {
  cycles::FindOptions find;
  find.anchor = options.anchor;
  find.skip = options.skip;
  if (!options.phase.empty()) {
    const auto phase = std::ranges::find(model::kPhases, options.phase, model::phase_name);
    if (phase == model::kPhases.end())
      return usage_error("unknown phase '" + options.phase + "'",
                         "there are prefill, decode, mixed, train_step, other");
    find.phase = *phase;
  }
  return cycles::find_cycles(trace, order_slices(trace), find);
}

}  // namespace

Result<Run> load_run(const std::vector<std::string>& paths, const LoadOptions& options) {
  formats::LoadOptions load;
  load.threads = options.threads;
  load.progress = options.progress;
  auto trace = formats::load_run(paths, load);
  if (!trace) return trace.error();
  return Run(std::make_shared<const Run::Data>(Run::Data{std::move(*trace)}));
}

std::vector<Loss> losses(const Run& run) {
  std::vector<Loss> found;
  const Losses& counted = run.data().trace.losses;
  for (std::size_t i = 0; i < Losses::kReasons; ++i) {
    const auto reason = static_cast<LossReason>(i);
    if (counted[reason] == 0) continue;
    const LossInfo& about = info(reason);
    found.push_back({std::string(about.name), std::string(to_string(about.severity)), std::string(about.meaning),
                     std::string(about.remedy), std::string(counted.first_seen(reason)), counted[reason]});
  }
  return found;
}

Result<Cycles> find_cycles(const Run& run, const CycleOptions& options) {
  const auto found = find(run.data().trace, options);
  if (!found) return found.error();
  const model::Cycles& cycles = found->cycles;
  Cycles out{cycles.anchor, cycles.period_confidence, cycles.phase_confidence, cycles.reason, cycles.notes, {}};
  const std::vector<bool> whole = model::whole_periods(cycles);
  for (std::size_t i = 0; i < cycles.cycles.size(); ++i) {
    const model::Cycle& c = cycles.cycles[i];
    out.cycles.push_back({c.number, c.rank, std::string(model::phase_name(c.phase)), c.begin, c.period, c.no_work,
                          c.partial, c.warm_up, whole[i]});
  }
  return out;
}

Result<Profile> profile_run(const Run& run, const CycleOptions& options) {
  const Trace& trace = run.data().trace;
  const auto found = find(trace, options);
  if (!found) return found.error();
  if (found->cycles.cycles.empty())
    return input_error("holds no cycles: " + found->cycles.reason, path_of(trace), "name what begins a cycle");
  const model::Profile profile = profile::run_profile(trace, *found);
  return Profile{columns_of(profile::cycles_table(profile)), columns_of(profile::functions_table(profile)),
                 columns_of(profile::resources_table(profile)), columns_of(profile::counters_table(profile))};
}

Result<Kernels> kernels_of(const Run& run) {
  const model::KernelLog log = kernels::kernel_log_of(run.data().trace);
  if (log.launches.empty())
    return input_error("holds no kernel", path_of(run.data().trace), "record GPU activities (kernels) too");
  return Kernels{columns_of(kernels::launch_table(log)), columns_of(kernels::name_table(log, {})),
                 columns_of(kernels::class_table(kernels::use_report(log, {})))};
}

Table function_times(const Run& run) {
  return columns_of(summary::function_table(summary::function_stats(run.data().trace, {}), {}));
}

}  // namespace culprit
