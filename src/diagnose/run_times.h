// Times of one run, per step, of all phases or of some: what its rules and its tables are made of.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "model/recording.h"

namespace culprit::diagnose {

/// Whether a phase counts, by the number of the Phase.
using Phases = std::array<bool, model::kPhases.size()>;
inline constexpr Phases kAllPhases = {true, true, true, true, true};
static_assert(kAllPhases.back());

/// Of times by phase, ns.
inline double sum_of(const std::array<double, model::kPhases.size()>& times, const Phases& phases = kAllPhases) {
  double sum = 0;
  for (std::size_t p = 0; p < phases.size(); ++p)
    if (phases[p]) sum += times[p];
  return sum;
}

/// Whole cycles, of all ranks.
inline std::uint64_t cycles_of(const model::Recording& run, const Phases& phases = kAllPhases) {
  std::uint64_t all = 0;
  for (std::size_t p = 0; p < phases.size(); ++p)
    if (phases[p]) all += run.host.cycles[p];
  return all;
}

/// The same, to divide by.
inline double cycles_or_one(const model::Recording& run, const Phases& phases = kAllPhases) {
  return static_cast<double>(std::max<std::uint64_t>(1, cycles_of(run, phases)));
}

/// Mean of the whole steps, ns; 0: there are none.
inline double mean_step(const model::Recording& run, const Phases& phases = kAllPhases) {
  return cycles_of(run, phases) > 0 ? sum_of(run.host.period_ns, phases) / cycles_or_one(run, phases) : 0;
}

/// Of all threads per step, or second, in states for which `is` holds, ns.
template <class Is>
double state_time(const model::Recording& run, const Is& is) {
  double sum = 0;
  for (const model::HostState& state : run.host.states)
    if (is(std::string_view(state.what))) sum += sum_of(state.total_ns) / cycles_or_one(run);
  return sum;
}

/// 0: it was not recorded.
inline double counter(const model::Recording& run, std::string_view name) {
  const auto found = std::ranges::find(run.host.counters, name, &model::HostCounter::name);
  return found == run.host.counters.end() ? 0 : found->mean;
}

/// Of threads' waits no more can have been felt than the thread of the steps was blocked; where that is not known, than
/// a step. ns per step, or second.
inline double most_felt(const model::Recording& run) {
  return run.host.step ? sum_of(run.host.step->blocked) / cycles_or_one(run) : mean_step(run);
}

}  // namespace culprit::diagnose
