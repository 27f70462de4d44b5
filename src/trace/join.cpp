#include "trace/join.h"

#include <algorithm>
#include <ctime>
#include <limits>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "trace/builder.h"
#include "trace/recording_id.h"
#include "trace/span.h"

namespace culprit {

namespace {

/// On the common clock: Unix time in ns.
struct Span {
  Ns begin = std::numeric_limits<Ns>::max();
  Ns end = std::numeric_limits<Ns>::min();

  void take(Ns from, Ns to) {
    begin = std::min(begin, from);
    end = std::max(end, to);
  }
  [[nodiscard]] bool empty() const { return begin > end; }
};

Span span_of(const Trace& trace) {
  Span span;
  for (std::size_t i = 0; i < trace.slices.size(); ++i)
    span.take(trace.base_ns + trace.slices[i].begin, trace.base_ns + trace.slices[i].end());
  if (is_recording(trace))
    for (const CounterSeries& series : trace.counters)
      for (const CounterSample& sample : series.samples)
        span.take(trace.base_ns + sample.at, trace.base_ns + sample.at);
  return span;
}

/// Ids of host processes: those of which threads are known. GPUs stand in traces as processes with small numbers.
std::map<std::int64_t, ProcessId> host_processes(const Trace& trace) {
  std::map<std::int64_t, ProcessId> processes;
  for (const Track& track : trace.tracks) {
    const std::int64_t pid = trace.processes[track.process].pid;
    if (pid > 0 && (track.kind == TrackKind::thread || track.kind == TrackKind::sched))
      processes.try_emplace(pid, track.process);
  }
  return processes;
}

std::string text_of(Span span) {
  const auto clock = [](Ns at) {
    const std::time_t seconds = at / 1'000'000'000;
    std::tm utc{};
    ::gmtime_r(&seconds, &utc);
    return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}:{:02}.{:03}", utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday,
                       utc.tm_hour, utc.tm_min, utc.tm_sec, at / 1'000'000 % 1000);
  };
  return fmt::format("{} to {} UTC", clock(span.begin), clock(span.end));
}

std::string path_of(const Trace& trace) { return trace.ranks.empty() ? "" : trace.ranks.front().path; }

/// Makes the last rank of a run, a recording, a part of those before it.
class Folder {
 public:
  explicit Folder(Trace& run) : run_(run), recording_(static_cast<std::uint16_t>(run.ranks.size() - 1)) {}

  void fold() {
    fold_processes();
    fold_tracks();
    for (std::size_t i = 0; i < run_.slices.size(); ++i) {
      Slice& slice = run_.slices[i];
      slice.track = tracks_[slice.track];
      if (slice.rank == recording_) slice.rank = run_.processes[run_.tracks[slice.track].process].rank;
    }
    for (std::size_t i = 0; i < run_.instants.size(); ++i) run_.instants[i].track = tracks_[run_.instants[i].track];
    for (CounterSeries& series : run_.counters) {
      series.process = processes_[series.process];
      if (series.track != kNone) series.track = tracks_[series.track];
    }
    for (ThreadSched& thread : run_.sched) thread.track = tracks_[thread.track];
    std::ranges::stable_sort(run_.sched, {}, &ThreadSched::track);
    for (RivalTotal& total : run_.rivals) total.track = tracks_[total.track];
    for (CallTotal& call : run_.calls) call.track = tracks_[call.track];
    for (DiskTotal& total : run_.disks) total.process = processes_[total.process];
    for (DurationCounts& counts : run_.durations) counts.process = processes_[counts.process];
    for (std::size_t i = 0; i < run_.stack_samples.size(); ++i)
      run_.stack_samples[i].track = tracks_[run_.stack_samples[i].track];
    for (Device& device : run_.devices)
      if (device.rank == recording_) device.rank = home_;
    fold_rank();
  }

