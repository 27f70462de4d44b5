#include "compare/standstill.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>

#include "core/units.h"

namespace culprit::compare {

namespace {

using model::Recording;

constexpr double kFew = 0.1;  // of the other side's steps
constexpr double kSecond = 1e9;

struct Steps {
  const model::StepThread* thread = nullptr;
  double on_cpu = 0;  ///< for one, ns
  double per_second = 0;
};

/// Of a side whose steps are marked. No thread: they are not, or nobody knows who runs them.
Steps steps_of(std::span<const Recording> side) {
  Steps steps;
  double count = 0;
  for (const Recording& recording : side) {
    const model::HostEvidence& host = recording.host;
    if (recording.cycles.method != model::CycleMethod::marker || !host.step || !(host.steps_per_second > 0)) return {};
    steps.thread = &*host.step;
    for (const double time : host.step->on_cpu) steps.on_cpu += time;
    for (const std::uint64_t cycles : host.cycles) count += static_cast<double>(cycles);
    steps.per_second += host.steps_per_second / static_cast<double>(side.size());
  }
  if (!(count > 0) || !(steps.on_cpu > 0)) return {};
  steps.on_cpu /= count;
  return steps;
}

}  // namespace

std::optional<model::Standstill> standstill_of(std::span<const Recording> base, std::span<const Recording> candidate) {
  const std::array sides = {base, candidate};
  for (const std::size_t side : {1U, 0U}) {
    const Steps steps = steps_of(sides.at(1 - side));
    if (steps.thread == nullptr) continue;
    model::Standstill still{.side = side, .thread = steps.thread->name, .process = steps.thread->process};
    const auto is_it = [&](const model::HeldThread& thread) {
      return thread.name == still.thread && thread.process == still.process && thread.main == steps.thread->main;
    };
    const bool all = std::ranges::all_of(sides.at(side), [&](const Recording& recording) {
      if (recording.facts.gpu_work) return false;
      const auto held = std::ranges::find_if(recording.host.held, is_it);
      if (held == recording.host.held.end()) return false;
      still.seen += recording.cycles.cycles.size();
      still.recorded += held->recorded;
      still.on_cpu += held->on_cpu;
      still.runnable += held->runnable;
      still.stopped += held->stopped;
      still.uninterruptible += held->uninterruptible;
      return true;
    });
    if (!all || !(still.recorded > 0)) continue;
    still.steps_per_second = steps.per_second;
    still.at_most = std::max(still.on_cpu / steps.on_cpu, static_cast<double>(still.seen)) / (still.recorded / kSecond);
    if (still.at_most <= kFew * still.steps_per_second) return still;
  }
  return std::nullopt;
}

std::string standstill_text(const model::Standstill& still) {
  const std::string seen = still.seen == 0   ? "no step was"
                           : still.seen == 1 ? "1 step was"
                                             : fmt::format("{} steps were", still.seen);
  return fmt::format("{} seen in the {}: {}, which runs them, was on a CPU for {} of {}", seen,
                     still.side == 1 ? "candidate" : "baseline", still.thread, format_duration(still.on_cpu),
                     format_duration(still.recorded));
}

}  // namespace culprit::compare
