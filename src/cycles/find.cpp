#include "cycles/find.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "cycles/assemble.h"
#include "cycles/cutting.h"

namespace culprit::cycles {

namespace {

constexpr double kTrusted = 0.8;  // a marker that needs no second opinion; a sequence that overrules a function

constexpr double kUnconfirmed = 0.45;  // at most, without a second opinion

bool same_count(std::size_t a, std::size_t b) {
  const std::size_t most = std::max(a, b);
  return most - std::min(a, b) <= std::max<std::size_t>(1, most / 20);
}

/// `host` (weak markers or functions) and the launch sequence look at the same run independently: agreement makes both
/// likelier, and a confident sequence shows when a name is that of a part of a step.
Cutting reconcile(Cutting host, std::optional<Cutting> sequence) {
  if (!sequence) {
    host.notes.emplace_back("the sequence of GPU operations does not confirm the period");
    host.period_confidence = std::min(host.period_confidence, kUnconfirmed);
    host.phase_confidence = std::min(host.phase_confidence, kUnconfirmed);
    return host;
  }
  if (same_count(host.most(), sequence->most())) {
    if (sequence->period_confidence >= kTrusted) {
      host.period_confidence = std::max(host.period_confidence, 0.95);
      host.phase_confidence = std::max(host.phase_confidence, 0.8);
    } else {
      // Both may have found the layers of a model.
      host.period_confidence = std::min(host.period_confidence, kUnconfirmed);
      host.phase_confidence = std::min(host.phase_confidence, kUnconfirmed);
    }
    host.reason += "; the sequence of GPU operations repeats as often";
    return host;
  }
  if (sequence->period_confidence >= kTrusted) {
    sequence->notes.push_back(
        fmt::format("\"{}\" occurs {} times and was not taken: the GPU operations repeat {} times", host.anchor,
                    host.most(), sequence->most()));
    return std::move(*sequence);
  }
  host.period_confidence = std::min(host.period_confidence, kUnconfirmed);
  host.notes.push_back(
      fmt::format("the sequence of GPU operations repeats {} times instead of {}", sequence->most(), host.most()));
  return host;
}

std::optional<Cutting> cut(const Trace& trace, const SliceOrder& order, const FindOptions& options) {
  const std::vector<std::vector<Ns>> launches = launch_times(trace);
  std::optional<Cutting> marker;
  if (!options.ignore_markers) marker = cut_by_marker(trace, order, launches);
  const bool inside = marker && marker->phase_confidence < kUnconfirmed;
  if (marker && marker->period_confidence >= kTrusted && !inside) return marker;
  std::optional<Cutting> function;
  if (!options.ignore_host_functions) function = cut_by_function(trace, order, launches);
  std::optional<Cutting> sequence = cut_by_sequence(trace);
  if (inside && sequence && sequence->period_confidence >= 0.5 && same_count(marker->most(), sequence->most())) {
    // A marker that stands inside the step (the optimizer's) confirms how often, not where.
    sequence->period_confidence = std::max(sequence->period_confidence, 0.95);
    sequence->reason += fmt::format("; \"{}\" occurs as often", marker->anchor);
    marker.reset();
  }
  if (!marker && sequence && !function) return sequence;
  if (marker && (!function || marker->period_confidence >= function->period_confidence))
    return reconcile(std::move(*marker), std::move(sequence));
  if (function) return reconcile(std::move(*function), std::move(sequence));
  return sequence;
}

Found nothing(const Trace& trace) {
  Found found;
  found.cycle_of_slice.assign(trace.slices.size(), kNone);
  found.cycles.reason = fmt::format(
      "nothing repeats at least three times: no markers of steps, no repeated function that launches the work, no "
      "repeated "
      "sequence among {} GPU operations",
      trace.gpu.size());
  return found;
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
  std::optional<Cutting> cutting;
  if (!options.anchor.empty()) {
    cutting = cut_by_name(trace, order, options.anchor);
    if (!cutting)
      return usage_error(fmt::format("no slice is called '{}'", options.anchor),
                         "give the name of a marker or function in the trace; without --anchor one is chosen");
    cutting = doubt_parts(trace, order, std::move(*cutting));
  } else {
    cutting = cut(trace, order, options);
    if (cutting && !(options.ignore_markers && options.ignore_host_functions))
      cutting = doubt_parts(trace, order, std::move(*cutting));
  }
  Found found = cutting ? assemble(trace, order, *cutting) : nothing(trace);
  if (Status status = select(found, options); !status) return status.error();
  return found;
}

}  // namespace culprit::cycles
