// Cycles from markers: ProfilerStep#N, NVTX ranges and other annotations, or a name that the user gave.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>

#include "core/saturating.h"
#include "cycles/cutting.h"
#include "cycles/name_hints.h"
#include "cycles/windows.h"

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

void take(Family& family, const Trace& trace, SliceIndex index, TrackId track) {
  const Slice& s = trace.slices[index];
  Track1& t = family.tracks[track];
  t.track = track;
  if (!t.cuts.empty() && s.begin < t.reach) return;  // inside another one
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

Judged judge(const Trace& trace, const Family& family, const std::vector<std::vector<Ns>>& launches) {
  Judged j;
  j.family = &family;
  j.lanes = lanes_of(trace, family);
  std::uint64_t inside = 0;
  std::uint64_t all = 0;
  for (const auto& rank : launches) all += rank.size();
  for (const Lane& lane : j.lanes) {
    j.most = std::max(j.most, lane.cuts.size());
    Ns end = std::numeric_limits<Ns>::min();
    for (std::size_t i = 0; i < lane.cuts.size(); ++i) {
      const Cut& cut = lane.cuts[i];
      j.total = add_saturating(j.total, cut.end - cut.begin);
      end = std::max(end, cut.end);
      if (cut.number < 0) continue;
      j.numbered = true;
      if (i > 0 && cut.number != lane.cuts[i - 1].number + 1) j.numbers_rise = false;
      if (i > 0 && cut.number <= lane.cuts[i - 1].number) j.numbers_repeat = true;
    }
    const auto& times = launches[lane.rank];
    inside += static_cast<std::uint64_t>(std::ranges::lower_bound(times, end) -
                                         std::ranges::lower_bound(times, lane.cuts.front().begin));
  }
  j.coverage = all == 0 ? 1 : std::min(1.0, static_cast<double>(inside) / static_cast<double>(all));
  return j;
}

/// Better first: known to be a step, repeated, covering the work, outermost (longest in all), then fewest, then by
/// name.
bool better(const Judged& a, const Judged& b) {
  const auto key = [](const Judged& j) {
    return std::tuple(j.numbers_repeat ? 0 : static_cast<int>(j.family->rank), j.most >= 2 ? 1 : 0,
                      j.coverage >= 0.8 ? 1 : 0, j.total);
  };
  if (key(a) != key(b)) return key(a) > key(b);
  if (a.most != b.most) return a.most < b.most;
  return a.family->key < b.family->key;
}

std::vector<Family> families_of(const Trace& trace, const SliceOrder& order, SliceClass wanted) {
  std::vector<std::uint32_t> family_of(trace.strings.size(), kNone);
  std::map<std::string, std::uint32_t> ids;
  std::vector<Family> families;
  for (TrackId t = 0; t < trace.tracks.size(); ++t)
    for (std::uint64_t k = order.track_begin[t]; k < order.track_begin[t + 1]; ++k) {
      const Slice& s = trace.slices[order.order[k]];
      if (trace.slice_class(s) != wanted) continue;
      std::uint32_t& id = family_of[s.name];
      if (id == kNone) {
        const std::string key = marker_family(trace.name(s));
        const auto [at, added] = ids.emplace(key, static_cast<std::uint32_t>(families.size()));
        id = at->second;
        if (added) families.push_back({key, s.name, marker_rank(trace.name(s)), {}});
      }
      if (families[id].rank != MarkerRank::denied) take(families[id], trace, order.order[k], t);
    }
  return families;
}

std::string shown(const Judged& j, const Trace& trace) {
  return j.most == 1                                   ? std::string(trace.strings[j.family->example])
         : j.family->rank == MarkerRank::profiler_step ? "ProfilerStep#N"
                                                       : j.family->key;
}

}  // namespace

std::vector<std::vector<Ns>> launch_times(const Trace& trace) {
  std::vector<std::vector<Ns>> times(trace.ranks.size());
  for (std::size_t g = 0; g < trace.gpu.size(); ++g) {
    if (trace.gpu[g].launcher == kNone) continue;
    const Slice& launcher = trace.slices[trace.gpu[g].launcher];
    times[launcher.rank].push_back(launcher.begin);
  }
  for (auto& rank : times)
    if (!std::is_sorted(rank.begin(), rank.end())) std::ranges::sort(rank);
  return times;
}

