// Flow ids of a Perfetto trace as arrows between slices.
#include <algorithm>
#include <string_view>

#include "formats/perfetto/costs.h"
#include "formats/perfetto/track_events.h"

namespace culprit::perfetto {

void TrackEvents::flows(const proto::TrackEvent& event, const Event& row) {
  if (event.type() == proto::TrackEvent::TYPE_INSTANT) return;  // arrows are kept between slices
  const StringId kind = row.arguments != kNone ? arguments_[row.arguments].flow : 0;
  const auto keep = [&](const auto& ids, bool terminating) {
    for (const std::uint64_t id : ids) flow_ends_.push_back({id, row.at, row.track, kind, terminating});
    expansion_.spend(kEventCost * static_cast<std::uint64_t>(ids.size()));
  };
  keep(event.flow_ids(), false);
  keep(event.terminating_flow_ids(), true);
}

/// A flow id connects the slices that name it, in the order of time; after its end it may be used anew.
void TrackEvents::add_flows() {
  std::ranges::stable_sort(flow_ends_, [](const FlowEnd& a, const FlowEnd& b) {
    if (a.id != b.id) return a.id < b.id;
    return a.at != b.at ? a.at < b.at : a.terminating < b.terminating;
  });
  const auto category = [&](StringId kind) {
    return builder_.category(kind != 0 ? builder_.trace().strings[kind] : std::string_view("flow"));
  };
  bool ended = true;
  std::uint64_t number = 0;
  CategoryId kind = 0;
  for (std::size_t i = 0; i < flow_ends_.size(); ++i) {
    const FlowEnd& end = flow_ends_[i];
    if (ended || flow_ends_[i - 1].id != end.id) {
      ++number;
      kind = category(end.kind);
    }
    OpenEvent open;
    open.at = end.at;
    open.id = number;
    open.track = builder_track(end.track);
    open.category = kind;
    open.phase = end.terminating ? 'f' : 't';
    builder_.add(open);
    ended = end.terminating;
  }
}

}  // namespace culprit::perfetto
