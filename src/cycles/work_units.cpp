#include "cycles/work_units.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "cycles/answers.h"
#include "cycles/call_pairs.h"
#include "cycles/confidence.h"
#include "cycles/waits.h"
#include "cycles/work_choice.h"
#include "cycles/work_threads.h"
#include "trace/bystanders.h"
#include "trace/call_estimates.h"
#include "trace/span.h"

namespace culprit::cycles {

namespace {

using model::UnitKind;
using model::WorkUnit;

constexpr double kEstimatedTimes = 0.25;  // the same of an estimate and what it estimates
constexpr double kEstimatedSlack = 0.05;  // of two counts of one thing, of an estimate that could be twice as much
constexpr double kWildEstimate = 0.5;     // half of the 95 % interval of an estimate that says little
constexpr double kAlikeTimes = 0.25;      // logarithm of the ratios of two threads that do the same
constexpr double kAlwaysWorks = 0.95;     // of the time
constexpr double kMillisecond = 1e6;
constexpr double kIdleShare = 0.003;  // of one CPU
constexpr std::uint64_t kFewestProcesses = 5;
constexpr Ns kEdge = 1'000'000;  // a process that lasts up to so shortly before the end may go on

void add_windows(std::vector<double>& sums, const std::vector<std::uint32_t>& more) {
  sums.resize(std::max(sums.size(), more.size()));
  for (std::size_t w = 0; w < more.size(); ++w) sums[w] += static_cast<double>(more[w]);
}

/// Requests of groups of threads: by program, thread, and the calls that delimit them.
class Requests {
 public:
  Requests(const Trace& trace, const WorkThreads& work)
      : trace_(trace), work_(work), answers_(answers_by_process(trace)) {
    if (const auto estimates = call_estimates(trace))
      slack_ = kEstimatedSlack * std::min(1.0, estimates->error.value_or(1));
  }

  /// Bystanders make nothing a message. `machine` null: there are none.
  std::vector<WorkUnit> find(const ProgramTimes* machine) {
    std::map<std::string, std::vector<const WorkThread*>> programs;
    for (const WorkThread& thread : work_.threads) {
      programs[thread.process_name].push_back(&thread);
      const std::int64_t pid = trace_.processes[thread.process].pid;
      const auto [known, is_new] = pids.try_emplace(thread.process_name, pid);
      if (!is_new) known->second = std::min(known->second, pid);
    }
    for (const auto& [name, threads] : programs) {
      of_threads(threads);
      of_short_threads(threads);
      of_connections(threads);
    }
    std::vector<WorkUnit> units;
    std::set<std::string> names;
    for (auto& [key, unit] : groups_) {
      if (machine == nullptr || !machine->is_beside(unit.process)) names.insert(unit.process);
      units.push_back(std::move(unit));
    }
    if (names.size() > 1)
      for (WorkUnit& unit : units) {
        unit.kind = UnitKind::message;
        unit.confidence = std::min(unit.confidence, confidence::kBetweenProcesses);
      }
    return units;
  }

  std::map<std::string, std::int64_t> pids{};  ///< lowest one of each program

 private:
  using Threads = std::vector<const WorkThread*>;

  WorkUnit& group(const WorkThread& like, const CallPair& pair) {
    WorkUnit& unit = groups_[{like.process_name, like.thread_name, pair.receive, pair.send}];
    if (unit.threads == 0) {
      unit.kind = UnitKind::request;
      unit.process = like.process_name;
      unit.thread = like.thread_name;
      unit.receive = pair.receive;
      unit.send = pair.send;
      unit.confidence = pair.confidence;
      unit.reason = pair.reason;
    }
    unit.confidence = std::min(unit.confidence, pair.confidence);
    unit.count += pair.count;
    return unit;
  }

  static void count(WorkUnit& unit, const WorkThread& thread, const std::string& call) {
    const auto windows = thread.calls_per_window.find(call);
    if (windows != thread.calls_per_window.end()) add_windows(unit.per_window, windows->second);
  }

  void add(const WorkThread& thread, const CallPair& pair) {
    WorkUnit& unit = group(thread, pair);
    ++unit.threads;
    count(unit, thread, pair.by_receive ? pair.receive : pair.send);
  }

