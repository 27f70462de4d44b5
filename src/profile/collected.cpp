#include "profile/collected.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/saturating.h"
#include "cycles/waits.h"
#include "profile/stack_code.h"
#include "profile/step_threads.h"
#include "trace/span.h"

namespace culprit::profile {

namespace {

using model::CountedDurations;

void add(CountedDurations& sum, std::uint64_t count, std::uint64_t bytes, Ns time) {
  sum.count += count;
  sum.bytes += bytes;
  sum.total_ns += static_cast<double>(time);
}

std::string disk_name(const Trace& trace, StringId disk, StringId operation) {
  return fmt::format("{} {}", trace.strings[disk], trace.strings[operation]);
}

/// Whether it is a process of the recording; what has no number is the kernel, or somebody else.
bool is_recorded(const Trace& trace, ProcessId process) {
  return process < trace.processes.size() && trace.processes[process].pid > 0;
}

void add_buckets(CountedDurations& sum, const std::vector<std::uint64_t>& buckets) {
  sum.buckets.resize(std::max(sum.buckets.size(), buckets.size()));
  for (std::size_t i = 0; i < buckets.size(); ++i) sum.buckets[i] += buckets[i];
}

void counts_to_shares(std::map<std::string, std::vector<double>>& functions, const std::vector<double>& all) {
  for (auto& [name, counts] : functions) {
    std::vector<double> shares;
    for (std::size_t w = 0; w < all.size(); ++w)
      if (all[w] > 0) shares.push_back(counts[w] / all[w]);
    counts = std::move(shares);
  }
}

constexpr double kWaits = 0.02;    // of the time: in futex
constexpr double kWorks = 0.01;    // of its own time: who runs less waits for work
constexpr double kHardly = 0.002;  // of the time: on a CPU

/// Which processes have threads that work and wait in futex, as for a lock. Many that each work little count together.
class FutexWaits {
 public:
  FutexWaits(const Trace& trace, Interval span) : span_(static_cast<double>(span.end - span.begin)) {
    struct Seen {
      Time time;
      double all = 0;
    };
    std::map<Thread, Seen> threads;
    const StringId on_cpu = trace.strings.find("oncpu", kNone);
    for (std::size_t i = 0; i < trace.slices.size(); ++i) {
      const Slice& slice = trace.slices[i];
      const Track& track = trace.tracks[slice.track];
      const auto inside = static_cast<double>(std::min(span.end, slice.end()) - std::max(span.begin, slice.begin));
      if (inside <= 0) continue;
      if (track.kind == TrackKind::sched) {
        Seen& seen = threads[{track.process, track.tid}];
        seen.all += inside;
        if (slice.name == on_cpu) seen.time.on_cpu += inside;
      } else if (trace.categories[slice.category].name == "blocked" &&
                 cycles::blocked_call(trace.strings[slice.name]) == "futex") {
        threads[{track.process, track.tid}].time.waits += inside;
      }
    }
    for (const auto& [thread, seen] : threads)
      if (seen.time.on_cpu >= kWorks * std::max(seen.all, seen.time.on_cpu + seen.time.waits)) {
        of_thread_[thread] = seen.time;
        Time& process = of_process_[thread.first];
        process.on_cpu += seen.time.on_cpu;
        process.waits += seen.time.waits;
      }
  }

  void add(const Track& track, double weight, model::SampledIn& sum) const {
    sum.all += weight;
    const auto found = of_process_.find(track.process);
    if (found == of_process_.end()) return;
    const auto own = of_thread_.find({track.process, track.tid});
    const Time& process = found->second;
    const Time without = own == of_thread_.end()
                             ? process
                             : Time{process.on_cpu - own->second.on_cpu, process.waits - own->second.waits};
    if (waits(process)) sum.waiting += weight;
    if (waits(without)) sum.beside += weight;
  }

