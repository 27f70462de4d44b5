#include "cycles/find.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "cycles/assemble.h"
#include "cycles/confidence.h"
#include "cycles/cutting.h"
#include "cycles/operations.h"
#include "cycles/work_cycles.h"
#include "cycles/work_threads.h"
#include "cycles/work_units.h"

namespace culprit::cycles {

namespace {

constexpr std::size_t kFewestEnds = 3;

bool same_count(std::size_t a, std::size_t b) {
  const std::size_t most = std::max(a, b);
  return most - std::min(a, b) <=
         std::max<std::size_t>(1, static_cast<std::size_t>(static_cast<double>(most) * confidence::kSameCount));
}

/// How many cuts of `passes` come between two of `updates`; 0 when that is less than two, or not nearly always the
/// same.
std::size_t passes_between(const Cutting& updates, const Cutting& passes) {
  std::map<std::size_t, std::size_t> times;
  std::size_t intervals = 0;
  for (const Lane& lane : updates.lanes) {
    const auto mine = std::ranges::find(passes.lanes, lane.rank, &Lane::rank);
    if (mine == passes.lanes.end()) continue;
    const auto passed = [&](Ns at) { return std::ranges::lower_bound(mine->cuts, at, {}, &Cut::begin); };
    for (std::size_t i = 0; i + 1 < lane.cuts.size(); ++i, ++intervals)
      ++times[static_cast<std::size_t>(passed(lane.cuts[i + 1].begin) - passed(lane.cuts[i].begin))];
  }
  const auto usual = std::ranges::max_element(times, {}, [](const auto& t) { return t.second; });
  return usual != times.end() && usual->first >= 2 && usual->second * 5 >= intervals * 4 ? usual->first : 0;
}

/// A marker that stands at the end of the step (the optimizer's), where no work tells where the step begins: from the
/// end of one to the end of the next.
Cutting from_end_to_end(Cutting marker) {
  for (Lane& lane : marker.lanes) {
    for (std::size_t i = lane.cuts.size(); i-- > 1;) lane.cuts[i].begin = lane.cuts[i - 1].end;
    if (!lane.cuts.empty()) lane.cuts.erase(lane.cuts.begin());
  }
  std::erase_if(marker.lanes, [](const Lane& lane) { return lane.cuts.empty(); });
  marker.from_end_to_end = true;
  marker.phase_confidence = confidence::kOptimizerEnds;
  marker.notes = {fmt::format("a step is from the end of one \"{}\" to the end of the next", marker.anchor)};
  return marker;
}

void lower(Cutting& cutting) {
  cutting.period_confidence = std::min(cutting.period_confidence, confidence::kUnconfirmed);
  cutting.phase_confidence = std::min(cutting.phase_confidence, confidence::kUnconfirmed);
}

/// `host` (weak markers or functions) and the sequence of operations look at the same run independently: agreement
/// makes both likelier, and a confident sequence shows when a name is that of a part of a step. `what` is what the
/// sequence is made of.
Cutting reconcile(Cutting host, std::optional<Cutting> sequence, std::string_view what) {
  if (!sequence) {
    host.notes.push_back(fmt::format("no repeating sequence of {} confirms the period", what));
    lower(host);
    return host;
  }
  host.updates_every = std::max(host.updates_every, sequence->updates_every);
  if (same_count(host.most(), sequence->most())) {
    if (sequence->period_confidence >= confidence::kTrusted) {
      host.period_confidence = std::max(host.period_confidence, confidence::kConfirmed);
      host.phase_confidence = std::max(host.phase_confidence, confidence::kConfirmedPhase);
    } else {
      lower(host);  // both may have found the layers of a model
    }
    host.reason += fmt::format("; the sequence of {} repeats as often", what);
    return host;
  }
  if (sequence->period_confidence >= confidence::kTrusted) {
    sequence->notes.push_back(fmt::format("\"{}\" occurs {} times and was not taken: the {} repeat {} times",
                                          host.anchor, host.most(), what, sequence->most()));
    return std::move(*sequence);
  }
  host.period_confidence = std::min(host.period_confidence, confidence::kUnconfirmed);
  host.notes.push_back(
      fmt::format("the sequence of {} repeats {} times instead of {}", what, sequence->most(), host.most()));
  return host;
}

/// Tells how many of the passes over the trace are done; some find nothing to do.
class Passes {
 public:
  explicit Passes(const Task& task) : task_(task) {}
  /// Before every pass. False: end here.
  [[nodiscard]] bool next() {
    if (task_.stop.stop_requested()) return false;
    task_.report("finding cycles", done_++, kAll);
    return !task_.stop.stop_requested();
  }

