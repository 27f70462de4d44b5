// Recordings by hand, for tests of units of work.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "core/units.h"
#include "cycles/work_units.h"
#include "stats/log_buckets.h"
#include "trace/builder.h"

namespace culprit::cycles {

/// A recording by hand: threads that wait, are woken and work, and totals of their calls.
class Recorded {
 public:
  struct Thread {
    TrackId sched, blocked, totals;
    Ns at = 0;
  };

  Thread thread(std::int64_t pid, std::int64_t tid, std::string_view process, std::string_view name, Ns at = 0) {
    Thread t;
    t.sched = builder_.track({.pid = pid, .tid = tid, .kind = TrackKind::sched});
    t.blocked =
        builder_.track({.pid = pid, .tid = tid, .tid_text = builder_.intern("blocked"), .kind = TrackKind::async});
    t.totals = builder_.track(
        {.pid = pid, .tid = tid, .tid_text = builder_.intern("system call totals"), .kind = TrackKind::async});
    t.at = at;
    builder_.name_thread(t.sched, builder_.intern(name));
    builder_.name_process(builder_.process(pid, 0), builder_.intern(process));
    return t;
  }

  void does(Thread& thread, std::string_view state, Ns length, std::string_view call = {}) {
    add(thread.sched, thread.at, length, state, "sched");
    if (!call.empty()) add(thread.blocked, thread.at, length, "blocked:" + std::string(call), "blocked");
    thread.at += length;
  }

  /// Woken from `wait` after `waits`, then in the run queue, then working; `times` times.
  void serve(Thread& thread, int times, Ns waits, Ns queue, Ns works, std::string_view wait = "epoll_wait") {
    for (int i = 0; i < times; ++i) {
      does(thread, "blocked", waits, wait);
      does(thread, "runq", queue);
      does(thread, "oncpu", works);
    }
  }

  void calls(const Thread& thread, Ns at, std::string_view name, std::uint64_t count, Ns time = 1000) {
    builder_.trace().calls.push_back({at, builder_.intern(name), thread.totals, count, time, time});
  }

  /// `process` none: answers of a size that came as the n-th after the last.
  void answers(std::int64_t pid, std::string_view port, std::string_view name, std::size_t bucket,
               std::uint64_t count) {
    DurationCounts counts{builder_.intern(name), builder_.intern(port), builder_.process(pid, 0), {}};
    counts.buckets.resize(stats::kLogBuckets);
    counts.buckets[bucket] = count;
    builder_.trace().durations.push_back(std::move(counts));
  }

  void counted(std::string_view counter, std::int64_t pid, Ns at, double value) {
    builder_.add_counter(builder_.intern(counter), builder_.process(pid, 0), kNone, {at, value});
  }

  void bystander(std::string_view name, double cpus) {
    const ProcessId process = builder_.process(999, 0);
    builder_.name_process(process, builder_.intern(name));
    builder_.add_counter(builder_.intern("other.cpu"), process, kNone, {0, cpus});
  }

  void fact(std::string_view key, std::string_view value) {
    rank_.metadata.emplace_back(key, value);
    std::ranges::sort(rank_.metadata);
  }

  Trace trace() {
    builder_.trace().ranks = {rank_};
    return std::move(builder_).finish();
  }

  model::WorkUnits find() { return find_work_units(trace()); }

 private:
  void add(TrackId track, Ns begin, Ns length, std::string_view name, std::string_view category) {
    Slice slice;
    slice.begin = begin;
    slice.duration = length;
    slice.name = builder_.intern(name);
    slice.track = track;
    slice.category = builder_.category(category);
    builder_.add(slice);
  }

  Rank rank_;
  TraceBuilder builder_{Rank{}};
};

}  // namespace culprit::cycles
