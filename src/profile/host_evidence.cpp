#include "profile/host_evidence.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/units.h"
#include "cycles/file_waits.h"
#include "cycles/waits.h"
#include "profile/counter.h"
#include "profile/step_threads.h"
#include "trace/bystanders.h"
#include "trace/counter_samples.h"
#include "trace/request_times.h"

namespace culprit::profile {

namespace {

struct Window {
  Ns begin = 0;
  Ns end = 0;
  std::size_t phase = 0;
};
using Windows = std::vector<Window>;  // ordered, without overlap

constexpr std::string_view kUninterruptible = "blocked, uninterruptible";

struct Work {
  std::map<std::uint32_t, Windows> of_process;  ///< by row of Trace::processes
  const Windows* most = nullptr;
  Ns begin = 0;
  Ns end = 0;
};

/// What a recording beside a trace covers; everything where there is none.
std::pair<Ns, Ns> covered(const Trace& trace) {
  std::pair<Ns, Ns> all{std::numeric_limits<Ns>::min(), std::numeric_limits<Ns>::max()};
  if (std::ranges::all_of(trace.ranks, [](const Rank& rank) { return rank.recordings.empty(); })) return all;
  std::pair<Ns, Ns> seen{all.second, all.first};
  for (std::size_t i = 0; i < trace.slices.size(); ++i) {
    const Slice& slice = trace.slices[i];
    if (trace.tracks[slice.track].kind != TrackKind::sched) continue;
    seen = {std::min(seen.first, slice.begin), std::max(seen.second, slice.end())};
  }
  return seen.first > seen.second ? all : seen;
}

Work windows_of(const Trace& trace, const model::Cycles& cycles, model::HostEvidence& evidence) {
  const auto [from, to] = covered(trace);
  Work work;
  const std::vector<bool> whole = model::whole_periods(cycles);
  bool first = true;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    if (!whole[i]) continue;
    const model::Cycle& cycle = cycles.cycles[i];
    const auto phase = static_cast<std::size_t>(cycle.phase);
    const Ns end = cycle.begin + cycle.period;
    if (cycle.begin < from || end > to) continue;
    work.of_process[cycle.process].push_back({cycle.begin, end, phase});
    work.begin = first ? cycle.begin : std::min(work.begin, cycle.begin);
    work.end = first ? end : std::max(work.end, end);
    first = false;
    ++evidence.cycles[phase];
    evidence.period_ns[phase] += static_cast<double>(cycle.period);
  }
  for (auto& [process, windows] : work.of_process) {
    std::ranges::sort(windows, {}, &Window::begin);
    if (work.most == nullptr || windows.size() > work.most->size()) work.most = &windows;
  }
  return work;
}

/// Adds the part of [begin, end) inside each window to the window's phase. `partly`: whoever sleeps through a whole
/// window waits for something else than the step, and does not count.
void distribute(const Windows& windows, Ns begin, Ns end, bool partly,
                std::array<double, model::kPhases.size()>& sums) {
  auto window = std::ranges::upper_bound(windows, begin, {}, &Window::begin);
  if (window != windows.begin()) --window;
  for (; window != windows.end() && window->begin < end; ++window) {
    if (partly && begin <= window->begin && end >= window->end) continue;
    const Ns overlap = std::min(end, window->end) - std::max(begin, window->begin);
    if (overlap > 0) sums[window->phase] += static_cast<double>(overlap);
  }
}

/// What a slice says of its thread.
enum class Told : std::uint8_t { state, reason, reason_of_uninterruptible };

std::string state_name(std::string_view name, Told told) {
  if (told != Told::state) {
    const bool uninterruptible = told == Told::reason_of_uninterruptible;
    name = cycles::blocked_call(name);
    if (name == "stopped") return {};  // a state of its own
    if (uninterruptible && name == "unknown") return std::string(kUninterruptible);
    return "blocked in " + (uninterruptible ? cycles::call_without_signals(name) : std::string(name));
  }
  if (name == "oncpu") return "running";
  if (name == "runq") return "runnable";
  if (name == "blocked_uninterruptible") return std::string(kUninterruptible);
  if (name == "stopped") return "stopped";
  return {};
}

/// Sleeps of the threads of a trace that no signal ends, by process and number of the thread, in order of time.
class UninterruptibleSleeps {
 public:
  explicit UninterruptibleSleeps(const Trace& trace) {
    const StringId name = trace.strings.find("blocked_uninterruptible", kNone);
    if (name == kNone) return;
    for (std::size_t i = 0; i < trace.slices.size(); ++i) {
      const Slice& slice = trace.slices[i];
      const Track& track = trace.tracks[slice.track];
      if (track.kind == TrackKind::sched && slice.name == name)
        sleeps_[{track.process, track.tid}].push_back({slice.begin, slice.end(), false});
    }
    for (auto& [thread, sleeps] : sleeps_)
      std::ranges::sort(sleeps, {}, [](const Sleep& sleep) { return std::pair(sleep.begin, sleep.end); });
  }

