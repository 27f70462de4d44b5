#include "compare/shared_slowdown.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string_view>
#include <vector>

#include "compare/held_back.h"
#include "model/settings.h"
#include "stats/quantile.h"

namespace culprit::compare {

namespace {

using model::Outcome;

constexpr double kFarSlower = 2;       // times: no machine was seen to be so much slower than itself within minutes
constexpr double kFartherSlower = 4;   // nor so much within hours
constexpr double kShared = 0.7;        // of the logarithm of what a step takes longer
constexpr double kMostOfLonger = 0.5;  // of it, where what is left is not sure
constexpr double kOfWaits = 0.25;      // of what a step takes longer, for CPUs that others had
constexpr double kOnCpu = 0.7;         // of what a step takes longer
constexpr std::size_t kFewestFunctions = 8;

/// What a call of the middle one of the host's functions takes on the candidate, as a multiple; 0: there are few.
double usual_ratio(const model::RunComparison& result) {
  std::vector<double> ratios;
  for (const model::FunctionFinding& f : result.functions)
    if (result.texts[f.device] == "Host" && f.work_ratio > 0 && std::isfinite(f.work_ratio))
      ratios.push_back(f.work_ratio);
  return ratios.size() < kFewestFunctions ? 0 : stats::median(std::move(ratios));
}

bool is_on_cpu(const model::HostChanges& host, std::size_t side) {
  double all = 0;
  double on_cpu = 0;
  for (const model::HostChange& part : host.step) {
    const double more = part.value[side].value_or(0) - part.value[1 - side].value_or(0);
    all += more;
    if (part.what == "on CPU") on_cpu = more;
  }
  return all > 0 && on_cpu >= kOnCpu * all;
}

/// CPUs, by all who were not recorded, whether or not anybody saw their names.
bool took_more(const model::HostChanges& host, std::size_t side) {
  constexpr double kMany = 0.4;
  const auto others = std::ranges::find(host.counters, "host.cpu.others", &model::HostChange::what);
  return others != host.counters.end() &&
         others->value[side].value_or(0) - others->value[1 - side].value_or(0) >= kMany;
}

bool has_other_clock(const model::HostChanges& host) {
  const auto is_clock = [](const model::HostChange& counter) { return counter.what.ends_with(".frequency"); };
  return std::ranges::any_of(host.counters, is_clock) || std::ranges::any_of(host.unshown, is_clock);
}

/// What may make a program slower as a whole.
bool has_other_settings(const model::RunComparison& result) {
  constexpr std::array<std::string_view, 5> kParts = {".program", ".sched.", ".cpus_allowed", ".cgroup.", ".traced_by"};
  if (!model::settings_that_differ(result.environment).empty()) return true;
  return std::ranges::any_of(result.environment, [&](const model::EnvironmentChange& fact) {
    const std::string_view key = fact.key;
    if (!key.starts_with("env.target")) return key.starts_with("env.") && key != "env.hostname";
    return std::ranges::any_of(kParts, [&](std::string_view part) { return key.find(part) != std::string_view::npos; });
  });
}

/// Whether a step of the side would still be decided to take longer if what all functions share were not there: some
/// slow down by more than others where a machine has less cache or memory for them.
bool is_longer_alone(const model::CycleTimeOutcome& step, std::size_t side, double usual) {
  const double bound = side == 1 ? step.low : -step.high / (1 + step.high);
  return std::isfinite(bound) && std::log1p(bound) - usual > std::log1p(step.tolerance);
}

/// By how much steps of the phase take longer on the side, as a logarithm.
double longer_by(const model::CycleTimeOutcome& step, std::size_t side) {
  return (side == 1 ? 1 : -1) * std::log1p(step.change);
}

/// How much of that all functions share.
enum class Shared { less, half, all };

Shared shared_of(const model::CycleTimeOutcome& step, std::size_t side, double usual) {
  const double longer = longer_by(step, side);
  if (usual >= kShared * longer) return Shared::all;
  return usual >= kMostOfLonger * longer && !is_longer_alone(step, side, usual) ? Shared::half : Shared::less;
}

/// By how much the steps of the side come later, whatever lies between them, as a logarithm.
double later_by(const model::HostChanges& host, std::size_t side) {
  const auto period = std::ranges::find(host.states, "period", &model::HostChange::what);
  if (period == host.states.end() || !(period->value[0] > 0) || !(period->value[1] > 0)) return 0;
  return std::log(*period->value[side] / *period->value[1 - side]);
}

}  // namespace

std::string why_shared(const model::RunComparison& result, bool far_apart) {
  if (result.outcome != Outcome::regression && result.outcome != Outcome::improvement) return {};
  if (!result.host || result.host->step.empty() || model::is_measured(result.cycle_times)) return {};
  const std::size_t side = result.outcome == slower_by(1) ? 1 : 0;
  const model::CycleTimeOutcome* longest = model::longest_phase(result.cycle_times);
  const double step = longest == nullptr ? 0 : longer_by(*longest, side);
  const double ratio = usual_ratio(result);
  const auto& memory = result.host->memory;
  const bool slower_memory = memory && (memory->change > 0) == (side == 1);
  const double farthest = far_apart || slower_memory ? kFartherSlower : kFarSlower;
  if (!(ratio > 0) || !(step > 0) || step >= std::log(farthest)) return {};
  const double usual = (side == 1 ? 1 : -1) * std::log(ratio);
  // Of the longest phase, and of each that decided.
  Shared shared = shared_of(*longest, side, usual);
  bool by_steps = false;
  for (const model::CycleTimeOutcome& outcome : result.cycle_times) {
    if (outcome.outcome != result.outcome) continue;
    by_steps = true;
    shared = std::min(shared, shared_of(outcome, side, usual));
  }
  // Where it was decided by how late steps come, nothing tells whether the rest is decided.
  if (shared == Shared::less || (shared == Shared::half && !by_steps)) return {};
  const model::HostChanges& host = *result.host;
  // What they themselves take longer has to be most of that then.
  if (!by_steps && step < kShared * later_by(host, side)) return {};
  if (!is_on_cpu(host, side) || took_more(host, side) || has_other_clock(host) || has_other_settings(result)) return {};
  // Who is slower alike waits longer for its clients, too.
  if (was_held_back(host, side, kOfWaits * std::expm1(step))) return {};
  if (std::ranges::any_of(result.calls, [&](const model::CallsChange& c) {
        return (side == 1 ? c.more + c.added : c.fewer + c.gone) > 0;
      }))
    return {};
  return fmt::format(
      "all functions of the {} take x{:.2f} alike{}, and nothing of the program or beside it is known to differ: the "
      "machine may be slower, as machines that are shared are for minutes",
      side == 1 ? "candidate" : "baseline", std::exp(usual),
      shared == Shared::half ? ", what steps take beyond that is not decided" : "");
}

std::string why_units_shared(const model::RunComparison& result) {
  if (result.outcome != Outcome::regression && result.outcome != Outcome::improvement) return {};
  if (!result.work || !result.host || !result.host->memory) return {};
  const model::WorkComparison& work = *result.work;
  const std::size_t side = result.outcome == slower_by(1) ? 1 : 0;
  if ((result.host->memory->change > 0) != (side == 1) || std::ranges::max(work.waited) > 0) return {};
  const auto longer = [&](const model::WorkChange& change) {
    const double ratio = change.value[side] / change.value[1 - side];
    return std::isfinite(ratio) && ratio > 0 ? std::log(ratio) : 0;
  };
  const auto on_cpu = std::ranges::find(work.parts, "on CPU", &model::WorkChange::what);
  const double in_all = std::max(longer(work.worked), -longer(work.throughput));
  if (on_cpu == work.parts.end() || !(in_all > 0) || in_all >= std::log(kFartherSlower)) return {};
  if (longer(*on_cpu) < kShared * in_all) return {};
  const model::HostChanges& host = *result.host;
  // Waits for a CPU that others had grew by no more than all else, see above.
  constexpr double kAnyWait = std::numeric_limits<double>::infinity();
  if (was_held_back(host, side, kAnyWait) || took_more(host, side) || has_other_clock(host) ||
      has_other_settings(result))
    return {};
  const double memory = 1 + result.host->memory->change;
  return fmt::format(
      "each {} of the {} takes x{:.2f} on CPUs, and fixed work through the machine's memory "
      "x{:.2f}: the machine may be slower, as machines that are shared are",
      to_string(work.unit.kind), model::kSideNames.at(side), std::exp(longer(*on_cpu)),
      side == 1 ? memory : 1 / memory);
}

}  // namespace culprit::compare
