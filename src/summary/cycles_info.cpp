#include "summary/cycles_info.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "core/saturating.h"
#include "profile/host_evidence.h"
#include "stats/quantile.h"

namespace culprit::summary {

namespace {

/// Reorders `periods`, which are not empty.
void add_periods(model::PhaseInfo& info, std::vector<Ns>& periods) {
  const std::size_t n = periods.size();
  double sum = 0;
  for (const Ns period : periods) sum += static_cast<double>(period);
  info.whole_periods = n;
  info.mean_period = sum / static_cast<double>(n);
  info.median_period = stats::median_in_place(std::span(periods));
}

}  // namespace

model::CyclesInfo cycles_info(const model::Cycles& cycles) {
  model::CyclesInfo info{cycles.method,
                         cycles.anchor,
                         cycles.period_confidence,
                         cycles.phase_confidence,
                         cycles.reason,
                         cycles.notes,
                         0,
                         {}};
  std::set<std::uint32_t> numbers;
  for (const model::Cycle& cycle : cycles.cycles) numbers.insert(cycle.number);
  info.count = numbers.size();
  const std::vector<bool> whole = model::whole_periods(cycles);
  for (const model::Phase phase : model::kPhases) {
    model::PhaseInfo of_phase;
    of_phase.phase = phase;
    std::vector<Ns> periods;
    for (std::size_t i = 0; i < cycles.cycles.size(); ++i) {
      const model::Cycle& cycle = cycles.cycles[i];
      if (cycle.phase != phase) continue;
      ++of_phase.cycles;
      if (whole[i]) periods.push_back(cycle.period);
      for (const model::DeviceWindow& window : cycle.devices) {
        of_phase.device_window = add_saturating(of_phase.device_window, window.end - window.begin);
        of_phase.device_busy = add_saturating(of_phase.device_busy, window.busy);
      }
    }
    if (!periods.empty()) add_periods(of_phase, periods);
    if (of_phase.cycles != 0) info.phases.push_back(of_phase);
  }
  return info;
}

std::optional<model::StepTimes> step_times(const Trace& trace, const model::Cycles& cycles) {
  const model::HostEvidence evidence = profile::host_evidence(trace, cycles);
  if (!evidence.step) return std::nullopt;
  const auto sum = [](const auto& times) { return std::accumulate(times.begin(), times.end(), 0.0); };
  model::StepTimes step;
  step.thread = evidence.step->name;
  step.cycles = std::accumulate(evidence.cycles.begin(), evidence.cycles.end(), std::uint64_t{0});
  const auto n = static_cast<double>(step.cycles);
  step.period = sum(evidence.period_ns) / n;
  step.on_cpu = sum(evidence.step->on_cpu) / n;
  step.run_queue = sum(evidence.step->runnable) / n;
  step.blocked = sum(evidence.step->blocked) / n;
  for (const auto& [name, cpus] : evidence.beside) step.beside.push_back({name, cpus});
  std::ranges::stable_sort(step.beside, [](const auto& a, const auto& b) { return a.cpus > b.cpus; });
  return step;
}

}  // namespace culprit::summary