std::optional<Cutting> cut_by_marker(const Trace& trace, const SliceOrder& order,
                                     const std::vector<std::vector<Ns>>& launches) {
  for (const SliceClass wanted : {SliceClass::annotation, SliceClass::gpu_annotation}) {
    const bool on_gpu = wanted == SliceClass::gpu_annotation;
    const std::vector<Family> families = families_of(trace, order, wanted);
    std::optional<Judged> best;
    for (const Family& family : families) {
      if (family.rank == MarkerRank::denied || family.tracks.empty()) continue;
      Judged j = judge(trace, family, launches);
      const bool known = family.rank >= MarkerRank::step_word;
      if (!known && (j.most < 3 || j.numbers_repeat)) continue;
      if (!on_gpu && j.coverage < (known ? 0.3 : 0.5)) continue;
      if (!best || better(j, *best)) best = std::move(j);
    }
    if (!best) continue;
    Cutting cutting;
    cutting.method = model::CycleMethod::marker;
    cutting.anchor = shown(*best, trace);
    cutting.device_time = on_gpu;
    const bool profiler_step = best->family->rank == MarkerRank::profiler_step;
    const bool step_word = best->family->rank == MarkerRank::step_word;
    const bool at_end = best->family->rank == MarkerRank::once_per_step;
    double period = profiler_step ? 0.99 : step_word ? 0.95 : at_end ? 0.85 : 0.6;
    if (best->numbers_repeat) period = std::min(period, 0.4);
    if (best->numbered && !best->numbers_rise && !best->numbers_repeat) period -= 0.05;
    if (best->most == 1) period -= 0.05;
    cutting.period_confidence = period;
    cutting.phase_confidence = at_end ? 0.3 : std::min(on_gpu ? 0.8 : 0.99, period);
    if (launches.empty() || std::ranges::all_of(launches, [](const auto& r) { return r.empty(); }))
      cutting.reason = fmt::format("{} marker{} of this kind", best->most, best->most == 1 ? "" : "s");
    else
      cutting.reason = fmt::format(
          "{} marker{} of this kind{}; {:.0f}% of the recorded GPU launches lie {}", best->most,
          best->most == 1 ? "" : "s",
          best->numbered && best->numbers_rise && best->most > 1 ? ", numbered one by one" : "", best->coverage * 100,
          best->most == 1 ? "in it" : "between begin of the first and end of the last");
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

/// The name with every run of digits as `placeholder`.
std::string pattern_of(std::string_view name, char placeholder) {
  std::string out;
  for (std::size_t i = 0; i < name.size();) {
    if (name[i] < '0' || name[i] > '9') {
      out += name[i++];
      continue;
    }
    while (i < name.size() && name[i] >= '0' && name[i] <= '9') ++i;
    out += placeholder;
  }
  return out;
}

/// How sure it is that what the user named comes once per step: by how regularly it comes. A part of a model comes as
/// regularly as a step.
double confidence_by_regularity(const std::vector<Lane>& lanes, std::string_view anchor) {
  std::vector<double> away;
  for (const Lane& lane : lanes) {
    std::vector<Ns> periods;
    for (std::size_t i = 0; i + 1 < lane.cuts.size(); ++i)
      periods.push_back(lane.cuts[i + 1].begin - lane.cuts[i].begin);
    if (periods.size() < 2) continue;
    const auto usual = static_cast<double>(std::max<Ns>(1, middle_of(periods)));
    for (const Ns p : periods) away.push_back(std::abs(static_cast<double>(p) - usual) / usual);
  }
  constexpr double kMost = 0.95;
  constexpr double kFew = 0.5;   // two at most say nothing
  constexpr double kPart = 0.3;  // layers are as regular as steps
  const double confidence = away.empty() ? kFew : std::clamp(kMost - middle_of(std::move(away)), kPart, kMost);
  return is_model_part(anchor) || numbered_part(anchor) ? std::min(confidence, kPart) : confidence;
}

}  // namespace

std::optional<Cutting> cut_by_name(const Trace& trace, const SliceOrder& order, const std::string& anchor) {
  // The exact name first; when it does not occur, names that differ from it only in digits.
  std::vector<char> matches(trace.strings.size(), 0);
  bool exact = false;
  bool alike = false;
  const std::string pattern = pattern_of(anchor, 'N');
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
