#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "core/saturating.h"
#include "cycles/draft.h"
#include "cycles/name_hints.h"
#include "stats/quantile.h"

namespace culprit::cycles {

namespace {

struct Evidence {
  std::array<std::uint32_t, 4> host{};  // prefill, decode, train, attention of many queries
  std::array<std::uint32_t, 4> kernel{};
};

/// `serves`: something in the run tells that a language model is served, so attention of many queries is prefill.
model::Phase decide(const Evidence& e, std::uint64_t operations, bool serves) {
  using enum model::Phase;
  if (e.host[2] > 0 || std::uint64_t{e.kernel[2]} * 50 >= std::max<std::uint64_t>(operations, 1)) return train_step;
  if (e.host[0] > 0 && e.host[1] > 0) return mixed;
  if (e.host[0] > 0) return prefill;
  if (e.host[1] > 0) return decode;
  const std::uint32_t p = e.kernel[0] + (serves ? e.kernel[3] : 0);
  const std::uint32_t d = e.kernel[1];
  if (p == 0 && d == 0) return other;
  if (std::min(p, d) * 10 >= p + d) return mixed;
  return p > d ? prefill : decode;
}

bool says_work(const model::Workload& workload) { return workload.batch >= 0 || workload.tokens >= 0; }

/// A range inside a cycle that says something of it.
struct Range {
  SliceIndex slice = kNone;
  MarkerText text;
  bool is_input = false;
};

/// The range of each cycle that says most of it: first one that tells the phase, then the earliest. Of inputs that a
/// step takes one after the other (gradients are accumulated) all count.
class Ranges {
 public:
  Ranges(const Trace& trace, std::size_t cycles) : trace_(trace), best_(cycles) {}

  void add(std::uint32_t cycle, SliceIndex slice) {
    const StringId name = trace_.slices[slice].name;
    const auto [known, fresh] = texts_.try_emplace(name);
    if (fresh)
      known->second = {slice, read_marker(trace_.strings[name]),
                       marker_rank(trace_.strings[name]) == MarkerRank::input};
    const auto& [first, text, is_input] = known->second;
    const bool tells_phase = text.phase != model::Phase::other;
    if (!tells_phase && !says_work(text.workload)) return;
    Range& best = best_[cycle];
    if (is_input && best.is_input) {
      best.text.workload.batch = add_saturating(best.text.workload.batch, text.workload.batch);
      return;
    }
    const bool told = best.text.phase != model::Phase::other;
    const bool is_better =
        best.slice == kNone || (tells_phase == told ? stands_before(trace_, slice, best.slice) : tells_phase);
    if (is_better) best = {slice, text, is_input};
  }

  [[nodiscard]] const Range& of(std::size_t cycle) const { return best_[cycle]; }

