// Threads that are blocked longer inside of their work: for input, a lock, or another thread.
#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "diagnose/cpu.h"
#include "diagnose/rules.h"
#include "diagnose/text.h"
#include "diagnose/thresholds.h"
#include "model/work_units.h"

namespace culprit::diagnose {

namespace {

using model::OffCpuChange;
using model::Verdict;

constexpr double kLeastTold = 0.1;       // of the same, to be told
constexpr double kLeastLag = 1.2;        // requests, and what is from step to step
constexpr double kHardly = 0.01;         // of the samples
constexpr double kMostOfWait = 2.0 / 3;  // of a wait
constexpr double kLonger = 1.05;         // requests

/// Waits are told by what the time of a step is told by.
bool is_per_step(const Evidence& evidence) {
  const model::RunComparison& all = evidence.comparison();
  if (all.work && all.work->unit.kind == model::UnitKind::window) return false;
  return all.off_cpu.per == (all.work ? to_string(all.work->unit.kind) : "step");
}

/// The wait that takes most more; nullptr: none does.
const OffCpuChange* longest_wait(const Evidence& evidence) {
  const std::vector<OffCpuChange>& functions = evidence.comparison().off_cpu.functions;
  const auto rise = [&](const OffCpuChange& c) { return evidence.turned(c.ns_per_unit).rise(); };
  const auto most = std::ranges::max_element(functions, {}, rise);
  return most == functions.end() || !(rise(*most) > 0) ? nullptr : &*most;
}

/// What the kernel does by itself, or for another machine or a disk, is nobody's thread.
bool is_of_kernel(std::string_view waker) {
  return waker.starts_with("interrupt") || waker.ends_with("(softirq)") || is_kernel_thread(waker);
}

/// The thread that ended most of such a wait; empty: none did, or it is not known.
std::string waker_of(const Evidence& evidence, const OffCpuChange& wait) {
  if (const std::string& known = wait.ended_by.at(evidence.side()); !known.empty())
    return is_of_kernel(known) ? "" : known;
  const double all = evidence.turned(wait.ns_per_unit).with;
  const OffCpuChange* most = nullptr;
  double longest = 0;
  double sum = 0;
  for (const OffCpuChange& waker : evidence.comparison().off_cpu.wakers) {
    if (waker.call != wait.call) continue;
    const double time = evidence.turned(waker.ns_per_unit).with;
    sum += time;
    if (time <= longest) continue;
    most = &waker;
    longest = time;
  }
  // Not a thread but a device, time or a packet.
  if (most == nullptr || is_of_kernel(most->name)) return "";
  return longest >= kMostOfWait * std::max(all, sum) ? most->name : "";
}

/// "Condition.wait (threading.py) (futex)".
std::string place_of(const OffCpuChange& wait) {
  return wait.name == "[no stack]" ? wait.call : fmt::format("{} ({})", wait.name, wait.call);
}

/// What steps take longer because their thread is blocked in what waits for their input.
struct InputWait {
  double felt = 0;                      ///< ns; 0: it is not most of what they take longer
  double read_of_threads = 0;           ///< by how much longer they read what threads wrote, ns
  const OffCpuChange* where = nullptr;  ///< most of it
};

InputWait waits_for_input(const Evidence& evidence) {
  const auto step = evidence.step();
  if (!evidence.is_slower() || !step || !is_per_step(evidence) || evidence.doubts_cycles()) return {};
  InputWait input;
  double most = 0;
  double sum = 0;
  const model::OffCpuChanges& off = evidence.comparison().off_cpu;
  for (const OffCpuChange& wait : off.inputs.empty() ? off.functions : off.inputs) {
    if (!model::is_input(wait.name) || surely_waits_for_disk("blocked in " + wait.call)) continue;
    const double rise = evidence.turned(wait.ns_per_unit).rise();
    sum += rise;
    if (wait.call == "read" && !waker_of(evidence, wait).empty()) input.read_of_threads += rise;
    if (rise <= most) continue;
    input.where = &wait;
    most = rise;
  }
  input.felt = evidence.felt(sum);
  const bool matters =
      input.felt >= kLeastImpact * step->all().without && input.felt >= kLeastOfGrowth * evidence.growth();
  return input.where != nullptr && input.felt > 0 && matters ? input : InputWait();
}

/// Something of the machine, which makes threads late.
bool is_of_machine(const Verdict& v) {
  const bool machine = v.cause == "disk_io" || v.cause == "interconnect_contention" || v.cause == "process_stopped" ||
                       v.cause == "host_memory_pressure" || v.cause == "cpu_contention";
  return machine && v.state == model::VerdictState::active && !is_unsure(v);
}

/// What of the machine explains that input comes late, as much as the steps wait for it.
bool is_of_machine(const Verdict& v, double felt) {
  return is_of_machine(v) && (!std::isfinite(v.impact_ns) || v.impact_ns >= kLeastOfGrowth * felt);
}

/// A step that waits for what it works on, seen by where its thread is blocked: of programs whose functions are not
/// traced.
void input_waits(const Evidence& evidence, Verdicts& verdicts) {
  const auto [felt, read_of_threads, wait] = waits_for_input(evidence);
  if (wait == nullptr) return;
  // Pipes are read as files are: what a thread wrote comes from no disk.
  const Sides reads = evidence.states(
      [](std::string_view state) { return state == "blocked in read" || surely_waits_for_disk(state); });
  if (read_of_threads > 0 && reads.rise() - read_of_threads < kLeastOfGrowth * felt)
    std::erase_if(verdicts, [](const Verdict& v) { return v.cause == "disk_io"; });
  const auto is_known = [&](const Verdict& v) { return v.detail == "data_input" || is_of_machine(v, felt); };
  if (std::ranges::any_of(verdicts, is_known)) return;
  Verdict verdict;
  verdict.cause = "host_bound";
  verdict.detail = "data_input";
  verdict.scope = model::VerdictScope::function;
  verdict.where = wait->name;
  verdict.side = evidence.side();
  verdict.confidence = 0.7;
  verdict.impact_ns = felt;
  verdict.evidence = {fmt::format("Threads were blocked in {} {} per {}", place_of(*wait),
                                  instead(evidence.turned(wait->ns_per_unit)), evidence.comparison().off_cpu.per)};
  if (const auto step = evidence.step(); step->runnable.rise() >= kLeastImpact * step->all().without)
    verdict.against.push_back(
        fmt::format("Its threads waited {} for a CPU, too", instead_each(evidence, step->runnable)));
  verdict.next_step = "more workers that load, data nearer or smaller, or work on it moved out of the loader";
  verdicts.push_back(std::move(verdict));
}

/// Steps come more rarely, and every request takes longer by it: not for want of demand. What is between the steps, and
/// perhaps in another process, is slower then. By how much a step comes later, ns; 0: it is not so.
double lag_between_steps(const Evidence& evidence) {
  const auto& host = evidence.comparison().host;
  if (!host) return 0;
  const bool longer = std::ranges::any_of(host->requests, [&](const model::RequestChange& request) {
    return request.what == "request" && evidence.turned(request.median).ratio() > kLeastLag;
  });
  const Sides period = evidence.states([](std::string_view state) { return state == "period"; });
  return longer && period.ratio() > kLeastLag ? period.rise() : 0;
}

/// No thread of the processes in which it ran waits: what others wait for is elsewhere.
bool holds_up_nobody(const Evidence& evidence, const model::ShareChange& change) {
  constexpr double kHalf = 0.5;
  return evidence.turned(change.in_waiting).with < kHalf;
}

/// Samples tell which code runs while the thread of the steps waits for a lock: without functions traced, what a thread
/// of the program does instead. Where that thread is another process's, code that was not there before.
void lock(const Evidence& evidence, Verdicts& verdicts) {
  const auto step = evidence.step();
  if (!step) return;
  const Sides time = evidence.states([](std::string_view state) { return state.starts_with("blocked in futex"); });
  double felt = evidence.felt(time.rise());
  const bool elsewhere = felt < kLeastImpact * step->all().without;
  if (elsewhere) felt = std::min(time.rise(), lag_between_steps(evidence));
  if (felt < kLeastImpact * step->all().without) return;
  // Who makes the input runs meanwhile, and holds nothing.
  if (waits_for_input(evidence).felt >= kLeastOfGrowth * felt) return;
  const model::RunComparison& all = evidence.comparison();
  for (const auto& [shares, detail] : {std::pair(&all.python, "gil"), std::pair(&all.on_cpu, "lock")})
    for (const model::ShareChange& change : *shares) {
      const Sides share = evidence.turned(change.share);
      if (share.rise() < kLeastShareRise || share.ratio() < 2 || (elsewhere && share.without > kHardly)) continue;
      if (holds_up_nobody(evidence, change)) continue;
      Verdict verdict;
      verdict.cause = "host_bound";
      verdict.detail = detail;
      verdict.scope = model::VerdictScope::function;
      verdict.where = change.function;
      verdict.side = evidence.side();
      verdict.confidence = elsewhere ? 0.6 : 0.7;
      verdict.impact_ns = felt;
      // What is between the steps is longer; that may have decided, where nobody took the CPUs.
      const auto of_cpus = [](const Verdict& v) { return v.cause == "cpu_contention"; };
      if (elsewhere && (!evidence.is_slower() || std::ranges::any_of(verdicts, of_cpus)))
        verdict.state = model::VerdictState::latent;
      verdict.evidence = {fmt::format("{} ran in {} of the samples", change.function, instead_percent(share)),
                          fmt::format("Its threads waited {} in futex, as for a lock", instead_each(evidence, time))};
      verdict.against.emplace_back("Samples tell who ran meanwhile, not who held the lock");
      verdict.next_step = std::string(detail) == "gil"
                              ? "move it out of the process, or let it give up the interpreter's lock"
                              : "culprit top --stacks shows who waits behind it";
      verdicts.push_back(std::move(verdict));
      return;
    }
}

/// Fewer requests come, and none takes longer: who has nothing to do waits for work.
bool has_less_to_do(const Evidence& evidence) {
  const auto& host = evidence.comparison().host;
  if (!host || evidence.comparison().work) return false;
  if (evidence.turned(host->answered_per_second).rise() >= 0) return false;
  return std::ranges::none_of(host->requests, [&](const model::RequestChange& request) {
    return request.what == "request" && evidence.turned(request.median).ratio() > kLonger;
  });
}

/// What nothing else explains: most of what a step takes longer it is blocked in one place.
struct LateWait {
  const OffCpuChange* where = nullptr;  ///< nullptr: it is not so
  double felt = 0;                      ///< ns
};

LateWait late_wait(const Evidence& evidence, const Verdicts& verdicts) {
  const auto step = evidence.step();
  const double growth = evidence.growth();
  if (!evidence.is_slower() || !(growth > 0) || !step || !is_per_step(evidence) || evidence.doubts_cycles()) return {};
  const auto explains = [](const Verdict& v) {
    return v.state == model::VerdictState::active && v.cause != "environment_changed";
  };
  if (std::ranges::any_of(verdicts, explains) || has_less_to_do(evidence)) return {};
  const OffCpuChange* wait = longest_wait(evidence);
  if (wait == nullptr || surely_waits_for_disk("blocked in " + wait->call)) return {};
  const Sides time = evidence.turned(wait->ns_per_unit);
  const double felt = std::min({evidence.felt(time.rise()), step->blocked.rise(), growth});
  if (felt < kLeastOfGrowth * growth || felt < kLeastImpact * step->all().without) return {};
  // Who has no CPU is late, too.
  const Sides queue = evidence.states([](std::string_view state) { return state.starts_with("runnable"); });
  if (std::max(queue.rise(), step->runnable.rise()) >= kLeastOfGrowth * growth) return {};
  return {wait, felt};
}

/// Who sleeps for a time waits for nobody: the program asked for it.
void sleeps(const Evidence& evidence, Verdicts& verdicts) {
  const auto [wait, felt] = late_wait(evidence, verdicts);
  if (wait == nullptr || !model::is_sleep(wait->call)) return;
  Verdict verdict = verdict_of(evidence, "host_bound", "sleep", 0.7);
  verdict.scope = model::VerdictScope::function;
  verdict.where = wait->name == wait->call || wait->name.starts_with('[') ? "" : wait->name;
  verdict.impact_ns = felt;
  verdict.evidence = {fmt::format("Threads slept in {} {} per {}", place_of(*wait),
                                  instead(evidence.turned(wait->ns_per_unit)), evidence.comparison().off_cpu.per),
                      "Nothing ends a sleep but its time: the program asks for it"};
  verdict.against.emplace_back("Who has nothing to do may sleep until there is something");
  verdict.next_step = "culprit top --stacks off-cpu shows who calls it";
  verdicts.push_back(std::move(verdict));
}

/// One thread ends what the steps wait for: that one is late.
void for_another(const Evidence& evidence, Verdicts& verdicts) {
  const auto [wait, felt] = late_wait(evidence, verdicts);
  if (wait == nullptr) return;
  const Sides time = evidence.turned(wait->ns_per_unit);
  const std::string waker = waker_of(evidence, *wait);
  if (waker.empty()) return;
  Verdict verdict;
  verdict.cause = "host_bound";
  verdict.detail = "waits_for";
  verdict.scope = model::VerdictScope::process;
  verdict.where = waker;
  verdict.side = evidence.side();
  verdict.confidence = 0.6;
  verdict.impact_ns = felt;
  verdict.evidence = {fmt::format("Threads were blocked in {} {} per {}", place_of(*wait), instead(time),
                                  evidence.comparison().off_cpu.per),
                      fmt::format("A thread named {} ended most of that", waker)};
  verdict.against.emplace_back("Who ended a wait is known, not what it did until then");
  verdict.next_step = fmt::format("culprit top --stacks on-cpu and off-cpu of both sides shows what {} does", waker);
  verdicts.push_back(std::move(verdict));
}

/// Requests wait, and threads that have one sleep until another thread of the program wakes them: who answers by
/// himself waits for a lock then, or for what he handed to another.
void behind_own(const Evidence& evidence, Verdicts& verdicts) {
  const double waited = evidence.waited_longer();
  if (!(waited > 0) || !is_per_step(evidence)) return;
  const auto explains = [&](const Verdict& v) {
    return v.state == model::VerdictState::active && v.impact_ns >= kLeastOfGrowth * waited;
  };
  if (std::ranges::any_of(verdicts, explains)) return;
  const OffCpuChange* most = nullptr;
  double sum = 0;
  for (const OffCpuChange& wait : evidence.comparison().off_cpu.handed) {
    const double rise = evidence.turned(wait.ns_per_unit).rise();
    sum += rise;
    if (most == nullptr || rise > evidence.turned(most->ns_per_unit).rise()) most = &wait;
  }
  if (most == nullptr || sum < kLeastOfGrowth * waited) return;
  std::string text = fmt::format(
      "Threads that answer slept in {} until a thread named {} of the program itself woke them {} per {}, as for a "
      "lock of its own",
      most->call, most->name, instead(evidence.turned(most->ns_per_unit)), evidence.comparison().off_cpu.per);
  // Who holds the lock is late by it.
  const auto makes_late = [&](const Verdict& v) { return is_of_machine(v) && v.impact_ns >= kLeastTold * waited; };
  if (const auto by = std::ranges::find_if(verdicts, makes_late); by != verdicts.end()) {
    by->impact_ns = std::min(by->impact_ns + sum, waited);
    by->evidence.push_back(std::move(text));
    return;
  }
  Verdict verdict = verdict_of(evidence, "host_bound", "waits_for", 0.6);
  verdict.scope = model::VerdictScope::process;
  verdict.where = most->name;
  verdict.evidence = {std::move(text)};
  // Of what is blocked in the work itself it may have been found already.
  const auto is_same = [&](const Verdict& v) {
    return v.cause == verdict.cause && v.detail == verdict.detail && v.where == verdict.where;
  };
  if (const auto same = std::ranges::find_if(verdicts, is_same); same != verdicts.end()) {
    sum += same->impact_ns;
    verdict.evidence.insert(verdict.evidence.end(), same->evidence.begin(), same->evidence.end());
    verdicts.erase(same);
  }
  verdict.impact_ns = std::min(sum, waited);
  verdict.against.emplace_back("Who ended a wait is known, not what was waited for");
  verdict.next_step =
      "see who holds its locks (of a database: its view of locks, pg_locks, SHOW ENGINE INNODB STATUS), and for how "
      "long";
  verdicts.push_back(std::move(verdict));
}

constexpr std::array kWaitRules = {Rule{"waits.input", input_waits}, Rule{"waits.lock", lock}};
constexpr std::array kLastWaitRules = {Rule{"waits.sleeps", sleeps}, Rule{"waits.for_another", for_another},
                                       Rule{"waits.behind_own", behind_own}};

}  // namespace

std::span<const Rule> wait_rules() { return kWaitRules; }
std::span<const Rule> last_wait_rules() { return kLastWaitRules; }

std::string longest_wait_text(const Evidence& evidence) {
  if (!is_per_step(evidence)) return "";
  const OffCpuChange* wait = longest_wait(evidence);
  if (wait == nullptr) return "";
  const Sides time = evidence.turned(wait->ns_per_unit);
  if (!(evidence.growth() > 0) || time.rise() < kLeastTold * evidence.growth()) return "";
  std::string text = fmt::format("Threads were blocked in {} {} per {}", place_of(*wait), instead(time),
                                 evidence.comparison().off_cpu.per);
  if (const std::string waker = waker_of(evidence, *wait); !waker.empty())
    text += fmt::format(", until a thread named {} woke them", waker);
  return text;
}

}  // namespace culprit::diagnose
