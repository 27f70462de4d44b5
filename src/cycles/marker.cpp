// Cycles from markers: ProfilerStep#N, NVTX ranges and other annotations, or a name that the user gave.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>

#include "core/saturating.h"
#include "cycles/confidence.h"
#include "cycles/cutting.h"
#include "cycles/name_hints.h"
#include "cycles/operations.h"
#include "cycles/operators.h"
#include "stats/quantile.h"

namespace culprit::cycles {

namespace {

/// Slices of one family on one track that lie in no other slice of the family.
struct Track1 {
  TrackId track = kNone;
  std::vector<Cut> cuts;
  Ns total = 0;
  Ns reach = std::numeric_limits<Ns>::min();  // end of what was taken so far
};

/// The same family on all tracks.
struct Family {
  std::string key;
  StringId example = 0;
  MarkerRank rank = MarkerRank::unknown;
  std::map<TrackId, Track1> tracks;
};

struct Judged {
  const Family* family = nullptr;
  std::vector<Lane> lanes;
  std::size_t most = 0;
  double coverage = 0;  // share of the launches from its first begin to its last end
  Ns total = 0;
  bool numbers_rise = true;  // iteration numbers go up by one, or there are none
  bool numbered = false;
  bool numbers_repeat = false;  // they start again: parts of something larger
};

/// Times that were rounded, to microseconds or as floating point, make markers that follow each other overlap.
bool touches(const Track1& before, const Slice& s) {
  constexpr Ns kRounding = 1000;
  constexpr Ns kSmallPart = 100;
  const Ns overlap = before.reach - s.begin;
  const Ns shorter = std::min(before.reach - before.cuts.back().begin, s.duration);
  return s.end() > before.reach && s.begin > before.cuts.back().begin &&
         (overlap <= std::min(kRounding, shorter / 2) || overlap <= shorter / kSmallPart);
}

void take(Family& family, const Trace& trace, SliceIndex index, TrackId track) {
  const Slice& s = trace.slices[index];
  Track1& t = family.tracks[track];
  t.track = track;
  if (!t.cuts.empty() && s.begin < t.reach) {
    if (!touches(t, s)) return;  // inside another one
    t.cuts.back().end = s.begin;
  }
  t.cuts.push_back({s.begin, s.end(), s.name, iteration_number(trace.name(s)).value_or(-1)});
  t.reach = std::max(t.reach, s.end());
  t.total = add_saturating(t.total, s.duration);
}

/// One lane per process: its track with the most instances (ties: the longest, then the first).
std::vector<Lane> lanes_of(const Trace& trace, const Family& family) {
  std::map<std::pair<std::uint16_t, ProcessId>, const Track1*> best;
  for (const auto& [id, track] : family.tracks) {
    const ProcessId process = trace.tracks[id].process;
    const Track1*& mine = best[{trace.processes[process].rank, process}];
    if (mine == nullptr || std::tuple(track.cuts.size(), track.total) > std::tuple(mine->cuts.size(), mine->total))
      mine = &track;
  }
  std::vector<Lane> lanes;
  for (const auto& [key, track] : best) {
    Lane lane;
    lane.rank = key.first;
    lane.process = key.second;
    lane.track = track->track;
    lane.cuts = track->cuts;
    lanes.push_back(std::move(lane));
  }
  return lanes;
}

Judged judge(const Trace& trace, const Family& family, const HostWork& work) {
  Judged j;
  j.family = &family;
  j.lanes = lanes_of(trace, family);
  std::uint64_t inside = 0;
  for (const Lane& lane : j.lanes) {
    j.most = std::max(j.most, lane.cuts.size());
    Ns end = std::numeric_limits<Ns>::min();
    for (std::size_t i = 0; i < lane.cuts.size(); ++i) {
      const Cut& cut = lane.cuts[i];
      j.total = add_saturating(j.total, cut.end - cut.begin);
      end = std::max(end, cut.end);
      if (cut.number < 0) continue;
      j.numbered = true;
      if (i > 0 && cut.number - 1 != lane.cuts[i - 1].number) j.numbers_rise = false;
      if (i > 0 && cut.number <= lane.cuts[i - 1].number) j.numbers_repeat = true;
    }
    const auto& times = work.begins[lane.rank];
    inside += static_cast<std::uint64_t>(std::ranges::lower_bound(times, end) -
                                         std::ranges::lower_bound(times, lane.cuts.front().begin));
  }
  const std::uint64_t all = work.all();
  j.coverage = all == 0 ? 1 : std::min(1.0, static_cast<double>(inside) / static_cast<double>(all));
  return j;
}

/// Better first: known to be a step, repeated, covering the work, outermost (longest in all), then fewest, then by
/// name.
bool better(const Judged& a, const Judged& b) {
  const auto key = [](const Judged& j) {
    return std::tuple(j.numbers_repeat ? 0 : static_cast<int>(j.family->rank), j.most >= 2 ? 1 : 0,
                      j.coverage >= confidence::kCoversWork ? 1 : 0, j.total);
  };
  if (key(a) != key(b)) return key(a) > key(b);
  if (a.most != b.most) return a.most < b.most;
  return a.family->key < b.family->key;
}

/// What may be a marker of steps although its category is not that of annotations: old Kineto calls its own markers and
/// those of users operators, other programs use categories of their own. In stacks only the profiler's name is no
/// function's.
bool may_mark(SliceClass c, MarkerRank rank) {
  switch (c) {
    case SliceClass::annotation:
      return true;
    case SliceClass::cpu_op:
    case SliceClass::other:
      return rank >= MarkerRank::step_word || rank == MarkerRank::once_per_step;
    case SliceClass::kernel:
    case SliceClass::memcpy:
    case SliceClass::memset:
    case SliceClass::gpu_annotation:
    case SliceClass::gpu_sync:
    case SliceClass::counter_range:
      return false;
    default:
      return rank == MarkerRank::profiler_step;
  }
}

/// The families of annotations on the host, or of their shadows on the GPU.
std::vector<Family> families_of(const Trace& trace, const SliceOrder& order, bool on_gpu) {
  std::vector<std::uint32_t> family_of(trace.strings.size(), kNone);
  std::vector<std::int8_t> rank_of(trace.strings.size(), -1);
  std::map<std::string, std::uint32_t> ids;
  std::vector<Family> families;
  for (TrackId t = 0; t < trace.tracks.size(); ++t)
    for (std::uint64_t k = order.track_begin[t]; k < order.track_begin[t + 1]; ++k) {
      const Slice& s = trace.slices[order.order[k]];
      const SliceClass c = trace.slice_class(s);
      if (on_gpu != (c == SliceClass::gpu_annotation)) continue;
      std::int8_t& rank = rank_of[s.name];
      if (rank < 0) rank = static_cast<std::int8_t>(marker_rank(trace.name(s)));
      const auto mine = static_cast<MarkerRank>(rank);
      if (mine == MarkerRank::denied || (!on_gpu && !may_mark(c, mine))) continue;
      std::uint32_t& id = family_of[s.name];
      if (id == kNone) {
        const std::string key = marker_family(trace.name(s));
        const auto [at, added] = ids.emplace(key, static_cast<std::uint32_t>(families.size()));
        id = at->second;
        if (added) families.push_back({key, s.name, mine, {}});
      }
      take(families[id], trace, order.order[k], t);
    }
  return families;
}

/// Ends the name of markers that differ in what is in brackets.
constexpr std::string_view kOpenName = "[...]";

std::string shown(const Judged& j, const Trace& trace) {
  return j.most == 1                                   ? std::string(trace.strings[j.family->example])
         : j.family->rank == MarkerRank::profiler_step ? "ProfilerStep#N"
         : j.family->key.ends_with('[')                ? j.family->key + std::string(kOpenName.substr(1))
                                                       : j.family->key;
}

}  // namespace

std::uint64_t HostWork::all() const {
  std::uint64_t sum = 0;
  for (const auto& rank : begins) sum += rank.size();
  return sum;
}

HostWork host_work(const Trace& trace, const SliceOrder& order) {
  if (!has_gpu_work(trace)) return {operator_times(trace, order), true};
  HostWork work{std::vector<std::vector<Ns>>(trace.ranks.size()), false};
  for (std::size_t g = 0; g < trace.gpu.size(); ++g) {
    if (trace.gpu[g].launcher == kNone) continue;
    const Slice& launcher = trace.slices[trace.gpu[g].launcher];
    work.begins[launcher.rank].push_back(launcher.begin);
  }
  for (auto& rank : work.begins)
    if (!std::is_sorted(rank.begin(), rank.end())) std::ranges::sort(rank);
  return work;
}

void note_work_outside(const HostWork& work, Cutting& cutting) {
  std::uint64_t between = 0;
  std::uint64_t inside = 0;
  for (const Lane& lane : cutting.lanes) {
    if (lane.cuts.size() < 2) continue;
    const auto& times = work.begins[lane.rank];
    const auto until = [&](Ns at) {
      return static_cast<std::uint64_t>(std::ranges::lower_bound(times, at) - times.begin());
    };
    // The last one has no end that another begin could tell.
    for (std::size_t i = 0; i + 1 < lane.cuts.size(); ++i) {
      const Ns next = lane.cuts[i + 1].begin;
      between += until(next) - until(lane.cuts[i].begin);
      inside += until(std::clamp(lane.cuts[i].end, lane.cuts[i].begin, next)) - until(lane.cuts[i].begin);
    }
  }
  if (between == 0) return;
  const double share = static_cast<double>(inside) / static_cast<double>(between);
  if (share >= confidence::kHoldsWork) return;
  cutting.notes.push_back(fmt::format(
      "\"{}\" holds {:.0f}% of the {} from one to the next; the other {:.0f}%, between its end and the next one, "
      "belong to the cycle before",
      cutting.anchor, share * 100, work.operators ? "operators" : "GPU launches", 100 - share * 100));
}

std::optional<Cutting> cut_by_marker(const Trace& trace, const SliceOrder& order, const HostWork& work) {
  for (const bool on_gpu : {false, true}) {
    const std::vector<Family> families = families_of(trace, order, on_gpu);
    std::optional<Judged> best;
    for (const Family& family : families) {
      Judged j = judge(trace, family, work);
      const bool known = family.rank >= MarkerRank::step_word;
      if (!known && (j.most < 3 || j.numbers_repeat)) continue;
      if (!on_gpu && j.coverage < (known ? confidence::kCoversSome : confidence::kCoversHalf)) continue;
      if (!best || better(j, *best)) best = std::move(j);
    }
    if (!best) continue;
    Cutting cutting;
    cutting.method = model::CycleMethod::marker;
    cutting.anchor = shown(*best, trace);
    cutting.device_time = on_gpu;
    const bool profiler_step = best->family->rank == MarkerRank::profiler_step;
    const bool step_word = best->family->rank == MarkerRank::step_word;
    const bool at_end = best->family->rank == MarkerRank::once_per_step || best->family->rank == MarkerRank::input;
    double period = profiler_step ? confidence::kProfilerStep
                    : step_word   ? confidence::kStepWord
                    : at_end      ? confidence::kOncePerStep
                                  : confidence::kOtherMarker;
    if (best->numbers_repeat) period = std::min(period, confidence::kNumbersStartAgain);
    if (best->numbered && !best->numbers_rise && !best->numbers_repeat) period -= confidence::kNumbersSkipped;
    if (best->most == 1) period -= confidence::kAlone;
    cutting.period_confidence = period;
    cutting.phase_confidence = at_end ? confidence::kOncePerStepPhase
                                      : std::min(on_gpu ? confidence::kShadowPhase : confidence::kMarkerPhase, period);
    if (work.all() == 0)
      cutting.reason = fmt::format("{} marker{} of this kind", best->most, best->most == 1 ? "" : "s");
    else
      cutting.reason = fmt::format(
          "{} marker{} of this kind{}; {:.0f}% of the recorded {} lie {}", best->most, best->most == 1 ? "" : "s",
          best->numbered && best->numbers_rise && best->most > 1 ? ", numbered one by one" : "", best->coverage * 100,
          work.operators ? "operators" : "GPU launches",
          best->most == 1 ? "in it" : "between begin of the first and end of the last");
    cutting.at_end = at_end;
    if (at_end) cutting.notes.emplace_back("the marker stands inside a step, not at its begin");
    if (best->numbers_repeat)
      cutting.notes.emplace_back("the numbers in the marker's name start again: it may be a part of a step");
    if (on_gpu) cutting.notes.emplace_back("there are no host markers; their shadows on the GPU are used");
    cutting.lanes = std::move(best->lanes);
    return cutting;
  }
  return std::nullopt;
}

namespace {

/// How sure it is that what the user named comes once per step: by how regularly it comes. A part of a model comes as
/// regularly as a step.
double confidence_by_regularity(const std::vector<Lane>& lanes, std::string_view anchor) {
  std::vector<double> away;
  for (const Lane& lane : lanes) {
    std::vector<Ns> periods;
    for (std::size_t i = 0; i + 1 < lane.cuts.size(); ++i)
      periods.push_back(lane.cuts[i + 1].begin - lane.cuts[i].begin);
    if (periods.size() < 2) continue;
    const double usual = std::max(1.0, stats::median(periods));
    for (const Ns p : periods) away.push_back(std::abs(static_cast<double>(p) - usual) / usual);
  }
  const double sure = away.empty() ? confidence::kGivenFew
                                   : std::clamp(confidence::kGiven - stats::median(std::move(away)),
                                                confidence::kGivenPart, confidence::kGiven);
  return is_model_part(anchor) || numbered_part(anchor) ? std::min(sure, confidence::kGivenPart) : sure;
}

}  // namespace

std::optional<Cutting> cut_by_name(const Trace& trace, const SliceOrder& order, const std::string& anchor) {
  // The exact name first; when it does not occur, names that differ from it only in digits.
  std::vector<char> matches(trace.strings.size(), 0);
  bool exact = false;
  bool alike = false;
  std::string pattern = pattern_of(anchor, 'N');
  if (pattern.ends_with(kOpenName)) pattern.resize(pattern.size() - kOpenName.size() + 1);  // as shown(): "step[...]"
  for (std::size_t n = 0; n < trace.strings.size(); ++n) {
    const std::string_view name = trace.strings[static_cast<StringId>(n)];
    if (name == anchor) {
      matches[n] = 1;
      exact = true;
    } else if (pattern_of(name, 'N') == pattern || pattern_of(name, '#') == anchor || marker_family(name) == pattern) {
      matches[n] = 2;
      alike = true;
    }
  }
  if (!exact && !alike) return std::nullopt;

  // Host slices are preferred to GPU work, and repeated exact names to mere families.
  for (const bool on_gpu : {false, true}) {
    Family family;
    family.key = anchor;
    std::size_t exact_count = 0;
    for (std::size_t i = 0; exact && i < trace.slices.size(); ++i)
      if (matches[trace.slices[i].name] == 1) ++exact_count;
    const bool only_exact = exact_count >= 2 || !alike;
    for (TrackId t = 0; t < trace.tracks.size(); ++t) {
      if ((trace.tracks[t].kind == TrackKind::gpu_stream) != on_gpu) continue;
      for (std::uint64_t k = order.track_begin[t]; k < order.track_begin[t + 1]; ++k) {
        const Slice& s = trace.slices[order.order[k]];
        if (matches[s.name] == 1 || (!only_exact && matches[s.name] == 2)) take(family, trace, order.order[k], t);
      }
    }
    if (family.tracks.empty()) continue;
    Cutting cutting;
    cutting.method = model::CycleMethod::marker;
    cutting.anchor = anchor;
    cutting.device_time = on_gpu;
    cutting.lanes = lanes_of(trace, family);
    cutting.given = true;
    cutting.period_confidence = confidence_by_regularity(cutting.lanes, anchor);
    cutting.phase_confidence = 1;
    cutting.reason = fmt::format("the anchor was given by the user; it occurs {} time{}", cutting.most(),
                                 cutting.most() == 1 ? "" : "s");
    return cutting;
  }
  return std::nullopt;
}

}  // namespace culprit::cycles