 private:
  const Trace& trace_;
  std::vector<Range> best_;
  std::map<StringId, Range> texts_;
};

/// Values of cycles of one phase, in order.
using Sorted = std::vector<double>;
using SortedByPhase = std::array<Sorted, model::kPhases.size()>;

std::size_t row_of(model::Phase phase) { return static_cast<std::size_t>(phase); }

double mean_of_two(double low, double high) {
  const std::array<double, 2> both = {low, high};
  return stats::quantile_of_sorted(std::span<const double>(both), 0.5);
}

/// Place of `value`, which is one of them.
std::size_t place_of(const Sorted& values, double value) {
  return static_cast<std::size_t>(std::ranges::lower_bound(values, value) - values.begin());
}

/// The median of all but the one at `left_out`; of all when that is none of them. Some remain.
double median_without(const Sorted& values, std::size_t left_out) {
  const std::size_t n = values.size() - (left_out < values.size() ? 1U : 0U);
  const auto at = [&](std::size_t i) { return values[i < left_out ? i : i + 1]; };
  return mean_of_two(at((n - 1) / 2), at(n / 2));
}

/// The n-th smallest distance from `middle`, n from 1 on: that of the farther end of the n values around it.
double distance_at(const Sorted& values, double middle, std::size_t n) {
  std::size_t low = 0;
  std::size_t high = values.size() - n;
  while (low < high) {
    const std::size_t at = low + (high - low) / 2;
    if (middle - values[at] > values[at + n] - middle)
      low = at + 1;
    else
      high = at;
  }
  return std::max(std::abs(values[low] - middle), std::abs(values[low + n - 1] - middle));
}

/// The median distance from `middle`. There is at least one value.
double median_distance(const Sorted& values, double middle) {
  const std::size_t n = values.size();
  return mean_of_two(distance_at(values, middle, (n + 1) / 2), distance_at(values, middle, n / 2 + 1));
}

}  // namespace

void find_phases(const Trace& trace, const Cutting&, Draft& draft) {
  constexpr std::uint8_t kUnseen = 0xff;
  std::vector<std::uint8_t> host_hint(trace.strings.size(), kUnseen);
  std::vector<std::uint8_t> kernel_hint(trace.strings.size(), kUnseen);
  std::vector<Evidence> evidence(draft.cycles.size());
  for (const DraftLane& lane : draft.lanes)
    for (std::uint32_t i = 0; i < lane.size(); ++i) {
      const MarkerText text = read_marker(trace.strings[lane.lane->cuts[i].name]);
      model::Cycle& cycle = draft.cycles[lane.first + i];
      cycle.phase = text.phase;
      if (text.phase != model::Phase::other || says_work(text.workload)) cycle.workload = text.workload;
    }

  Ranges ranges(trace, draft.cycles.size());
  for (std::size_t i = 0; i < trace.slices.size(); ++i) {
    const std::uint32_t c = draft.cycle_of_slice[i];
    if (c == kNone) continue;
    const Slice& s = trace.slices[i];
    const SliceClass kind = trace.slice_class(s);
    const bool gpu = is_gpu_work(kind);
    if (kind == SliceClass::annotation && draft.cycles[c].phase == model::Phase::other)
      ranges.add(c, static_cast<SliceIndex>(i));
    std::uint8_t& hint = gpu ? kernel_hint[s.name] : host_hint[s.name];
    if (hint == kUnseen)
      hint = gpu                 ? phase_hint_of_kernel(trace.name(s))
             : is_host_api(kind) ? std::uint8_t{0}
                                 : phase_hint_of_host(trace.name(s));
    if (hint == 0) continue;
    auto& counts = gpu ? evidence[c].kernel : evidence[c].host;
    for (std::size_t b = 0; b < counts.size(); ++b) counts[b] += static_cast<unsigned>(hint) >> b & 1U;
  }
  for (std::size_t c = 0; c < draft.cycles.size(); ++c) {
    const Range& range = ranges.of(c);
    if (range.slice == kNone) continue;
    draft.cycles[c].phase = range.text.phase;
    if (!says_work(draft.cycles[c].workload)) draft.cycles[c].workload = range.text.workload;
  }
  bool serves = false;
  for (std::size_t c = 0; c < draft.cycles.size(); ++c) {
    const Evidence& e = evidence[c];
    const model::Phase stated = draft.cycles[c].phase;
    serves = serves || e.host[0] + e.host[1] + e.kernel[0] + e.kernel[1] > 0 || stated == model::Phase::prefill ||
             stated == model::Phase::decode || stated == model::Phase::mixed;
  }
  for (std::size_t c = 0; c < draft.cycles.size(); ++c) {
    model::Cycle& cycle = draft.cycles[c];
    if (cycle.phase != model::Phase::other) continue;
    const Evidence& e = evidence[c];
    cycle.phase = decide(e, draft.operations[c], serves);
    cycle.phase_guessed = cycle.phase != model::Phase::other && e.host[0] + e.host[1] + e.host[2] == 0;
  }
}

void mark_edges(Draft& draft) {
  constexpr double kPartial = 0.8;  // share of the work of its like that a whole cycle has at least
  constexpr double kWarmUp = 1.3;
  for (const DraftLane& lane : draft.lanes) {
    const std::uint32_t n = lane.size();
    const auto on_host = [&](std::uint32_t i) { return static_cast<double>(draft.host_slices[lane.first + i]); };
    const auto on_device = [&](std::uint32_t i) { return static_cast<double>(draft.operations[lane.first + i]); };
    const auto period = [&](std::uint32_t i) { return static_cast<double>(draft.cycles[lane.first + i].period); };
    const auto phase = [&](std::uint32_t i) { return row_of(draft.cycles[lane.first + i].phase); };
    // Of all but the last one, whose end is not known.
    const auto sorted = [&](const auto& value) {
      SortedByPhase values;
      for (std::uint32_t i = 0; i + 1 < n; ++i) values[phase(i)].push_back(value(i));
      for (Sorted& of_phase : values) std::ranges::sort(of_phase);
      return values;
    };
    const SortedByPhase host = sorted(on_host);
    const SortedByPhase device = sorted(on_device);
    const bool gpu =
        std::ranges::any_of(device, [](const Sorted& s) { return !s.empty() && s.back() > 0; }) || on_device(n - 1) > 0;
    const auto has_less = [&](std::uint32_t i, const SortedByPhase& all, const auto& work) {
      const Sorted& alike = all[phase(i)];
      const std::size_t own = i + 1 < n ? place_of(alike, work(i)) : alike.size();
      const std::size_t others = alike.size() - (i + 1 < n ? 1U : 0U);
      return others >= 2 && work(i) < median_without(alike, own) * kPartial;
    };
    for (const std::uint32_t i : {std::uint32_t{0}, n - 1})
      if (!draft.cycles[lane.first + i].stands_still &&
          (gpu ? has_less(i, device, on_device) : has_less(i, host, on_host)))
        draft.cycles[lane.first + i].partial = true;
    // The host is steps ahead of its device, and what it launched last is not in the recording.
    for (std::uint32_t i = n - 1; gpu && i-- > 0 && has_less(i, device, on_device) && !has_less(i, host, on_host);)
      draft.cycles[lane.first + i].partial = true;
    SortedByPhase periods = sorted(period);
    for (std::uint32_t i = 0; i + 1 < n && i < std::max<std::uint32_t>(1, n / 4); ++i) {
      Sorted& later = periods[phase(i)];
      later.erase(std::ranges::upper_bound(later, period(i)) - 1);  // the last of equal ones: little lies behind it
      if (later.size() < 2) break;
      const double usual = median_without(later, later.size());
      const double limit = usual + std::max(usual * (kWarmUp - 1), 6 * median_distance(later, usual));
      if (period(i) <= limit) break;
      draft.cycles[lane.first + i].warm_up = true;
    }
  }
}

std::size_t mark_skipped(Draft& draft) {
  constexpr double kUsually = 0.8;  // of the numbers rise by the same
  std::size_t skipped = 0;
  for (const DraftLane& lane : draft.lanes) {
    const std::vector<Cut>& cuts = lane.lane->cuts;
    std::map<std::int64_t, std::size_t> rises;
    for (std::size_t i = 0; i + 1 < cuts.size(); ++i)
      if (cuts[i].number >= 0 && cuts[i + 1].number > cuts[i].number) ++rises[cuts[i + 1].number - cuts[i].number];
    if (rises.empty()) continue;
    const auto [rise, times] =
        *std::ranges::max_element(rises, {}, &std::pair<const std::int64_t, std::size_t>::second);
    if (static_cast<double>(times) < kUsually * static_cast<double>(cuts.size() - 1)) continue;
    for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
      if (cuts[i].number < 0 || cuts[i + 1].number - cuts[i].number <= rise) continue;
      draft.cycles[lane.first + i].partial = true;
      ++skipped;
    }
  }
  return skipped;
}

}  // namespace culprit::cycles
