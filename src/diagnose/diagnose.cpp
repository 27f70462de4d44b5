#include "diagnose/diagnose.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "diagnose/cpu.h"
#include "diagnose/rules.h"
#include "diagnose/text.h"
#include "diagnose/thresholds.h"
#include "model/ledger.h"

namespace culprit::diagnose {

namespace {

constexpr const char* kUnknown = "unknown";

using model::Verdict;
using model::VerdictState;

/// Of what two verdicts explain.
enum class Time : std::uint8_t { of_its_own, the_same };

/// A verdict that another one explains goes; what it saw stays as evidence.
template <class IsExplained>
void absorb(Verdicts& verdicts, std::string_view by_cause, std::string_view by_detail, const IsExplained& is_explained,
            Time time = Time::of_its_own) {
  const auto by = std::ranges::find_if(
      verdicts, [&](const Verdict& v) { return v.cause == by_cause && (by_detail.empty() || v.detail == by_detail); });
  if (by == verdicts.end()) return;
  Verdict& stays = *by;
  for (Verdict& v : verdicts)
    if (&v != &stays && is_explained(v)) {
      if (std::isfinite(v.impact_ns)) {
        const double own = std::isfinite(stays.impact_ns) ? stays.impact_ns : 0;
        stays.impact_ns = time == Time::the_same ? std::max(own, v.impact_ns) : own + v.impact_ns;
      }
      for (std::string& sentence : v.evidence)
        if (std::ranges::find(stays.evidence, sentence) == stays.evidence.end())
          stays.evidence.push_back(std::move(sentence));
      v.cause.clear();
    }
  std::erase_if(verdicts, [](const Verdict& v) { return v.cause.empty(); });
}

void absorb(Verdicts& verdicts, std::string_view by_cause, std::string_view by_detail, std::string_view cause,
            std::string_view detail, Time time = Time::of_its_own) {
  absorb(
      verdicts, by_cause, by_detail, [&](const Verdict& v) { return v.cause == cause && v.detail == detail; }, time);
}

/// The same of several devices is one.
void merge_devices(Verdicts& verdicts) {
  for (std::size_t i = 0; i < verdicts.size(); ++i) {
    Verdict& first = verdicts[i];
    if (first.rank < 0 || first.scope != model::VerdictScope::device) continue;
    std::size_t others = 0;
    std::set<std::int32_t> ranks = {first.rank};
    for (std::size_t k = i + 1; k < verdicts.size(); ++k) {
      Verdict& other = verdicts[k];
      if (other.cause != first.cause || other.detail != first.detail || other.scope != first.scope) continue;
      ranks.insert(other.rank);
      if (other.impact_ns > first.impact_ns) std::swap(first, other);
      other.cause.clear();
      ++others;
    }
    if (others == 0) continue;
    first.evidence.push_back(fmt::format("The same on {} other {}{}", others,
                                         ranks.size() == others + 1 ? "rank" : "device", others == 1 ? "" : "s"));
    first.where += fmt::format(" and {} more", others);
    if (ranks.size() > 1) first.rank = -1;
    std::erase_if(verdicts, [](const Verdict& v) { return v.cause.empty(); });
  }
}

/// By how much a lower clock makes a kernel slower at most, where that clock is what was found; infinity where the
/// device is slower by something that no number tells.
double explained_by_devices(const Evidence& evidence, const Verdicts& verdicts) {
  constexpr double kMargin = 1.1;
  double most = 1;
  for (const Verdict& v : verdicts) {
    const bool clock = v.cause == "gpu_clock_drop" || v.detail == "gpu_clock_drop";
    if (!clock && v.cause != "gpu_contention" && v.detail != "gpu_contention" && v.detail != "nvlink") continue;
    double lowest = 1;
    const auto is_its = [&](const Place& place) {
      return v.scope == model::VerdictScope::rank ? place.rank == v.rank : evidence.name_of(place) == v.where;
    };
    for (const Evidence::DeviceResource& device : evidence.clocks())
      if (clock && device.moved && is_its(device.place)) lowest = std::min(lowest, device.value.ratio());
    most = std::max(most, lowest < 1 && lowest > 0 ? kMargin / lowest : std::numeric_limits<double>::infinity());
  }
  return most;
}

/// By how much a kernel that works for all layers at once takes longer at most, where steps call as much more of all:
/// as much as the calls became more. 1: they did not.
double explained_by_calls(const Evidence& evidence, const Verdicts& verdicts) {
  constexpr double kMargin = 1.05;
  const auto told = [](const Verdict& v) {
    return v.cause == "workload_changed" && v.detail == "calls" && v.scope == model::VerdictScope::process;
  };
  double most = 1;
  if (std::ranges::none_of(verdicts, told)) return most;
  const model::RunComparison& all = evidence.comparison();
  for (const model::CallsChange& change : all.calls) {
    if ((evidence.side() == 1 ? change.more : change.fewer) == 0) continue;
    const Sides calls = evidence.turned(all.functions[change.example[evidence.side()]].steady_calls);
    if (calls.without > 0 && calls.rise() > 0) most = std::max(most, kMargin * calls.ratio());
  }
  return most;
}

/// It waited for CPUs longer by half of what it took longer on them, or more.
bool lost_caches_by_waiting(const Evidence& evidence) {
  constexpr double kMuch = 0.5;
  const auto step = evidence.step();
  return step && step->runnable.rise() >= kMuch * step->on_cpu.rise();
}

/// Who profiles it takes CPUs for that, and who traces it stops it.
void absorb_into_tool(const Evidence& evidence, Verdicts& verdicts) {
  const auto tool = std::ranges::find_if(
      verdicts, [](const Verdict& v) { return v.cause == "profiler_overhead" && !v.where.empty(); });
  if (tool == verdicts.end()) return;
  const bool stops = tool->detail == "traced";
  const auto beside = more_beside(evidence).programs;
  const bool is_first = !beside.empty() && beside.front().name == tool->where;
  absorb(
      verdicts, "profiler_overhead", "",
      [&](const Verdict& v) {
        return (stops && v.cause == "process_stopped") ||
               (is_first && v.cause == "cpu_contention" && v.detail == "other_processes") ||
               (is_first && v.cause == "host_memory_pressure" && v.detail == "bandwidth");
      },
      Time::the_same);
}

void sort_out(const Evidence& evidence, Verdicts& verdicts) {
  absorb_into_tool(evidence, verdicts);
  // On fewer CPUs it meets programs that take no more than before.
  if (evidence.more_beside().empty())
    absorb(verdicts, "cpu_contention", "affinity", "cpu_contention", "other_processes", Time::the_same);
  // Who streams through memory takes CPUs as well; and who has to wait for others finds caches without its data, as
  // the recorder does.
  if (lost_caches_by_waiting(evidence))
    absorb(verdicts, "cpu_contention", "other_processes", "host_memory_pressure", "bandwidth", Time::the_same);
  else
    absorb(verdicts, "host_memory_pressure", "bandwidth", "cpu_contention", "other_processes", Time::the_same);
  // A disk's waits are page faults and uninterruptible sleep, too.
  for (const std::string_view by : {"swap", "reclaim", "major_faults"})
    absorb(verdicts, "host_memory_pressure", by, "disk_io", "", Time::the_same);
  // Who cannot have a CPU seems to hold a lock.
  absorb(verdicts, "cpu_contention", "throttled", "host_bound", "lock");
  absorb(verdicts, "cpu_contention", "own_threads", "host_bound", "lock", Time::the_same);
  if (std::ranges::none_of(verdicts, is_unsure))
    absorb(verdicts, "cpu_contention", "other_processes", "host_bound", "lock");
  // Who has fewer CPUs loses most where threads wait for each other; all functions count already.
  for (Verdict& v : verdicts)
    if (v.cause == "host_bound" && std::ranges::any_of(verdicts, is_of_all_functions)) v.impact_ns = model::kNoNumber;
  absorb(verdicts, "cpu_contention", "unknown", is_of_one_function);
  if (std::ranges::any_of(verdicts, [](const Verdict& v) {
        return v.cause == "profiler_overhead" && (v.where.empty() || v.detail == "traced");
      }))
    absorb(verdicts, "profiler_overhead", "", is_of_one_function);
  // A device that is slower makes some kernels slower than others.
  const double explained = std::max(explained_by_devices(evidence, verdicts), explained_by_calls(evidence, verdicts));
  if (explained > 1)
    std::erase_if(verdicts,
                  [&](const Verdict& v) { return v.cause == "kernel_regression" && !(v.work_ratio > explained); });
  // A device that works for others now and then leaves the kernels that it has begun, each as it happens.
  const auto takes_turns = [](const Verdict& v) {
    return v.cause == "gpu_contention" && v.detail == "other_process" && v.confidence == kSureOfTurns;
  };
  if (std::ranges::any_of(verdicts, takes_turns))
    std::erase_if(verdicts, [](const Verdict& v) { return v.cause == "kernel_regression"; });
  // Who does more takes longer, and who sends it more takes CPUs. Where steps tell all that they work on, like ones
  // were compared.
  const bool alike =
      evidence.tells_work() && !model::has_longer_prompts(evidence.comparison().cycle_times, evidence.side());
  if (std::ranges::any_of(verdicts, [](const Verdict& v) { return v.cause == "workload_changed"; })) {
    const bool any_work = std::ranges::any_of(
        verdicts, [](const Verdict& v) { return v.cause == "workload_changed" && v.detail.empty(); });
    std::erase_if(verdicts, [&](const Verdict& v) {
      return (v.cause == "kernel_regression" && any_work && !alike) || is_unsure(v);
    });
  }
  merge_devices(verdicts);
  // What the machine did to all functions is none of one.
  const auto clock = std::ranges::find(verdicts, "cpu_frequency_drop", &Verdict::cause);
  if (clock != verdicts.end()) {
    const double explained_by_clock = kBeyondClock * clock->work_ratio;
    absorb(
        verdicts, "cpu_frequency_drop", "",
        [&](const Verdict& v) { return is_of_one_function(v) && !(v.work_ratio > explained_by_clock); },
        Time::the_same);
  }
}

/// Of tables what threads did is summed over them: nothing made more of a step than that became longer.
void limit_sums_of_threads(const Evidence& evidence, Verdicts& verdicts) {
  const model::RunComparison& all = evidence.comparison();
  if (all.work || !all.host || all.host->step.empty() || !all.host->step_thread.empty() || !(evidence.growth() > 0))
    return;
  for (Verdict& v : verdicts)
    if (v.scope == model::VerdictScope::host && v.impact_ns > evidence.growth()) v.impact_ns = evidence.growth();
}

/// Of causes that made steps longer, what each made of that; where steps did not become longer, none did. Other work
/// is beyond what steps of like work take, and has no share of it.
void add_shares(const Evidence& evidence, Verdicts& verdicts) {
  // What requests waited for is no part of the work.
  const double growth = std::max(evidence.growth(), evidence.waited_longer());
  const bool tells_work = evidence.tells_work();
  const bool was_faster = evidence.comparison().outcome ==
                          (evidence.side() == 1 ? model::Outcome::improvement : model::Outcome::regression);
  const auto is_other_work = [&](const Verdict& v) {
    return tells_work && v.cause == "workload_changed" && v.detail.empty();
  };
  const auto has_share = [&](const Verdict& v) {
    return std::isfinite(v.impact_ns) && v.state == VerdictState::active && !is_other_work(v);
  };
  double sum = 0;
  for (Verdict& v : verdicts) {
    // Where steps take as long as before nothing made them longer, whatever a part of them did.
    const double longer = is_other_work(v) ? evidence.growth_of_all() : growth;
    // A phase that is slower may hide behind others that are faster.
    if ((!(longer > 0) && !evidence.is_slower()) || was_faster ||
        evidence.comparison().outcome == model::Outcome::no_change)
      v.state = VerdictState::latent;
    if (has_share(v)) sum += v.impact_ns;
  }
  for (Verdict& v : verdicts)
    if (has_share(v) && v.cause != kUnknown) v.share = v.impact_ns / std::max(growth, sum);
}

/// That the machine itself was slower; empty: it was not, or nobody knows.
std::string machine_text(const Evidence& evidence) {
  const auto& host = evidence.comparison().host;
  if (!host || !host->machine || (host->machine->change > 0) != (evidence.side() == 1)) return "";
  return fmt::format("Fixed work of the recorder took {:+.0f} %: the machine itself was slower",
                     (evidence.side() == 1 ? host->machine->change : 1 / (1 + host->machine->change) - 1) * 100);
}

/// What a side lost it seems to call less often, and to take less time in.
void add_losses(const Evidence& evidence, Verdicts& verdicts) {
  const std::string text = evidence.losses_that_differ();
  if (text.empty()) return;
  for (Verdict& v : verdicts)
    if (v.cause == "workload_changed" || v.cause.starts_with("kernel_") || v.scope == model::VerdictScope::function)
      v.against.push_back(text);
}

/// What a machine that is slower as a whole would do, too.
void add_speed(const Evidence& evidence, Verdicts& verdicts) {
  const std::string text = machine_text(evidence);
  if (text.empty()) return;
  for (Verdict& v : verdicts)
    if (v.cause == "environment_changed" || (v.cause == "host_bound" && v.detail != "data_input"))
      v.against.push_back(text);
}

/// Whose the functions are that were named, and where those run.
void place_functions(const Evidence& evidence, Verdicts& verdicts) {
  const model::RunComparison& all = evidence.comparison();
  const auto is_of_first = [&](const model::FunctionFinding& f) { return f.process == all.functions.front().process; };
  if (all.processes.empty()) return;
  const bool several = !std::ranges::all_of(all.functions, is_of_first);
  for (Verdict& v : verdicts) {
    if (v.scope != model::VerdictScope::function || v.where.empty()) continue;
    const model::FunctionFinding* found = nullptr;
    for (const model::FunctionFinding& f : all.functions) {
      if (all.texts[f.function] != v.where && (f.short_name == 0 || all.texts[f.short_name] != v.where)) continue;
      const bool of_rank = v.rank < 0 || all.processes[f.process].rank == v.rank;
      if (of_rank && (found == nullptr || evidence.turned(f.time_ns).rise() > evidence.turned(found->time_ns).rise()))
        found = &f;
    }
    if (found == nullptr) continue;
    if (const std::string_view device = all.texts[found->device]; device != "Host") v.device = device;
    if (const auto pid = all.processes[found->process].pid[v.side]; several && pid) v.process = std::to_string(*pid);
  }
}

void rank(Verdicts& verdicts) {
  const auto impact = [](const Verdict& v) { return std::isfinite(v.impact_ns) ? v.impact_ns : 0.0; };
  std::ranges::stable_sort(verdicts, [&](const Verdict& a, const Verdict& b) {
    if (a.state != b.state) return a.state == VerdictState::active;
    if (impact(a) != impact(b)) return impact(a) > impact(b);
    return a.confidence > b.confidence;
  });
}

/// What makes a tenth of the growth of a step or more, by the ledgers of both sides; largest first.
std::vector<std::string> largest_lines(const Evidence& evidence) {
  constexpr double kLittleOfGrowth = 0.1;
  constexpr std::size_t kMostLines = 3;
  const model::RunComparison& all = evidence.comparison();
  const auto short_name = [&](StringId function) -> std::string_view {
    const auto found = std::ranges::find(all.functions, function, &model::FunctionFinding::function);
    return all.texts[found != all.functions.end() && found->short_name != 0 ? found->short_name : function];
  };
  std::vector<std::pair<double, std::string>> lines;
  for (const model::Waterfall& waterfall : all.waterfalls)
    for (const model::WaterfallLine& line : waterfall.lines) {
      const Sides time = evidence.turned(line.time_ns);
      const double rise = evidence.weight_of(waterfall.phase) * time.rise();
      if (!(rise > 0) || rise < kLittleOfGrowth * evidence.growth()) continue;
      std::string text =
          fmt::format("{}: {} per step", model::ledger_line_name(line.state, short_name(line.function)), instead(time));
      if (all.waterfalls.size() > 1) text += fmt::format(" ({})", model::phase_name(waterfall.phase));
      lines.emplace_back(rise, std::move(text));
    }
  std::ranges::stable_sort(lines, std::ranges::greater(), &std::pair<double, std::string>::first);
  if (lines.size() > kMostLines) lines.resize(kMostLines);
  std::vector<std::string> texts;
  texts.reserve(lines.size());
  for (auto& [rise, text] : lines) texts.push_back(std::move(text));
  return texts;
}

/// Where the time went, of a slowdown that no rule explains.
Verdict unknown(const Evidence& evidence) {
  constexpr double kMost = 0.5;
  Verdict verdict;
  verdict.cause = kUnknown;
  verdict.side = evidence.side();
  verdict.confidence = 0;
  if (evidence.growth() > 0) verdict.impact_ns = evidence.growth();
  const auto& work = evidence.comparison().work;
  const bool waits = evidence.waited_longer() > 0;  // which is no part of a step
  if (const auto step = evidence.step(); step && !waits) {
    std::array parts = {std::pair("on a CPU", step->on_cpu), std::pair("waiting for a CPU", step->runnable),
                        std::pair("blocked", step->blocked)};
    const auto largest = std::ranges::max_element(parts, {}, [](const auto& part) { return part.second.rise(); });
    if (largest->second.rise() > 0 && largest->second.rise() >= kMost * evidence.growth())
      verdict.evidence.push_back(fmt::format("Most of what it takes more it is {}: {}", largest->first,
                                             instead_each(evidence, largest->second)));
  }
  if (std::string text = longest_wait_text(evidence); !text.empty()) verdict.evidence.push_back(std::move(text));
  for (std::string& line : largest_lines(evidence)) verdict.evidence.push_back(std::move(line));
  if (std::string text = machine_text(evidence); !text.empty()) verdict.evidence.push_back(std::move(text));
  if (waits)
    verdict.next_step = fmt::format("culprit top --stacks off-cpu shows where it {}: a backend, a lock or a sleep",
                                    work->waits_in.empty() ? "waits" : "calls " + work->waits_in);
  else if (evidence.comparison().alternation)
    verdict.next_step = "culprit record --preset deep of each side sees more";
  else
    verdict.next_step = evidence.comparison().recorded_deep
                            ? "culprit ab tells whether it comes again; culprit top --stacks of both sides"
                            : "culprit ab tells whether it comes again; culprit record --preset deep sees more";
  return verdict;
}

/// What held a side to its end may be what made its steps longer before: one cause, which is the first.
void name_once(Verdicts& verdicts) {
  Verdict& first = verdicts.front();
  const auto again = [&](const Verdict& v) {
    return &v != &first && v.cause == first.cause && v.detail == first.detail;
  };
  for (Verdict& v : verdicts) {
    if (!again(v)) continue;
    if (std::isfinite(v.impact_ns)) first.impact_ns += v.impact_ns;
    for (std::string& text : v.evidence)
      if (std::ranges::find(first.evidence, text) == first.evidence.end()) first.evidence.push_back(std::move(text));
  }
  std::erase_if(verdicts, again);
}

/// What holds it to its end.
void add_stuck(const Evidence& evidence, Verdicts& verdicts) {
  if (const auto& stuck = evidence.comparison().stuck; stuck && stuck->side == evidence.side())
    verdicts.push_back(hang_verdict(stuck->end, stuck->side));
}

Verdicts of_side(const Evidence& evidence) {
  Verdicts verdicts;
  // Where more is asked nothing is slower by it; who asks takes CPUs, too.
  if (const auto& work = evidence.comparison().work; work && (work->idle || work->asked_more == evidence.side())) {
    add_stuck(evidence, verdicts);
    return verdicts;
  }
  const auto& still = evidence.comparison().standstill;
  if (still && still->side == evidence.side()) verdicts = standstill_verdicts(evidence);
  for (const auto rules : {cpu_rules(), memory_rules(), disk_rules(), network_rules(), tool_rules(), device_rules(),
                           load_rules(), program_rules(), wait_rules(), rank_rules()})
    for (const Rule& rule : rules) rule.judge(evidence, verdicts);
  if (!verdicts.empty() && still && still->side == evidence.side()) name_once(verdicts);
  sort_out(evidence, verdicts);
  limit_sums_of_threads(evidence, verdicts);
  for (const Rule& rule : late_host_rules()) rule.judge(evidence, verdicts);
  for (const Rule& rule : few_steps_rules()) rule.judge(evidence, verdicts);
  for (const Rule& rule : settings_rules()) rule.judge(evidence, verdicts);
  for (const Rule& rule : last_wait_rules()) rule.judge(evidence, verdicts);
  for (const Rule& rule : last_program_rules()) rule.judge(evidence, verdicts);
  // What is little beside the wait that made it slower is not why. Nor beside what all functions take longer alike.
  constexpr double kOfTheWait = 0.25;
  if (evidence.comparison().shared_by_all)
    std::erase_if(verdicts, [&](const Verdict& v) { return v.impact_ns < kOfTheWait * evidence.growth(); });
  for (Verdict& v : verdicts)
    if (v.impact_ns < kOfTheWait * evidence.waited_longer()) v.state = VerdictState::latent;
  if (evidence.is_slower() &&
      std::ranges::none_of(verdicts, [](const Verdict& v) { return v.state == VerdictState::active; }))
    verdicts.push_back(unknown(evidence));
  add_stuck(evidence, verdicts);
  add_shares(evidence, verdicts);
  add_losses(evidence, verdicts);
  add_speed(evidence, verdicts);
  place_functions(evidence, verdicts);
  rank(verdicts);
  return verdicts;
}

}  // namespace

std::vector<Verdict> diagnose(const model::RunComparison& comparison) {
  if (const auto& deadlocked = comparison.deadlocked) return {deadlock_verdict(deadlocked->asleep, deadlocked->side)};
  if (comparison.same_recording || comparison.outcome == model::Outcome::not_comparable ||
      comparison.comparability.level == model::Comparable::no)
    return {};
  if (comparison.standstill && !comparison.standstill->compared)
    return standstill_verdicts(Evidence(comparison, comparison.standstill->side));
  // Of what was only timed nothing is known, unless its steps tell what they work on.
  if (!comparison.host && comparison.functions.empty() && comparison.resources.empty() && !comparison.work &&
      !Evidence(comparison, 1).tells_work())
    return {};
  const bool improved = comparison.outcome == model::Outcome::improvement;
  const bool open = comparison.outcome == model::Outcome::inconclusive;
  const std::size_t slower = improved || (open && Evidence(comparison, 1).growth() < 0) ? 0 : 1;
  Verdicts verdicts = of_side(Evidence(comparison, slower));
  for (Verdict& v : of_side(Evidence(comparison, 1 - slower))) verdicts.push_back(std::move(v));
  return verdicts;
}

}  // namespace culprit::diagnose
