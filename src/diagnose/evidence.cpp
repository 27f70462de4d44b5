#include "diagnose/evidence.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "stats/quantile.h"

namespace culprit::diagnose {

namespace {

using model::Outcome;

constexpr std::string_view kOnCpu = "on CPU";
constexpr std::string_view kRunQueue = "runnable, in the run queue";
constexpr double kNew = 2;      // times what it took
constexpr double kGone = 0.02;  // CPUs

}  // namespace

double Sides::ratio() const {
  if (without > 0) return with / without;
  return with > 0 ? std::numeric_limits<double>::infinity() : 1;
}

Sides StepParts::all() const {
  return {on_cpu.without + runnable.without + blocked.without, on_cpu.with + runnable.with + blocked.with};
}

std::optional<Sides> Evidence::counter(std::string_view name) const {
  if (!comparison_.host) return std::nullopt;
  const auto in = [&](const std::vector<model::HostChange>& list) {
    const auto at = std::ranges::find(list, name, &model::HostChange::what);
    return at == list.end() ? nullptr : &*at;
  };
  const model::HostChange* found = in(comparison_.host->counters);
  if (found == nullptr) found = in(comparison_.host->unshown);
  if (found == nullptr) return std::nullopt;
  if (found->value[0] && found->value[1]) return turned(found->value);
  // Whose recorder knows these tells memory.high where there is one.
  const auto knows_high = [&] { return counter("cgroup.memory.refaults") || counter("cgroup.memory.high_hits"); };
  const bool is_none = model::is_limit_of_group(name) || (name == "cgroup.memory.high" && knows_high());
  return is_none ? std::optional(turned(found->value)) : std::nullopt;
}

double Evidence::rise(std::string_view name) const {
  const auto found = counter(name);
  return found ? found->rise() : 0;
}

std::optional<Sides> Evidence::counters(std::string_view begin, std::string_view end) const {
  if (!comparison_.host) return std::nullopt;
  Sides sum;
  double n = 0;
  // Those that moved by less count where none moved by more.
  for (const auto* list : {&comparison_.host->counters, &comparison_.host->unshown}) {
    if (n > 0) break;
    for (const model::HostChange& change : *list) {
      if (!change.what.starts_with(begin) || !change.what.ends_with(end) || !change.value[0] || !change.value[1])
        continue;
      const Sides sides = turned(change.value);
      sum.without += sides.without;
      sum.with += sides.with;
      ++n;
    }
  }
  if (n == 0) return std::nullopt;
  return Sides{sum.without / n, sum.with / n};
}

std::string_view Evidence::repeats() const {
  if (comparison_.work) return to_string(comparison_.work->unit.kind);
  return comparison_.host && comparison_.host->per_second ? "second" : "step";
}

std::optional<StepParts> Evidence::step() const {
  StepParts parts;
  if (comparison_.work) {
    bool any = false;
    for (const model::WorkChange& part : comparison_.work->parts) {
      const Sides sides = turned(part.value);
      Sides& sum = part.what == kOnCpu ? parts.on_cpu : part.what == kRunQueue ? parts.runnable : parts.blocked;
      sum.without += sides.without;
      sum.with += sides.with;
      any = true;
    }
    return any ? std::optional(parts) : std::nullopt;
  }
  if (!comparison_.host || comparison_.host->step.empty()) return std::nullopt;
  for (const model::HostChange& part : comparison_.host->step)
    (part.what == kOnCpu ? parts.on_cpu : part.what == kRunQueue ? parts.runnable : parts.blocked) = turned(part.value);
  return parts;
}

std::optional<Sides> Evidence::behind_others() const {
  const auto parts = step();
  if (!parts || !comparison_.host) return std::nullopt;
  const auto& share = comparison_.host->behind_others;
  if (!share[0] || !share[1]) return std::nullopt;
  const Sides shares = turned(share);
  return Sides{shares.without * parts->runnable.without, shares.with * parts->runnable.with};
}

std::vector<std::pair<std::string, Sides>> Evidence::all_states() const {
  std::vector<std::pair<std::string, Sides>> states;
  if (comparison_.work)
    for (const model::WorkChange& part : comparison_.work->parts) states.emplace_back(part.what, turned(part.value));
  else if (comparison_.host)
    for (const model::HostChange& state : comparison_.host->states)
      states.emplace_back(state.what, turned(state.value));
  return states;
}

double Evidence::states_of() const {
  if (comparison_.work) return std::max(1.0, turned(comparison_.work->worked.value).without);
  if (!comparison_.host) return 1;
  for (const model::HostChange& state : comparison_.host->states)
    if (state.what == "period") return std::max(1.0, turned(state.value).without);
  return 1e9;
}

std::vector<Beside> Evidence::more_beside() const {
  std::vector<Beside> more;
  if (!comparison_.host) return more;
  for (const model::HostChange& change : comparison_.host->beside) {
    const Sides cpus = turned(change.value);
    if (cpus.rise() > 0 && cpus.ratio() >= kNew) more.push_back({change.what, cpus, change.unit == "fraction"});
  }
  std::ranges::stable_sort(more, std::ranges::greater(), [](const Beside& b) { return b.cpus.rise(); });
  return more;
}

double Evidence::more_others() const {
  double sum = 0;
  if (!comparison_.host) return sum;
  for (const model::HostChange& change : comparison_.host->beside) {
    const Sides cpus = turned(change.value);
    if ((cpus.rise() > 0 && cpus.ratio() >= kNew) || cpus.with < kGone) sum += cpus.rise();
  }
  return sum;
}

std::vector<Evidence::DeviceResource> Evidence::resource(std::string_view metric) const {
  std::vector<DeviceResource> devices;
  for (const auto& [changes, moved] : {std::pair(&comparison_.resources, true), std::pair(&comparison_.steady, false)})
    for (const model::ResourceChange& change : *changes)
      if (change.metric == metric && change.value[0] && change.value[1])
        devices.push_back({{change.rank, change.device}, turned(change.value), moved, change.unit});
  return devices;
}

std::vector<Evidence::DeviceResource> Evidence::clocks() const {
  std::vector<DeviceResource> devices;
  for (const std::string_view name : {"gpu_sm_frequency", "GPU clock", "gpu_frequency"})
    for (DeviceResource& clock : resource(name))
      if (std::ranges::find(devices, clock.place, &DeviceResource::place) == devices.end())
        devices.push_back(std::move(clock));
  return devices;
}

std::optional<Evidence::DeviceResource> Evidence::clock_of(const Place& place) const {
  for (DeviceResource& clock : clocks())
    if (clock.place.device == place.device && (clock.place.rank == place.rank || clock.place.rank < 0))
      return std::move(clock);
  return std::nullopt;
}

std::optional<Evidence::DeviceResource> Evidence::resource_of(std::span<const std::string_view> metrics,
                                                              const Place& place) const {
  for (const std::string_view metric : metrics)
    for (DeviceResource& found : resource(metric))
      if (found.place.device == place.device && (found.place.rank == place.rank || found.place.rank < 0))
        return std::move(found);
  return std::nullopt;
}

bool Evidence::is_on_device(const model::FunctionFinding& finding) const {
  return comparison_.texts[finding.device] != "Host";
}

double Evidence::usual_ratio(bool device) const {
  constexpr std::size_t kFewest = 3;
  std::vector<double> ratios;
  for (const model::FunctionFinding& f : comparison_.functions)
    if (is_on_device(f) == device && f.work_ratio > 0 && std::isfinite(f.work_ratio))
      ratios.push_back(side_ == 1 ? f.work_ratio : 1 / f.work_ratio);
  return ratios.size() < kFewest ? 1 : stats::median(std::move(ratios));
}

Place Evidence::place_of(const model::FunctionFinding& finding) const {
  const auto& processes = comparison_.processes;
  return {finding.process < processes.size() ? processes[finding.process].rank : -1,
          std::string(comparison_.texts[finding.device])};
}

bool Evidence::has_ranks() const { return model::count_ranks(comparison_.processes) > 1; }

std::string Evidence::name_of(const Place& place) const {
  return place.rank >= 0 && has_ranks() ? fmt::format("{} of rank {}", place.device, place.rank) : place.device;
}

std::string Evidence::losses_that_differ() const {
  constexpr double kLeastTimes = 1.5;
  constexpr double kLeastOfEvents = 0.01;
  const auto lost = [&](std::size_t side, const std::string& reason) {
    const auto& losses = comparison_.sides[side].losses;
    const auto found = std::ranges::find(losses, reason, &model::LossCount::reason);
    return found == losses.end() ? 0.0 : static_cast<double>(found->count);
  };
  std::string text;
  double largest = 0;
  for (const model::ComparedSide& either : comparison_.sides)
    for (const model::LossCount& loss : either.losses) {
      const std::array counts = {lost(0, loss.reason), lost(1, loss.reason)};
      const std::size_t more = counts[1] > counts[0] ? 1 : 0;
      const double difference = counts[more] - counts[1 - more];
      if (counts[more] < kLeastTimes * counts[1 - more] || difference <= largest) continue;
      if (difference < kLeastOfEvents * static_cast<double>(comparison_.sides[more].events)) continue;
      largest = difference;
      text = fmt::format("The sides did not lose alike: {:.0f} {} in the baseline, {:.0f} in the candidate", counts[0],
                         loss.reason, counts[1]);
    }
  return text;
}

bool Evidence::doubts_cycles() const {
  constexpr double kSure = 0.8;
  return !comparison_.why.empty() && comparison_.outcome == Outcome::inconclusive &&
         std::ranges::any_of(comparison_.sides, [](const model::ComparedSide& side) {
           return side.period_confidence > 0 && side.period_confidence < kSure;
         });
}

std::optional<std::array<std::string, 2>> Evidence::fact(std::string_view key) const {
  const auto& facts = comparison_.environment;
  const auto found = std::ranges::find(facts, key, &model::EnvironmentChange::key);
  if (found == facts.end()) return std::nullopt;
  return std::array{found->value[1 - side_], found->value[side_]};
}

bool Evidence::is_slower() const {
  return comparison_.outcome == (side_ == 1 ? Outcome::regression : Outcome::improvement);
}

double Evidence::slowdown() const {
  const auto turn = [&](double change) {
    if (!std::isfinite(change) || change <= -1) return 0.0;
    return side_ == 1 ? change : 1 / (1 + change) - 1;
  };
  if (comparison_.alternation && !comparison_.alternation->changes.empty())
    return turn(comparison_.alternation->changes.front().change);
  if (comparison_.work) return turn(1 / (1 + comparison_.work->throughput.change) - 1);
  const model::CycleTimeOutcome* longest = model::longest_phase(comparison_.cycle_times);
  return longest == nullptr ? 0 : turn(longest->change);
}

double Evidence::waited_longer() const {
  return comparison_.work ? std::max(0.0, turned(comparison_.work->waited).rise()) : 0;
}

double Evidence::felt(double all_threads_ns) const {
  const auto parts = step();
  if (comparison_.work || !parts || comparison_.host->step_thread.empty()) return all_threads_ns;
  return std::min(all_threads_ns, std::max(0.0, parts->blocked.rise()));
}

template <class Counts>
std::optional<double> Evidence::idle_rise_where(model::Phase phase, const Counts& counts) const {
  for (const model::Waterfall& waterfall : comparison_.waterfalls) {
    if (waterfall.phase != phase || waterfall.device < 0) continue;
    double rise = 0;
    for (const model::WaterfallLine& line : waterfall.lines)
      if (line.state != model::LedgerState::function && line.state != model::LedgerState::no_work && counts(line))
        rise += turned(line.time_ns).rise();
    // It is the mean of the ranks; one alone may have waited for all of that.
    return rise * static_cast<double>(std::max<std::size_t>(1, model::count_ranks(comparison_.processes)));
  }
  return std::nullopt;
}

std::optional<double> Evidence::idle_rise(model::Phase phase) const {
  return idle_rise_where(phase, [](const model::WaterfallLine& line) {
    return line.state != model::LedgerState::idle_latency && line.state != model::LedgerState::idle_dependency;
  });
}

std::optional<double> Evidence::idle_rise(model::Phase phase, StringId function) const {
  return idle_rise_where(phase, [&](const model::WaterfallLine& line) {
    return line.function == function && line.state != model::LedgerState::idle_dependency;
  });
}

Evidence::LaunchedIdle Evidence::launched_idle(model::Phase phase, std::int32_t device) const {
  LaunchedIdle idle;
  for (const model::Waterfall& waterfall : comparison_.waterfalls) {
    if (waterfall.phase != phase || waterfall.device != device) continue;
    for (const model::WaterfallLine& line : waterfall.lines)
      if (line.state == model::LedgerState::idle_latency) {
        idle.time.without += turned(line.time_ns).without;
        idle.time.with += turned(line.time_ns).with;
        idle.apart = line.apart;
      }
  }
  return idle;
}

double Evidence::weight_of(model::Phase phase) const {
  double all = 0;
  double of_phase = 0;
  for (const model::CycleTimeOutcome& outcome : comparison_.cycle_times) {
    const auto cycles =
        static_cast<double>(outcome.cycles[0] + outcome.cycles[1] + outcome.other_work[0] + outcome.other_work[1]);
    all += cycles;
    if (outcome.phase == phase) of_phase += cycles;
  }
  return all > 0 ? of_phase / all : 1;
}

double Evidence::growth() const {
  // Of tables the parts are sums over threads.
  const bool of_step = comparison_.work || (comparison_.host && !comparison_.host->step_thread.empty());
  if (const auto parts = step(); parts && of_step) return parts->all().rise();
  double growth = 0;
  for (const model::CycleTimeOutcome& outcome : comparison_.cycle_times) {
    const double rise = turned(outcome.time_ns).rise();
    if (std::isfinite(rise)) growth += weight_of(outcome.phase) * rise;
  }
  return growth;
}

double Evidence::growth_of_all() const {
  double growth = 0;
  for (const model::CycleTimeOutcome& outcome : comparison_.cycle_times)
    growth += weight_of(outcome.phase) * turned(outcome.all_ns).rise();
  return growth;
}

bool Evidence::tells_work() const {
  return std::ranges::any_of(comparison_.cycle_times, [](const model::CycleTimeOutcome& outcome) {
    return !outcome.usual_work[0].empty() && !outcome.usual_work[1].empty();
  });
}

bool Evidence::has_longer_contexts(model::Phase phase) const {
  const auto& outcomes = comparison_.cycle_times;
  const auto looks_back = [&](const model::CycleTimeOutcome& o) {
    return o.phase == phase && model::looks_back_unseen(o);
  };
  return std::ranges::any_of(outcomes, looks_back) && model::has_longer_prompts(outcomes, side_);
}

model::VerdictState Evidence::state_of(double impact, double of_phase) const {
  constexpr double kOfStep = 0.05;
  constexpr double kOfGrowth = 0.4;
  const double step = mean_step();
  const bool matters = !(step > 0) || of_phase >= kOfStep || impact >= kOfStep * step ||
                       (growth() > 0 && impact >= kOfGrowth * growth());
  return is_slower() && matters ? model::VerdictState::active : model::VerdictState::latent;
}

double Evidence::step_time(model::Phase phase) const {
  for (const model::CycleTimeOutcome& outcome : comparison_.cycle_times)
    if (outcome.phase == phase && outcome.time_ns[1 - side_] > 0) return outcome.time_ns[1 - side_];
  return mean_step();
}

double Evidence::mean_step() const {
  double time = 0;
  for (const model::CycleTimeOutcome& outcome : comparison_.cycle_times)
    if (outcome.time_ns[1 - side_] > 0) time += weight_of(outcome.phase) * outcome.time_ns[1 - side_];
  return time;
}

}  // namespace culprit::diagnose
