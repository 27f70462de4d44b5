#include "cycles/work_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

#include "trace/span.h"

namespace culprit::cycles {

namespace {

using model::UnitKind;
using model::WorkUnit;

constexpr std::uint64_t kRequestsOfLife = 8;  // processes that answer so many each are workers, not the work
constexpr double kBeside = 0.1;               // of what the busiest program took

/// How many there could be at least: twice as far off as nineteen of twenty estimates are, and a quarter of any.
double fewest_of(const WorkUnit& unit) {
  constexpr double kLeast = 0.25;
  return static_cast<double>(unit.count) * std::max(kLeast, 1 - 2 * unit.count_error.value_or(0));
}

}  // namespace

double ProgramTimes::of(const std::string& program) const {
  const auto found = time.find(program);
  return found == time.end() ? 0 : found->second;
}

bool ProgramTimes::is_beside(const std::string& program) const { return of(program) < kBeside * most; }

std::optional<ProgramTimes> times_on_machine(const Trace& trace, const WorkThreads& work) {
  if (fact_of(trace, "record.whole_machine") != "yes") return std::nullopt;
  ProgramTimes times;
  for (const WorkThread& thread : work.threads)
    if (!thread.by_time) times.time[thread.process_name] += thread.on_cpu;
  for (std::size_t g = 0; g < trace.gpu.size(); ++g) {
    const Slice& slice = trace.slices[trace.gpu[g].slice];
    times.time[program_name(trace, trace.tracks[slice.track].process)] += static_cast<double>(slice.duration);
  }
  for (const auto& [program, time] : times.time) {
    times.most = std::max(times.most, time);
    times.all += time;
  }
  return times;
}

void order(std::vector<WorkUnit>& units, const std::map<std::string, std::int64_t>& pids, const ProgramTimes* machine) {
  std::ranges::stable_sort(units, [&](const WorkUnit& a, const WorkUnit& b) {
    const double s = machine != nullptr ? -machine->of(a.process) : 0;
    const double t = machine != nullptr ? -machine->of(b.process) : 0;
    const bool several = a.kind == UnitKind::message;
    const std::int64_t x = several ? pids.at(a.process) : 0;
    const std::int64_t y = several ? pids.at(b.process) : 0;
    return several ? std::tuple(s, x, 0.0, b.count) < std::tuple(t, y, 0.0, a.count)
                   : std::tuple(s, x, -a.confidence, b.count) < std::tuple(t, y, -b.confidence, a.count);
  });
}

void add_processes(std::vector<WorkUnit>& found, WorkUnit unit) {
  const bool serve = !found.empty() && found.front().kind == UnitKind::request &&
                     found.front().process == without_numbers(unit.process) &&
                     found.front().count >= kRequestsOfLife * unit.count;
  found.insert(serve ? found.end() : found.begin(), std::move(unit));
}

void add_answers(std::vector<WorkUnit>& found, WorkUnit unit, bool estimates) {
  double most = 0;
  for (const WorkUnit& other : found) most = std::max(most, fewest_of(other));
  const bool of_some = !found.empty() && found.front().kind == UnitKind::request &&
                       found.front().process == unit.process && 2 * found.front().count < unit.count;
  const bool leads = of_some || (estimates && 2 * static_cast<double>(unit.count) >= most);
  found.insert(leads ? found.begin() : found.end(), std::move(unit));
}

std::vector<WorkUnit> take_beside(std::vector<WorkUnit>& found, const ProgramTimes& machine) {
  const auto first = std::ranges::stable_partition(found, [&](const WorkUnit& unit) {
                       return !machine.is_beside(unit.process);
                     }).begin();
  std::vector<WorkUnit> beside(std::make_move_iterator(first), std::make_move_iterator(found.end()));
  found.erase(first, found.end());
  return beside;
}

void tell_share(WorkUnit& unit, const ProgramTimes& machine) {
  constexpr double kPercent = 100;
  if (unit.kind == UnitKind::window || !(machine.all > 0)) return;
  unit.reason += fmt::format("; of all programs of the machine {} took {:.0f} % of the time on CPUs and devices",
                             unit.process, kPercent * machine.of(unit.process) / machine.all);
}

}  // namespace culprit::cycles
