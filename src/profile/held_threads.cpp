#include "profile/held_threads.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "cycles/waits.h"
#include "profile/step_threads.h"
#include "stats/quantile.h"
#include "trace/span.h"

namespace culprit::profile {

namespace {

constexpr double kMost = 0.8;
constexpr Ns kEnded = 100'000'000;  // so long before the others a process has ended

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

bool is_most(Ns part, Ns of) { return static_cast<double>(part) >= kMost * static_cast<double>(of); }

struct LastStep {
  ProcessId process = 0;
  Ns begin = 0;
  Ns usual = 0;  ///< what one takes
};

/// Of the only process that has any.
std::optional<LastStep> last_step(const model::Cycles& cycles) {
  std::set<ProcessId> processes;
  std::vector<Ns> periods;
  LastStep last;
  const std::vector<bool> whole = model::whole_periods(cycles);
  for (std::size_t i = 0; i < whole.size(); ++i) {
    const model::Cycle& cycle = cycles.cycles[i];
    last.begin = processes.empty() ? cycle.begin : std::max(last.begin, cycle.begin);
    processes.insert(cycle.process);
    if (whole[i]) periods.push_back(cycle.period);
  }
  if (processes.size() != 1 || periods.empty()) return std::nullopt;
  last.process = *processes.begin();
  last.usual = stats::median_of_times(periods);
  return last;
}

/// In what a thread was blocked since its last step began, and how it waits otherwise.
struct Waits {
  struct Sum {
    Ns time = 0;
    Ns longest = 0;
  };
  std::map<StringId, Sum> since;
  std::map<cycles::Wait, cycles::WaitSum> before;

  void add(const Trace& trace, const Slice& slice, Ns last) {
    if (slice.end() > last) {
      const Ns time = slice.end() - std::max(slice.begin, last);
      Sum& sum = since[slice.name];
      sum = {sum.time + time, std::max(sum.longest, time)};
    } else {
      cycles::WaitSum& sum = before[cycles::wait_of(cycles::blocked_call(trace.strings[slice.name]))];
      sum = {sum.count + 1, sum.time + slice.duration};
    }
  }

  /// Who wakes again and again looks for work, and how one waits for it that was seen to wait in few of its steps is
  /// not known.
  void tell(const Trace& trace, Ns time, std::size_t steps, model::LongEnd& out) {
    const auto most = std::ranges::max_element(since, {}, [](const auto& call) { return call.second.time; });
    if (most == since.end() || !is_most(most->second.time, time)) return;
    out.waits_in = cycles::blocked_call(trace.strings[most->first]);
    const cycles::Wait wait = cycles::wait_of(out.waits_in);
    const cycles::Wait usual = cycles::main_wait(before);
    const bool is_known = 2 * before[usual].count >= steps;
    out.for_work = !is_most(most->second.longest, time) || cycles::is_idle(wait, usual) ||
                   (!is_known && wait != cycles::Wait::in_work);
  }
};

/// What was recorded of the functions of a thread: of those that began since its last step did, the one that lasts
/// longest.
struct CallsSinceStep {
  std::map<StringId, std::size_t> before;
  StringId open = 0;
  Ns begin = 0;
  Ns end = 0;

  void add(const Slice& slice, Ns last) {
    if (slice.begin < last) {
      ++before[slice.name];
    } else if (slice.end() > end || (slice.end() == end && slice.begin < begin)) {  // all that is open ends at one time
      begin = slice.begin;
      end = slice.end();
      open = slice.name;
    }
  }

  /// Every other step calls it.
  bool is_usual(std::size_t steps) { return 2 * before[open] >= steps; }
};

}  // namespace

std::vector<model::HeldThread> held_threads(const Trace& trace) {
  constexpr double kLeast = 0.3;  // of the recording: who sleeps has no state before its first event
  constexpr double kLeastSeen = 0.1;
  struct Seen {
    model::HeldThread thread;
    Ns first = std::numeric_limits<Ns>::max();
    StringId state = 0;  ///< the first
  };
  Ns begin = std::numeric_limits<Ns>::max();
  Ns end = std::numeric_limits<Ns>::min();
  std::map<TrackId, Seen> threads;
  for (std::size_t i = 0; i < trace.slices.size(); ++i) {
    const Slice& slice = trace.slices[i];
    if (trace.tracks[slice.track].kind != TrackKind::sched) continue;
    begin = std::min(begin, slice.begin);
    end = std::max(end, slice.end());
    Seen& seen = threads[slice.track];
    add(trace, slice, slice.duration, seen.thread);
    if (slice.begin < seen.first) {
      seen.first = slice.begin;
      seen.state = slice.name;
    }
  }
  if (threads.empty()) return {};
  const auto all = static_cast<double>(end - begin);
  const bool sees_wakers = records_scheduling(trace);
  std::vector<model::HeldThread> held;
  for (auto& [id, seen] : threads) {
    model::HeldThread& thread = seen.thread;
    if (thread.recorded < kLeastSeen * all) continue;
    // Who gets a CPU and was not woken before that has been waiting for it since before the recording.
    if (sees_wakers && trace.strings[seen.state] == "oncpu") {
      thread.runnable += static_cast<double>(seen.first - begin);
      thread.recorded += static_cast<double>(seen.first - begin);
    }
    if (!is_held(thread) || thread.recorded < kLeast * all) continue;
    name(trace, id, thread);
    held.push_back(std::move(thread));
  }
  return held;
}

std::optional<model::LongEnd> long_end(const Trace& trace, const model::Cycles& cycles) {
  constexpr Ns kLeast = 1'000'000'000;
  constexpr Ns kLeastSteps = 20;
  if (!goes_on(trace)) return std::nullopt;
  const std::optional<LastStep> last = last_step(cycles);
  if (!last) return std::nullopt;
  const auto threads = step_threads(trace, {last->process});
  if (threads.empty()) return std::nullopt;
  const TrackId id = threads.begin()->second;
  std::vector<bool> reasons;
  reasons.reserve(trace.categories.size());
  for (const Category& category : trace.categories) reasons.push_back(category.name == "blocked");
  Ns begin = last->begin;
  Ns end = last->begin;  // of the thread
  Ns all = last->begin;  // of all threads
  model::LongEnd out;
  Waits waits;
  CallsSinceStep calls;
  for (std::size_t i = 0; i < trace.slices.size(); ++i) {
    const Slice& slice = trace.slices[i];
    const Track& track = trace.tracks[slice.track];
    if (track.kind == TrackKind::sched) {
      begin = std::min(begin, slice.begin);
      all = std::max(all, slice.end());
      if (slice.track != id || slice.end() <= last->begin) continue;
      end = std::max(end, slice.end());
      add(trace, slice, slice.end() - std::max(slice.begin, last->begin), out.thread);
    } else if (track.process == trace.tracks[id].process && track.tid == trace.tracks[id].tid) {
      if (reasons[slice.category])
        waits.add(trace, slice, last->begin);
      else if (track.kind == TrackKind::thread)
        calls.add(slice, last->begin);
    }
  }
  const Ns time = end - last->begin;
  if (time < kLeast || time / kLeastSteps < last->usual || 10 * time < 3 * (all - begin) || end < all - kEnded)
    return std::nullopt;
  name(trace, id, out.thread);
  out.held = is_held(out.thread);
  waits.tell(trace, time, cycles.cycles.size(), out);
  out.in_step = calls.end >= all - kEnded && is_most(calls.end - calls.begin, time) &&
                (calls.begin == last->begin || (calls.is_usual(cycles.cycles.size()) && !out.for_work));
  return out;
}

}  // namespace culprit::profile