  /// Whether one of the thread begins there, whose reason is told thereby; of several that of all.
  bool tell_reason(const Track& track, Ns begin) {
    const auto thread = sleeps_.find({track.process, track.tid});
    if (thread == sleeps_.end()) return false;
    const auto first = std::ranges::lower_bound(thread->second, begin, {}, &Sleep::begin);
    if (first == thread->second.end() || first->begin != begin) return false;
    if (first->told) return true;
    for (auto sleep = first; sleep != thread->second.end() && sleep->begin == begin; ++sleep) sleep->told = true;
    return true;
  }

  /// Calls `use(process, begin, end)` for those without a reason.
  template <class Use>
  void each_untold(const Use& use) const {
    for (const auto& [thread, sleeps] : sleeps_)
      for (const Sleep& sleep : sleeps)
        if (!sleep.told) use(thread.first, sleep.begin, sleep.end);
  }

 private:
  struct Sleep {
    Ns begin = 0;
    Ns end = 0;
    bool told = false;
  };
  std::map<std::pair<ProcessId, std::int64_t>, std::vector<Sleep>> sleeps_;
};

/// Growth per second of a total in [begin, end). nullopt before its first value.
std::optional<double> rate_of(const std::vector<CounterSample>& samples, Ns begin, Ns end) {
  if (begin >= end || samples.empty() || samples.front().at >= end) return std::nullopt;
  const auto value_at = [&](Ns at) {
    const auto behind = std::ranges::upper_bound(samples, at, {}, &CounterSample::at);
    return behind == samples.begin() ? behind->value : std::prev(behind)->value;
  };
  return (value_at(end) - value_at(begin)) * kSecond / static_cast<double>(end - begin);
}

/// Counts of work, which are compared as such.
constexpr std::array<std::string_view, 2> kAnswers = {"answers", "answers over Unix sockets"};

/// Recordings hold these as totals since the process started, of which only the growth says something.
bool is_total(std::string_view name) { return name.starts_with("page_faults."); }

constexpr Ns kNoEnd = std::numeric_limits<Ns>::max();

/// When each process was last seen to run or to wait; the end of time where its scheduling is not known.
std::vector<Ns> ends_of(const Trace& trace) {
  constexpr Ns kNever = std::numeric_limits<Ns>::min();
  std::vector<Ns> ends(trace.processes.size(), kNever);
  for (std::size_t i = 0; i < trace.slices.size(); ++i) {
    const Track& track = trace.tracks[trace.slices[i].track];
    if (track.kind == TrackKind::sched) ends[track.process] = std::max(ends[track.process], trace.slices[i].end());
  }
  std::ranges::replace(ends, kNever, kNoEnd);
  return ends;
}

/// Of each process, on the average. A process that stands still makes no steps, so the time goes on to the end of the
/// recording; but not where the process ended, or where a trace that has the steps lies beside the recording.
double steps_per_second(const Trace& trace, const model::Cycles& cycles) {
  const auto [from, to] = covered(trace);
  struct Steps {
    Ns first = 0;
    Ns end = 0;
    double count = 0;
  };
  std::map<std::pair<std::uint16_t, std::uint32_t>, Steps> of_process;
  for (const model::Cycle& cycle : cycles.cycles) {
    if (cycle.begin < from || cycle.begin >= to) continue;
    Steps& steps =
        of_process.try_emplace({cycle.rank, cycle.process}, Steps{cycle.begin, cycle.begin, 0}).first->second;
    steps.first = std::min(steps.first, cycle.begin);
    steps.end = std::max(steps.end, std::min(cycle.begin + cycle.period, to));
    steps.count += 1;
  }
  const bool goes = goes_on(trace);
  constexpr Ns kEnded = 100'000'000;  // so long before the others a process has ended
  const std::vector<Ns> ends = ends_of(trace);
  const Ns last =
      ends.empty() ? 0 : *std::ranges::max_element(ends, {}, [](Ns end) { return end == kNoEnd ? 0 : end; });
  double sum = 0;
  for (const auto& [key, steps] : of_process) {
    const bool known = key.second < ends.size() && ends[key.second] != kNoEnd;
    const bool to_the_end = goes && known && ends[key.second] > last - kEnded;
    const Ns time = (to_the_end ? std::max(steps.end, last) : steps.end) - steps.first;
    if (time <= 0) return 0;
    sum += steps.count * kSecond / static_cast<double>(time);
  }
  return of_process.empty() ? 0 : sum / static_cast<double>(of_process.size());
}

/// A limit of a group of processes holds whether one of them runs or not.
bool is_limit(std::string_view name) {
  return name == "cgroup.cpu.quota" || name == "cgroup.memory.limit" || name == "cgroup.memory.high" ||
         name == "cgroup.cpuset.cpus";
}

/// Of a process that has ended the last value says nothing of the time after: there it is 0.
std::optional<double> value_of(const Trace& trace, const std::vector<Ns>& ends, const CounterSeries& series, Ns begin,
                               Ns end) {
  if (is_total(trace.strings[series.name])) return rate_of(series.samples, begin, end);
  if (is_limit(trace.strings[series.name])) return mean_within(series.samples, begin, end);
  const Ns until = std::clamp(ends[series.process], begin, end);
  const std::optional<double> mean = mean_within(series.samples, begin, until);
  if (!mean || until == end) return mean;
  return *mean * static_cast<double>(until - begin) / static_cast<double>(end - begin);
}

/// What several processes have of one name together. A control group is the same for all that are in it.
void add_value(std::string_view name, double value, double& all) {
  all = name.starts_with("cgroup.") ? std::max(all, value) : all + value;
}

void add_counters(const Trace& trace, const Work& work, model::HostEvidence& evidence) {
  const std::vector<Ns> ends = ends_of(trace);
  std::map<std::string, model::HostCounter> by_name;
  for (const CounterSeries& series : trace.counters) {
    if (meaning_of(trace, series).device >= 0) continue;  // a resource of that device
    const auto mean = value_of(trace, ends, series, work.begin, work.end);
    if (!mean) continue;
    const auto inside = [&](const CounterSample& s) { return s.at >= work.begin && s.at < work.end; };
    const std::string name(trace.strings[series.name]);
    if (std::ranges::find(kAnswers, name) != kAnswers.end()) continue;
    model::HostCounter& counter = by_name[name];
    counter.name = name;
    counter.unit = std::string(trace.strings[series.unit]) + (is_total(name) ? "/s" : "");
    add_value(name, *mean, counter.mean);
    // One that only holds from before counts as one.
    counter.samples +=
        static_cast<std::uint64_t>(std::max<std::ptrdiff_t>(1, std::ranges::count_if(series.samples, inside)));
  }
  for (auto& [name, counter] : by_name) evidence.counters.push_back(std::move(counter));
}

/// Of every process with steps the thread that has them, and their windows.
std::map<TrackId, const Windows*> windows_of_threads(const Trace& trace, const Work& work) {
  std::set<ProcessId> processes;
  for (const auto& [process, windows] : work.of_process) processes.insert(process);
  std::map<TrackId, const Windows*> threads;
  for (const auto& [process, track] : step_threads(trace, processes))
    threads.emplace(track, &work.of_process.at(process));
  return threads;
}

/// Of the threads of the steps; none: of all.
std::optional<double> behind_others(const Trace& trace, const std::map<TrackId, const Windows*>& threads) {
  const auto counts = [&](TrackId track) { return threads.empty() || threads.contains(track); };
  double waited = 0;
  for (std::size_t i = 0; i < trace.slices.size(); ++i) {
    const Slice& slice = trace.slices[i];
    if (trace.tracks[slice.track].kind == TrackKind::sched && counts(slice.track) && trace.name(slice) == "runq")
      waited += static_cast<double>(slice.duration);
  }
  double behind = 0;
  bool told = false;
  for (const ThreadSched& thread : trace.sched)
    if (counts(thread.track)) {
      behind += static_cast<double>(thread.behind_others);
      told = told || !thread.ran_instead.empty();
    }
  return told && waited > 0 ? std::optional(std::min(1.0, behind / waited)) : std::nullopt;
}

void add_step_thread(const Trace& trace, const Work& work, model::HostEvidence& evidence) {
  std::map<TrackId, const Windows*> threads = windows_of_threads(trace, work);
  if (threads.size() != work.of_process.size()) threads.clear();
  evidence.behind_others = behind_others(trace, threads);
  if (threads.empty()) return;
  model::StepThread& step = evidence.step.emplace();
  const Track& track = trace.tracks[threads.begin()->first];
  step.name = trace.strings[track.name];
  step.process = trace.strings[trace.processes[track.process].name];
  step.main = track.tid == trace.processes[track.process].pid;
  for (std::size_t i = 0; i < trace.slices.size(); ++i) {
    const Slice& slice = trace.slices[i];
    const auto thread = threads.find(slice.track);
    if (thread == threads.end()) continue;
    const std::string_view name = trace.name(slice);
    distribute(*thread->second, slice.begin, slice.end(), false,
               name == "oncpu"  ? step.on_cpu
               : name == "runq" ? step.runnable
                                : step.blocked);
  }
}

const CounterSeries* others_of(const Trace& trace) {
  const auto found = std::ranges::find_if(
      trace.counters, [&](const CounterSeries& series) { return trace.strings[series.name] == "host.cpu.others"; });
  return found == trace.counters.end() ? nullptr : &*found;
}

/// Half seconds: a counter of a recording has a few values in each.
void add_stretches(const Trace& trace, const Work& work, model::HostEvidence& evidence) {
  constexpr Ns kStretch = 500'000'000;
  const CounterSeries* others = others_of(trace);
  if (others == nullptr) return;
  std::vector<model::Stretch> stretches(static_cast<std::size_t>((work.end - work.begin) / kStretch));
  for (const auto& [process, windows] : work.of_process)
    for (const Window& step : windows) {
      const auto at = static_cast<std::size_t>((step.begin - work.begin) / kStretch);
      if (at >= stretches.size()) continue;  // less than half a second is left
      ++stretches[at].steps;
      stretches[at].period_ns += static_cast<double>(step.end - step.begin);
    }
  for (std::size_t i = 0; i < stretches.size(); ++i) {
    const Ns begin = work.begin + kStretch * static_cast<Ns>(i);
    if (const auto cpus = mean_within(others->samples, begin, begin + kStretch)) {
      stretches[i].others = *cpus;
      evidence.stretches.push_back(stretches[i]);
    }
  }
}

}  // namespace

