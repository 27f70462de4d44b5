#include "profile/recording.h"

#include <algorithm>
#include <array>
#include <functional>
#include <iterator>
#include <set>
#include <string_view>
#include <utility>

#include "core/intervals.h"
#include "core/saturating.h"
#include "cycles/work_threads.h"
#include "cycles/work_units.h"
#include "model/comparison.h"
#include "profile/collected.h"
#include "profile/collectives.h"
#include "profile/function_kind.h"
#include "profile/held_threads.h"
#include "profile/host_evidence.h"
#include "profile/off_cpu.h"
#include "profile/run_profile.h"
#include "profile/whole_run.h"
#include "trace/loss.h"
#include "trace/rank_numbers.h"

namespace culprit::profile {

namespace {

/// Of the kinds that a profiler captures or not, as it is told. Garbage is collected now and then.
std::set<std::string> captured_functions(const Trace& trace) {
  std::set<std::string> kinds;
  bool python = false;
  bool operators = false;
  for (std::size_t i = 0; i < trace.slices.size() && !(python && operators); ++i) {
    const SliceClass kind = trace.slice_class(trace.slices[i]);
    operators = operators || kind == SliceClass::cpu_op;
    python = python || (kind == SliceClass::python && !model::is_collector(trace.name(trace.slices[i])));
  }
  if (operators) kinds.emplace(to_string(FunctionKind::cpu_op));
  if (python) kinds.emplace(to_string(FunctionKind::python));
  return kinds;
}

model::RunFacts facts_of(const Trace& trace) {
  model::RunFacts facts;
  for (const Rank& rank : trace.ranks) {
    if (rank.rank >= 0) facts.ranks.insert(rank.rank);
    facts.world_size = std::max(facts.world_size, rank.world_size);
  }
  facts.gpu_work = !trace.gpu.empty();
  facts.functions = captured_functions(trace);
  for (const Rank& rank : trace.ranks)
    for (const auto& [key, value] : rank.metadata) {
      if (key.starts_with(kProfilerOption)) facts.options.insert(key.substr(kProfilerOption.size()));
      if (key == "record.preset") facts.presets.insert(value);
      if (key == "env.target.program") facts.programs.insert(value);
      constexpr std::string_view kBefore = "cost.";
      constexpr std::string_view kBehind = ".events";
      if (key.starts_with(kBefore) && key.ends_with(kBehind) && key.size() > kBefore.size() + kBehind.size())
        facts.collectors.insert(key.substr(kBefore.size(), key.size() - kBefore.size() - kBehind.size()));
    }
  std::set<std::pair<std::uint16_t, std::int32_t>> worked;
  for (std::size_t g = 0; g < trace.gpu.size(); ++g)
    worked.emplace(trace.slices[trace.gpu[g].slice].rank, trace.gpu[g].device);
  const auto add = [&](bool all) {
    for (const Device& device : trace.devices)
      if (!device.name.empty() && (all || worked.contains({device.rank, device.id})))
        facts.device_models.insert(device.name);
  };
  add(false);
  // Some writers number the devices of the machine and list those of the process.
  if (facts.device_models.empty() && !worked.empty()) add(true);
  return facts;
}

/// From the begin of the first step to the end of the last one.
Interval span_of(const model::Cycles& cycles) {
  Interval span{cycles.cycles.front().begin, cycles.cycles.front().begin};
  for (const model::Cycle& cycle : cycles.cycles) {
    span.begin = std::min(span.begin, cycle.begin);
    span.end = std::max(span.end, add_saturating(cycle.begin, cycle.period));
  }
  return span;
}

/// Cycles that do not lie in one of the intervals are cut by their ends.
void cut(model::Cycles& cycles, const std::vector<Interval>& within) {
  for (model::Cycle& cycle : cycles.cycles) {
    const auto after = std::ranges::upper_bound(within, cycle.begin, {}, &Interval::begin);
    cycle.partial |= after == within.begin() || add_saturating(cycle.begin, cycle.period) > std::prev(after)->end;
  }
}

/// As long as counters are sampled or longer, and at most as many as make a spread.
std::vector<model::WorkWindow> equal_windows(const Interval& span) {
  constexpr Ns kShortest = 250'000'000;
  constexpr Ns kMost = 40;
  const Ns all = subtract_saturating(span.end, span.begin);
  const Ns number = std::clamp<Ns>(all / kShortest, 1, kMost);
  std::vector<model::WorkWindow> windows(static_cast<std::size_t>(number));
  for (Ns w = 0; w < number; ++w) {
    windows[static_cast<std::size_t>(w)].begin = span.begin + all / number * w;
    windows[static_cast<std::size_t>(w)].end = span.begin + all / number * (w + 1);
  }
  return windows;
}

/// Numbers of a process (its pid, its start) and costs are no environment.
bool is_environment(std::string_view key) {
  constexpr std::array<std::string_view, 7> kPrefixes = {
      "env.", "library.", "missing.", "record.preset", "record.scheduling", "sched.source", "inject."};
  return std::ranges::any_of(kPrefixes, [&](std::string_view prefix) { return key.starts_with(prefix); });
}

model::Environment environment_of(const Trace& trace) {
  model::Environment environment;
  for (const Rank& rank : trace.ranks)
    for (const auto& [key, value] : rank.metadata)
      if (is_environment(key)) environment[key].insert(value);
  return environment;
}

/// Losses after which an event that was recorded is missing, or its time. Of a cut end nothing is missing before it;
/// bytes count beside the events in them.
bool loses_events(LossReason reason) {
  switch (reason) {
    case LossReason::truncated_tail:
    case LossReason::compressed_damage:
    case LossReason::text_after_damage:
    case LossReason::end_without_begin:
    case LossReason::name_invalid:
    case LossReason::counter_value_invalid:
    case LossReason::tracks_collapsed:
    case LossReason::calls_uncounted:
    case LossReason::requests_uncounted:
    case LossReason::processes_left_out:
      return false;
    default:
      return info(reason).severity == Severity::data_loss;
  }
}

}  // namespace

Result<Outline> outline_of(const Trace& trace, std::vector<std::string> files, const RecordingOptions& options) {
  cycles::FindOptions find;
  find.anchor = options.anchor;
  find.task = options.task;
  find.work_units = false;  // compared as such
  SliceOrder order = order_slices(trace);
  auto found = cycles::find_cycles(trace, order, find);
  if (!found) return found.error();
  if (!options.within.empty()) cut(found->cycles, options.within);
  Outline outline;
  outline.found = std::move(*found);
  outline.order = std::move(order);
  model::Recording& recording = outline.recording;
  recording.files = std::move(files);
  recording.cycles = outline.found.cycles;
  recording.facts = facts_of(trace);
  recording.environment = environment_of(trace);
  recording.whole = whole_run_of(trace);
  std::vector<model::HeldThread> held;
  // Outside of what is asked for it may be made to stand still.
  const bool all_of_it = options.within.empty();
  constexpr std::ptrdiff_t kFew = 8;
  const auto whole = std::ranges::count(model::whole_periods(recording.cycles), true);
  if (all_of_it && whole <= kFew) held = held_threads(trace);
  recording.host = recording.cycles.cycles.empty() || (whole == 0 && !held.empty())
                       ? host_evidence_per_second(trace)
                       : host_evidence(trace, recording.cycles);
  recording.host.held = std::move(held);
  if (all_of_it) recording.host.long_end = long_end(trace, recording.cycles);
  if (recording.cycles.cycles.empty()) recording.host.asleep = cycles::asleep_in(trace);
  if (!options.within.empty()) recording.host.steps_per_second = 0;  // some of the time is not asked for
  if (recording.cycles.cycles.empty() && (recording.host.scheduling || recording.host.asleep)) {
    recording.work = cycles::find_work_units(trace);
    add_windows(trace, recording.work->windows, recording.host);
    add_stretches(trace, *recording.work, recording.host);
    recording.collected = collected_in(trace, recording.work->windows, recording.cycles);
    recording.collected.off_cpu = off_cpu_in(trace, recording.work->windows, recording.cycles);
  } else if (recording.host.scheduling) {
    const std::vector<model::WorkWindow> windows = equal_windows(span_of(recording.cycles));
    add_windows(trace, windows, recording.host);
    recording.collected = collected_in(trace, windows, recording.cycles);
    recording.collected.off_cpu = off_cpu_in(trace, windows, recording.cycles);
  }
  recording.events = trace.slices.size();
  for (std::size_t i = 0; i < Losses::kReasons; ++i) {
    const auto reason = static_cast<LossReason>(i);
    const std::uint64_t count = trace.losses[reason];
    if (count == 0) continue;
    const LossInfo& loss = info(reason);
    recording.losses.push_back({std::string(loss.name), std::string(to_string(loss.severity)),
                                std::string(loss.meaning), std::string(loss.remedy),
                                std::string(trace.losses.first_seen(reason)), count});
    if (loses_events(reason)) recording.events_lost += count;
  }
  return outline;
}

Result<model::Recording> complete(const Trace& trace, Outline outline, const Task& task) {
  RunProfileOptions options;
  options.whole_cycles_only = true;
  options.own_times = true;
  options.ledger = true;
  options.between = true;
  options.resource_uses = false;
  options.task = task;
  outline.recording.profile = run_profile(trace, outline.found, options, std::move(outline.order));
  outline.recording.collectives = collectives_of(trace, outline.found);
  outline.recording.rank_numbers = rank_numbers(trace);
  if (task.stop.stop_requested()) return cancelled_error();
  return std::move(outline.recording);
}

Result<model::Recording> recording_of(const Trace& trace, std::vector<std::string> files,
                                      const RecordingOptions& options) {
  auto outline = outline_of(trace, std::move(files), options);
  if (!outline) return outline.error();
  return complete(trace, std::move(*outline), options.task);
}

}  // namespace culprit::profile