 private:
  void fold_processes() {
    std::map<std::int64_t, ProcessId> known;
    for (const Track& track : run_.tracks) {
      const Process& process = run_.processes[track.process];
      if (process.pid > 0 && process.rank != recording_ && track.kind == TrackKind::thread)
        known.try_emplace(process.pid, track.process);
    }
    std::vector<Process> kept;
    bool found = false;
    for (ProcessId id = 0; id < run_.processes.size(); ++id) {
      const Process& process = run_.processes[id];
      const auto same = process.rank == recording_ ? known.find(process.pid) : known.end();
      if (same == known.end()) {
        processes_.push_back(static_cast<ProcessId>(kept.size()));
        kept.push_back(process);
        continue;
      }
      // Processes of the recording stand behind all others.
      processes_.push_back(processes_[same->second]);
      Process& one = kept[processes_[same->second]];
      if (one.name == 0) one.name = process.name;
      if (!found) home_ = one.rank;
      found = true;
    }
    run_.processes = std::move(kept);
    for (Process& process : run_.processes)
      if (process.rank == recording_) process.rank = home_;
  }

  void fold_tracks() {
    std::map<std::pair<ProcessId, std::int64_t>, TrackId> threads;
    std::vector<Track> kept;
    for (Track track : run_.tracks) {
      track.process = processes_[track.process];
      auto number = static_cast<TrackId>(kept.size());
      if (track.kind == TrackKind::thread && track.tid >= 0) {
        const auto [known, fresh] = threads.try_emplace({track.process, track.tid}, number);
        if (!fresh) {
          Track& one = kept[known->second];
          if (one.name == 0) one.name = track.name;
          one.slices += track.slices;
          tracks_.push_back(known->second);
          continue;
        }
        number = known->second;
      }
      tracks_.push_back(number);
      kept.push_back(track);
    }
    run_.tracks = std::move(kept);
  }

  void fold_rank() {
    Rank recording = std::move(run_.ranks.back());
    run_.ranks.pop_back();
    Rank& rank = run_.ranks[home_];
    rank.recordings.push_back({std::move(recording.path), std::move(recording.format), recording.input_bytes,
                               recording.text_bytes, recording.events});
    for (auto& fact : recording.metadata)
      if (fact.first != kRecordingId) rank.metadata.push_back(std::move(fact));
    std::ranges::stable_sort(rank.metadata, {}, &std::pair<std::string, std::string>::first);
  }

  Trace& run_;
  const std::uint16_t recording_;     ///< row of its rank
  std::uint16_t home_ = 0;            ///< the rank it becomes a part of
  std::vector<ProcessId> processes_;  ///< new numbers by old ones
  std::vector<TrackId> tracks_;
};

}  // namespace

bool is_recording(const Trace& trace) { return !fact_of(trace, "record.version").empty(); }

Status belong_together(const Trace& trace, const Trace& recording) {
  const std::string paths = path_of(trace) + ", " + path_of(recording);
  if (trace.clock != "realtime" || recording.clock != "realtime")
    return input_error("cannot be put on one clock: not both tell the time of day", paths,
                       "take the trace with a profiler that writes baseTimeNanoseconds");
  const Span a = span_of(trace);
  const Span b = span_of(recording);
  if (a.empty() || b.empty() || a.end <= b.begin || b.end <= a.begin)
    return input_error(
        a.empty() || b.empty()
            ? "holds nothing"
            : fmt::format("are of different times: the trace of {}, the recording of {}", text_of(a), text_of(b)),
        paths, "give the recording that ran beside this trace");
  const std::string_view host = fact_of(recording, "env.hostname");
  for (const Rank& rank : trace.ranks)
    if (!host.empty() && !rank.host.empty() && rank.host != host)
      return input_error(
          fmt::format("are of different machines: the trace of {}, the recording of {}", rank.host, host), paths,
          "give the recording that ran beside this trace");
  const auto ours = host_processes(trace);
  const auto theirs = host_processes(recording);
  if (std::ranges::none_of(ours, [&](const auto& process) { return theirs.contains(process.first); }))
    return input_error("have no process in common", paths,
                       "record the process that writes the trace, by the id it has in its own pid namespace");
  return {};
}

Trace join(Trace trace, Trace recording) {
  const Span covered = span_of(recording);
  const Span whole = span_of(trace);
  const Ns missed = std::max<Ns>(0, covered.begin - whole.begin) + std::max<Ns>(0, whole.end - covered.end);
  const std::string path = path_of(recording);
  std::vector<Trace> both;
  both.push_back(std::move(trace));
  both.push_back(std::move(recording));
  Trace run = merge_in_order(std::move(both));
  Folder(run).fold();
  if (missed > (whole.end - whole.begin) / 100) run.losses.add(LossReason::recording_partial, 1, path);
  return run;
}

}  // namespace culprit
