#include "diagnose/step_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <set>

namespace culprit::diagnose {

namespace {

using model::PhaseTime;
using model::Recording;
using model::StepPart;

constexpr std::size_t kFewestSteps = 5;  // of a phase
constexpr double kLeastMore = 0.05;      // of a step: by so much more a part of a phase stands out
constexpr const char* kIdle = "idle";

void add_devices(const Recording& run, const Phases& phases, std::size_t most, std::vector<StepPart>& parts) {
  const bool ranks = has_ranks(run);
  std::size_t places = 0;
  for (const auto& [place, step] : device_steps(run, phases)) {
    if (++places > most) break;
    const std::size_t first = parts.size();
    for (const auto& [kind, time] : step.kinds)
      parts.push_back({place_text(place, ranks), kind, time, time / step.length});
    std::ranges::stable_sort(parts.begin() + static_cast<std::ptrdiff_t>(first), parts.end(), std::ranges::greater(),
                             &StepPart::time_ns);
    parts.push_back({place_text(place, ranks), kIdle, step.idle(), step.idle() / step.length});
  }
}

void add_thread(const Recording& run, const Phases& phases, std::vector<StepPart>& parts) {
  if (!run.host.step) return;
  const std::string where = fmt::format("thread {}", run.host.step->name);
  for (const auto& [what, times] :
       {std::pair("on a CPU", &run.host.step->on_cpu), std::pair("waiting for a CPU", &run.host.step->runnable),
        std::pair("blocked", &run.host.step->blocked)}) {
    const double time = sum_of(*times, phases) / cycles_or_one(run, phases);
    parts.push_back({where, what, time, time / mean_step(run, phases)});
  }
}

void add_rank(const model::RankCollectives& rank, double step, std::vector<StepPart>& parts) {
  const auto cycles = static_cast<double>(std::max<std::uint64_t>(1, rank.cycles));
  const std::string where = fmt::format("collectives of rank {}", rank.rank);
  for (const auto& [what, time] :
       {std::pair("waiting for the last rank", rank.wait_ns), std::pair("transfer", rank.transfer_ns)})
    parts.push_back({where, what, time / cycles, time / cycles / step});
}

/// The collectives of the rank in steps of these phases. No cycles: it has none of them.
model::RankCollectives collectives_in(const Recording& run, const model::RankCollectives& rank, const Phases& phases) {
  std::map<std::int64_t, model::Phase> phase_of;  // by number of the cycle
  for (const model::ProfileCycle& cycle : run.profile.cycles)
    if (cycle.rank == rank.rank) phase_of[cycle.number] = cycle.phase;
  model::RankCollectives sum;
  sum.rank = rank.rank;
  for (const model::StepCollectives& step : rank.steps) {
    const auto phase = phase_of.find(step.number);
    if (phase == phase_of.end() || !phases[static_cast<std::size_t>(phase->second)]) continue;
    ++sum.cycles;
    sum.wait_ns += step.wait_ns;
    sum.transfer_ns += step.transfer_ns;
  }
  return sum;
}

std::vector<StepPart> parts_in(const Recording& run, const Phases& phases) {
  std::vector<StepPart> parts;
  const double step = mean_step(run, phases);
  if (!(step > 0)) return parts;
  add_devices(run, phases, std::numeric_limits<std::size_t>::max(), parts);
  add_thread(run, phases, parts);
  for (const model::RankCollectives& rank : run.collectives)
    if (const model::RankCollectives sum = collectives_in(run, rank, phases); sum.cycles > 0)
      add_rank(sum, step, parts);
  return parts;
}

/// Numbers of the whole steps of each phase.
std::array<std::set<std::uint32_t>, model::kPhases.size()> whole_steps(const Recording& run) {
  std::array<std::set<std::uint32_t>, model::kPhases.size()> numbers;
  const std::vector<bool> whole = model::whole_periods(run.cycles);
  for (std::size_t c = 0; c < whole.size(); ++c)
    if (whole[c]) numbers[static_cast<std::size_t>(run.cycles.cycles[c].phase)].insert(run.cycles.cycles[c].number);
  return numbers;
}

/// Finds the part of which the phase has a larger share than the others by most. A place that the others do not have
/// idles in none of their steps, and that says nothing.
void add_what_stands_out(const std::vector<StepPart>& here, const std::vector<StepPart>& elsewhere, PhaseTime& time) {
  double most = kLeastMore;
  for (const StepPart& part : here) {
    const auto same = std::ranges::find_if(
        elsewhere, [&](const StepPart& other) { return other.where == part.where && other.what == part.what; });
    if (same == elsewhere.end() && part.what == kIdle) continue;
    const double others = same == elsewhere.end() ? 0 : same->share;
    if (part.share - others < most) continue;
    most = part.share - others;
    time.where = part.where;
    time.what = part.what;
    time.part_share = part.share;
    time.others_share = others;
  }
}

}  // namespace

std::string place_text(const RankDevice& place, bool ranks) {
  return ranks && place.first >= 0 ? fmt::format("{} of rank {}", place.second, place.first) : place.second;
}

bool has_ranks(const Recording& run) {
  std::set<std::int32_t> ranks;
  for (const model::ProfileProcess& process : run.profile.processes) ranks.insert(process.rank);
  return ranks.size() > 1;
}

double cycles_of_rank(const Recording& run, std::int32_t rank, const Phases& phases) {
  const auto counts = [&](const model::ProfileCycle& c) {
    return c.rank == rank && phases[static_cast<std::size_t>(c.phase)];
  };
  return static_cast<double>(std::max<std::ptrdiff_t>(1, std::ranges::count_if(run.profile.cycles, counts)));
}

double DeviceStep::idle() const {
  double busy = 0;
  for (const auto& [kind, time] : kinds) busy += time;
  return std::max(0.0, length - busy);
}

std::map<RankDevice, DeviceStep> device_steps(const Recording& run, const Phases& phases) {
  const auto counts = [&](std::uint32_t cycle) {
    return phases[static_cast<std::size_t>(run.profile.cycles[cycle].phase)];
  };
  std::map<RankDevice, std::map<std::uint32_t, double>> windows;  // by cycle
  for (const model::LedgerWindow& window : run.profile.ledger.windows)
    if (window.device >= 0 && window.length > 0 && counts(window.cycle))
      windows[{run.profile.cycles[window.cycle].rank, fmt::format("GPU {}", window.device)}][window.cycle] +=
          static_cast<double>(window.length);
  std::map<RankDevice, DeviceStep> steps;
  for (const model::FunctionUse& use : run.profile.functions) {
    if (use.exposed < 0 || !counts(use.cycle)) continue;
    const RankDevice place{run.profile.processes[use.process].rank, std::string(run.profile.texts[use.device])};
    const auto known = windows.find(place);
    if (known != windows.end() && !known->second.contains(use.cycle)) continue;
    steps[place].kinds[std::string(run.profile.texts[use.kind])] += static_cast<double>(use.exposed);
  }
  for (auto& [place, step] : steps) {
    double cycles = cycles_of_rank(run, place.first, phases);
    step.length = mean_step(run, phases);
    if (const auto known = windows.find(place); known != windows.end()) {
      cycles = static_cast<double>(known->second.size());
      step.length = 0;
      for (const auto& [cycle, length] : known->second) step.length += length / cycles;
    }
    for (auto& [kind, time] : step.kinds) time /= cycles;
  }
  return steps;
}

std::vector<StepPart> step_parts(const Recording& run) {
  std::vector<StepPart> parts;
  const double step = mean_step(run);
  if (!(step > 0)) return parts;
  add_devices(run, kAllPhases, kMostPlaces, parts);
  add_thread(run, kAllPhases, parts);
  for (std::size_t rank = 0; rank < std::min(kMostPlaces, run.collectives.size()); ++rank)
    add_rank(run.collectives[rank], step, parts);
  return parts;
}

std::vector<PhaseTime> phase_times(const Recording& run) {
  if (run.host.per_second) return {};
  std::vector<PhaseTime> times;
  const auto numbers = whole_steps(run);
  Phases told{};
  for (const model::Phase phase : model::kPhases) {
    const auto p = static_cast<std::size_t>(phase);
    Phases here{};
    here[p] = true;
    if (numbers[p].size() < kFewestSteps || !(mean_step(run, here) > 0)) continue;
    told[p] = true;
    PhaseTime& time = times.emplace_back();
    time.phase = phase;
    time.steps = numbers[p].size();
    time.step_ns = mean_step(run, here);
    time.share = run.host.period_ns[p] / sum_of(run.host.period_ns);
  }
  if (times.size() < 2) return {};
  for (PhaseTime& time : times) {
    const auto p = static_cast<std::size_t>(time.phase);
    Phases here{};
    here[p] = true;
    Phases others = told;
    others[p] = false;
    add_what_stands_out(parts_in(run, here), parts_in(run, others), time);
  }
  return times;
}

}  // namespace culprit::diagnose