 private:
  static constexpr std::uint64_t kAll = 6;
  const Task& task_;
  std::uint64_t done_ = 0;
};

std::optional<Cutting> cut(const Trace& trace, const SliceOrder& order, const FindOptions& options, Passes& passes) {
  const HostWork work = host_work(trace, order);
  const std::string_view what = work.operators ? "operators" : "GPU operations";
  std::optional<Cutting> marker;
  if (!passes.next()) return std::nullopt;
  if (!options.ignore_markers) marker = cut_by_marker(trace, order, work);
  if (marker) note_work_outside(work, *marker);
  const bool inside = marker && marker->phase_confidence < confidence::kUnconfirmed;
  if (marker && marker->period_confidence >= confidence::kTrusted && !inside) return marker;
  if (marker && marker->at_end && work.all() == 0 && marker->most() >= kFewestEnds)
    return from_end_to_end(std::move(*marker));
  if (!passes.next()) return std::nullopt;
  std::optional<Cutting> function;
  if (!options.ignore_host_functions) function = cut_by_function(trace, order, work);
  if (function) note_work_outside(work, *function);
  if (!passes.next()) return std::nullopt;
  std::optional<Cutting> sequence = cut_by_sequence(trace, order);
  // A marker that stands inside the step (the optimizer's) confirms how often, not where; one that comes seldomer tells
  // of accumulated gradients.
  if (inside && sequence) {
    if (sequence->period_confidence >= confidence::kWorthConfirming && same_count(marker->most(), sequence->most())) {
      sequence->period_confidence = std::max(sequence->period_confidence, confidence::kConfirmed);
      sequence->reason += fmt::format("; \"{}\" occurs as often", marker->anchor);
      marker.reset();
    } else if (const std::size_t every = passes_between(*marker, *sequence);
               every >= 2 &&
               (sequence->period_confidence >= confidence::kTrusted || sequence->updates_every == every)) {
      sequence->updates_every = every;
      marker.reset();
    }
  }
  // Where a function holds the whole step, it says the same of the function.
  if (inside && marker && function) {
    if (same_count(marker->most(), function->most())) {
      function->period_confidence = std::max(function->period_confidence, marker->period_confidence);
      function->reason += fmt::format("; \"{}\" occurs as often", marker->anchor);
      marker.reset();
    } else if (const std::size_t every = passes_between(*marker, *function); every >= 2) {
      function->updates_every = every;
      marker.reset();
    }
  }
  if (!marker && sequence && !function) return sequence;
  // A marker and the sequence that agree outweigh a function around them: a request of several steps.
  const bool agree = marker && sequence && function && sequence->period_confidence >= confidence::kTrusted &&
                     same_count(marker->most(), sequence->most()) && !same_count(function->most(), sequence->most());
  if (marker && (!function || agree || marker->period_confidence >= function->period_confidence))
    return reconcile(std::move(*marker), std::move(sequence), what);
  if (function) return reconcile(std::move(*function), std::move(sequence), what);
  return sequence;
}

bool begin_alike(const Cutting& a, const Cutting& b) {
  return std::ranges::equal(a.lanes, b.lanes, [](const Lane& x, const Lane& y) {
    return x.rank == y.rank && std::ranges::equal(x.cuts, y.cuts, {}, &Cut::begin, &Cut::begin);
  });
}

Found nothing(const Trace& trace) {
  Found found;
  found.cycle_of_slice.assign(trace.slices.size(), kNone);
  found.cycles.reason =
      has_gpu_work(trace)
          ? fmt::format(
                "nothing repeats at least three times: no markers of steps, no repeated function that launches "
                "the work, no repeated sequence among {} GPU operations",
                trace.gpu.size())
          : std::string(
                "nothing repeats at least three times: no markers of steps, no repeated function that holds the "
                "work, no repeated sequence of operators, and no GPU work");
  return found;
}

/// Whether all slices of that name are scheduling, system calls or waits.
bool only_waits(const Trace& trace, std::string_view name) {
  const StringId id = trace.strings.find(name, kNone);
  if (id == kNone) return false;
  bool any = false;
  for (std::size_t i = 0; i < trace.slices.size(); ++i) {
    const Slice& slice = trace.slices[i];
    if (slice.name != id) continue;
    const SliceClass what = trace.slice_class(slice);
    if (what != SliceClass::os_sched && what != SliceClass::syscall) return false;
    any = true;
  }
  return any;
}

/// "20 on 2 ranks: 18 decode, 2 prefill".
std::string what_there_is(const std::vector<model::Cycle>& cycles) {
  std::map<model::Phase, std::size_t> phases;
  std::set<std::uint16_t> ranks;
  for (const model::Cycle& c : cycles) {
    ++phases[c.phase];
    ranks.insert(c.rank);
  }
  std::string text = ranks.size() > 1 ? fmt::format("{} on {} ranks: ", cycles.size(), ranks.size()) : "";
  const char* between = "";
  for (const auto& [phase, n] : phases) {
    text += fmt::format("{}{} {}", between, n, model::phase_name(phase));
    between = ", ";
  }
  return text;
}

/// Drops cycles that were not asked for; what lay in them lies in none. Error: usage, when none is left.
Status select(Found& found, const FindOptions& options) {
  if ((!options.phase && options.skip == 0) || found.cycles.cycles.empty()) return {};
  std::vector<model::Cycle>& cycles = found.cycles.cycles;
  std::vector<std::uint32_t> place(cycles.size(), kNone);
  std::map<std::pair<std::uint16_t, std::uint32_t>, unsigned> seen;
  const std::string all = what_there_is(cycles);
  std::uint32_t out = 0;
  for (std::uint32_t i = 0; i < cycles.size(); ++i) {
    const bool skipped = seen[{cycles[i].rank, cycles[i].process}]++ < options.skip;
    if (skipped || (options.phase && cycles[i].phase != *options.phase)) continue;
    place[i] = out;
    if (out != i) cycles[out] = std::move(cycles[i]);
    ++out;
  }
  if (out == 0)
    return usage_error(
        fmt::format("no cycle fits{}{}; there are {}",
                    options.phase ? fmt::format(" --phase {}", model::phase_name(*options.phase)) : "",
                    options.skip > 0 ? fmt::format(" --skip {} (of every rank)", options.skip) : "", all),
        "`culprit cycles` without these options lists them");
  if (out < cycles.size())
    found.cycles.notes.push_back(
        fmt::format("{} of {} cycles were left out as asked", cycles.size() - out, cycles.size()));
  cycles.resize(out);
  for (std::uint32_t& c : found.cycle_of_slice)
    if (c != kNone) c = place[c];
  return {};
}

}  // namespace

Result<Found> find_cycles(const Trace& trace, const SliceOrder& order, const FindOptions& options) {
  Passes passes(options.task);
  if (!passes.next()) return cancelled_error();
  std::optional<Cutting> cutting;
  if (!options.anchor.empty()) {
    if (only_waits(trace, options.anchor))
      return usage_error(fmt::format("'{}' is a wait or a state of a thread: what lies between two of them is no step, "
                                     "and a longer wait is less demand",
                                     options.anchor),
                         "give the name of a marker or function; without --anchor, recordings of programs that mark no "
                         "steps are compared by their units of work");
    cutting = cut_by_name(trace, order, options.anchor);
    if (!cutting)
      return usage_error(fmt::format("no slice is called '{}'", options.anchor),
                         "give the name of a marker or function in the trace; without --anchor one is chosen");
    note_work_outside(host_work(trace, order), *cutting);
    cutting = doubt_parts(trace, order, std::move(*cutting));
    // What would be found by itself is no less sure when it is named.
    if (cutting->period_confidence <= confidence::kGiven)
      if (const auto found = cut(trace, order, options, passes);
          found && begin_alike(*found, *cutting) && found->period_confidence > cutting->period_confidence) {
        cutting->period_confidence = found->period_confidence;
        cutting->reason += "; it would be found without being named, too";
      }
  } else {
    cutting = cut(trace, order, options, passes);
    if (!passes.next()) return cancelled_error();
    if (cutting && cutting->updates_every > 1)
      cutting->notes.push_back(fmt::format(
          "the optimizer runs in one of {} cycles: gradients are accumulated, and a cycle is one pass forward "
          "and backward, not one update of the weights",
          cutting->updates_every));
    if (cutting && !(options.ignore_markers && options.ignore_host_functions))
      cutting = doubt_parts(trace, order, std::move(*cutting));
  }
  if (!passes.next()) return cancelled_error();
  std::optional<model::WorkUnits> work;
  if (!cutting && options.work_units) {
    work = find_work_units(trace);
    if (!work->recorded) work.reset();
    if (work) cutting = cut_by_work(*work);
  }
  Found found = cutting ? assemble(trace, order, *cutting) : nothing(trace);
  if (work && work->idle)
    found.cycles.reason = work->units.front().reason;
  else if (!cutting && asleep_in(trace))
    found.cycles.reason = idle_reason(trace);
  found.work = std::move(work);
  if (Status status = select(found, options); !status) return status.error();
  return found;
}

}  // namespace culprit::cycles
