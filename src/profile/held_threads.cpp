#include "profile/held_threads.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "profile/step_threads.h"
#include "stats/quantile.h"

namespace culprit::profile {

namespace {

constexpr double kMost = 0.8;

/// `time` of `slice`.
void add(const Trace& trace, const Slice& slice, Ns time, model::HeldThread& thread) {
  constexpr Ns kLeastSleep = 500'000'000;  // shorter ones are reads of a disk, one by one
  const std::string_view state = trace.name(slice);
  const auto ns = static_cast<double>(time);
  thread.recorded += ns;
  if (state == "oncpu") thread.on_cpu += ns;
  if (state == "runq") thread.runnable += ns;
  if (state == "stopped") thread.stopped += ns;
  if (state == "blocked_uninterruptible" && slice.duration >= kLeastSleep) thread.uninterruptible += ns;
}

bool is_held(const model::HeldThread& thread) {
  return thread.recorded > 0 && thread.runnable + thread.stopped + thread.uninterruptible >= kMost * thread.recorded;
}

void name(const Trace& trace, TrackId id, model::HeldThread& thread) {
  const Track& track = trace.tracks[id];
  const Process& process = trace.processes[track.process];
  thread.name = trace.strings[track.name];
  thread.process = trace.strings[process.name];
  thread.main = track.tid == process.pid;
}

}  // namespace

std::vector<model::HeldThread> held_threads(const Trace& trace) {
  constexpr double kLeastSeen = 0.3;  // of the recording: who sleeps has no state before its first event
  Ns begin = std::numeric_limits<Ns>::max();
  Ns end = std::numeric_limits<Ns>::min();
  std::map<TrackId, model::HeldThread> threads;
  for (std::size_t i = 0; i < trace.slices.size(); ++i) {
    const Slice& slice = trace.slices[i];
    if (trace.tracks[slice.track].kind != TrackKind::sched) continue;
    begin = std::min(begin, slice.begin);
    end = std::max(end, slice.end());
    add(trace, slice, slice.duration, threads[slice.track]);
  }
  std::vector<model::HeldThread> held;
  for (auto& [id, thread] : threads) {
    if (!is_held(thread) || thread.recorded < kLeastSeen * static_cast<double>(end - begin)) continue;
    name(trace, id, thread);
    held.push_back(std::move(thread));
  }
  return held;
}

std::optional<model::HeldThread> held_at_end(const Trace& trace, const model::Cycles& cycles) {
  constexpr Ns kLeast = 1'000'000'000;
  constexpr Ns kLeastSteps = 20;
  constexpr Ns kEnded = 100'000'000;  // so long before the others a process has ended
  if (!goes_on(trace)) return std::nullopt;
  std::set<ProcessId> processes;
  std::vector<Ns> periods;
  Ns last = 0;
  const std::vector<bool> whole = model::whole_periods(cycles);
  for (std::size_t i = 0; i < whole.size(); ++i) {
    const model::Cycle& cycle = cycles.cycles[i];
    last = processes.empty() ? cycle.begin : std::max(last, cycle.begin);
    processes.insert(cycle.process);
    if (whole[i]) periods.push_back(cycle.period);
  }
  if (processes.size() != 1 || periods.empty()) return std::nullopt;
  const auto threads = step_threads(trace, processes);
  if (threads.empty()) return std::nullopt;
  const TrackId id = threads.begin()->second;
  Ns begin = last;
  Ns end = last;  // of the thread
  Ns all = last;  // of all threads
  model::HeldThread thread;
  for (std::size_t i = 0; i < trace.slices.size(); ++i) {
    const Slice& slice = trace.slices[i];
    if (trace.tracks[slice.track].kind != TrackKind::sched) continue;
    begin = std::min(begin, slice.begin);
    all = std::max(all, slice.end());
    if (slice.track != id || slice.end() <= last) continue;
    end = std::max(end, slice.end());
    add(trace, slice, slice.end() - std::max(slice.begin, last), thread);
  }
  const Ns time = end - last;
  if (time < kLeast || time / kLeastSteps < stats::median_of_times(periods) || 10 * time < 3 * (all - begin) ||
      end < all - kEnded || !is_held(thread))
    return std::nullopt;
  name(trace, id, thread);
  return thread;
}

}  // namespace culprit::profile