  /// Threads that receive as often as they send, and those of their name that do nearly so.
  void of_threads(const Threads& threads) {
    Threads others;
    std::map<std::string_view, std::vector<std::pair<const WorkThread*, CallPair>>> found;  // by name of the thread
    for (const WorkThread* thread : threads) {
      if (thread->calls.empty()) continue;
      std::vector<CallPair> pairs = pairs_of(thread->calls, slack_);
      if (pairs.empty())
        if (auto pair = answering(*thread)) pairs.push_back(std::move(*pair));
      if (pairs.empty()) others.push_back(thread);
      for (CallPair& pair : pairs) {
        add(*thread, pair);
        found[thread->thread_name].emplace_back(thread, std::move(pair));
      }
    }
    for (const WorkThread* thread : others) {
      const auto named = found.find(thread->thread_name);
      if (named == found.end()) continue;
      const auto like = std::ranges::find_if(
          named->second, [&](const auto& known) { return calls_alike(*known.first, *thread, known.second); });
      if (like == named->second.end()) continue;
      CallPair pair = like->second;
      pair.count = thread->calls.at(pair.by_receive ? pair.receive : pair.send);
      add(*thread, pair);
    }
  }

  /// Whether `thread` makes the two calls as often, for each other, as `known`, about.
  static bool calls_alike(const WorkThread& known, const WorkThread& thread, const CallPair& pair) {
    const auto receives = thread.calls.find(pair.receive);
    const auto sends = thread.calls.find(pair.send);
    if (receives == thread.calls.end() || sends == thread.calls.end()) return false;
    if (receives->second < kFewestUnits || sends->second < kFewestUnits) return false;
    const auto ratio = [&](const WorkThread& of) {
      return static_cast<double>(of.calls.at(pair.receive)) / static_cast<double>(of.calls.at(pair.send));
    };
    return std::abs(std::log(ratio(thread) / ratio(known))) < kAlikeTimes;
  }

  /// A thread that sends as often as its process was seen to answer on its connections, however often it tries to
  /// receive.
  [[nodiscard]] std::optional<CallPair> answering(const WorkThread& thread) const {
    const std::uint64_t answers = answers_[thread.process];
    const auto most = [&](auto is_one) {
      const auto best = std::ranges::max_element(
          thread.calls, {}, [&](const auto& call) { return is_one(call.first) ? call.second : 0; });
      return best != thread.calls.end() && is_one(best->first) ? best->first : std::string();
    };
    const std::string receive = most(is_receive);
    const std::string send = most(is_send);
    if (answers < kFewestUnits || receive.empty() || send.empty() || !agree(thread.calls.at(send), answers))
      return std::nullopt;
    return CallPair{receive,
                    send,
                    thread.calls.at(send),
                    confidence::kReceivesAndSends,
                    false,
                    fmt::format("as many calls of '{}' as answers were seen on its connections", send)};
  }

  /// Threads too short to say anything alone, by name.
  void of_short_threads(const Threads& threads) {
    std::map<std::string, Threads> names;
    for (const WorkThread* thread : threads) {
      const bool is_short = std::ranges::none_of(thread->calls, [](const auto& call) {
        return call.second >= kFewestUnits && (is_receive(call.first) || is_send(call.first) || is_accept(call.first));
      });
      const bool has_any =
          std::ranges::any_of(thread->calls_per_window, [](const auto& call) { return !begins_turn(call.first); });
      if (is_short && has_any) names[thread->thread_name].push_back(thread);
    }
    for (const auto& [name, group_of] : names) {
      if (group_of.size() < kFewestUnits) continue;
      for (const CallPair& pair : pairs_of(calls_of(group_of), slack_)) {
        WorkUnit& unit = group(*group_of.front(), pair);
        unit.threads += group_of.size();
        for (const WorkThread* thread : group_of) count(unit, *thread, pair.by_receive ? pair.receive : pair.send);
      }
    }
  }

  /// Connections that one thread accepts and others answer.
  void of_connections(const Threads& threads) {
    const std::map<std::string, std::uint64_t> calls = calls_of(threads);
    for (const CallPair& pair : pairs_of(calls, slack_)) {
      if (!is_accept(pair.receive)) continue;
      const auto accepts =
          std::ranges::find_if(threads, [&](const WorkThread* t) { return t->calls.contains(pair.receive); });
      if (groups_.contains({(*accepts)->process_name, (*accepts)->thread_name, pair.receive, pair.send})) continue;
      WorkUnit& unit = group(**accepts, pair);
      for (const WorkThread* thread : threads) {
        if (!thread->calls.contains(pair.receive)) continue;
        ++unit.threads;
        count(unit, *thread, pair.receive);
      }
    }
  }

