#include <algorithm>
#include <array>
#include <map>
#include <utility>

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

}  // namespace

void find_phases(const Trace& trace, const Cutting&, Draft& draft) {
  constexpr std::uint8_t kUnseen = 0xff;
  std::vector<std::uint8_t> host_hint(trace.strings.size(), kUnseen);
  std::vector<std::uint8_t> kernel_hint(trace.strings.size(), kUnseen);
  std::vector<Evidence> evidence(draft.cycles.size());
  std::vector<char> from_text(draft.cycles.size(), 0);
  const auto use_text = [&](std::uint32_t c, std::string_view name) {
    if (from_text[c] != 0) return;
    const MarkerText text = read_marker(name);
    if (text.phase == model::Phase::other && text.workload.batch < 0 && text.workload.tokens < 0) return;
    draft.cycles[c].workload = text.workload;
    draft.cycles[c].phase = text.phase;
    from_text[c] = text.phase != model::Phase::other ? 1 : 0;
  };
  for (const DraftLane& lane : draft.lanes)
    for (std::uint32_t i = 0; i < lane.size(); ++i) use_text(lane.first + i, trace.strings[lane.lane->cuts[i].name]);

  for (std::size_t i = 0; i < trace.slices.size(); ++i) {
    const std::uint32_t c = draft.cycle_of_slice[i];
    if (c == kNone) continue;
    const Slice& s = trace.slices[i];
    const SliceClass kind = trace.slice_class(s);
    const bool gpu = is_gpu_work(kind);
    if (kind == SliceClass::annotation) use_text(c, trace.name(s));
    std::uint8_t& hint = gpu ? kernel_hint[s.name] : host_hint[s.name];
    if (hint == kUnseen)
      hint = gpu                 ? phase_hint_of_kernel(trace.name(s))
             : is_host_api(kind) ? std::uint8_t{0}
                                 : phase_hint_of_host(trace.name(s));
    if (hint == 0) continue;
    auto& counts = gpu ? evidence[c].kernel : evidence[c].host;
    for (std::size_t b = 0; b < counts.size(); ++b) counts[b] += static_cast<unsigned>(hint) >> b & 1U;
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
    const auto like = [&](std::uint32_t i, std::uint32_t from, auto&& value) {
      std::vector<double> values;
      for (std::uint32_t k = from; k < n; ++k)
        if (k != i && draft.cycles[lane.first + k].phase == draft.cycles[lane.first + i].phase && k + 1 < n)
          values.push_back(static_cast<double>(value(lane.first + k)));
      return values;
    };
    std::uint64_t gpu = 0;
    for (std::uint32_t i = 0; i < n; ++i) gpu += draft.operations[lane.first + i];
    const auto has_less = [&](std::uint32_t i, const auto& work) {
      const std::vector<double> others = like(i, 0, work);
      return others.size() >= 2 && static_cast<double>(work(lane.first + i)) < stats::median(others) * kPartial;
    };
    const auto on_host = [&](std::uint32_t row) { return draft.host_slices[row]; };
    const auto on_device = [&](std::uint32_t row) { return draft.operations[row]; };
    for (const std::uint32_t i : {std::uint32_t{0}, n - 1})
      if (!draft.cycles[lane.first + i].stands_still && (gpu > 0 ? has_less(i, on_device) : has_less(i, on_host)))
        draft.cycles[lane.first + i].partial = true;
    // The host is steps ahead of its device, and what it launched last is not in the recording.
    for (std::uint32_t i = n - 1; gpu > 0 && i-- > 0 && has_less(i, on_device) && !has_less(i, on_host);)
      draft.cycles[lane.first + i].partial = true;
    for (std::uint32_t i = 0; i < std::max<std::uint32_t>(1, n / 4); ++i) {
      const auto period = [&](std::uint32_t row) { return draft.cycles[row].period; };
      const std::vector<double> later = like(i, i + 1, period);
      if (later.size() < 2) break;
      const double usual = stats::median(later);
      std::vector<double> away;
      away.reserve(later.size());
      for (const double p : later) away.push_back(std::abs(p - usual));
      const double limit = usual + std::max(usual * (kWarmUp - 1), 6 * stats::median(std::move(away)));
      if (static_cast<double>(draft.cycles[lane.first + i].period) <= limit) break;
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
