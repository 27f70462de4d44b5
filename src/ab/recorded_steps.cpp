#include "ab/recorded_steps.h"

#include <culprit/load.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fnmatch.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "compare/cycle_time.h"
#include "core/text.h"
#include "cycles/find.h"
#include "library/run_data.h"
#include "profile/recording.h"
#include "stats/quantile.h"
#include "trace/span.h"

namespace culprit::ab {

namespace {

constexpr Ns kMostParts = 4096;               // of a stretch in which a counter did not change
constexpr std::string_view kOnCpu = "oncpu";  // slices of the scheduling of a thread

/// The step in which a moment lies, or null.
Step* step_at(std::vector<Step>& steps, Ns at) {
  const auto after = std::ranges::upper_bound(steps, at, {}, &Step::begin);
  if (after == steps.begin()) return nullptr;
  Step& step = *std::prev(after);
  return at < step.end ? &step : nullptr;
}

/// What all recorded threads ran inside of each step.
void measure_cpu(const Trace& trace, std::vector<Step>& steps) {
  for (std::size_t i = 0; i < trace.slices.size(); ++i) {
    const Slice& slice = trace.slices[i];
    if (trace.tracks[slice.track].kind != TrackKind::sched || trace.name(slice) != kOnCpu) continue;
    const Ns begin = slice.begin + trace.base_ns;
    const Ns end = slice.end() + trace.base_ns;
    auto step = std::ranges::upper_bound(steps, begin, {}, &Step::begin);
    if (step != steps.begin()) --step;
    for (; step != steps.end() && step->begin < end; ++step)
      step->value += static_cast<double>(std::max<Ns>(0, std::min(end, step->end) - std::max(begin, step->begin)));
  }
}

/// Slices whose name matches, each in the step in which it begins. Not what the scheduler did, nor system calls, of
/// which only long ones are slices: true where there are such.
bool measure_functions(const Trace& trace, const Quantity& quantity, std::vector<Step>& steps) {
  bool are_calls = false;
  std::map<StringId, bool> known;
  for (std::size_t i = 0; i < trace.slices.size(); ++i) {
    const Slice& slice = trace.slices[i];
    const auto [match, is_new] = known.try_emplace(slice.name, false);
    if (is_new) match->second = fnmatch(quantity.pattern.c_str(), std::string(trace.name(slice)).c_str(), 0) == 0;
    if (!match->second || trace.tracks[slice.track].kind == TrackKind::sched) continue;
    if (trace.slice_class(slice) == SliceClass::syscall) {
      are_calls = true;
      continue;
    }
    Step* step = step_at(steps, slice.begin + trace.base_ns);
    if (step == nullptr) continue;
    if (quantity.kind == Quantity::Kind::calls)
      step->value += 1;
    else if (quantity.kind == Quantity::Kind::function)
      step->value += static_cast<double>(slice.duration);
    else if (slice.gpu != kNone)
      step->value += static_cast<double>(trace.gpu[slice.gpu].bytes);
  }
  return are_calls;
}

void measure(const Trace& trace, const Quantity& quantity, StepsOf& result) {
  using enum Quantity::Kind;
  if (quantity.kind != cpu && quantity.kind != function && quantity.kind != calls && quantity.kind != bytes) return;
  const std::size_t all = result.steps.size();
  for (Step& step : result.steps) step.value = 0;
  bool are_calls = false;
  if (quantity.kind == cpu)
    measure_cpu(trace, result.steps);
  else
    are_calls = measure_functions(trace, quantity, result.steps);
  std::erase_if(result.steps, [](const Step& step) { return step.value <= 0; });
  if (!result.steps.empty() || all == 0) return;
  result.without = fmt::format("{}: none of {} steps has any{}", name_of(quantity), all,
                               are_calls ? ", since of system calls only long ones are recorded one by one" : "");
}

/// What a recorder wrote of one counter, until `end`: a value that did not change is not written again, so that a
/// stretch may be many times as long as the time between two samples, `sampled` (0: not known).
std::vector<Step> stretches_of(const CounterSeries& series, Ns base, Ns end, Ns sampled) {
  std::vector<Ns> gaps;
  for (std::size_t i = 1; i < series.samples.size(); ++i)
    gaps.push_back(series.samples[i].at - series.samples[i - 1].at);
  std::erase_if(gaps, [](Ns gap) { return gap <= 0; });
  if (gaps.empty() && sampled == 0) return {};
  Ns usual = gaps.empty() ? sampled : std::max<Ns>(stats::median_of_times(gaps), 1);
  if (sampled > 0) usual = std::min(usual, sampled);
  std::vector<Step> stretches;
  for (std::size_t i = 0; i < series.samples.size(); ++i) {
    const CounterSample& sample = series.samples[i];
    const Ns length = (i + 1 < series.samples.size() ? series.samples[i + 1].at : end) - sample.at;
    const Ns parts = std::clamp<Ns>((length + usual / 2) / usual, 1, kMostParts);
    for (Ns part = 0; part < parts && length > 0; ++part)
      stretches.push_back({base + sample.at + length * part / parts,
                           base + sample.at + length * (part + 1) / parts,
                           model::Phase::other,
                           {},
                           sample.value});
  }
  return stretches;
}

/// Names that begin like one that is none: " (there are host.cpu.busy, host.cpu.idle)".
std::string alike(const Trace& trace, const std::string& pattern) {
  constexpr std::size_t kMost = 8;
  std::set<std::string> names;
  for (const CounterSeries& series : trace.counters)
    if (const std::string_view name = trace.strings[series.name]; name.starts_with(pattern)) names.emplace(name);
  const bool more = names.size() > kMost;
  while (names.size() > kMost) names.erase(std::prev(names.end()));
  return names.empty() ? "" : fmt::format(" (there are {}{})", fmt::join(names, ", "), more ? ", ..." : "");
}

/// The counter that a name is the begin of, where none is called so; else empty.
std::string used_of(const Trace& trace, const std::string& pattern) {
  const std::string used = pattern + kUsed;
  bool found = false;
  for (const CounterSeries& series : trace.counters) {
    const std::string name(trace.strings[series.name]);
    if (fnmatch(pattern.c_str(), name.c_str(), 0) == 0) return {};
    found |= name == used;
  }
  return found ? used : "";
}

/// The counter of that name, of all processes that have one.
StepsOf samples_of(const Trace& trace, const std::string& given) {
  const std::string used = used_of(trace, given);
  const std::string& pattern = used.empty() ? given : used;
  const Ns end = recorded_span(trace).end;
  const Ns sampled = parse_number<Ns>(fact_of(trace, "host.interval_ns")).value_or(0);
  std::set<std::string> names;
  StepsOf result;
  result.meant = used;
  for (const CounterSeries& series : trace.counters) {
    const std::string name(trace.strings[series.name]);
    if (fnmatch(pattern.c_str(), name.c_str(), 0) != 0) continue;
    names.insert(name);
    std::ranges::move(stretches_of(series, trace.base_ns, end, sampled), std::back_inserter(result.steps));
  }
  std::ranges::sort(result.steps, {}, &Step::begin);
  if (names.size() > 1) {
    result.steps.clear();
    result.how = fmt::format("'{}' is more than one counter: {}", pattern, fmt::join(names, ", "));
  } else if (result.steps.empty()) {
    result.how = names.empty()
                     ? fmt::format("no counter '{}' is recorded{}", pattern, alike(trace, pattern))
                     : fmt::format("'{}' has less than two samples in a recording: longer runs tell more", pattern);
  }
  return result;
}

/// Requests as they were counted. Of other units none: turns of an event loop are fewer, and hold more, the slower it
/// is.
void add_counted(const Trace& trace, const model::WorkUnits& work, StepsOf& result) {
  using enum model::UnitKind;
  const model::WorkUnit& unit = work.units.front();
  if ((unit.kind != request && unit.kind != transaction) || unit.confidence < kLeastConfidence) return;
  result.counted_what = to_string(unit.kind);
  result.counted_from = unit.receive;
  const std::size_t windows = std::min(work.windows.size(), unit.per_window.size());
  for (std::size_t w = 0; w < windows; ++w)
    result.counted.push_back(
        {work.windows[w].begin + trace.base_ns, work.windows[w].end + trace.base_ns, unit.per_window[w]});
}

/// Wake-ups of the one thread that works, where each is a unit: one that handles several at once would do more of them
/// the slower it is. A unit that is so much time, or a process, says nothing of how fast it is.
void add_units(const Trace& trace, const cycles::Found& found, StepsOf& result) {
  constexpr double kNearlyOne = 1.25;
  using enum model::UnitKind;
  if (!found.work || found.work->units.empty()) return;
  const model::WorkUnit& unit = found.work->units.front();
  if (unit.kind == window || unit.kind == process || unit.kind == cpu_time) return;
  add_counted(trace, *found.work, result);
  result.unit =
      fmt::format("{} ({}{}{})", model::plural(unit), unit.receive, unit.send.empty() ? "" : " to ", unit.send);
  if (found.work->starts.empty()) return;
  const double each = static_cast<double>(unit.count) / static_cast<double>(found.work->starts.size());
  if (each > kNearlyOne || each < 1 / kNearlyOne) {
    if (result.counted.empty()) result.how += fmt::format("; {:.2g} of them in each wake-up", each);
    return;
  }
  result.wait = unit.receive;
  for (const Ns start : found.work->starts) result.units.push_back(start + trace.base_ns);
}

/// Python functions that were asked for, and that could not be watched, may be why there are no steps.
std::string unwatched(const Trace& trace) {
  for (const Rank& rank : trace.ranks)
    for (const auto& [key, value] : rank.metadata)
      if (key.starts_with("missing.python")) return "; Python functions are missing: " + value;
  return {};
}

}  // namespace

double mean_value(const std::vector<Step>& stretches) {
  double sum = 0;
  double time = 0;
  for (const Step& stretch : stretches) {
    const auto length = static_cast<double>(stretch.end - stretch.begin);
    sum += stretch.value * length;
    time += length;
  }
  return time > 0 ? sum / time : 0;
}

Result<StepsOf> steps_of(const std::string& file, const Quantity& quantity) {
  const auto run = load_run({file});
  if (!run) return run.error();
  const Trace& trace = run->data().trace;
  if (quantity.kind == Quantity::Kind::counter) return samples_of(trace, quantity.pattern);
  const auto found = cycles::find_cycles(trace, order_slices(trace), {});
  if (!found) return found.error();
  StepsOf result;
  result.how = found->cycles.reason;
  const bool sure = found->cycles.period_confidence >= kLeastConfidence;
  if (!model::are_steps(found->cycles.method) || !sure) {
    add_units(trace, *found, result);
    result.how += unwatched(trace);
    return result;
  }
  for (const compare::StepTime& step : compare::step_times(found->cycles))
    result.steps.push_back({step.begin + trace.base_ns, step.begin + static_cast<Ns>(step.period) + trace.base_ns,
                            step.phase, step.work, step.time});
  std::ranges::sort(result.steps, {}, &Step::begin);
  measure(trace, quantity, result);
  return result;
}

Result<model::Recording> recording_of(const std::string& file, const std::vector<Span>& turns) {
  const auto run = load_run({file});
  if (!run) return run.error();
  return recording_of(run->data().trace, file, turns);
}

Result<model::Recording> recording_of(const Trace& trace, const std::string& file, const std::vector<Span>& turns) {
  profile::RecordingOptions options;
  for (const Span& turn : turns) options.within.push_back({turn.begin - trace.base_ns, turn.end - trace.base_ns});
  auto recording = profile::recording_of(trace, {file}, options);
  if (!recording) return recording.error();
  recording->facts.programs.clear();
  if (!turns.empty()) recording->host.requests.clear();  // they wait while their server stands still
  return recording;
}

}  // namespace culprit::ab
