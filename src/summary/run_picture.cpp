#include "summary/run_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "trace/rank_numbers.h"

namespace culprit::summary {

namespace {

using model::Phase;
using model::RunPicture;

constexpr std::size_t kMostCycles = 4000;
constexpr std::size_t kMostSeries = 40;
constexpr std::size_t kMostPoints = 400;
constexpr std::size_t kMostFindings = 100;
constexpr std::size_t kMostOfFunction = 100;
constexpr std::size_t kMostSlices = 20'000;
constexpr std::size_t kMostLanes = 60;

/// Begin of what is drawn, on the clock of the profile.
Ns first_of(const model::Profile& profile) {
  Ns first = std::numeric_limits<Ns>::max();
  for (const model::ProfileCycle& cycle : profile.cycles) first = std::min(first, cycle.begin);
  for (const model::ResourceSeries& series : profile.series)
    if (!series.times.empty()) first = std::min(first, series.times.front());
  return first == std::numeric_limits<Ns>::max() ? 0 : first;
}

/// Begins of whole cycles, on the clock of the trace.
std::set<Ns> whole_begins(const model::Cycles& cycles) {
  const std::vector<bool> whole = model::whole_periods(cycles);
  std::set<Ns> begins;
  for (std::size_t i = 0; i < whole.size(); ++i)
    if (whole[i]) begins.insert(cycles.cycles[i].begin);
  return begins;
}

/// `whole`: the cycles of the profile that are.
void draw_cycles(const model::Profile& profile, const std::vector<bool>& whole, Ns first, RunPicture& picture) {
  std::map<Phase, std::vector<const model::ProfileCycle*>> by_phase;
  for (std::size_t c = 0; c < profile.cycles.size(); ++c)
    if (whole[c]) by_phase[profile.cycles[c].phase].push_back(&profile.cycles[c]);
  for (auto& [phase, cycles] : by_phase) {
    std::ranges::stable_sort(cycles, {}, &model::ProfileCycle::begin);
    model::PictureCycles& drawn = picture.cycles.emplace_back();
    drawn.phase = phase;
    drawn.all = cycles.size();
    const std::size_t count = std::min(cycles.size(), kMostCycles);
    for (std::size_t i = 0; i < count; ++i) {
      const model::ProfileCycle& cycle = *cycles[i * cycles.size() / count];
      drawn.at.push_back(cycle.begin - first);
      drawn.period.push_back(cycle.duration);
    }
  }
}

/// `shift`: from the clock of the trace to that of what is drawn.
void draw_steps(std::span<const model::PictureStep> steps, Ns shift, RunPicture& picture) {
  std::map<Phase, std::vector<const model::PictureStep*>> by_phase;
  for (const model::PictureStep& step : steps) by_phase[step.phase].push_back(&step);
  for (const auto& [phase, all] : by_phase) {
    model::PictureCycles& drawn = picture.steps.emplace_back();
    drawn.phase = phase;
    drawn.all = all.size();
    const std::size_t count = std::min(all.size(), kMostCycles);
    for (std::size_t i = 0; i < count; ++i) {
      const model::PictureStep& step = *all[i * all.size() / count];
      drawn.at.push_back(step.begin + shift);
      drawn.period.push_back(step.time);
    }
  }
}

model::PictureSeries drawn_series(const model::ResourceSeries& series, Ns first) {
  model::PictureSeries drawn;
  const Ns begin = series.times.front();
  const Ns step = std::max<Ns>((series.times.back() - begin) / static_cast<Ns>(kMostPoints) + 1, 1);
  for (std::size_t i = 0; i < series.times.size();) {
    const Ns stretch = (series.times[i] - begin) / step;
    double sum = 0;
    double low = std::numeric_limits<double>::infinity();
    double high = -low;
    std::size_t count = 0;
    for (; i < series.times.size() && (series.times[i] - begin) / step == stretch; ++i) {
      if (!std::isfinite(series.values[i])) continue;
      sum += series.values[i];
      low = std::min(low, series.values[i]);
      high = std::max(high, series.values[i]);
      ++count;
    }
    if (count == 0) continue;
    drawn.at.push_back(begin - first + stretch * step + step / 2);
    drawn.mean.push_back(sum / static_cast<double>(count));
    drawn.low.push_back(low);
    drawn.high.push_back(high);
  }
  return drawn;
}

bool has_moved(const model::RunComparison& comparison, std::string_view metric) {
  if (std::ranges::any_of(comparison.resources, [&](const model::ResourceChange& r) { return r.metric == metric; }))
    return true;
  return comparison.host &&
         std::ranges::any_of(comparison.host->counters, [&](const model::HostChange& c) { return c.what == metric; });
}

void draw_series(const model::Profile& profile, Ns first, RunPicture& picture) {
  const auto several = [&](StringId device) {
    return std::ranges::any_of(profile.series, [&](const model::ResourceSeries& s) {
      return s.device == device && s.rank != profile.series.front().rank;
    });
  };
  for (const model::ResourceSeries& series : profile.series) {
    if (series.times.size() < 2) continue;
    model::PictureSeries drawn = drawn_series(series, first);
    if (drawn.at.empty()) continue;
    drawn.metric = profile.texts[series.metric];
    drawn.device = profile.texts[series.device];
    if (series.rank >= 0 && several(series.device)) drawn.device += fmt::format(", rank {}", series.rank);
    drawn.unit = series.unit;
    picture.series.push_back(std::move(drawn));
  }
}

/// Cycles that are drawn as a line of points, each of one cycle or of some neighbours.
struct Points {
  std::size_t cycles = 0;
  [[nodiscard]] std::size_t count() const { return std::min(cycles, kMostOfFunction); }
  /// Of the cycle at a place among them.
  [[nodiscard]] std::size_t of(std::size_t place) const { return place * count() / cycles; }
  /// How many cycles a point is of.
  [[nodiscard]] std::size_t cycles_of(std::size_t point) const { return begin_of(point + 1) - begin_of(point); }

