#include "compare/compare_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "compare/align_ranks.h"
#include "compare/assumed.h"
#include "compare/call_counts.h"
#include "compare/collected.h"
#include "compare/collectives.h"
#include "compare/comparable.h"
#include "compare/counter_changes.h"
#include "compare/cycle_time.h"
#include "compare/earlier.h"
#include "compare/environment.h"
#include "compare/functions.h"
#include "compare/held_back.h"
#include "compare/host_changes.h"
#include "compare/judge_phases.h"
#include "compare/kernel_sizes.h"
#include "compare/machine.h"
#include "compare/other_load.h"
#include "compare/pooled_side.h"
#include "compare/resources.h"
#include "compare/roles.h"
#include "compare/run_facts.h"
#include "compare/shared_slowdown.h"
#include "compare/sides.h"
#include "compare/standstill.h"
#include "compare/waterfall.h"
#include "compare/whole_run.h"
#include "compare/work.h"
#include "compare/work_outcome.h"
#include "compare/workload.h"

namespace culprit::compare {

namespace {

using model::Comparability;
using model::Comparable;
using model::kSideNames;
using model::Outcome;
using model::Recording;
using model::RunComparison;

/// What each rank that both sides have took, where that is more than one.
std::vector<model::CycleTimeOutcome> times_of_ranks(const PooledSide& base, const PooledSide& candidate,
                                                    const HowToJudge& how, bool in_doubt) {
  std::vector<model::CycleTimeOutcome> all;
  for (const auto& [rank, times] : base.times_of_rank) {
    const auto other = candidate.times_of_rank.find(rank);
    if (other == candidate.times_of_rank.end()) continue;
    WorkOfPhase matched;
    for (model::CycleTimeOutcome& outcome :
         judge_phases({StepsOfSide{times, &base.profile, base.taken()},
                       StepsOfSide{other->second, &candidate.profile, candidate.taken()}},
                      how, matched)) {
      if (!model::is_judged(outcome)) continue;
      outcome.rank = rank;
      if (in_doubt) outcome.outcome = Outcome::inconclusive;
      all.push_back(std::move(outcome));
    }
  }
  if (std::ranges::all_of(all, [&](const auto& o) { return o.rank == all.front().rank; })) all.clear();
  std::ranges::stable_sort(all, {}, &model::CycleTimeOutcome::phase);
  return all;
}

/// Functions of steps whose like the other side lacks are not held against others.
void leave_out_other_work(model::Profile& profile, const WorkOfPhase& matched) {
  for (model::ProfileCycle& cycle : profile.cycles)
    if (const auto work = matched.find(cycle.phase); work != matched.end()) {
      const WorkClass of_cycle = work_class(cycle.workload, cycle.phase);
      cycle.other_work = of_cycle != WorkClass() && !work->second.classes.contains(of_cycle);
    }
}

/// A sentence for each phase in which the sides did not do the same work.
std::vector<std::string> other_mix_of_work(const std::vector<model::CycleTimeOutcome>& outcomes,
                                           const WorkOfPhase& matched) {
  std::vector<std::string> sentences;
  for (const model::CycleTimeOutcome& o : outcomes) {
    const auto work = matched.find(o.phase);
    if (work == matched.end() || !work->second.mix_differs || !model::is_judged(o)) continue;
    std::string sentence = fmt::format("The mix of work differs ({})", model::phase_name(o.phase));
    if (o.usual_work[0] != o.usual_work[1])
      sentence += fmt::format(": steps of the baseline are most often of {}, of the candidate of {}", o.usual_work[0],
                              o.usual_work[1]);
    sentence += "; steps of like work are compared";
    if (o.other_work[0] + o.other_work[1] > 0)
      sentence +=
          fmt::format(", {} of the baseline and {} of the candidate have no like", o.other_work[0], o.other_work[1]);
    sentences.push_back(std::move(sentence));
  }
  return sentences;
}

/// That so much was lost that no outcome may rest on it, or nothing.
std::string losses(const std::array<model::ComparedSide, 2>& sides, const CompareOptions& options) {
  for (std::size_t s = 0; s < sides.size(); ++s) {
    const auto lost = static_cast<double>(sides[s].events_lost);
    const double all = lost + static_cast<double>(sides[s].events);
    if (lost > options.most_lost * all)
      return fmt::format("{} of {} events of the {} were lost", sides[s].events_lost,
                         sides[s].events + sides[s].events_lost, kSideNames[s]);
  }
  return {};
}

/// Why no outcome may rest on these recordings, or nothing.
std::string doubt(const std::array<model::ComparedSide, 2>& sides, bool judged, const CompareOptions& options) {
  if (!judged) return "no phase has a whole cycle, with an end that is known, on both sides";
  for (std::size_t s = 0; s < sides.size(); ++s)
    if (sides[s].period_confidence < options.least_confidence)
      return fmt::format("it is not sure that a cycle of the {} is one step ({:.0f} %: {})", kSideNames[s],
                         sides[s].period_confidence * 100, sides[s].reason);
  return losses(sides, options);
}

/// Both sides are one recording.
RunComparison same_recording(std::span<const Recording> recordings, bool cut) {
  RunComparison result;
  result.same_recording = true;
  if (cut) result.notes.emplace_back("One of the two files holds only a part of it");
  result.outcome = Outcome::no_change;
  result.sides = {describe(recordings), describe(recordings)};
  return result;
}

void compare_hosts(const PooledSide& base, const PooledSide& candidate, RunComparison& result) {
  if (base.host.per_second != candidate.host.per_second) return;  // a step is no second
  model::HostChanges host = host_changes(base.host, candidate.host);
  if (!host.states.empty() || !host.counters.empty() || !host.requests.empty()) result.host = std::move(host);
}

struct OfMachine {
  std::optional<model::MachineChange> all;
  std::optional<model::MachineChange> memory;
};

void add_machine(const OfMachine& machine, RunComparison& result) {
  if (!machine.all && !machine.memory) return;
  if (!result.host) result.host.emplace();
  result.host->machine = machine.all;
  result.host->memory = machine.memory;
}

/// Whether the spread of counters inside the recordings is known.
bool have_windows(std::span<const Recording> side) {
  return std::ranges::any_of(side, [](const Recording& recording) {
    return std::ranges::any_of(recording.host.counters, [](const auto& counter) { return counter.windows.size() > 1; });
  });
}

/// Instead of all that differ, those that moved by more than they spread.
void keep_moved(RunComparison& result, CounterChanges counters) {
  if (!result.host) return;
  result.host->counters = std::move(counters.moved);
  result.host->unshown = std::move(counters.unshown);
  result.host->counters_alike = 0;
  constexpr std::size_t kMostShown = 10;
  result.host->most_counters = kMostShown;
}

}  // namespace

Comparability comparability_of(std::span<const Recording> base, std::span<const Recording> candidate) {
  Comparability result;
  result.differences = differences_of(facts_of(base), facts_of(candidate));
  std::string blocking;
  for (const model::Difference& d : result.differences)
    if (d.blocks)
      blocking += fmt::format("{}{} {} against {}", blocking.empty() ? "" : "; ", d.what, d.base, d.candidate);
  const auto refuse = [&](std::string reason, std::string remedy) {
    result.level = Comparable::no;
    result.reasons = {std::move(reason)};
    result.remedy = std::move(remedy);
    return result;
  };
  if (!blocking.empty())
    return refuse(blocking, facts_of(base).gpu_work != facts_of(candidate).gpu_work
                                ? "Record the GPU's work on both sides, or leave it out on both"
                                : "Compare runs on devices of one model and with the same number of ranks");
  if (are_of_work(base, candidate)) {
    if (auto why = why_no_common_work(base, candidate)) return refuse(std::move(why->reason), std::move(why->remedy));
    if (std::ranges::any_of(result.differences, &model::Difference::first)) result.level = Comparable::partly;
    return result;
  }
  if (auto why = why_one_is_idle(base, candidate)) return refuse(std::move(why->reason), std::move(why->remedy));
  model::Cycles a = cycles_of(base);
  model::Cycles b = cycles_of(candidate);
  if (auto told = work_told_by_one(a, b)) {
    forget_work(a.cycles);
    forget_work(b.cycles);
    result.reasons.push_back(std::move(*told));
  } else if (needs_forgetting(a, b)) {
    forget_guessed_phases(a.cycles);
    forget_guessed_phases(b.cycles);
    result.reasons.emplace_back("Phases that were guessed from names of kernels differ and are not told apart");
  }
  if (auto why = why_not_comparable(a, b)) return refuse(std::move(why->reason), std::move(why->remedy));
  if (auto mix = other_mix_of_phases(a, b)) result.reasons.push_back(std::move(*mix));
  for (const model::Difference& d : result.differences)
    if (!d.first) result.reasons.push_back(fmt::format("{} differ: {} against {}", d.what, d.base, d.candidate));
  if (!result.reasons.empty() || !result.differences.empty()) result.level = Comparable::partly;
  return result;
}

namespace {

/// Where there is a reason.
void leave_undecided(RunComparison& result, std::string why) {
  if (why.empty()) return;
  result.why = std::move(why);
  for (model::CycleTimeOutcome& outcome : result.cycle_times) outcome.outcome = Outcome::inconclusive;
  result.outcome = Outcome::inconclusive;
}

}  // namespace

Result<RunComparison> compare_runs(std::vector<Recording> base, std::vector<Recording> candidate,
                                   const CompareOptions& options, std::span<const Recording> earlier) {
  if (base.size() == 1 && candidate.size() == 1 && base[0].digest != 0 && base[0].digest == candidate[0].digest)
    return same_recording(base, base[0].is_part || candidate[0].is_part);
  RunComparison result;
  result.notes = set_aside(base, candidate);
  if (const Status status = check_sides(base, candidate); !status) return status.error();
  put_in_order(base);
  put_in_order(candidate);
  align_ranks(base, candidate);
  result.comparability = comparability_of(base, candidate);
  const bool untold = work_told_by_one(cycles_of(base), cycles_of(candidate)).has_value();
  if (untold)
    for (auto* side : {&base, &candidate}) std::ranges::for_each(*side, forget_work_of);
  result.sides = {describe(base), describe(candidate)};
  const bool is_complete = losses(result.sides, options).empty();
  if (is_complete) result.standstill = standstill_of(base, candidate, result.comparability);
  if (is_complete) result.stuck = stuck_side(base, candidate);
  if (is_complete) result.deadlocked = deadlocked_side(base, candidate);
  result.whole = whole_runs(base, candidate);
  const EarlierRecordings chosen = choose_earlier(earlier, base, candidate);
  std::ranges::move(notes_on(chosen), std::back_inserter(result.notes));
  Known known;
  const bool by_context = align_cached_tokens(base, candidate, chosen.of_the_same);
  for (const Recording* recording : chosen.of_the_same) {
    model::Cycles cycles = recording->cycles;
    if (!by_context)
      for (model::Cycle& cycle : cycles.cycles) cycle.workload.cached_tokens = -1;
    if (untold) forget_work(cycles.cycles);
    known.earlier.push_back(step_times(cycles));
  }
  std::optional<model::WorkComparison> work;
  bool apart = false;
  CounterChanges counters;
  if (result.comparability.level != Comparable::no && are_of_work(base, candidate)) {
    WorkOptions of_work;
    of_work.tolerance = options.tolerance;
    of_work.least_confidence = options.least_confidence;
    of_work.earlier = chosen.of_the_same;
    work = compare_work(base, candidate, of_work);
    apart = work_far_apart(base, candidate);
    limit_by_uncounted(*work, base, candidate, options.most_lost);
    if (std::string assumed = assumption_of(*work); !assumed.empty()) result.assumptions.push_back(std::move(assumed));
    add_quantiles(base, candidate, work->calls);
    if (!work->unit.count_error) std::ranges::move(estimate_notes(base, candidate), std::back_inserter(result.notes));
    for (model::ComparedSide& side : result.sides) side.method = model::CycleMethod::work_unit;
  }
  const bool windows = have_windows(base) && have_windows(candidate);
  if (windows) counters = counter_changes(base, candidate);
  const OfMachine machine{machine_change(base, candidate), memory_change(base, candidate)};
  known.machine_moved = machine.all.has_value();
  if (result.comparability.level != Comparable::no)
    compare_collected(base, candidate, work ? &work->unit : nullptr, result);
  const std::array facts = {facts_of(base), facts_of(candidate)};
  const bool on_host = !facts[0].gpu_work;
  PooledSide a = pool(std::move(base));
  PooledSide b = pool(std::move(candidate));
  result.environment = environment_changes(a.environment, b.environment);
  if (result.standstill && !result.standstill->compared) {
    result.comparability.level = Comparable::partly;
    result.comparability.reasons = {standstill_text(*result.standstill)};
    result.comparability.remedy.clear();
    result.outcome = slower_by(result.standstill->side);
    result.host = surroundings_of(a.host, b.host);
    return result;
  }
  if (result.comparability.level == Comparable::no) {
    result.outcome = Outcome::not_comparable;
    result.why = result.comparability.reasons.front();
    if (a.host.per_second && b.host.per_second) compare_hosts(a, b, result);
    if (a.host.per_second != b.host.per_second)
      if (model::HostChanges around = surroundings_of(a.host, b.host);
          !around.beside.empty() || !around.counters.empty())
        result.host = std::move(around);
    if (facts[0].device_models == facts[1].device_models) {
      result.resources = resource_changes(a.resources, b.resources, result.steady);
      result.resources_alike = result.steady.size();
    }
    return result;
  }
  if (work) {
    result.work = std::move(work);
    result.outcome = result.work->outcome;
    result.why = result.work->why;
    if (const std::string lost = losses(result.sides, options); !lost.empty()) {
      result.why = lost;
      result.outcome = result.work->outcome = Outcome::inconclusive;
    }
    compare_hosts(a, b, result);
    keep_moved(result, std::move(counters));
    add_machine(machine, result);
    if (std::string shared = apart ? why_units_shared(result) : ""; !shared.empty()) {
      result.shared_by_all = true;
      result.work->outcome = Outcome::inconclusive;
      result.work->why = shared;
      leave_undecided(result, std::move(shared));
    }
    return result;
  }
  const bool forget = needs_forgetting(a.cycles, b.cycles);
  if (forget)
    for (PooledSide* side : {&a, &b}) {
      forget_guessed_phases(side->cycles.cycles);
      forget_guessed_phases(side->profile.cycles);
      if (std::ranges::all_of(side->cycles.cycles, [](const auto& c) { return c.phase == model::Phase::other; }))
        forget_phases(side->host);
    }
  const std::vector<model::Phase> phases = common_phases(a.cycles, b.cycles);
  WorkOfPhase matched;
  const HowToJudge how{phases, forget, on_host, options, known};
  result.cycle_times = judge_phases({a.steps(), b.steps()}, how, matched);
  result.why = doubt(result.sides, !result.cycle_times.empty(), options);
  if (result.why.empty() && std::ranges::none_of(result.cycle_times, model::is_judged))
    result.why = "the sides have no steps of like work";
  if (auto mix = other_mix_of_work(result.cycle_times, matched); !mix.empty()) {
    std::ranges::move(mix, std::back_inserter(result.comparability.reasons));
    result.comparability.level = Comparable::partly;
  }
  compare_hosts(a, b, result);
  const bool together = result.host && (waits_together(*result.host, 0) || waits_together(*result.host, 1));
  const auto by_load = on_host ? may_be_slower_by_load(result.cycle_times, together) : std::array<bool, 2>{};
  for (std::size_t side = 0; side < 2; ++side)
    if (by_load.at(side) && result.why.empty() &&
        std::ranges::find(result.cycle_times, slower_by(side), &model::CycleTimeOutcome::outcome) !=
            result.cycle_times.end())
      result.why = "more than half of the steps work on something that those of the other side do not";
  if (!result.why.empty())
    for (model::CycleTimeOutcome& outcome : result.cycle_times) outcome.outcome = Outcome::inconclusive;
  std::vector<std::string> longer_contexts = leave_open_longer_contexts(result.cycle_times);
  result.outcome = overall(result.cycle_times);
  result.rank_times = times_of_ranks(a, b, how, !result.why.empty());
  double between = options.between;
  for (const model::CycleTimeOutcome& outcome : result.cycle_times) between = std::max(between, outcome.between);
  double assumed = options.between;
  for (const model::CycleTimeOutcome& outcome : result.cycle_times)
    if (outcome.recordings[0] == 0 && outcome.earlier == 0) assumed = std::max(assumed, outcome.between);
  if (!is_measured(result.cycle_times))
    result.assumptions.push_back(fmt::format("two recordings of the same differ by {:.2g} % (standard deviation){}",
                                             assumed * 100, on_host ? ", at least what each drifts inside" : ""));
  else if (std::ranges::any_of(result.cycle_times, [](const auto& o) { return o.recordings[0] > 0; }) &&
           !in_turns(a.taken(), b.taken()))
    result.assumptions.push_back(
        fmt::format("sides that were not recorded in turns differ by {:g} % more (standard deviation)",
                    (on_host ? options.between_on_host : options.between) * 100));

  if (!forget)
    for (PooledSide* side : {&a, &b}) leave_out_other_work(side->profile, matched);
  Roles roles = match_roles(a.profile, b.profile);
  FunctionOptions of_functions;
  of_functions.tolerance = options.function_tolerance;
  of_functions.cycle_tolerance = options.tolerance;
  of_functions.between = options.between;
  if (on_host) of_functions.between_on_host = std::max(options.between_on_host, between);
  of_functions.in_turns = in_turns(a.taken(), b.taken());
  if (far_apart(a.taken(), b.taken())) of_functions.own_drift = kLooseOwnDrift;
  of_functions.without_scheduling = a.host.scheduling || b.host.scheduling;
  of_functions.left_out = captured_on_one_side(facts[0], facts[1]);
  result.profiled_alone = profiled_alone(facts[0], facts[1]);
  result.recorded_deep = std::ranges::all_of(
      facts, [](const model::RunFacts& side) { return side.presets == std::set<std::string>{"deep"}; });
  if (!of_functions.left_out.empty())
    result.notes.emplace_back(
        "Functions of the host that one side alone captured, and what lies between functions, are not compared");
  result.functions = compare_functions(a.profile, b.profile, roles, phases, result.texts, of_functions);
  result.processes = std::move(roles.pairs);
  if (result.why.empty()) leave_undecided(result, other_kernel_sizes(result));
  use_new_names(a.profile, result.functions, result.texts);
  result.waterfalls = waterfalls_of(a.profile, b.profile, phases, result.texts);
  result.calls = calls_changes(result.functions, result.waterfalls, result.texts);
  const auto hosts = late_hosts_of(a.profile, b.profile, result.waterfalls, result.texts);
  std::ranges::copy(calls_changes(result.functions, hosts, result.texts), std::back_inserter(result.calls));
  result.collectives = collective_changes(a.collectives, b.collectives, forget);
  result.resources = resource_changes(a.resources, b.resources, result.steady);
  result.resources_alike = result.steady.size();
  if (windows) keep_moved(result, std::move(counters));
  add_machine(machine, result);
  // Of the period alone nothing follows, it is demand, too; unless it is known what the program waited for.
  const bool may_be_contexts = !longer_contexts.empty();
  std::ranges::move(longer_contexts, std::back_inserter(result.notes));
  const auto judge_periods = [&](std::array<bool, 2> disturbed) {
    return judge_phases({a.steps(), b.steps()}, how, matched, {&StepTime::period, disturbed});
  };
  if (on_host && result.why.empty() &&
      (result.outcome == Outcome::regression || result.outcome == Outcome::improvement))
    leave_undecided(result, why_undecided(result.outcome, judge_periods({})));
  if (on_host && result.outcome == Outcome::inconclusive && result.why.empty() && !may_be_contexts && result.host) {
    std::array<std::string, 2> slower;
    for (std::size_t side = 0; side < 2; ++side)
      if (by_load.at(side))
        continue;
      else if (was_held_back(*result.host, side))
        slower[side] = why_slower(result, judge_periods({side == 0, side == 1}), {&a.host, &b.host}, side);
      else if (answered_later(*result.host, side))
        slower[side] = why_later(result, judge_periods({}), side);
    if (slower[0].empty() != slower[1].empty()) {
      const std::size_t side = slower[0].empty() ? 1 : 0;
      result.outcome = side == 1 ? Outcome::regression : Outcome::improvement;
      result.notes.push_back(std::move(slower[side]));
    }
  }
  if (on_host) {
    std::string shared = why_shared(result, far_apart(a.taken(), b.taken()));
    result.shared_by_all = !shared.empty();
    leave_undecided(result, std::move(shared));
  }
  if (result.standstill) {  // whatever the steps before it took
    result.why.clear();
    result.outcome = slower_by(result.standstill->side);
    result.notes.push_back(standstill_text(*result.standstill));
  } else if (result.stuck && result.outcome == slower_by(result.stuck->side)) {
    result.notes.push_back(stuck_text(*result.stuck));
  } else if (result.stuck) {
    leave_undecided(result, stuck_text(*result.stuck));
  }
  return result;
}

}  // namespace culprit::compare
