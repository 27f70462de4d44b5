#include "summary/passes.h"

#include "core/text.h"

#include <algorithm>
#include <array>

namespace culprit::summary {

namespace {

/// What a slice itself says, before what surrounds it is asked.
enum class Mark : std::uint8_t { none, weak_forward, forward, backward, optimizer, unseen };

Mark mark_of_name(SliceClass slice_class, std::string_view name) {
  if (slice_class == SliceClass::python) {
    if (name.starts_with("nn.Module:")) return Mark::forward;
    if (const std::size_t function = name.rfind("): "); function != std::string_view::npos)
      name = name.substr(function + 3);  // "file.py(12): backward": the path says nothing
  } else if (slice_class != SliceClass::cpu_op && slice_class != SliceClass::annotation) {
    return Mark::none;
  }
  if (name.starts_with("Optimizer.")) return Mark::optimizer;
  if (name.starts_with("autograd::engine::evaluate_function")) return Mark::backward;
  const bool backward = contains_ignoring_case(name, "backward");
  const bool forward = slice_class != SliceClass::cpu_op && contains_ignoring_case(name, "forward");
  if (backward == forward) return Mark::none;  // neither, or a range around both
  return backward ? Mark::backward : Mark::forward;
}

/// Marks per class and name, computed once each.
class NameMarks {
 public:
  explicit NameMarks(const Trace& trace) : trace_(trace) {}
  Mark operator()(const Slice& slice) {
    const SliceClass slice_class = trace_.slice_class(slice);
    auto& known = marks_[static_cast<std::size_t>(slice_class)];
    if (known.empty()) known.assign(trace_.strings.size(), Mark::unseen);
    Mark& mark = known[slice.name];
    if (mark == Mark::unseen) mark = mark_of_name(slice_class, trace_.name(slice));
    return mark;
  }

 private:
  const Trace& trace_;
  std::array<std::vector<Mark>, 16> marks_;
};

Pass combine(Pass around, Mark own) {
  if (around == Pass::backward || around == Pass::optimizer) return around;
  switch (own) {
    case Mark::backward:
      return Pass::backward;
    case Mark::optimizer:
      return Pass::optimizer;
    case Mark::forward:
    case Mark::weak_forward:
      return Pass::forward;
    case Mark::none:
    case Mark::unseen:
      break;
  }
  return around;
}

}  // namespace

std::string_view to_string(Pass pass) {
  switch (pass) {
    case Pass::forward:
      return "forward";
    case Pass::backward:
      return "backward";
    case Pass::optimizer:
      return "optimizer";
    case Pass::other:
      break;
  }
  return "other";
}

Passes find_passes(const Trace& trace) {
  Passes result;
  result.of_gpu.assign(trace.gpu.size(), Pass::other);
  if (trace.gpu.empty()) return result;

  std::vector<Mark> linked(trace.slices.size(), Mark::none);
  for (const Flow& flow : trace.flows) {
    if (flow.kind != FlowKind::forward_backward) continue;
    if (flow.from != kNone && linked[flow.from] == Mark::none) linked[flow.from] = Mark::forward;
    if (flow.to != kNone) linked[flow.to] = Mark::backward;
  }

  NameMarks mark_of(trace);
  std::vector<Pass> pass_of(trace.slices.size(), Pass::other);
  struct Frame {
    Ns end;
    Pass pass;
  };
  std::vector<Frame> open;
  const SliceOrder order = order_slices(trace);
  for (std::size_t track = 0; track < trace.tracks.size(); ++track) {
    if (trace.tracks[track].kind != TrackKind::thread) continue;
    open.clear();
    for (std::uint64_t k = order.track_begin[track]; k < order.track_begin[track + 1]; ++k) {
      const SliceIndex index = order.order[k];
      const Slice& slice = trace.slices[index];
      while (!open.empty() && open.back().end <= slice.begin) open.pop_back();
      const Pass around = open.empty() ? Pass::other : open.back().pass;
      Mark own = linked[index] == Mark::none ? mark_of(slice) : linked[index];
      if (own != Mark::none) result.known = true;
      if (own == Mark::none && slice.extra != kNone && trace.extras[slice.extra].sequence >= 0)
        own = Mark::weak_forward;
      pass_of[index] = combine(around, own);
      open.push_back({slice.end(), pass_of[index]});
    }
  }
  bool any = false;
  for (std::size_t g = 0; g < trace.gpu.size(); ++g) {
    if (trace.gpu[g].launcher == kNone) continue;
    result.of_gpu[g] = pass_of[trace.gpu[g].launcher];
    any = any || result.of_gpu[g] == Pass::forward || result.of_gpu[g] == Pass::backward;
  }
  result.known = result.known && any;
  return result;
}

}  // namespace culprit::summary