 private:
  [[nodiscard]] std::size_t begin_of(std::size_t point) const { return (point * cycles + count() - 1) / count(); }
};

/// A row is of the cycles of one process; what another one of its number on another rank did is no part of it.
void draw_functions(const model::Profile& profile, RunPicture& picture) {
  using Owner = std::tuple<std::int32_t, std::int64_t, Phase>;  // rank and process
  const auto owner_of = [&](std::size_t c) {
    const model::ProfileCycle& cycle = profile.cycles[c];
    return Owner(cycle.rank, cycle.pid, cycle.phase);
  };
  std::vector<std::size_t> place(profile.cycles.size());  // among the cycles of its owner
  std::map<Owner, Points> lines;
  for (std::size_t c = 0; c < profile.cycles.size(); ++c) place[c] = lines[owner_of(c)].cycles++;
  std::map<std::tuple<StringId, std::int64_t, Phase, bool>, std::pair<std::size_t, Owner>> known;
  for (const model::FunctionUse& use : profile.functions) {
    const bool device = profile.texts[use.device] != "Host";
    const Phase phase = profile.cycles[use.cycle].phase;
    const std::int64_t pid = profile.processes[use.process].pid;
    const Owner owner = owner_of(use.cycle);
    const Points& points = lines.at(owner);
    const auto [found, fresh] = known.try_emplace({use.function, pid, phase, device}, picture.functions.size(), owner);
    if (fresh)
      picture.functions.push_back(
          {std::string(profile.texts[use.function]), pid, phase, device, 0, std::vector<double>(points.count())});
    const auto& [row, owner_of_row] = found->second;
    if (owner_of_row != owner) continue;
    const Ns time = device ? (use.exposed >= 0 ? use.exposed : use.duration) : (use.own >= 0 ? use.own : use.duration);
    const std::size_t point = points.of(place[use.cycle]);
    picture.functions[row].ns[point] += static_cast<double>(time) / static_cast<double>(points.cycles_of(point));
  }
}

/// Of the phase, or of the most frequent one where there is none, the whole cycle nearest to the middle one; of those
/// for which `counts` holds.
template <class Counts>
const model::Cycle* usual_cycle(const model::Cycles& cycles, Phase phase, const Counts& counts) {
  const std::vector<bool> whole = model::whole_periods(cycles);
  std::map<Phase, std::vector<const model::Cycle*>> by_phase;
  for (std::size_t i = 0; i < cycles.cycles.size(); ++i)
    if (whole[i] && counts(cycles.cycles[i])) by_phase[cycles.cycles[i].phase].push_back(&cycles.cycles[i]);
  if (by_phase.empty()) return nullptr;
  auto chosen = by_phase.find(phase);
  if (chosen == by_phase.end())
    chosen = std::ranges::max_element(by_phase, {}, [](const auto& of) { return of.second.size(); });
  std::vector<const model::Cycle*>& all = chosen->second;
  std::ranges::sort(all, {}, [](const model::Cycle* c) { return std::pair(c->period, c->number); });
  return all[all.size() / 2];
}

std::string lane_name(const Trace& trace, const Track& track) {
  const std::string_view name = trace.strings[track.name];
  const Process& process = trace.processes[track.process];
  const std::string_view program = trace.strings[process.name];
  if (track.kind == TrackKind::gpu_stream) return fmt::format("GPU {} stream {}", track.device, track.stream);
  std::string text = name.empty() ? std::string(program) : std::string(name);
  if (track.tid >= 0) text += fmt::format(" {}", track.tid);
  if (track.kind == TrackKind::sched) text = "CPU: " + text;
  return text.empty() ? "track" : text;
}

std::string_view kind_name(TrackKind kind) {
  switch (kind) {
    case TrackKind::gpu_stream:
      return "stream";
    case TrackKind::async:
      return "async";
    case TrackKind::sched:
      return "scheduling";
    case TrackKind::thread:
      break;
  }
  return "thread";
}

void draw_stretch(const Trace& trace, const model::Cycle& cycle, RunPicture& picture) {
  model::PictureStretch stretch;
  stretch.phase = cycle.phase;
  stretch.number = cycle.number;
  stretch.begin = cycle.begin;
  stretch.unix = trace.base_ns != 0 ? trace.base_ns + cycle.begin : 0;
  stretch.period = cycle.period;
  Ns end = cycle.begin + cycle.period;
  for (const model::DeviceWindow& window : cycle.devices) end = std::max(end, window.end);
  stretch.length = end - cycle.begin;

  std::vector<SliceIndex> inside;
  for (std::size_t i = 0; i < trace.slices.size(); ++i) {
    const Slice& slice = trace.slices[i];
    if (slice.rank == cycle.rank && slice.begin < end && slice.end() > cycle.begin && slice.duration > 0)
      inside.push_back(static_cast<SliceIndex>(i));
  }
  if (inside.size() > kMostSlices) {
    std::ranges::stable_sort(inside, std::ranges::greater(), [&](SliceIndex i) { return trace.slices[i].duration; });
    stretch.left_out = inside.size() - kMostSlices;
    inside.resize(kMostSlices);
  }
  std::map<TrackId, std::vector<SliceIndex>> lanes;
  for (const SliceIndex i : inside) lanes[trace.slices[i].track].push_back(i);
  const auto visible = [&](SliceIndex i) {
    return std::min(trace.slices[i].end(), end) - std::max(trace.slices[i].begin, cycle.begin);
  };
  // Those that did most; then threads with their scheduling below, and streams.
  std::vector<std::pair<Ns, TrackId>> busy;
  for (const auto& [track, slices] : lanes) {
    Ns sum = 0;
    for (const SliceIndex i : slices) {
      const std::string_view name = trace.name(trace.slices[i]);
      if (!name.starts_with("blocked")) sum += visible(i);
    }
    busy.emplace_back(sum, track);
  }
  std::ranges::stable_sort(busy, std::ranges::greater());
  if (busy.size() > kMostLanes) {
    stretch.lanes_left_out = busy.size() - kMostLanes;
    for (std::size_t i = kMostLanes; i < busy.size(); ++i) stretch.left_out += lanes[busy[i].second].size();
    busy.resize(kMostLanes);
  }
  std::vector<TrackId> order;
  order.reserve(busy.size());
  for (const auto& [sum, track] : busy) order.push_back(track);
  std::ranges::stable_sort(order, {}, [&](TrackId t) {
    const Track& track = trace.tracks[t];
    return std::tuple(track.kind == TrackKind::gpu_stream, track.device, track.process, track.tid,
                      track.kind == TrackKind::sched);
  });
  std::map<StringId, std::uint32_t> names;
  for (const TrackId t : order) {
    model::PictureLane& lane = stretch.lanes.emplace_back();
    lane.name = lane_name(trace, trace.tracks[t]);
    lane.kind = kind_name(trace.tracks[t].kind);
    std::vector<SliceIndex>& slices = lanes[t];
    std::ranges::sort(slices, [&](SliceIndex a, SliceIndex b) { return stands_before(trace, a, b); });
    for (const SliceIndex i : slices) {
      const Slice& slice = trace.slices[i];
      const auto [name, fresh] = names.try_emplace(slice.name, static_cast<std::uint32_t>(names.size()));
      if (fresh) stretch.names.emplace_back(trace.strings[slice.name]);
      lane.slices.push_back({std::max(slice.begin - cycle.begin, Ns{0}), visible(i), name->second});
    }
  }
  picture.stretch = std::move(stretch);
}

}  // namespace

model::Phase usual_phase(const model::Cycles& a, const model::Cycles& b) {
  std::array<std::map<Phase, std::size_t>, 2> counts;
  for (std::size_t s = 0; s < counts.size(); ++s) {
    const model::Cycles& cycles = s == 0 ? a : b;
    const std::vector<bool> whole = model::whole_periods(cycles);
    for (std::size_t i = 0; i < whole.size(); ++i)
      if (whole[i]) ++counts[s][cycles.cycles[i].phase];
  }
  return *std::ranges::max_element(model::kPhases, {},
                                   [&](Phase phase) { return std::min(counts[0][phase], counts[1][phase]); });
}

model::RunPicture run_picture(const Trace& trace, const model::Recording& recording, Phase phase,
                              std::span<const model::PictureStep> steps, std::int32_t rank) {
  RunPicture picture;
  picture.file = fmt::format("{}", fmt::join(recording.files, ", "));
  const Ns first = first_of(recording.profile);
  const std::set<Ns> begins = whole_begins(recording.cycles);
  std::vector<bool> whole;
  whole.reserve(recording.profile.cycles.size());
  for (const model::ProfileCycle& cycle : recording.profile.cycles)
    whole.push_back(begins.contains(cycle.begin - trace.base_ns));
  draw_cycles(recording.profile, whole, first, picture);
  if (!picture.cycles.empty()) draw_steps(steps, trace.base_ns - first, picture);
  draw_series(recording.profile, first, picture);
  draw_functions(recording.profile, picture);
  const std::vector<std::int32_t> numbers = rank_numbers(trace);
  const auto is_of_rank = [&](const model::Cycle& cycle) { return rank_number(numbers, cycle.rank) == rank; };
  const model::Cycle* cycle = rank < 0 ? nullptr : usual_cycle(recording.cycles, phase, is_of_rank);
  if (cycle == nullptr) cycle = usual_cycle(recording.cycles, phase, [](const model::Cycle&) { return true; });
  if (cycle == nullptr) return picture;
  draw_stretch(trace, *cycle, picture);
  if (trace.ranks.size() > 1) picture.stretch->rank = rank_number(numbers, cycle->rank);
  return picture;
}

void keep_what_matters(RunPicture& picture, const model::RunComparison& comparison, std::size_t side) {
  const std::size_t recordings = comparison.sides.at(side).recordings;
  picture.others = recordings - std::min<std::size_t>(recordings, 1);

  for (model::PictureSeries& series : picture.series) series.moved = has_moved(comparison, series.metric);
  // What moved before what only is there, devices before the host.
  std::ranges::stable_sort(picture.series, std::ranges::greater(), [](const model::PictureSeries& s) {
    return std::pair(s.moved, s.device.starts_with("GPU"));
  });
  picture.series_left_out = picture.series.size() - std::min(picture.series.size(), kMostSeries);
  if (picture.series.size() > kMostSeries) picture.series.resize(kMostSeries);

  std::map<std::tuple<std::string_view, std::int64_t, Phase, bool>, std::size_t> wanted;
  for (std::size_t i = 0; i < comparison.functions.size() && wanted.size() < kMostFindings; ++i) {
    const model::FunctionFinding& finding = comparison.functions[i];
    if (const auto pid = comparison.processes[finding.process].pid.at(side))
      wanted.try_emplace(
          {comparison.texts[finding.function], *pid, finding.phase, comparison.texts[finding.device] != "Host"}, i);
  }
  std::erase_if(picture.functions, [&](model::PictureFunction& f) {
    const auto found = wanted.find({f.function, f.pid, f.phase, f.device});
    if (found != wanted.end()) f.finding = found->second;
    return found == wanted.end();
  });
}

}  // namespace culprit::summary
