#include "diagnose/one_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "core/units.h"
#include "diagnose/cpu.h"
#include "diagnose/limits.h"
#include "diagnose/rules.h"
#include "diagnose/run_times.h"
#include "diagnose/step_parts.h"
#include "diagnose/thresholds.h"
#include "model/comparison.h"
#include "stats/quantile.h"

namespace culprit::diagnose {

namespace {

using model::Recording;
using model::Verdict;

constexpr double kSlowerDevice = 1.04;  // kernels' time per call, of the others'
constexpr double kLowerClock = 0.96;    // of the others'
constexpr std::size_t kFewestKernels = 3;

/// Of a step that waited for a CPU: of the thread of the steps, else of all threads that ran or wanted to.
struct Queue {
  double time = 0;
  double of = 0;
  [[nodiscard]] bool matters() const { return of > 0 && time >= kLeastImpact * of; }
};

Queue queue_of(const Recording& run) {
  if (run.host.step) return {sum_of(run.host.step->runnable) / cycles_or_one(run), mean_step(run)};
  const double waited = state_time(run, [](std::string_view s) { return s == "runnable"; });
  return {waited, waited + state_time(run, [](std::string_view s) { return s == "running"; })};
}

std::string per(const Recording& run, double ns) {
  return fmt::format("{} per {}", format_duration(ns), run.host.per_second ? "second" : "step");
}

Verdict verdict_of(std::string cause, std::string detail, double impact, double confidence) {
  Verdict verdict;
  verdict.cause = std::move(cause);
  verdict.detail = std::move(detail);
  verdict.impact_ns = impact;
  verdict.confidence = confidence;
  return verdict;
}

void cpus(const Recording& run, Verdicts& verdicts) {
  const Queue queue = queue_of(run);
  const double throttled = counter(run, "cgroup.cpu.throttled_time");
  double others = 0;
  const std::pair<const std::string, double>* most = nullptr;
  for (const auto& beside : run.host.beside) {
    if (is_kernel_thread(beside.first)) continue;
    others += beside.second;
    if (most == nullptr || beside.second > most->second) most = &beside;
  }
  const std::string waited = fmt::format("Its threads waited {} for a CPU", per(run, queue.time));
  const double share = throttled / std::max(1.0, throttled + others * kSecond);
  if (throttled >= kLeastThrottled && queue.matters()) {
    Verdict& verdict = verdicts.emplace_back(verdict_of("cpu_contention", "throttled", queue.time * share, 0.95));
    verdict.evidence = {fmt::format("A CPU quota held the group of the program back for {:.0f} ms of every second, "
                                    "summed over CPUs",
                                    throttled / kMs),
                        waited};
    verdict.against.push_back(others >= kLeastOthers
                                  ? fmt::format("Programs beside it took {:.2g} CPUs, too", others)
                                  : "There is no baseline: it may always have had this quota, and always met it");
    verdict.next_step = "raise the quota of its control group (cpu.max, cpu.cfs_quota_us), or give it less to do";
  }
  if (most != nullptr && others >= kLeastOthers && queue.matters()) {
    Verdict& verdict =
        verdicts.emplace_back(verdict_of("cpu_contention", "other_processes", queue.time * (1 - share), 0.8));
    verdict.evidence = {
        fmt::format("Programs beside it took {:.2g} CPUs, {} took {:.2g} of them", others, most->first, most->second),
        waited};
    verdict.against.emplace_back("They may always be there, as clients are");
    verdict.next_step = fmt::format("see why {} runs, or give it other CPUs (taskset, cpuset)", most->first);
  }
  if (const double steal = counter(run, "host.cpu.steal"); steal >= kLeastSteal) {
    Verdict& verdict = verdicts.emplace_back(verdict_of("cpu_contention", "steal", steal * mean_step(run), 0.7));
    verdict.evidence = {
        fmt::format("The hypervisor ran others on the machine's CPUs for {:.3g} % of the time", steal * 100)};
    verdict.against.emplace_back(
        "That is of all CPUs of the machine: whether its threads wanted to run there meanwhile was not seen");
    verdict.next_step = "a virtual machine with CPUs of its own, or one that others leave alone";
  }
}

void waits(const Recording& run, Verdicts& verdicts) {
  const double step = mean_step(run);
  const double most = most_felt(run);
  const double stopped = state_time(run, [](std::string_view s) { return s == "stopped"; });
  if (step > 0 && stopped >= kLeastImpact * step) {
    Verdict& verdict = verdicts.emplace_back(verdict_of("process_stopped", "", std::min(stopped, step), 0.95));
    verdict.evidence = {
        fmt::format("Its threads stood still by a signal for {}, summed over threads", per(run, stopped))};
    verdict.against.push_back(run.host.step && most < stopped
                                  ? fmt::format("The thread of the steps was blocked for {} only", per(run, most))
                                  : "Who sent the signal was not recorded: who looked at this run may have");
    verdict.next_step = "see who sends SIGSTOP: a debugger, a freezer, another profiler";
  }
  const double faults =
      std::min(most, state_time(run, [](std::string_view s) { return s == "blocked in page_fault"; }));
  const double swap = counter(run, "host.swap.in");
  const double stalls = counter(run, "host.memory.reclaim.stalls");
  const double major = counter(run, "target.faults.major");
  const char* const detail = swap >= kLeastSwap       ? "swap"
                             : stalls >= kLeastStalls ? "reclaim"
                             : major >= kLeastFaults  ? "major_faults"
                                                      : nullptr;
  if (detail != nullptr && step > 0 && faults >= kLeastImpact * step) {
    Verdict& verdict = verdicts.emplace_back(verdict_of("host_memory_pressure", detail, faults, 0.9));
    if (swap >= kLeastSwap)
      verdict.evidence.push_back(fmt::format("{}/s were read back from swap", format_bytes(swap)));
    if (stalls >= kLeastStalls)
      verdict.evidence.push_back(fmt::format("{:.3g} allocations a second had to wait until memory was freed", stalls));
    if (major >= kLeastFaults)
      verdict.evidence.push_back(fmt::format("It had to read {:.3g} pages a second from a disk", major));
    verdict.evidence.push_back(fmt::format("Its threads waited {} for pages", per(run, faults)));
    verdict.against.emplace_back(
        swap >= kLeastSwap || stalls >= kLeastStalls
            ? "Swapping and waits for memory are counted for the whole machine: others may have needed it"
            : "A file that is read for the first time through a mapping does the same, and no memory is short");
    verdict.next_step = "more memory, or a smaller working set; /proc/vmstat says who reclaims";
  }
  const double syncs = std::min(most, state_time(run, [](std::string_view s) {
                                  return s == "blocked in fsync" || s == "blocked in fdatasync" ||
                                         s == "blocked in msync" || s == "blocked in sync_file_range";
                                }));
  if (step > 0 && syncs >= kLeastImpact * step) {
    Verdict& verdict = verdicts.emplace_back(verdict_of("disk_io", "", syncs, 0.7));
    verdict.evidence = {fmt::format("Its threads waited {} in calls that sync files", per(run, syncs))};
    verdict.against.emplace_back("A program that must not lose data waits so on any disk");
    verdict.next_step = "culprit top --by disk, and whether what it syncs must be on this disk";
  }
}

/// Of the device of the rank that idles least in a step; without devices the step.
double least_idle(const Recording& run, const std::map<RankDevice, DeviceStep>& steps, std::int32_t rank) {
  double least = mean_step(run);
  for (const auto& [place, step] : steps)
    if (place.first == rank) least = std::min(least, step.idle());
  return least;
}

/// What one rank spends in some functions of the host, per step, ns.
struct HostTime {
  double time = 0;
  double felt = 0;  ///< of that while its devices were idle
  std::string name;
};

std::map<std::int32_t, HostTime> host_times(const Recording& run, bool collectors) {
  std::map<std::int32_t, std::map<std::string, double>> functions;
  const std::vector<bool> have_cycles = model::have_cycles(run.profile);
  for (const model::FunctionUse& use : run.profile.functions) {
    if (run.profile.texts[use.device] != "Host") continue;
    const std::string_view function = run.profile.texts[use.function];
    if (collectors ? !model::is_collector(function) : !model::is_input(function)) continue;
    if (!collectors && !have_cycles[use.process]) continue;  // of a worker that loads beside them
    functions[run.profile.processes[use.process].rank][std::string(function)] +=
        static_cast<double>(collectors && use.own >= 0 ? use.own : use.duration);
  }
  const auto steps = device_steps(run);
  std::map<std::int32_t, HostTime> times;
  for (const auto& [rank, named] : functions) {
    HostTime& sum = times[rank];
    for (const auto& [name, time] : named) sum.time += time / cycles_of_rank(run, rank);
    sum.name = std::ranges::max_element(named, {}, [](const auto& one) { return one.second; })->first;
    sum.felt = std::min(least_idle(run, steps, rank), sum.time);
  }
  return times;
}

/// Functions of the host, per step of the rank that felt them most: collections of garbage, and what a step waits for
/// to work on.
void functions(const Recording& run, Verdicts& verdicts) {
  const double step = mean_step(run);
  if (!(step > 0) || run.host.per_second) return;
  for (const bool collectors : {true, false}) {
    const auto times = host_times(run, collectors);
    const auto worst = std::ranges::max_element(times, {}, [](const auto& of_rank) { return of_rank.second.felt; });
    if (worst == times.end() || worst->second.felt < kLeastImpact * step) continue;
    const auto& [rank, host] = *worst;
    double others = 0;
    for (const auto& [other, of_other] : times)
      if (other != rank) others = std::max(others, of_other.felt);
    const bool alone = has_ranks(run) && host.felt >= kTwiceAsLate * others;
    Verdict& verdict =
        verdicts.emplace_back(verdict_of("host_bound", collectors ? "gc" : "data_input", host.felt, 0.8));
    verdict.scope = model::VerdictScope::function;
    verdict.where = host.name;
    if (alone) verdict.rank = rank;
    const std::string on = alone ? fmt::format(" on rank {}", rank) : "";
    verdict.evidence = {
        collectors ? fmt::format("Collections of garbage take {}{}", per(run, host.time), on)
                   : fmt::format("A step{} waits for its input in {}: {}", on, host.name, per(run, host.time))};
    if (host.felt < host.time)
      verdict.evidence.push_back(fmt::format("A device works meanwhile, and is idle for {}", per(run, host.felt)));
    verdict.against.emplace_back(
        collectors ? "There is no baseline: it may always collect as much"
                   : "What it waited for was not seen: its disks, the network, or workers without a CPU look alike");
    verdict.next_step = collectors
                            ? "gc.freeze() behind the start, larger thresholds, or collections between steps"
                            : "more workers that load, data nearer or smaller, or work on it moved out of the loader";
  }
}

/// Time per call of the kernels of each device over that of the middle one of the others, geometric mean by time;
/// kernels that do other work there (other numbers of threads) do not count.
std::map<RankDevice, double> device_ratios(const Recording& run) {
  struct Use {
    double time = 0;
    double calls = 0;
    double size = 0;
  };
  std::map<std::pair<model::Phase, StringId>, std::map<RankDevice, Use>> kernels;
  for (const model::FunctionUse& use : run.profile.functions) {
    if (run.profile.texts[use.kind] != "gpu_compute") continue;
    const RankDevice place{run.profile.processes[use.process].rank, std::string(run.profile.texts[use.device])};
    Use& sum = kernels[{run.profile.cycles[use.cycle].phase, use.function}][place];
    sum.time += static_cast<double>(use.duration);
    sum.calls += static_cast<double>(use.count);
    sum.size += use.size;
  }
  struct Mean {
    double weight = 0;
    double log = 0;
    std::size_t kernels = 0;
  };
  std::map<RankDevice, Mean> means;
  for (const auto& [function, places] : kernels) {
    for (const auto& [place, use] : places) {
      std::vector<double> others;
      for (const auto& [other, of_other] : places)
        if (other != place && of_other.calls > 0 &&
            std::abs(of_other.size / of_other.calls - use.size / use.calls) <= 0.02 * use.size / use.calls)
          others.push_back(of_other.time / of_other.calls);
      const double mine = use.calls > 0 ? use.time / use.calls : 0;
      if (others.empty() || !(mine > 0)) continue;
      const double usual = stats::median(std::move(others));
      if (!(usual > 0)) continue;
      Mean& mean = means[place];
      mean.weight += use.time;
      mean.log += use.time * std::log(mine / usual);
      ++mean.kernels;
    }
  }
  std::map<RankDevice, double> ratios;
  for (const auto& [place, mean] : means)
    if (mean.kernels >= kFewestKernels && mean.weight > 0) ratios[place] = std::exp(mean.log / mean.weight);
  return ratios;
}

/// Mean of a resource of a device while it worked, and that of the middle one of the others.
struct BesideOthers {
  double mine = 0;
  double usual = 0;
};

std::optional<BesideOthers> beside_others(const Recording& run, const RankDevice& place,
                                          std::span<const std::string_view> names) {
  std::optional<double> mine;
  std::vector<double> others;
  for (const model::ResourceSeries& series : run.profile.series) {
    if (std::ranges::find(names, run.profile.texts[series.metric]) == names.end() || !(series.busy_mean > 0)) continue;
    if (run.profile.texts[series.device] == place.second && series.rank == place.first)
      mine = series.busy_mean;
    else
      others.push_back(series.busy_mean);
  }
  if (!mine || others.empty()) return std::nullopt;
  const BesideOthers both{*mine, stats::median(std::move(others))};
  return both.usual > 0 ? std::optional(both) : std::nullopt;
}

std::optional<double> clock_ratio(const Recording& run, const RankDevice& place) {
  constexpr std::array<std::string_view, 3> kClocks = {"gpu_sm_frequency", "GPU clock", "gpu_frequency"};
  const auto clocks = beside_others(run, place, kClocks);
  return clocks ? std::optional(clocks->mine / clocks->usual) : std::nullopt;
}

/// "throttle_thermal" where the device is hot, and hotter than the others.
std::string reason_of(const Recording& run, const RankDevice& place, Verdict& verdict) {
  constexpr std::array<std::string_view, 2> kHeat = {"gpu_temp", "GPU temperature"};
  const auto heat = beside_others(run, place, kHeat);
  if (!heat || heat->mine < kHot || heat->mine < heat->usual + kHotter) return "unknown";
  verdict.evidence.push_back(fmt::format("It is {:.0f} degrees hot, the others are {:.0f}", heat->mine, heat->usual));
  return "throttle_thermal";
}

/// A device on which the same kernels take longer than on the others. Of two nobody knows which one is as it should be;
/// the slower one is told.
void devices(const Recording& run, Verdicts& verdicts) {
  const auto ratios = device_ratios(run);
  if (ratios.size() < 2) return;
  const auto worst = std::ranges::max_element(ratios, {}, [](const auto& r) { return r.second; });
  if (worst->second < kSlowerDevice) return;
  double time = 0;
  for (const model::FunctionUse& use : run.profile.functions)
    if (run.profile.texts[use.kind] == "gpu_compute" && run.profile.texts[use.device] == worst->first.second &&
        run.profile.processes[use.process].rank == worst->first.first)
      time += static_cast<double>(use.exposed >= 0 ? use.exposed : use.duration);
  const double cycles = cycles_of_rank(run, worst->first.first);
  Verdict verdict = verdict_of("gpu_contention", "unknown", time / cycles * (1 - 1 / worst->second), 0.6);
  verdict.scope = model::VerdictScope::device;
  verdict.where = place_text(worst->first, has_ranks(run));
  verdict.rank = worst->first.first;
  verdict.work_ratio = worst->second;
  verdict.evidence = {
      fmt::format("The same kernels take x{:.2f} there of what they take on the other devices", worst->second)};
  const auto clock = clock_ratio(run, worst->first);
  if (clock && *clock <= kLowerClock) {
    verdict.cause = "gpu_clock_drop";
    verdict.confidence = 0.85;
    verdict.evidence.push_back(
        fmt::format("Its clock while it worked is {:.0f} % of that of the others", *clock * 100));
    verdict.detail = reason_of(run, worst->first, verdict);
    if (verdict.detail == "unknown") verdict.against.emplace_back("What lowers its clock was not recorded");
  } else if (clock) {
    verdict.against.push_back(fmt::format("Its clock is {:.0f} % of that of the others", *clock * 100));
  } else {
    verdict.against.emplace_back("No clock was recorded: a lower one, or another process on it, would look alike");
  }
  verdict.next_step = "nvidia-smi -q -d CLOCK,PERFORMANCE,POWER,TEMPERATURE of that device beside another one";
  verdicts.push_back(std::move(verdict));
}

void ranks(const Recording& run, Verdicts& verdicts) {
  if (run.collectives.size() < 2) return;
  const auto late = [](const model::RankCollectives& rank) {
    return rank.held_up_ns / static_cast<double>(std::max<std::uint64_t>(1, rank.cycles));
  };
  const auto worst = std::ranges::max_element(run.collectives, {}, late);
  double others = 0;
  for (const model::RankCollectives& rank : run.collectives)
    if (rank.rank != worst->rank) others = std::max(others, late(rank));
  if (late(*worst) < kLeastLate * mean_step(run) || late(*worst) < kTwiceAsLate * others) return;
  Verdict verdict = verdict_of("straggler", "", late(*worst), 0.85);
  verdict.scope = model::VerdictScope::rank;
  verdict.where = fmt::format("rank {}", worst->rank);
  verdict.rank = worst->rank;
  verdict.evidence = {
      fmt::format("It alone held all others up for {}: it came last to the collectives; no other did "
                  "so for more than {}",
                  per(run, late(*worst)), format_duration(others))};
  verdict.next_step = "culprit record on its host, and its device's clock and errors (nvidia-smi -q)";
  const auto own = std::ranges::find_if(verdicts, [&](const Verdict& v) { return v.rank == verdict.rank; });
  if (own != verdicts.end()) {
    verdict.detail = own->cause;
    verdict.work_ratio = own->work_ratio;
    verdict.against = own->against;
    verdict.evidence.insert(verdict.evidence.end(), own->evidence.begin(), own->evidence.end());
    verdict.next_step = own->next_step;
    verdicts.erase(own);
  } else {
    verdict.against.emplace_back("No cause of its own was found: what makes it late is not known");
  }
  verdicts.push_back(std::move(verdict));
}

}  // namespace

std::vector<Verdict> diagnose_run(const Recording& run) {
  Verdicts verdicts;
  for (const auto rule : {cpus, waits, functions, devices, ranks, limits}) rule(run, verdicts);
  if (run.host.long_end && model::is_stuck(*run.host.long_end)) verdicts.push_back(hang_verdict(*run.host.long_end, 1));
  if (run.host.asleep && run.host.asleep->for_each_other) verdicts.push_back(deadlock_verdict(*run.host.asleep, 1));
  const double step = mean_step(run);
  for (Verdict& verdict : verdicts)
    if (step > 0 && std::isfinite(verdict.impact_ns)) verdict.share = verdict.impact_ns / step;
  std::ranges::stable_sort(verdicts, std::ranges::greater(),
                           [](const Verdict& v) { return std::isfinite(v.impact_ns) ? v.impact_ns : 0; });
  return verdicts;
}

}  // namespace culprit::diagnose