 private:
  using Thread = std::pair<ProcessId, std::int64_t>;
  struct Time {
    double on_cpu = 0;
    double waits = 0;
  };
  [[nodiscard]] bool waits(const Time& time) const {
    return time.on_cpu >= kHardly * span_ && time.waits >= kWaits * span_;
  }
  double span_;
  std::map<Thread, Time> of_thread_;
  std::map<ProcessId, Time> of_process_;
};

void add_samples(const Trace& trace, const std::vector<model::WorkWindow>& windows, const model::Cycles& cycles,
                 model::Collected& collected) {
  std::vector<double> all(windows.size());
  std::map<StringId, std::string> names;
  const std::vector<std::uint32_t> python = frames_of_python(trace);
  if (trace.stack_samples.empty()) return;
  const FutexWaits waits(trace, {windows.front().begin, windows.back().end});
  const auto of_steps = threads_of_steps(trace, cycles);
  const auto add_in_steps = [&](const Track& track, double weight, model::SampledIn& sum) {
    if (of_steps.empty()) return;
    if (std::isnan(sum.in_steps)) sum.in_steps = 0;
    if (of_steps.contains({track.process, track.tid})) sum.in_steps += weight;
  };
  for (std::size_t i = 0; i < trace.stack_samples.size(); ++i) {
    const StackSample& sample = trace.stack_samples[i];
    if (sample.kind == StackSample::Kind::off_cpu || sample.frame == kNone) continue;
    auto window = std::ranges::upper_bound(windows, sample.at, {}, &model::WorkWindow::begin);
    if (window == windows.begin() || (--window)->end <= sample.at) continue;
    const auto at = static_cast<std::size_t>(window - windows.begin());
    const double weight = sample.time > 0 ? static_cast<double>(sample.time) : 1;
    const auto count = [&](std::map<std::string, std::vector<double>>& functions,
                           std::map<std::string, model::SampledIn>& in, std::uint32_t frame) {
      const StringId function = trace.stack_frames[frame].function;
      std::string& name = names[function];
      if (name.empty()) name = code_name(trace.strings[function]);
      std::vector<double>& counts = functions[name];
      counts.resize(windows.size());
      counts[at] += weight;
      if (sample.track >= trace.tracks.size()) return;
      waits.add(trace.tracks[sample.track], weight, in[name]);
      add_in_steps(trace.tracks[sample.track], weight, in[name]);
    };
    if (sample.track < trace.tracks.size() && !of_steps.empty()) {
      collected.sampled_in.all += weight;
      add_in_steps(trace.tracks[sample.track], weight, collected.sampled_in);
    }
    count(collected.functions, collected.functions_in, sample.frame);
    if (python[sample.frame] != kNone) count(collected.python, collected.python_in, python[sample.frame]);
    all[at] += weight;
    ++collected.samples;
  }
  counts_to_shares(collected.functions, all);
  counts_to_shares(collected.python, all);
  collected.windows = static_cast<std::size_t>(std::ranges::count_if(all, [](double n) { return n > 0; }));
}

}  // namespace

model::Collected collected_in(const Trace& trace, const std::vector<model::WorkWindow>& windows,
                              const model::Cycles& cycles) {
  model::Collected collected;
  if (windows.empty()) return collected;
  const Interval span = recorded_span(trace);
  collected.seconds = static_cast<double>(subtract_saturating(span.end, span.begin)) * 1e-9;
  for (const CallTotal& total : trace.calls)
    add(collected.calls[std::string(trace.strings[total.name])], total.count, 0, total.time);
  for (const DiskTotal& total : trace.disks) {
    const std::string name = disk_name(trace, total.disk, total.operation);
    add(collected.disks[name], total.count, total.bytes, total.time);
    if (is_recorded(trace, total.process)) add(collected.own_disks[name], total.count, total.bytes, total.time);
  }
  for (const DurationCounts& counts : trace.durations)
    add_buckets(counts.disk == 0 ? collected.calls[std::string(trace.strings[counts.name])]
                                 : collected.disks[disk_name(trace, counts.disk, counts.name)],
                counts.buckets);
  for (auto& [name, calls] : collected.calls) calls.waits = cycles::wait_of(name) != cycles::Wait::in_work;
  add_samples(trace, windows, cycles, collected);
  return collected;
}

}  // namespace culprit::profile