void add_windows(const Trace& trace, const std::vector<model::WorkWindow>& windows, model::HostEvidence& evidence) {
  const std::vector<Ns> ends = ends_of(trace);
  std::map<std::string_view, std::vector<std::optional<double>>> sums;
  for (const CounterSeries& series : trace.counters) {
    if (meaning_of(trace, series).device >= 0) continue;
    auto& of_windows = sums[trace.strings[series.name]];
    of_windows.resize(windows.size());
    for (std::size_t w = 0; w < windows.size(); ++w)
      if (const auto mean = value_of(trace, ends, series, windows[w].begin, windows[w].end))
        add_value(trace.strings[series.name], *mean, of_windows[w].emplace(of_windows[w].value_or(0)));
  }
  for (model::HostCounter& counter : evidence.counters)
    for (const std::optional<double>& value : sums[counter.name])
      if (value) counter.windows.push_back(*value);
}

void add_stretches(const Trace& trace, const model::WorkUnits& work, model::HostEvidence& evidence) {
  evidence.stretches.clear();
  const CounterSeries* others = others_of(trace);
  if (others == nullptr || work.units.empty() || work.units.front().per_window.size() != work.windows.size()) return;
  for (std::size_t w = 0; w < work.windows.size(); ++w) {
    const auto [begin, end] = std::pair(work.windows[w].begin, work.windows[w].end);
    if (const auto cpus = mean_within(others->samples, begin, end))
      evidence.stretches.push_back({*cpus, work.units.front().per_window[w], static_cast<double>(end - begin)});
  }
}

