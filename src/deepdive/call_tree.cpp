#include "deepdive/call_tree.h"

#include <tsl/hopscotch_map.h>
#include <algorithm>
#include <array>
#include <string_view>

#include "core/hash.h"

namespace culprit::deepdive {

namespace {

constexpr std::uint64_t kFewestCalls = 3;

bool is_waiting(std::string_view name) {
  constexpr std::array<std::string_view, 4> kWaiting = {"_call_impl", "Event.wait", "Condition.wait",
                                                        "Scheduler.recv_requests"};
  return std::ranges::find(kWaiting, name) != kWaiting.end();
}

}  // namespace

bool is_python(const Trace& trace, const Slice& slice) {
  return slice.duration > 0 && trace.slice_class(slice) == SliceClass::python;
}

CallTree call_tree(const Trace& trace, const SliceOrder& order) {
  CallTree tree;
  tree.parent.assign(trace.slices.size(), kNone);
  tree.depth.assign(trace.slices.size(), -1);
  std::vector<SliceIndex> stack;
  for (std::size_t track = 0; track + 1 < order.track_begin.size(); ++track) {
    stack.clear();
    SliceIndex only = kNone;
    std::uint64_t n = 0;
    for (std::uint64_t i = order.track_begin[track]; i < order.track_begin[track + 1]; ++i) {
      const SliceIndex index = order.order[i];
      const Slice& slice = trace.slices[index];
      if (!is_python(trace, slice)) continue;
      while (!stack.empty()) {
        const Slice& top = trace.slices[stack.back()];
        if (top.end() > slice.begin && top.end() + kRounding >= slice.end()) break;
        stack.pop_back();
      }
      tree.parent[index] = stack.empty() ? kNone : stack.back();
      tree.depth[index] = static_cast<std::int32_t>(stack.size());
      stack.push_back(index);
      only = index;
      ++n;
    }
    if (n == 1) tree.depth[only] = -1;
  }
  return tree;
}

std::vector<AnchorCandidate> outermost_functions(const Trace& trace, const SliceOrder& order, const CallTree& tree) {
  tsl::hopscotch_map<StringId, AnchorCandidate, Hash> found;
  tsl::hopscotch_map<StringId, std::uint32_t, Hash> open;  // how many calls of a name are on the stack
  std::vector<SliceIndex> stack;
  for (std::size_t track = 0; track + 1 < order.track_begin.size(); ++track) {
    stack.clear();
    open.clear();
    for (std::uint64_t i = order.track_begin[track]; i < order.track_begin[track + 1]; ++i) {
      const SliceIndex index = order.order[i];
      if (tree.depth[index] < 0) continue;
      const Slice& slice = trace.slices[index];
      while (!stack.empty() && stack.back() != tree.parent[index]) {
        --open[trace.slices[stack.back()].name];
        stack.pop_back();
      }
      if (open[slice.name]++ == 0) {
        AnchorCandidate& candidate = found[slice.name];
        candidate.name = slice.name;
        candidate.total_any_depth += slice.duration;
        if (tree.depth[index] == 0) {
          ++candidate.count;
          candidate.total += slice.duration;
        }
      }
      stack.push_back(index);
    }
  }
  std::vector<AnchorCandidate> candidates;
  for (const auto& [name, candidate] : found)
    if (candidate.count > 0) candidates.push_back(candidate);
  std::ranges::sort(candidates, {}, &AnchorCandidate::name);
  return candidates;
}

StringId choose_anchor(const Trace& trace, const std::vector<AnchorCandidate>& candidates) {
  constexpr double kNearlyAsMuch = 0.9;
  const auto usable = [&](const AnchorCandidate& c) {
    return c.count >= kFewestCalls && !is_waiting(trace.strings[c.name]);
  };
  Ns most = 0;
  for (const AnchorCandidate& candidate : candidates)
    if (usable(candidate)) most = std::max(most, candidate.total);
  const AnchorCandidate* best = nullptr;
  for (const AnchorCandidate& candidate : candidates) {
    if (!usable(candidate) || static_cast<double>(candidate.total) < kNearlyAsMuch * static_cast<double>(most))
      continue;
    const bool longer = best == nullptr || candidate.mean() > best->mean() ||
                        (candidate.mean() == best->mean() && candidate.total > best->total);
    if (longer) best = &candidate;
  }
  return best == nullptr ? kNone : best->name;
}

StringId choose_prefill_anchor(const Trace& trace, const std::vector<AnchorCandidate>& candidates, StringId anchor) {
  constexpr double kShareOfCalls = 0.1;
  constexpr double kTimesLonger = 3;
  const auto main = std::ranges::find(candidates, anchor, &AnchorCandidate::name);
  if (main == candidates.end()) return kNone;
  const AnchorCandidate* best = nullptr;
  for (const AnchorCandidate& candidate : candidates) {
    if (candidate.name == anchor || candidate.count < kFewestCalls || is_waiting(trace.strings[candidate.name]))
      continue;
    if (static_cast<double>(candidate.count) > kShareOfCalls * static_cast<double>(main->count)) continue;
    if (!(candidate.mean() > kTimesLonger * main->mean())) continue;
    if (best == nullptr || candidate.total_any_depth > best->total_any_depth) best = &candidate;
  }
  return best == nullptr ? kNone : best->name;
}

}  // namespace culprit::deepdive
