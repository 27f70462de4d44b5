#include "summary/query_names.h"

#include <algorithm>

namespace culprit::summary {

bool marks_anything(const Trace& trace) {
  for (std::size_t i = 0; i < trace.slices.size(); ++i) {
    const SliceClass what = trace.slice_class(trace.slices[i]);
    if (what != SliceClass::os_sched && what != SliceClass::syscall &&
        trace.categories[trace.slices[i].category].name != "block_io")
      return true;
  }
  return false;
}

bool records_states(const Trace& trace) {
  return std::ranges::any_of(trace.tracks, [](const Track& track) { return track.kind == TrackKind::sched; });
}

std::string usual_classes(const Trace& trace) {
  if (!trace.gpu.empty()) return "gpu";
  if (!records_states(trace)) return "all";
  return marks_anything(trace) ? "functions" : "sched";
}

}  // namespace culprit::summary