model::HostEvidence host_evidence_per_second(const Trace& trace) {
  model::Cycle all;
  bool first = true;
  Ns end = 0;
  for (std::size_t i = 0; i < trace.slices.size(); ++i) {
    const Slice& slice = trace.slices[i];
    if (trace.tracks[slice.track].kind != TrackKind::sched) continue;
    all.begin = first ? slice.begin : std::min(all.begin, slice.begin);
    end = first ? slice.end() : std::max(end, slice.end());
    first = false;
  }
  all.number = 1;
  all.period = end - all.begin;
  if (all.period <= 0) return {};
  model::Cycle after;  // the last cycle has no known end
  after.number = 2;
  after.begin = end;
  model::Cycles cycles;
  cycles.cycles = {all, after};
  model::HostEvidence evidence = host_evidence(trace, cycles);
  evidence.per_second = true;
  evidence.behind_others = behind_others(trace, {});
  evidence.steps_per_second = 0;
  const double scale = kSecond / static_cast<double>(all.period);
  for (double& period : evidence.period_ns) period *= scale;
  for (model::HostState& state : evidence.states)
    for (double& total : state.total_ns) total *= scale;
  return evidence;
}

model::HostEvidence host_evidence(const Trace& trace, const model::Cycles& cycles) {
  model::HostEvidence evidence;
  const Work work = windows_of(trace, cycles, evidence);
  if (work.most == nullptr) return evidence;
  add_counters(trace, work, evidence);
  add_step_thread(trace, work, evidence);
  add_stretches(trace, work, evidence);
  for (const model::Bystander& other : bystanders(trace, work.begin, work.end))
    evidence.beside[other.name] = other.cpus;
  for (const RequestTimes& requests : request_times(trace)) {
    std::vector<double>& times = evidence.requests[requests.what];
    times.insert(times.end(), requests.times.begin(), requests.times.end());
  }

  std::pair<Ns, Ns> scheduled{std::numeric_limits<Ns>::max(), std::numeric_limits<Ns>::min()};
  std::vector<bool> reasons;
  reasons.reserve(trace.categories.size());
  for (const Category& category : trace.categories) reasons.push_back(category.name == "blocked");
  using Sums = std::array<double, model::kPhases.size()>;
  std::map<std::pair<StringId, Told>, Sums> sums;
  UninterruptibleSleeps uninterruptible(trace);
  const auto windows_of_process = [&](ProcessId process) -> const Windows& {
    const auto own = work.of_process.find(process);
    return own == work.of_process.end() ? *work.most : own->second;
  };
  for (std::size_t i = 0; i < trace.slices.size(); ++i) {
    const Slice& slice = trace.slices[i];
    const Track& track = trace.tracks[slice.track];
    const bool scheduling = track.kind == TrackKind::sched;
    evidence.scheduling = evidence.scheduling || scheduling;
    if (scheduling) scheduled = {std::min(scheduled.first, slice.begin), std::max(scheduled.second, slice.end())};
    if (!scheduling && !reasons[slice.category]) continue;
    Told told = Told::state;
    if (!scheduling)
      told = uninterruptible.tell_reason(track, slice.begin) ? Told::reason_of_uninterruptible : Told::reason;
    distribute(windows_of_process(track.process), slice.begin, slice.end(), !scheduling, sums[{slice.name, told}]);
  }
  if (evidence.scheduling) evidence.steps_per_second = steps_per_second(trace, cycles);
  if (const auto answered = evidence.requests.find("request");
      answered != evidence.requests.end() && scheduled.first < scheduled.second)
    evidence.answered_per_second = static_cast<double>(answered->second.size()) * kSecond /
                                   static_cast<double>(scheduled.second - scheduled.first);
  // Where the reasons of blocking are known, that it could not be interrupted says something new of those without one.
  const bool named = std::ranges::any_of(sums, [](const auto& sum) { return sum.first.second != Told::state; });
  std::map<std::string, model::HostState> states;
  const auto add = [&](const std::string& what, const Sums& total) {
    model::HostState& state = states[what];
    state.what = what;
    for (std::size_t p = 0; p < total.size(); ++p) state.total_ns[p] += total[p];
  };
  for (const auto& [key, total] : sums) {
    const std::string what = state_name(trace.strings[key.first], key.second);
    if (!what.empty() && !(named && key.second == Told::state && what == kUninterruptible)) add(what, total);
  }
  if (named) {
    Sums untold{};
    uninterruptible.each_untold([&](ProcessId process, Ns begin, Ns end) {
      distribute(windows_of_process(process), begin, end, true, untold);
    });
    if (std::ranges::any_of(untold, [](double ns) { return ns > 0; })) add(std::string(kUninterruptible), untold);
  }
  for (auto& [what, state] : states) evidence.states.push_back(std::move(state));
  return evidence;
}

}  // namespace culprit::profile
