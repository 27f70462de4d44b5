#include "profile/held_threads.h"

#include <map>
#include <string_view>
#include <utility>

namespace culprit::profile {

std::vector<model::HeldThread> held_threads(const Trace& trace) {
  constexpr double kMost = 0.8;
  std::map<TrackId, model::HeldThread> threads;
  for (std::size_t i = 0; i < trace.slices.size(); ++i) {
    const Slice& slice = trace.slices[i];
    if (trace.tracks[slice.track].kind != TrackKind::sched) continue;
    model::HeldThread& thread = threads[slice.track];
    const auto time = static_cast<double>(slice.duration);
    thread.recorded += time;
    const std::string_view state = trace.name(slice);
    if (state == "oncpu") thread.on_cpu += time;
    if (state == "runq") thread.runnable += time;
    if (state == "stopped") thread.stopped += time;
    if (state == "blocked_uninterruptible") thread.uninterruptible += time;
  }
  std::vector<model::HeldThread> held;
  for (auto& [id, thread] : threads) {
    const double could_not = thread.runnable + thread.stopped + thread.uninterruptible;
    if (!(thread.recorded > 0) || could_not < kMost * thread.recorded) continue;
    const Track& track = trace.tracks[id];
    const Process& process = trace.processes[track.process];
    thread.name = trace.strings[track.name];
    thread.process = trace.strings[process.name];
    thread.main = track.tid == process.pid;
    held.push_back(std::move(thread));
  }
  return held;
}

}  // namespace culprit::profile
