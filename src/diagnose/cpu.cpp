// Who kept the program from its CPUs, or made them slower.
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <ranges>
#include <string>
#include <vector>

#include "core/units.h"
#include "diagnose/cpu.h"
#include "diagnose/rules.h"
#include "diagnose/text.h"
#include "diagnose/thresholds.h"

namespace culprit::diagnose {

using model::Verdict;

double queue_rise(const Evidence& evidence) {
  const auto step = evidence.step();
  return step ? std::max(0.0, step->runnable.rise()) : 0;
}

bool felt_queue(const Evidence& evidence) {
  const auto step = evidence.step();
  return step && step->runnable.rise() > kLeastImpact * step->all().without;
}

std::string queue_text(const Evidence& evidence) {
  return fmt::format("Its threads waited {} for a CPU", instead_each(evidence, evidence.step()->runnable));
}

Sides queue_of_siblings(const Evidence& evidence) {
  const auto step = evidence.step();
  const double growth = evidence.growth();
  if (!step || felt_queue(evidence) || growth < kMuchOfStep * step->all().without) return {};
  const Sides all = evidence.states([](std::string_view state) { return state == "runnable"; });
  const double least = kBehindThem * growth;
  return step->on_cpu.rise() >= least && all.rise() >= least ? all : Sides();
}

Verdict cpu_verdict(const Evidence& evidence, std::string detail, double confidence) {
  return verdict_of(evidence, "cpu_contention", std::move(detail), confidence);
}

bool has_detail(const Verdicts& verdicts, std::string_view detail) {
  return std::ranges::any_of(verdicts,
                             [&](const Verdict& v) { return v.cause == "cpu_contention" && v.detail == detail; });
}

void name_them(const MoreBeside& beside, Verdict& verdict) {
  constexpr std::size_t kMost = 3;
  const std::size_t programs = std::min(kMost, beside.programs.size());
  for (const Beside& one : beside.programs | std::views::take(programs)) verdict.evidence.push_back(took(one));
  for (const Beside& one : beside.kernel | std::views::take(kMost - programs)) verdict.evidence.push_back(took(one));
}

std::string other_cpus(const Beside& one) {
  return fmt::format("see why {} runs, or give it other CPUs (taskset, cpuset)", one.name);
}

namespace {

constexpr double kLeastShare = 0.1;      // of the CPUs of the machine that others took more
constexpr double kLeastWaits = 0.2;      // of the time: so much more somebody waited for a CPU
constexpr double kLeastPressure = 0.05;  // of the time
constexpr double kSlowerBeside = 1.05;   // on its CPUs
constexpr double kHardlyIdle = 0.02;     // of the time, that CPUs idle of a machine that has none left

/// It took so much longer on its CPUs that it felt it.
bool felt_on_cpu(const Evidence& evidence) {
  const auto step = evidence.step();
  return step && step->on_cpu.rise() >= kLeastImpact * step->all().without && evidence.slowdown() >= kLeastImpact;
}

/// What became of a disk beside it: who writes a lot computes, too, and so do the kernel's threads for it. Empty:
/// nothing much.
std::string more_traffic(const Evidence& evidence) {
  constexpr double kMuch = 1e7;  // bytes per second
  constexpr double kFar = 10;    // times
  for (const model::DiskChange& disk : evidence.comparison().disks)
    if (const Sides bytes = evidence.turned(disk.bytes_per_second); bytes.with >= kMuch && bytes.ratio() >= kFar)
      return fmt::format("{} by everybody meanwhile: {}/s instead of {}/s", disk.name, format_bytes(bytes.with),
                         format_bytes(bytes.without));
  return {};
}

/// Nobody came, but it has less right to the CPUs, or its own threads have them: then who was there before is no cause.
bool is_by_itself(const MoreBeside& beside, const Verdicts& verdicts) {
  constexpr double kHardlyThere = 0.1;  // CPUs
  constexpr double kManyMore = 0.5;     // CPUs: no nice value gives so many to who hardly took any
  if (has_detail(verdicts, "own_threads") && beside.cpus < kLeastOthers) return true;
  const auto grew = [](const Sides& cpus) { return cpus.rise() >= kManyMore && cpus.ratio() >= kFarMore; };
  Sides all;
  for (const Beside& one : beside.programs) {
    all.without += one.cpus.without;
    all.with += one.cpus.with;
  }
  return has_detail(verdicts, "priority") && !grew(all) &&
         std::ranges::none_of(beside.programs, [&](const Beside& one) {
           const bool came = one.cpus.without < kHardlyThere && one.cpus.rise() >= kLeastOthers;
           return one.is_share || came || grew(one.cpus);
         });
}

void throttled(const Evidence& evidence, Verdicts& verdicts) {
  const auto time = evidence.counter("cgroup.cpu.throttled_time");
  if (!time || time->rise() < kLeastThrottled || !felt_queue(evidence)) return;
  Verdict verdict = cpu_verdict(evidence, "throttled", 0.95);
  const double others = std::max(0.0, evidence.more_others()) * kSecond;
  verdict.impact_ns = queue_rise(evidence) * time->rise() / (time->rise() + others);
  verdict.evidence = {fmt::format("A CPU quota held the group of the program back for {:.0f} instead of {:.0f} ms of "
                                  "every second, summed over CPUs",
                                  time->with / kMs, time->without / kMs),
                      queue_text(evidence)};
  if (const auto quota = evidence.fact("env.target.cgroup.cpu.quota"))
    verdict.evidence.push_back(fmt::format("The quota is {} instead of {} CPUs", (*quota)[1], (*quota)[0]));
  if (others > kLeastOthers * kSecond)
    verdict.against.push_back(fmt::format("Programs beside it took {:.2g} CPUs more, too", others / kSecond));
  else if (felt_on_cpu(evidence))
    verdict.against.push_back(fmt::format("Its threads took {} on CPUs: who does more meets the same quota sooner",
                                          instead_each(evidence, evidence.step()->on_cpu)));
  verdict.next_step = "raise the quota of its control group (cpu.max, cpu.cfs_quota_us), or give it less to do";
  verdicts.push_back(std::move(verdict));
}

void other_processes(const Evidence& evidence, Verdicts& verdicts) {
  const MoreBeside all = more_beside(evidence);
  const auto started = all.programs.empty() ? short_programs(evidence) : std::nullopt;
  const double others = started ? started->cpus.rise() : all.cpus;
  const std::vector<Beside>& beside = all.programs;
  const bool queued = felt_queue(evidence);
  // Threads that spin leave little to others, who hold them up by their turns.
  const auto waits = evidence.counter("host.pressure.cpu.some");
  const bool pressed = queued && waits && waits->rise() >= kLeastWaits;
  const bool held_up = pressed || (queued && evidence.step()->runnable.ratio() >= kFarMore &&
                                   evidence.step()->runnable.rise() >= kMuchOfStep * evidence.step()->all().without);
  // How little they took does not matter where it is known that it waited for them. Many of which none took much have
  // no names; clients that have more to do would look alike, but for how much more that is.
  const auto behind = evidence.behind_others();
  const bool behind_them = queued && behind && behind->rise() >= kBehindThem * queue_rise(evidence);
  const bool behind_many =
      behind_them && behind->ratio() >= kFarMore && behind->rise() >= kMuchOfStep * evidence.step()->all().without;
  const bool named = !beside.empty() || started;
  if ((!named && (!behind_many || !all.kernel.empty())) || is_by_itself(all, verdicts)) return;
  // Who is asked by fewer at once waits behind who asks more often, though that takes less.
  if (!named)
    if (const auto took = evidence.counter("host.cpu.others"); took && took->rise() < 0) return;
  const bool is_share = !beside.empty() && beside.front().is_share;
  const Sides siblings = queue_of_siblings(evidence);
  const bool spins = siblings.rise() > 0;
  const double least = is_share ? kLeastShare : behind_them ? 0 : held_up || spins ? kFewOthers : kLeastOthers;
  if (others < least) return;
  // Where there are CPUs for all, who takes many shares their cores, their caches and the limit of their clock.
  if (!queued && !spins && !((is_share || others >= kManyOthers) && felt_on_cpu(evidence))) return;
  Verdict verdict = cpu_verdict(evidence, "other_processes", queued ? 0.9 : is_share || spins ? 0.7 : kUnsure);
  const double throttled = std::max(0.0, evidence.rise("cgroup.cpu.throttled_time"));
  verdict.impact_ns = !named || !(others > 0)
                          ? behind->rise()
                          : queue_rise(evidence) * others * kSecond / (others * kSecond + throttled);
  if (has_detail(verdicts, "own_threads") && behind)
    verdict.impact_ns = std::clamp(behind->rise(), 0.0, verdict.impact_ns);
  if (started) verdict.evidence.push_back(started_text(*started));
  name_them(all, verdict);
  if (beside.empty())
    if (std::string rival = first_rival(evidence, kSomeOfThem, started.has_value()); !rival.empty())
      verdict.evidence.push_back(std::move(rival));
  if (spins)
    verdict.evidence.push_back(
        fmt::format("All its threads together waited {} for a CPU; that of the steps ran meanwhile, as who "
                    "spins for the others does",
                    instead_each(evidence, siblings)));
  else
    (queued ? verdict.evidence : verdict.against).push_back(queue_text(evidence));
  if (verdict.confidence == kUnsure)
    verdict.against.emplace_back("That its own work became more would look alike: they ran on other CPUs");
  if (behind_them)
    verdict.evidence.push_back(
        fmt::format("Of that, programs which were not recorded had the CPU for {}", instead(*behind)));
  else if (queued && behind)
    verdict.against.push_back(fmt::format(
        "Of what that is more, programs which were not recorded had the CPU for {} only: its own threads share what "
        "those left",
        format_duration(std::max(0.0, behind->rise()))));
  // What shares a core, a cache or the limit of a clock with others is slower while it runs.
  if (const Sides on_cpu = evidence.step()->on_cpu; named && on_cpu.ratio() > kSlowerBeside) {
    // They can have cost it no more than the time that it ran beside them.
    const double beside_them = is_share ? on_cpu.with : std::min(others, 1.0) * on_cpu.with;
    verdict.impact_ns =
        spins ? std::min(siblings.rise(), on_cpu.rise()) : verdict.impact_ns + std::min(on_cpu.rise(), beside_them);
    verdict.work_ratio = on_cpu.ratio();
    verdict.evidence.push_back(fmt::format("Beside them its threads took {} on CPUs{}", instead_each(evidence, on_cpu),
                                           queued ? ", too" : ""));
    if (const auto clock = evidence.counters("host.cpu", "frequency"); clock && clock->ratio() < 1)
      verdict.evidence.push_back(fmt::format("Their clock is {:.0f} % of what it was", clock->ratio() * 100));
  }
  if (pressed)
    verdict.evidence.push_back(fmt::format("Somebody waited for a CPU {} of the time", instead_percent(*waits)));
  if (const auto pressure = evidence.counter("host.pressure.io.some"); pressure && pressure->rise() > kLeastPressure)
    verdict.evidence.push_back(fmt::format("Somebody waited for disks {} of the time", instead_percent(*pressure)));
  if (const std::string traffic = more_traffic(evidence); !traffic.empty()) verdict.evidence.push_back(traffic);
  if (throttled > kLeastThrottled) verdict.against.emplace_back("A CPU quota held it back, too");
  verdict.next_step = beside.empty() ? kWhoHadThem
                      : is_share     ? "see who they are (top), and give them other CPUs (taskset, cpuset)"
                                     : other_cpus(beside.front());
  verdicts.push_back(std::move(verdict));
}

/// Others took the last of the CPUs, and less gets done, though the program itself works hardly longer for each piece
/// of it: who asks for it, on this machine, is what lacks them, and the program idles for it.
void machine_is_full(const Evidence& evidence, Verdicts& verdicts) {
  const auto idle = evidence.counter("host.cpu.idle");
  if (!evidence.comparison().work || !idle || idle->with > kHardlyIdle || idle->without <= idle->with) return;
  const MoreBeside all = more_beside(evidence);
  const std::vector<Beside>& beside = all.programs;
  const auto started = beside.empty() ? short_programs(evidence) : std::nullopt;
  if (!started && (beside.empty() || beside.front().is_share || all.cpus < kLeastOthers)) return;
  const double slowdown = evidence.slowdown();
  const double by_work = std::log(evidence.turned(evidence.comparison().work->worked.value).ratio());
  if (slowdown < kMuchLess || by_work >= kLeastOfGrowth * std::log1p(slowdown)) return;
  if (std::ranges::any_of(verdicts, [](const Verdict& v) { return v.cause == "cpu_contention"; })) return;
  Verdict verdict = cpu_verdict(evidence, "other_processes", kUnsure);
  verdict.impact_ns = model::kNoNumber;
  if (started) verdict.evidence.push_back(started_text(*started));
  name_them(all, verdict);
  verdict.evidence.push_back(
      fmt::format("No CPU of the machine is left: they idled {} of the time", instead_percent(*idle)));
  const Sides rate = evidence.turned(evidence.comparison().work->throughput.value);
  verdict.evidence.push_back(fmt::format("{:.0f} % less got done", (1 - rate.ratio()) * 100));
  if (const std::string traffic = more_traffic(evidence); !traffic.empty()) verdict.evidence.push_back(traffic);
  verdict.against.emplace_back(
      "Its own threads worked hardly longer for each: a client on this machine may lack the CPUs, or ask for less");
  verdict.next_step = started ? kWhoHadThem : other_cpus(beside.front());
  verdicts.push_back(std::move(verdict));
}

void steal(const Evidence& evidence, Verdicts& verdicts) {
  const auto stolen = evidence.counter("host.cpu.steal");
  if (!stolen || !(stolen->rise() >= kLeastSteal) || !(evidence.slowdown() >= kLeastImpact)) return;
  Verdict verdict = cpu_verdict(evidence, "steal", 0.8);
  verdict.evidence = {
      fmt::format("The hypervisor ran others on the machine's CPUs for {} of the time", instead_percent(*stolen))};
  const auto step = evidence.step();
  if (step) verdict.impact_ns = std::min(stolen->rise(), 1.0) * step->all().with;
  if (step && !felt_queue(evidence) && !felt_on_cpu(evidence))
    verdict.against.emplace_back("What a step takes longer it was neither on a CPU nor waiting for one");
  verdict.next_step = "a virtual machine with CPUs of its own, or one that others leave alone";
  verdicts.push_back(std::move(verdict));
}

/// Traces that know run queues but not who was in them.
void queue(const Evidence& evidence, Verdicts& verdicts) {
  if (evidence.step()) return;
  const model::RunComparison& all = evidence.comparison();
  std::map<std::int32_t, Sides> of_ranks;
  bool changed = false;
  for (const model::FunctionFinding& f : all.functions) {
    if (all.texts[f.kind] != "runq") continue;
    const Sides sides = evidence.turned(f.time_ns);
    Sides& sum = of_ranks[evidence.place_of(f).rank];
    sum.without += evidence.weight_of(f.phase) * sides.without;
    sum.with += evidence.weight_of(f.phase) * sides.with;
    changed = changed || model::has_changed(f);
  }
  if (of_ranks.empty()) return;
  const Sides time =
      std::ranges::max_element(of_ranks, {}, [](const auto& of_rank) { return of_rank.second.rise(); })->second;
  const double step = evidence.mean_step();
  constexpr double kLatent = 0.01;
  if (!changed || time.rise() < kLatent * step || time.ratio() < 2) return;
  Verdict verdict = cpu_verdict(evidence, "", 0.6);
  verdict.impact_ns = time.rise();
  verdict.state = evidence.is_slower() && time.rise() >= kLeastImpact * step ? model::VerdictState::active
                                                                             : model::VerdictState::latent;
  verdict.evidence = {fmt::format("Its threads waited {} for a CPU", instead_each(evidence, time))};
  verdict.next_step = "culprit record beside it tells who had the CPUs";
  verdicts.push_back(std::move(verdict));
}

/// Tables sum the queues of threads and name nobody who ran beside them.
void queue_of_tables(const Evidence& evidence, Verdicts& verdicts) {
  const auto step = evidence.step();
  const model::RunComparison& all = evidence.comparison();
  if (!step || all.work || !all.host->step_thread.empty()) return;
  if (!verdicts.empty() || !evidence.is_slower() || !felt_queue(evidence) || step->runnable.ratio() < 2) return;
  Verdict verdict = cpu_verdict(evidence, "", 0.6);
  verdict.impact_ns = step->runnable.rise();
  verdict.evidence = {queue_text(evidence)};
  verdict.against.emplace_back("Nobody is known to have taken more CPUs: a quota, or fewer CPUs, would look alike");
  verdict.next_step = "culprit record beside it tells who had the CPUs";
  verdicts.push_back(std::move(verdict));
}

/// Traces that know no scheduling: what makes all functions of the host slower is what they share, and that is the
/// CPUs, or who records them.
void functions_alike(const Evidence& evidence, Verdicts& verdicts) {
  constexpr double kLeastUsual = 1.15;
  constexpr std::size_t kFewest = 8;
  const double usual = evidence.usual_ratio(false);
  if (evidence.step() || !evidence.is_slower() || usual < kLeastUsual) return;
  const model::RunComparison& all = evidence.comparison();
  const auto tells = [&](const model::FunctionFinding& f) {
    return !evidence.is_on_device(f) && std::isfinite(f.work_ratio) && !model::is_wait(all.texts[f.kind]);
  };
  if (static_cast<std::size_t>(std::ranges::count_if(all.functions, tells)) < kFewest) return;
  if (std::ranges::any_of(verdicts, [](const Verdict& v) { return v.cause == "cpu_contention"; })) return;
  std::map<model::Phase, double> rises;
  for (const model::FunctionFinding& f : all.functions)
    if (tells(f)) rises[f.phase] += evidence.turned(f.time_ns).rise();
  double rise = 0;
  for (const auto& [phase, time] : rises)
    rise += evidence.weight_of(phase) * std::min(time, evidence.idle_rise(phase).value_or(time));
  if (rise < kLeastImpact * evidence.mean_step()) return;
  const std::vector<std::string>& alone = evidence.profiled_alone();
  Verdict verdict =
      alone.empty() ? cpu_verdict(evidence, "unknown", 0.5) : verdict_of(evidence, "profiler_overhead", "", 0.6);
  verdict.work_ratio = usual;
  verdict.impact_ns = std::min(rise, std::max(0.0, evidence.growth()));
  verdict.evidence = {fmt::format("A call of the middle one of all functions of the host takes x{:.2f}", usual)};
  if (alone.empty()) {
    verdict.against.emplace_back("Scheduling was not recorded: a lower clock of the CPUs would look alike");
    verdict.next_step = "culprit record beside it tells who had the CPUs";
  } else {
    verdict.evidence.push_back(
        fmt::format("Its profiler alone recorded {}, which takes time in every call", fmt::join(alone, ", ")));
    verdict.against.emplace_back("Scheduling was not recorded: others on the CPUs would look alike");
    verdict.next_step = "record both sides with the same options of the profiler";
  }
  verdicts.push_back(std::move(verdict));
}

/// A full load of vector code lowers the clock, too: then others took CPUs, and are the cause.
void frequency(const Evidence& evidence, Verdicts& verdicts) {
  const auto clock = evidence.counters("host.cpu", ".frequency");
  if (!clock || clock->without <= 0 || clock->ratio() > 1 - kLeastFrequency) return;
  const auto beside = evidence.more_beside();
  const double most = !beside.empty() && beside.front().is_share ? kLeastShare : kLeastOthers;
  if (evidence.more_others() >= most || evidence.rise("host.cpu.others") >= kLeastOthers) return;
  // Who has less to do lowers the clock, and takes longer for each piece of it.
  if (evidence.comparison().work && !evidence.is_slower()) return;
  const auto step = evidence.step();
  if (!(evidence.slowdown() >= kLeastImpact) || (step && step->on_cpu.rise() < kLeastImpact * step->all().without))
    return;
  Verdict verdict = verdict_of(evidence, "cpu_frequency_drop", "", 0.8);
  // What the program does more it does at any clock.
  if (step) verdict.impact_ns = std::min(step->on_cpu.rise(), step->on_cpu.without * (1 / clock->ratio() - 1));
  verdict.work_ratio = 1 / clock->ratio();
  verdict.evidence = {
      fmt::format("The clock of the CPUs where it moved is {:.0f} % of what it was", clock->ratio() * 100)};
  for (const std::string_view key :
       {"env.cpu.scaling_governor", "env.cpu.scaling_max_freq_khz", "env.cpu.no_turbo", "env.cpu.boost"})
    if (const auto fact = evidence.fact(key))
      verdict.evidence.push_back(fmt::format("{}: {} instead of {}", key.substr(4), (*fact)[1], (*fact)[0]));
  if (felt_queue(evidence)) verdict.against.push_back(queue_text(evidence));
  verdict.next_step = "see governor, power limit and temperature (cpupower frequency-info, sensors)";
  verdicts.push_back(std::move(verdict));
}

void stopped(const Evidence& evidence, Verdicts& verdicts) {
  const Sides time =
      evidence.states([](std::string_view state) { return state == "stopped" || state == "blocked in stopped"; });
  const double least = kLeastImpact * evidence.states_of();
  if (time.rise() < least) return;
  Verdict verdict = verdict_of(evidence, "process_stopped", "", 0.95);
  verdict.scope = model::VerdictScope::process;
  verdict.impact_ns = evidence.felt(time.rise());
  // Then others may feel it: who asks that thread for steps can be another of its processes.
  if (verdict.impact_ns < least) verdict.state = model::VerdictState::latent;
  verdict.evidence = {
      fmt::format("Its threads stood still by a signal (SIGSTOP, SIGTSTP) or a debugger, summed over threads {}",
                  instead_each(evidence, time))};
  verdict.against.push_back(evidence.felt(time.rise()) < time.rise()
                                ? fmt::format("The thread of the steps can have felt {} of what that is more",
                                              format_duration(verdict.impact_ns))
                                : "Who stopped it was not recorded: who looked at this run may have");
  verdict.next_step = "see who sends it signals, and whether a debugger is attached (TracerPid in /proc/PID/status)";
  verdicts.push_back(std::move(verdict));
}

constexpr std::array kCpuRules = {Rule{"cpu.throttled", throttled},
                                  Rule{"cpu.priority", priority},
                                  Rule{"cpu.own_threads", own_threads},
                                  Rule{"cpu.other_processes", other_processes},
                                  Rule{"cpu.comes_and_goes", comes_and_goes},
                                  Rule{"cpu.machine_is_full", machine_is_full},
                                  Rule{"cpu.steal", steal},
                                  Rule{"cpu.affinity", affinity},
                                  Rule{"cpu.frequency", frequency},
                                  Rule{"process.stopped", stopped},
                                  Rule{"cpu.queue", queue},
                                  Rule{"cpu.queue_of_tables", queue_of_tables},
                                  Rule{"cpu.alike", functions_alike}};

}  // namespace

std::span<const Rule> cpu_rules() { return kCpuRules; }

}  // namespace culprit::diagnose
