#include "compare/held_back.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "compare/bystanders.h"
#include "compare/cycle_time.h"
#include "compare/host_changes.h"
#include "compare/other_load.h"
#include "core/units.h"
#include "stats/quantile.h"

namespace culprit::compare {

namespace {

/// What a step waited longer for a CPU, as a share of the other side's step.
struct WaitedLonger {
  double in_all = 0;
  double for_others = 0;  ///< that had it meanwhile; 0: not known
};

WaitedLonger waited_longer(const model::HostChanges& host, std::size_t side) {
  double all = 0;
  std::array<double, 2> waited{};
  for (const model::HostChange& part : host.step) {
    all += part.value[1 - side].value_or(0);
    if (part.what == kInRunQueue)
      for (std::size_t s = 0; s < 2; ++s) waited[s] = part.value[s].value_or(0);
  }
  if (!(all > 0)) return {};
  WaitedLonger longer{(waited[side] - waited[1 - side]) / all};
  if (host.behind_others[0] && host.behind_others[1])
    longer.for_others =
        (waited[side] * *host.behind_others[side] - waited[1 - side] * *host.behind_others[1 - side]) / all;
  return longer;
}

}  // namespace

bool was_held_back(const model::HostChanges& host, std::size_t side, double least) {
  constexpr double kMuch = 0.1;
  constexpr double kFelt = 0.4;      // CPUs
  constexpr double kFewCpus = 0.35;  // who spins leaves others little, and waits for its own threads behind them
  constexpr double kFarLonger = 0.3;
  const WaitedLonger longer = waited_longer(host, side);
  if (longer.for_others >= std::max(kMuch, least)) return true;
  const auto more = [&](const model::HostChange& c) {
    return c.value[side].value_or(0) - c.value[1 - side].value_or(0);
  };
  double cpus = 0;
  for (const model::HostChange& other : host.beside) cpus += more(other);
  if (cpus >= kFelt && longer.in_all >= kMuch) return true;
  if (cpus >= kFewCpus && longer.in_all >= kFarLonger) return true;
  double throttled = 0;
  for (const model::HostChange& counter : host.counters)
    if (counter.what == kThrottledTime) throttled = more(counter);
  return compare::was_held_back(cpus, throttled);
}

bool answered_later(const model::HostChanges& host, std::size_t side) {
  return std::ranges::any_of(host.requests, [&](const model::RequestChange& change) {
    return change.what == "time per output token" && change.moved && change.median[side] > change.median[1 - side];
  });
}

bool waits_together(const model::HostChanges& host, std::size_t side) {
  constexpr double kFewer = 0.9;
  const auto& answered = host.answered_per_second;
  return answered_later(host, side) && answered[side] > 0 && answered[side] < kFewer * answered[1 - side];
}

namespace {

constexpr std::size_t kFewestSteps = 30;  // of a phase; one stall among fewer is a large part of their mean
constexpr double kTypical = 0.05;
constexpr double kFarLater = 0.5;  // of fewer steps: no one stall
constexpr double kMostly = 0.5;    // of what a step takes

using PerPhase = std::array<double, model::kPhases.size()>;

/// Of phases with enough steps on both sides, both sides together, so that swapping them changes nothing; 0: of none.
PerPhase weights_of(const std::array<const model::HostEvidence*, 2>& evidence) {
  PerPhase weights{};
  double all = 0;
  for (std::size_t p = 0; p < weights.size(); ++p) {
    const std::array n = {evidence[0]->cycles[p], evidence[1]->cycles[p]};
    if (std::min(n[0], n[1]) >= kFewestSteps) all += weights[p] = static_cast<double>(n[0] + n[1]);
  }
  for (double& weight : weights) weight = all > 0 ? weight / all : 0;
  return weights;
}

Waited waited(const model::HostEvidence& side, const PerPhase& weights) {
  Waited times;
  for (std::size_t p = 0; p < weights.size(); ++p) {
    if (weights[p] == 0) continue;
    const double per_step = weights[p] / static_cast<double>(side.cycles[p]);
    times.for_cpu += per_step * side.step->runnable[p];
    times.all += per_step * (side.step->on_cpu[p] + side.step->runnable[p] + side.step->blocked[p]);
  }
  return times;
}

/// How much longer the geometric mean of the side's periods is, over the same phases.
double typically_longer(const std::vector<model::CycleTimeOutcome>& periods, const PerPhase& weights,
                        std::size_t side) {
  double log = 0;
  for (const model::CycleTimeOutcome& period : periods)
    if (const double weight = weights[static_cast<std::size_t>(period.phase)]; weight > 0 && is_judged(period))
      log += weight * std::log1p(period.change);
  return std::expm1(side == 1 ? log : -log);
}

bool is_mostly_other(const model::CycleTimeOutcome& outcome) {
  constexpr double kMostOther = 0.5;
  return outcome.other_share > kMostOther && model::tells_usual_work(outcome);
}

/// Half of the steps of a phase work on something else, and the side has more to do in them.
bool may_be_slower_by_work(const model::RunComparison& result, std::size_t side, bool together = false) {
  return std::ranges::any_of(result.cycle_times, [&](const model::CycleTimeOutcome& o) {
    return is_mostly_other(o) && has_more_to_do(o, side) && !waits_for_itself(o, together);
  });
}

/// Of a step whatever it works on, in the mean: of the thread that runs them, and of that what it did not sleep.
std::array<double, 2> taken_and_awake(const model::HostEvidence& side) {
  std::array<double, 2> times{};
  double steps = 0;
  for (std::size_t p = 0; p < side.cycles.size(); ++p) {
    const double awake = side.step->on_cpu[p] + side.step->runnable[p];
    times[0] += awake + side.step->blocked[p];
    times[1] += awake;
    steps += static_cast<double>(side.cycles[p]);
  }
  for (double& time : times) time = steps > 0 ? time / steps : 0;
  return times;
}

/// Few long steps decide neither a typical step nor a mean, but fill most of the time where there is one after the
/// other: then in most stretches of the side fewer steps begin than in hardly any of the other.
std::string fewer_most_of_the_time(const std::array<const model::HostEvidence*, 2>& evidence, std::size_t side) {
  constexpr std::size_t kFewestStretches = 8;
  constexpr double kFew = 0.7;     // of the steps; two recordings of the same, minutes apart, have more
  constexpr double kHardly = 0.1;  // of the other side's stretches
  std::array<std::vector<double>, 2> steps;
  std::array<double, 2> mean{};
  std::array<double, 2> typical{};
  for (std::size_t s = 0; s < 2; ++s) {
    for (const model::Stretch& stretch : evidence[s]->stretches) steps[s].push_back(stretch.steps);
    if (steps[s].size() < kFewestStretches) return {};
    std::ranges::sort(steps[s]);
    mean[s] = std::reduce(steps[s].begin(), steps[s].end()) / static_cast<double>(steps[s].size());
    typical[s] = stats::quantile_of_sorted(std::span<const double>(steps[s]), 0.5);
  }
  const std::vector<double>& mine = steps.at(side);
  const double hardly = stats::quantile_of_sorted(std::span<const double>(steps.at(1 - side)), kHardly);
  const auto below = std::ranges::lower_bound(mine, hardly) - mine.begin();
  if (mean.at(side) > kFew * mean.at(1 - side) || typical.at(side) > kFew * typical.at(1 - side) ||
      static_cast<double>(below) <= kMostly * static_cast<double>(mine.size()))
    return {};
  // Whoever is asked for less sleeps longer.
  const std::array longer = {taken_and_awake(*evidence.at(side)), taken_and_awake(*evidence.at(1 - side))};
  const double rise = longer[0][0] - longer[1][0];
  if (rise <= 0 || longer[0][1] - longer[1][1] < kMostly * rise) return {};
  return fmt::format(
      "In most half seconds the {} did fewer steps than the {} in nine of ten, {:.3g} instead of {:.3g} in the median, "
      "while others took its CPUs; by how much a step is longer is not decided",
      model::kSideNames.at(side), model::kSideNames.at(1 - side), typical.at(side), typical.at(1 - side));
}

bool is_shown(const std::vector<model::CycleTimeOutcome>& outcomes, model::Outcome outcome) {
  return std::ranges::find(outcomes, outcome, &model::CycleTimeOutcome::outcome) != outcomes.end();
}

/// Whether a phase is shown to be the other way round, by its steps or their periods.
bool is_contradicted(const model::RunComparison& result, const std::vector<model::CycleTimeOutcome>& periods,
                     std::size_t side) {
  return is_shown(periods, slower_by(1 - side)) || is_shown(result.cycle_times, slower_by(1 - side));
}

}  // namespace

std::string why_later(const model::RunComparison& result, const std::vector<model::CycleTimeOutcome>& periods,
                      std::size_t side) {
  if (!is_shown(periods, slower_by(side)) || is_contradicted(result, periods, side) ||
      may_be_slower_by_work(result, side, waits_together(*result.host, side)))
    return {};
  return fmt::format(
      "What a step itself took is not shown to differ; the time until the next one is, and requests to the {} waited "
      "longer for each token",
      model::kSideNames.at(side));
}

std::string why_slower(const model::RunComparison& result, const std::vector<model::CycleTimeOutcome>& periods,
                       const std::array<const model::HostEvidence*, 2>& evidence, std::size_t side) {
  if (is_contradicted(result, periods, side)) return {};
  if (is_shown(periods, slower_by(side)))
    return fmt::format(
        "What a step itself took is not shown to differ; the time until the next one is, and others took the CPUs of "
        "the {}",
        model::kSideNames.at(side));
  if (may_be_slower_by_work(result, side)) return {};
  if (!evidence[0]->step || !evidence[1]->step) return {};
  const PerPhase weights = weights_of(evidence);
  const Waited mine = waited(*evidence[side], weights);
  const Waited others = waited(*evidence[1 - side], weights);
  const double longer = surely_longer(mine, others);
  // One stall among many steps is most of the time when it is longer than all of them.
  const bool mostly = mine.for_cpu >= kMostly * mine.all || typically_longer(periods, weights, side) >= kTypical;
  if (longer == 0 || !mostly) return fewer_most_of_the_time(evidence, side);
  return fmt::format(
      "On the average a step of the {} waited {} instead of {} for a CPU, by which it is {:.0f} % longer at least; by "
      "how much in all is not decided",
      model::kSideNames.at(side), format_duration(mine.for_cpu), format_duration(others.for_cpu), longer * 100);
}

std::string why_undecided(model::Outcome outcome, const std::vector<model::CycleTimeOutcome>& periods) {
  if (outcome != model::Outcome::regression && outcome != model::Outcome::improvement) return {};
  const std::size_t faster = outcome == slower_by(1) ? 0 : 1;
  const auto later_by = [&](std::size_t fewest) {
    PerPhase weights{};
    double all = 0;
    for (const model::CycleTimeOutcome& period : periods)
      if (std::ranges::min(period.cycles) >= fewest)
        all += weights.at(static_cast<std::size_t>(period.phase)) =
            static_cast<double>(period.cycles[0] + period.cycles[1]);
    for (double& weight : weights) weight = all > 0 ? weight / all : 0;
    return all > 0 ? std::optional(typically_longer(periods, weights, faster)) : std::nullopt;
  };
  const auto of_many = later_by(kFewestSteps);
  const double later = of_many ? *of_many : later_by(1).value_or(0);
  if (later < (of_many ? kTypical : kFarLater)) return {};
  return fmt::format(
      "steps of the {} themselves take less, and the next one comes {:.0f} % later: what lies between them is slower, "
      "or there was less to do",
      model::kSideNames.at(faster), later * 100);
}

}  // namespace culprit::compare