  static std::map<std::string, std::uint64_t> calls_of(const Threads& threads) {
    std::map<std::string, std::uint64_t> sums;
    for (const WorkThread* thread : threads)
      for (const auto& [name, count] : thread->calls) sums[name] += count;
    return sums;
  }

  const Trace& trace_;
  const WorkThreads& work_;
  std::vector<std::uint64_t> answers_;
  double slack_ = 0;
  std::map<std::tuple<std::string, std::string, std::string, std::string>, WorkUnit> groups_;
};

struct Life {
  Ns begin = 0;
  Ns end = 0;
  double on_cpu = 0;
  bool known = false;
};

/// Processes that began and ended inside the recording, by program.
std::optional<WorkUnit> processes(const Trace& trace, const WorkThreads& work, std::vector<Ns>& latencies) {
  std::vector<Life> lives(trace.processes.size());
  double all = 0;
  for (const WorkThread& thread : work.threads) {
    Life& life = lives[thread.process];
    life.begin = life.known ? std::min(life.begin, thread.begin) : thread.begin;
    life.end = life.known ? std::max(life.end, thread.end) : thread.end;
    life.known = true;
    life.on_cpu += thread.on_cpu;
    all += thread.on_cpu;
  }
  struct Program {
    double on_cpu = 0;
    std::vector<Life> lives;
  };
  std::map<std::string, Program> programs;
  double ended = 0;
  // Where the recording ended because all had ended, none goes on.
  const Ns edge = fact_of(trace, "record.end") == "target_ended" ? 0 : kEdge;
  for (std::size_t p = 0; p < lives.size(); ++p) {
    const Life& life = lives[p];
    if (!life.known || life.begin <= work.windows.front().begin + kEdge || life.end > work.windows.back().end - edge)
      continue;
    Program& program = programs[std::string(program_of(trace.strings[trace.processes[p].name]))];
    program.on_cpu += life.on_cpu;
    program.lives.push_back(life);
    ended += life.on_cpu;
  }
  const auto most = std::ranges::max_element(programs, {}, [](const auto& p) { return p.second.on_cpu; });
  if (most == programs.end() || most->second.lives.size() < kFewestProcesses || ended < all / 2) return std::nullopt;
  WorkUnit unit;
  unit.kind = UnitKind::process;
  unit.process = most->first;
  unit.count = most->second.lives.size();
  unit.confidence = confidence::kLifetimes;
  unit.reason = fmt::format("{} processes of '{}' began and ended, most of the CPU time is that of such processes",
                            unit.count, unit.process);
  unit.per_window.resize(work.windows.size());
  for (const Life& life : most->second.lives) {
    latencies.push_back(life.end - life.begin);
    unit.ends.push_back(life.end);
    const auto window = std::ranges::lower_bound(work.windows, life.end, {}, &model::WorkWindow::end);
    if (window != work.windows.end()) unit.per_window[static_cast<std::size_t>(window - work.windows.begin())] += 1;
  }
  std::ranges::sort(unit.ends);
  return unit;
}

std::optional<WorkUnit> wakeups(const WorkThreads& work, const ProgramTimes* machine) {
  const WorkThread* most = nullptr;
  for (const WorkThread& thread : work.threads)
    if (thread.wakes.size() >= kFewestUnits && !thread.by_time && (most == nullptr || thread.worked > most->worked) &&
        (machine == nullptr || !machine->is_beside(thread.process_name)))
      most = &thread;
  if (most == nullptr) return std::nullopt;
  WorkUnit unit;
  const bool turns = begins_turn(most->wait) && most->calls_per_window.contains(most->wait);
  unit.kind = turns ? UnitKind::iteration : UnitKind::wakeup;
  unit.process = most->process_name;
  unit.thread = most->thread_name;
  unit.receive = most->wait;
  unit.confidence = confidence::kWakeups;
  unit.reason = fmt::format("{} of the thread that worked most{} '{}'; how many requests one handles is not known",
                            turns ? "turns of the event loop" : "wake-ups", turns ? ", by calls of" : " from",
                            most->wait.empty() ? "unknown waits" : most->wait);
  unit.per_window.resize(work.windows.size());
  for (const WorkThread& thread : work.threads) {
    if (thread.process_name != unit.process || thread.thread_name != unit.thread || thread.wait != unit.receive ||
        thread.by_time || (turns && !thread.calls_per_window.contains(unit.receive)))
      continue;
    ++unit.threads;
    if (turns) {
      // A turn may find events without having to wait.
      unit.count += thread.calls.at(unit.receive);
      add_windows(unit.per_window, thread.calls_per_window.at(unit.receive));
      continue;
    }
    unit.count += thread.wakes.size();
    std::size_t w = 0;
    for (const Ns at : thread.wakes) {
      while (w + 1 < work.windows.size() && at >= work.windows[w].end) ++w;
      unit.per_window[w] += 1;
    }
  }
  return unit;
}

/// All answers that a program gave on its connections, which are counted however seldom calls are looked at.
std::optional<WorkUnit> answered(const Trace& trace, const WorkThreads& work, const ProgramTimes* machine) {
  std::map<std::string, std::uint64_t> programs;
  const std::vector<std::uint64_t> answers = answers_by_process(trace);
  for (ProcessId process = 0; process < answers.size(); ++process)
    if (answers[process] > 0) programs[program_name(trace, process)] += answers[process];
  if (machine != nullptr) std::erase_if(programs, [&](const auto& p) { return machine->is_beside(p.first); });
  // Who is asked over the network faces who uses all of it: what it asks others over Unix sockets is part of that.
  const std::set<std::string> on_ports = programs_on_ports(trace);
  const auto most = std::ranges::max_element(
      programs, {}, [&](const auto& p) { return p.second * (on_ports.contains(p.first) ? kAsksOfOne : 1); });
  if (most == programs.end() || most->second < kFewestUnits) return std::nullopt;
  WorkUnit unit;
  unit.per_window = answers_in(trace, most->first, work.windows);
  if (unit.per_window.empty()) return std::nullopt;
  unit.kind = UnitKind::request;
  unit.process = most->first;
  unit.receive = model::kAnswers;
  unit.count = most->second;
  unit.confidence = confidence::kReceivesAndSends;
  unit.reason = "so many answers were sent on its connections";
  return unit;
}

/// The CPU time of a program whose threads do nothing but compute. nullopt: some wait.
std::optional<WorkUnit> cpu_time(const WorkThreads& work, const model::WorkWindow& sum) {
  const auto length = static_cast<double>(sum.end - sum.begin);
  double on_cpu = 0;
  const WorkThread* most = nullptr;
  for (const WorkThread& thread : work.threads) {
    if (thread.worked < kAlwaysWorks * length) continue;
    if (!thread.calls_per_window.empty()) return std::nullopt;  // it receives, sends or waits for events
    on_cpu += thread.on_cpu;
    if (most == nullptr || thread.on_cpu > most->on_cpu) most = &thread;
  }
  const bool waits = sum.blocked > (1 - kAlwaysWorks) * (sum.on_cpu + sum.run_queue);
  if (most == nullptr || waits || on_cpu < kAlwaysWorks * sum.on_cpu) return std::nullopt;
  WorkUnit unit;
  unit.kind = UnitKind::cpu_time;
  unit.process = most->process_name;
  unit.count = static_cast<std::uint64_t>(std::llround(sum.on_cpu / kMillisecond));
  unit.confidence = confidence::kNeverWaits;
  unit.reason = "its threads only compute: what it gets done is the CPU time that it gets";
  for (const model::WorkWindow& window : work.windows) unit.per_window.push_back(window.on_cpu / kMillisecond);
  return unit;
}

/// How long the threads of a program lived that began and ended inside the recording.
std::vector<Ns> lives_of_threads(const WorkThreads& work, const std::string& program) {
  std::vector<Ns> lives;
  for (const WorkThread& thread : work.threads)
    if (thread.process_name == program && thread.scheduled && thread.begin > work.windows.front().begin + kEdge &&
        thread.end < work.windows.back().end - kEdge)
      lives.push_back(thread.end - thread.begin);
  return lives;
}

/// Hardly any of its units: how connections between a program's own processes begin.
bool begins_connections(const Answers& answers, const WorkUnit& unit) {
  constexpr std::uint64_t kMostUnits = 8;  // for one answer
  return answers.port == model::kUnixSockets && kMostUnits * answers.count < unit.count;
}

/// Several requests of the first unit, where they come again and again in the same order.
std::optional<WorkUnit> transactions(const Trace& trace, const Answers& answers, const WorkUnit& first) {
  if (first.kind != UnitKind::request) return std::nullopt;
  const auto pattern = pattern_of(trace, answers);
  if (!pattern) return std::nullopt;
  WorkUnit unit = first;
  unit.kind = UnitKind::transaction;
  const auto requests = static_cast<double>(pattern->requests);
  unit.count = static_cast<std::uint64_t>(std::llround(static_cast<double>(first.count) / requests));
  for (double& count : unit.per_window) count /= requests;
  unit.confidence = std::min(first.confidence, confidence::kTransactions);
  unit.reason = fmt::format("{} requests each: of {} bytes is each {}th answer on {} ({:.0f} %)", pattern->requests,
                            pattern->bytes, pattern->requests, answers.port, pattern->share * 100);
  return unit;
}

/// On all connections of its processes.
std::uint64_t answers_of_program(const Trace& trace, std::string_view program) {
  const std::vector<std::uint64_t> by_process = answers_by_process(trace);
  std::uint64_t answers = 0;
  for (ProcessId process = 0; process < by_process.size(); ++process)
    if (by_process[process] > 0 && program_name(trace, process) == program) answers += by_process[process];
  return answers;
}

/// Where calls were not looked at always, all answers on connections were: so many there are, when they can be these.
void correct_estimate(const Trace& trace, const std::vector<model::WorkWindow>& windows, const CallEstimates& estimates,
                      WorkUnit& unit) {
  if (unit.kind != UnitKind::request && unit.kind != UnitKind::message) return;
  const std::uint64_t answers = answers_of_program(trace, unit.process);
  const double error = estimates.error.value_or(1);
  // An estimate that could be anything could be these, too, and need not be.
  if (answers < kFewestUnits || error > kWildEstimate ||
      !agree(unit.count, answers, std::max(kEstimatedTimes, 2 * error))) {
    unit.count_error = error;
    return;
  }
  if (std::vector<double> counts = answers_in(trace, unit.process, windows); !counts.empty())
    unit.per_window = std::move(counts);
  else
    for (double& count : unit.per_window) count *= static_cast<double>(answers) / static_cast<double>(unit.count);
  unit.count = answers;
  unit.reason += "; so many answers were seen";
}

/// Who asks others for each answer (a proxy) receives and sends several times for it: so often exactly, where the
/// answers on accepted connections were counted.
void count_by_answers(const Trace& trace, WorkUnit& unit) {
  constexpr double kMostTimes = 8;
  constexpr double kNearlyWhole = 0.03;
  if (unit.kind != UnitKind::request) return;
  const auto answers = static_cast<double>(answers_of_program(trace, unit.process));
  if (answers < kFewestUnits) return;
  const double times = static_cast<double>(unit.count) / answers;
  const double whole = std::round(times);
  if (whole < 2 || whole > kMostTimes || std::abs(times / whole - 1) > kNearlyWhole) return;
  for (double& count : unit.per_window) count /= whole;
  unit.count = static_cast<std::uint64_t>(std::llround(static_cast<double>(unit.count) / whole));
  unit.reason += fmt::format("; {:.0f} times for each answer on its connections", whole);
}

void add_latencies(const WorkThreads& work, const std::optional<Answers>& answers, std::vector<Ns> lifetimes,
                   model::WorkUnits& result) {
  const WorkUnit& first = result.units.front();
  using model::LatencyKind;
  if (first.kind == UnitKind::process) {
    result.latency_kind = LatencyKind::process;
    result.latencies = std::move(lifetimes);
  } else if (first.kind != UnitKind::window) {
    std::vector<Ns> lives = lives_of_threads(work, first.process);
    if (is_accept(first.receive) && agree(lives.size(), first.count, kNearlySameTimes)) {
      result.latency_kind = LatencyKind::thread;
      result.latencies = std::move(lives);
    } else if (answers) {
      result.latency_kind = LatencyKind::answer;
      result.answers = answers->buckets;
      result.port = answers->port;
      result.answer_bytes = static_cast<double>(answers->bytes) / static_cast<double>(answers->count);
    } else {
      for (const WorkThread& thread : work.threads)
        if (thread.process_name == first.process && thread.thread_name == first.thread)
          result.latencies.insert(result.latencies.end(), thread.latencies.begin(), thread.latencies.end());
    }
  }
  std::ranges::sort(result.latencies);
}

WorkUnit windows(const WorkThreads& work, std::string_view why) {
  WorkUnit unit;
  unit.kind = UnitKind::window;
  unit.count = work.windows.size();
  unit.reason = why;
  unit.per_window.assign(work.windows.size(), 1);
  return unit;
}

std::vector<model::CountedTime> longest_first(std::map<std::string, model::CountedTime>& sums) {
  std::vector<model::CountedTime> list;
  list.reserve(sums.size());
  for (auto& [name, sum] : sums) list.push_back(std::move(sum));
  std::ranges::stable_sort(list, [](const auto& a, const auto& b) { return a.total_ns > b.total_ns; });
  return list;
}

/// When the thread that does the first unit was woken, if it is one.
std::vector<Ns> starts_of(const WorkThreads& work, const WorkUnit& unit) {
  const WorkThread* only = nullptr;
  if (unit.kind == UnitKind::window || unit.kind == UnitKind::process) return {};
  for (const WorkThread& thread : work.threads) {
    if (thread.process_name != unit.process || thread.thread_name != unit.thread || thread.wakes.empty()) continue;
    if (only != nullptr) return {};
    only = &thread;
  }
  return only == nullptr ? std::vector<Ns>() : only->wakes;
}

}  // namespace

model::WorkUnits find_work_units(const Trace& trace) {
  model::WorkUnits result;
  result.base = trace.base_ns;
  WorkThreads work = work_threads(trace);
  if (work.windows.empty()) return result;
  result.recorded = true;
  result.windows = work.windows;
  const Ns begin = work.windows.front().begin;
  const Ns end = work.windows.back().end;
  result.seconds = static_cast<double>(end - begin) * 1e-9;
  std::map<std::string, double> on_cpu;
  double all = 0;
  double busy = 0;  // without who only polls
  for (const WorkThread& thread : work.threads) {
    on_cpu[thread.process_name] += thread.on_cpu;
    all += thread.on_cpu;
    if (!thread.by_time) busy += thread.on_cpu;
  }
  if (!on_cpu.empty())
    result.program = std::ranges::max_element(on_cpu, {}, [](const auto& p) { return p.second; })->first;

  for (const auto& [name, time] : on_cpu) result.programs.push_back(name);

  Requests requests(trace, work);
  const std::optional<ProgramTimes> times = times_on_machine(trace, work);
  const ProgramTimes* const machine = times ? &*times : nullptr;
  std::vector<WorkUnit> found = requests.find(machine);
  const std::optional<CallEstimates> estimates = call_estimates(trace);
  for (WorkUnit& unit : found)
    if (estimates)
      correct_estimate(trace, work.windows, *estimates, unit);
    else
      count_by_answers(trace, unit);
  order(found, requests.pids, machine);
  if (auto unit = answered(trace, work, machine)) add_answers(found, std::move(*unit), estimates.has_value());
  std::vector<Ns> lifetimes;
  const double idle_time = kIdleShare * static_cast<double>(end - begin);
  result.idle = busy < idle_time && found.empty();
  if (result.idle) {
    result.units.push_back(windows(work, idle_reason(trace, all >= idle_time)));
  } else {
    std::vector<WorkUnit> beside;
    if (machine != nullptr) beside = take_beside(found, *machine);
    if (auto unit = processes(trace, work, lifetimes)) add_processes(found, std::move(*unit));
    if (found.empty())
      if (auto unit = cpu_time(work, sum_of(result))) found.push_back(std::move(*unit));
    if (auto unit = wakeups(work, machine)) {
      if (estimates && unit->kind == UnitKind::iteration) unit->count_error = estimates->error.value_or(1);
      found.push_back(std::move(*unit));
    }
    std::ranges::move(beside, std::back_inserter(found));
    if (found.empty())
      found.push_back(windows(work,
                              "no thread receives as often as it sends, few processes ended, and no thread that "
                              "worked was woken often"));
    if (machine != nullptr) tell_share(found.front(), *machine);
    result.units = std::move(found);
  }
  std::optional<Answers> answers = answers_of(trace, result.units.front().process);
  if (answers && begins_connections(*answers, result.units.front())) answers.reset();
  if (answers)
    if (auto unit = transactions(trace, *answers, result.units.front()))
      result.units.insert(result.units.begin(), std::move(*unit));
  add_latencies(work, answers, std::move(lifetimes), result);
  result.starts = starts_of(work, result.units.front());
  result.blocked = longest_first(work.blocked);
  result.waits = longest_first(work.waits);
  result.calls = longest_first(work.calls);
  result.others = bystanders(trace, begin, end);
  return result;
}

}  // namespace culprit::cycles
