// A step that stands still when the recording ends: its thread waits for a CPU, and has for longer than any step took.
// The last step of a process counts nowhere, since nobody knows its end; but this one tells most of what happened.
#include <algorithm>

#include "cycles/draft.h"

namespace culprit::cycles {

namespace {

/// What the scheduler says of the thread of another track; kNone: nothing.
TrackId sched_track_of(const Trace& trace, TrackId thread) {
  const Track& of = trace.tracks[thread];
  for (TrackId t = 0; t < trace.tracks.size(); ++t) {
    const Track& track = trace.tracks[t];
    if (track.kind == TrackKind::sched && track.process == of.process && track.tid == of.tid) return t;
  }
  return kNone;
}

Ns end_of_scheduling(const Trace& trace, const SliceOrder& order) {
  Ns end = 0;
  for (TrackId t = 0; t < trace.tracks.size(); ++t)
    if (trace.tracks[t].kind == TrackKind::sched && order.track_begin[t + 1] > order.track_begin[t])
      end = std::max(end, trace.slices[order.order[order.track_begin[t + 1] - 1]].end());
  return end;
}

}  // namespace

std::optional<Ns> stands_still_until(const Trace& trace, const SliceOrder& order, const Lane& lane) {
  constexpr std::size_t kFewest = 4;  // steps
  constexpr Ns kLonger = 2;           // times the longest before
  if (lane.track == kNone || lane.cuts.size() < kFewest) return std::nullopt;
  const TrackId track = sched_track_of(trace, lane.track);
  if (track == kNone) return std::nullopt;
  Ns longest = 0;
  for (std::size_t i = 0; i + 1 < lane.cuts.size(); ++i)
    longest = std::max(longest, lane.cuts[i + 1].begin - lane.cuts[i].begin);
  const Ns begin = lane.cuts.back().begin;
  const Ns end = end_of_scheduling(trace, order);
  if (end - begin <= kLonger * longest) return std::nullopt;
  const StringId runq = trace.strings.find("runq", kNone);
  const StringId oncpu = trace.strings.find("oncpu", kNone);
  Ns waited = 0;
  Ns worked = 0;
  for (std::uint64_t k = order.track_begin[track + 1]; k-- > order.track_begin[track];) {
    const Slice& s = trace.slices[order.order[k]];
    if (s.end() <= begin) break;
    if (s.name == runq) waited += s.end() - std::max(begin, s.begin);
    if (s.name == oncpu) worked += s.end() - std::max(begin, s.begin);
  }
  // Who has worked for longer than a step takes does something else by now.
  if (2 * waited < end - begin || worked > kLonger * longest) return std::nullopt;
  return end;
}

}  // namespace culprit::cycles
