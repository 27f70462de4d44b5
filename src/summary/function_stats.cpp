#include "summary/function_stats.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/saturating.h"
#include "profile/function_kind.h"
#include "profile/function_name.h"
#include "stats/moments.h"
#include "stats/quantile.h"
#include "summary/function_label.h"

namespace culprit::summary {

namespace {

constexpr std::uint32_t kUnknownGroup = 0xffffffff;
constexpr std::uint32_t kFilteredOut = 0xfffffffe;

/// Gives every slice the number of its group and every group its label. What depends on the name alone is computed once
/// per name (and class, for kinds).
class Grouper {
 public:
  Grouper(const Trace& trace, const FunctionQuery& query) : trace_(trace), query_(query) {}

  std::uint32_t operator()(SliceIndex row, const Slice& slice) {
    if (!keeps(slice)) return kFilteredOut;
    switch (query_.by) {
      case GroupBy::raw_name:
      case GroupBy::short_name:
        return by_name(slice, 0);
      case GroupBy::name:  // labels and kinds depend on the class, too
      case GroupBy::kind:
        return by_name(slice, static_cast<std::size_t>(trace_.slice_class(slice)));
      case GroupBy::device:
        return by_number(slice, false);
      case GroupBy::stream:
        return by_number(slice, true);
      case GroupBy::rank:
        return of_key(slice.rank, [&] { return rank_label(slice.rank); });
      case GroupBy::category:
        return of_key(slice.category, [&] { return trace_.categories[slice.category].name; });
      case GroupBy::cycle:
      case GroupBy::phase:
        return by_cycle(query_.cycles->cycle_of_slice[row]);
    }
    return kFilteredOut;
  }

  [[nodiscard]] std::vector<std::string>& labels() { return labels_; }
  [[nodiscard]] std::uint64_t position(std::size_t group) const {
    return group < positions_.size() ? positions_[group] : 0;
  }

 private:
  bool keeps(const Slice& slice) {
    if (query_.filter.empty()) return true;
    if (kept_.empty()) kept_.assign(trace_.strings.size(), kUndecided);
    std::uint8_t& kept = kept_[slice.name];
    if (kept == kUndecided) {
      const std::string_view name = trace_.name(slice);
      kept = matches_filter(name, query_.filter) ||
             (query_.by == GroupBy::name &&
              matches_filter(function_label(trace_.slice_class(slice), name), query_.filter));
    }
    return kept == 1;
  }

  std::uint32_t by_name(const Slice& slice, std::size_t column) {
    auto& groups = of_name_[column];
    if (groups.empty()) groups.assign(trace_.strings.size(), kUnknownGroup);
    std::uint32_t& group = groups[slice.name];
    if (group != kUnknownGroup) return group;
    const std::string_view name = trace_.name(slice);
    group = of_label(label_of(trace_.slice_class(slice), name));
    return group;
  }

  [[nodiscard]] std::string label_of(SliceClass slice_class, std::string_view name) const {
    if (query_.by == GroupBy::kind) return std::string(to_string(kind_of(slice_class, name)));
    if (query_.by == GroupBy::short_name) return short_name(function_label(slice_class, name));
    return query_.by == GroupBy::name ? function_label(slice_class, name) : std::string(name);
  }

  std::uint32_t by_number(const Slice& slice, bool with_stream) {
    const Track& track = trace_.tracks[slice.track];
    const GpuSlice* gpu = slice.gpu == kNone ? nullptr : &trace_.gpu[slice.gpu];
    if (gpu == nullptr && track.kind != TrackKind::gpu_stream)
      return of_key(kHostKey | slice.rank, [&] { return rank_prefix(slice.rank) + "host"; });
    const std::int32_t device = gpu != nullptr ? gpu->device : track.device;
    const std::int32_t stream = gpu != nullptr ? gpu->stream : track.stream;
    const std::uint64_t key = std::uint64_t{slice.rank} << 48 |
                              std::uint64_t{static_cast<std::uint16_t>(device)} << 32 |
                              (with_stream ? static_cast<std::uint32_t>(stream) : 0u);
    return of_key(key, [&] {
      std::string label = rank_prefix(slice.rank) + fmt::format("device {}", device);
      if (with_stream) return label + fmt::format(" stream {}", stream);
      for (const Device& known : trace_.devices)
        if (known.rank == slice.rank && known.id == device && !known.name.empty()) return label + " " + known.name;
      return label;
    });
  }

  std::uint32_t by_cycle(std::uint32_t row) {
    constexpr std::uint64_t kLast = ~std::uint64_t{0};
    std::uint64_t position = kLast;
    if (row != kNone) {
      const model::Cycle& cycle = query_.cycles->cycles.cycles[row];
      position = query_.by == GroupBy::cycle ? cycle.number : static_cast<std::uint64_t>(cycle.phase);
    }
    return of_key(position, [&]() -> std::string {
      positions_.push_back(position);
      if (position == kLast) return "(no cycle)";
      if (query_.by == GroupBy::cycle) return fmt::format("{}", position);
      return std::string(model::phase_name(static_cast<model::Phase>(position)));
    });
  }

  template <class MakeLabel>
  std::uint32_t of_key(std::uint64_t key, MakeLabel make_label) {
    const auto [it, added] = of_key_.try_emplace(key, 0);
    if (added) it->second = add(make_label());
    return it->second;
  }

  std::uint32_t of_label(std::string label) {
    const auto [it, added] = of_label_.try_emplace(std::move(label), 0);
    if (added) it->second = add(it->first);
    return it->second;
  }

  std::uint32_t add(std::string label) {
    labels_.push_back(label.empty() ? "(no name)" : std::move(label));
    return static_cast<std::uint32_t>(labels_.size() - 1);
  }

  [[nodiscard]] std::string rank_label(std::uint16_t row) const {
    const std::int64_t number = row < trace_.ranks.size() && trace_.ranks[row].rank >= 0 ? trace_.ranks[row].rank : row;
    return fmt::format("rank {}", number);
  }
  [[nodiscard]] std::string rank_prefix(std::uint16_t row) const {
    return trace_.ranks.size() > 1 ? rank_label(row) + " " : std::string();
  }

  static constexpr std::uint8_t kUndecided = 2;
  static constexpr std::uint64_t kHostKey = std::uint64_t{0xffff} << 32 | std::uint64_t{1} << 63;
  const Trace& trace_;
  const FunctionQuery& query_;
  std::vector<std::string> labels_;
  std::vector<std::uint64_t> positions_;  // by group, when grouped by cycle or phase
  std::vector<std::uint8_t> kept_;
  std::array<std::vector<std::uint32_t>, 32> of_name_;
  std::unordered_map<std::uint64_t, std::uint32_t> of_key_;
  std::unordered_map<std::string, std::uint32_t> of_label_;
};

bool selected(const Trace& trace, const FunctionQuery& query, const Slice& slice) {
  if ((query.classes & class_bit(trace.slice_class(slice))) == 0) return false;
  if (query.passes == nullptr) return true;
  return slice.gpu != kNone && (query.pass_set & pass_bit(query.passes->of_gpu[slice.gpu])) != 0;
}

enum class Place { kept, other_cycle, no_cycle };

Place place_of(const FunctionQuery& query, std::size_t row) {
  if (query.kept_cycles == nullptr) return Place::kept;
  const std::uint32_t cycle = query.cycles->cycle_of_slice[row];
  if (cycle == kNone) return Place::no_cycle;
  return (*query.kept_cycles)[cycle] ? Place::kept : Place::other_cycle;
}

/// The spans of the profiler itself, by name and category.
class ProfilerSpans {
 public:
  explicit ProfilerSpans(const Trace& trace) : trace_(trace), known_(trace.categories.size()) {
    for (std::size_t c = 0; c < known_.size(); ++c) known_[c] = trace.categories[c].name == "Trace";
  }
  bool operator()(const Slice& slice) const {
    return known_[slice.category] && is_profiler_span(trace_.categories[slice.category].name, trace_.name(slice));
  }

 private:
  const Trace& trace_;
  std::vector<bool> known_;
};

/// Sums slices up, one by one; with nesting they come thread by thread in order of time.
class Summer {
 public:
  /// `twice`: slices whose time others have; empty: none.
  Summer(const Trace& trace, const FunctionQuery& query, std::vector<bool> twice)
      : trace_(trace), query_(query), twice_(std::move(twice)), group_of_(trace, query), is_profiler_(trace) {}

  void add(SliceIndex row) {
    const Slice& slice = trace_.slices[row];
    if (!selected(trace_, query_, slice)) return;
    if (!twice_.empty() && twice_[row]) return;
    if (is_profiler_(slice)) {
      sums_.profiler_time = add_saturating(sums_.profiler_time, slice.duration);
      ++sums_.profiler_spans;
      return;
    }
    const Ns self = query_.nesting != nullptr ? query_.nesting->self[row] : slice.duration;
    const Place place = place_of(query_, row);
    if (place == Place::no_cycle) {
      sums_.self_in_no_cycle = add_saturating(sums_.self_in_no_cycle, self);
      ++sums_.calls_in_no_cycle;
    }
    if (place != Place::kept) return;
    sums_.self = add_saturating(sums_.self, self);
    ++sums_.calls;
    const std::uint32_t group = group_of_(row, slice);
    if (group == kFilteredOut) return;
    if (group >= sums_.functions.size()) {
      sums_.functions.resize(group + 1);
      reach_.resize(group + 1);
    }
    FunctionStats& stats = sums_.functions[group];
    stats.self = add_saturating(stats.self, self);
    const bool inside_same = add_total(stats, reach_[group], slice);
    if (inside_same && query_.nesting->again[row]) {
      --sums_.calls;
      return;
    }
    stats.min = stats.calls == 0 ? slice.duration : std::min(stats.min, slice.duration);
    stats.max = std::max(stats.max, slice.duration);
    ++stats.calls;
    groups_.push_back(group);
    durations_.push_back(slice.duration);
  }

  FunctionSums finish() {
    std::vector<std::size_t> next(sums_.functions.size() + 1, 0);
    for (std::size_t g = 0; g < sums_.functions.size(); ++g) next[g + 1] = next[g] + sums_.functions[g].calls;
    std::vector<Ns> durations(durations_.size());
    for (std::size_t k = 0; k < durations_.size(); ++k) durations[next[groups_[k]]++] = durations_[k];
    std::size_t first = 0;
    for (std::size_t g = 0; g < sums_.functions.size(); ++g) {
      FunctionStats& stats = sums_.functions[g];
      const std::span<Ns> of_group(durations.data() + first, stats.calls);
      stats.median = stats::median_in_place(of_group);
      const stats::Moments moments = stats::moments_of_times(of_group);
      stats.mean = moments.mean;
      if (stats.calls > 1) stats.deviation = moments.std;
      first += stats.calls;
      stats.label = std::move(group_of_.labels()[g]);
      stats.position = group_of_.position(g);
    }
    return std::move(sums_);
  }

 private:
  /// How far the calls of a group reach on the thread that is being read.
  struct Reach {
    TrackId track = kNone;
    Ns end = 0;
  };

  /// True when all of the slice lies in calls of its group that came before it.
  bool add_total(FunctionStats& stats, Reach& reach, const Slice& slice) const {
    if (query_.nesting == nullptr || is_gpu_work(trace_.slice_class(slice))) {
      stats.total = add_saturating(stats.total, slice.duration);
      return false;
    }
    if (reach.track != slice.track) reach = {slice.track, slice.begin};
    if (slice.end() <= reach.end) return slice.duration > 0 || slice.begin < reach.end;
    stats.total = add_saturating(stats.total, slice.end() - std::max(slice.begin, reach.end));
    reach.end = slice.end();
    return false;
  }

  const Trace& trace_;
  const FunctionQuery& query_;
  const std::vector<bool> twice_;
  Grouper group_of_;
  ProfilerSpans is_profiler_;
  FunctionSums sums_;
  std::vector<Reach> reach_;           // by group
  std::vector<std::uint32_t> groups_;  // of the calls kept, in order
  std::vector<Ns> durations_;
};

}  // namespace

namespace {

/// Blocked states whose reason is a slice of its own: the same time under another name.
std::vector<bool> explained_states(const Trace& trace) {
  std::vector<bool> explained(trace.slices.size());
  std::vector<std::tuple<ProcessId, std::int64_t, Ns>> reasons;
  const auto key = [&](const Slice& slice) {
    const Track& track = trace.tracks[slice.track];
    return std::tuple(track.process, track.tid, slice.begin);
  };
  for (std::size_t i = 0; i < trace.slices.size(); ++i)
    if (const Slice& slice = trace.slices[i]; trace.categories[slice.category].name == "blocked")
      reasons.push_back(key(slice));
  if (reasons.empty()) return explained;
  std::ranges::sort(reasons);
  for (std::size_t i = 0; i < trace.slices.size(); ++i)
    if (const Slice& slice = trace.slices[i]; trace.tracks[slice.track].kind == TrackKind::sched)
      explained[i] = trace.name(slice) != "oncpu" && trace.name(slice) != "runq" &&
                     std::ranges::binary_search(reasons, key(slice));
  return explained;
}

}  // namespace

FunctionSums function_stats(const Trace& trace, const FunctionQuery& query) {
  constexpr ClassSet kStatesAndReasons = class_bit(SliceClass::os_sched) | class_bit(SliceClass::syscall);
  Summer summer(
      trace, query,
      (query.classes & kStatesAndReasons) == kStatesAndReasons ? explained_states(trace) : std::vector<bool>());
  for (std::size_t k = 0; k < trace.slices.size() && !query.stop.stop_requested(); ++k)
    summer.add(query.nesting != nullptr ? query.nesting->order.order[k] : static_cast<SliceIndex>(k));
  return summer.finish();
}

bool matches_filter(std::string_view name, std::string_view filter) {
  if (filter.find_first_of("*?") == std::string_view::npos) return name.find(filter) != std::string_view::npos;
  // Greedy match with one point to return to: the last '*' and how much it has taken.
  std::size_t n = 0;
  std::size_t f = 0;
  std::size_t star = std::string_view::npos;
  std::size_t taken = 0;
  while (n < name.size()) {
    if (f < filter.size() && filter[f] == '*') {
      star = f++;
      taken = n;
    } else if (f < filter.size() && (filter[f] == '?' || filter[f] == name[n])) {
      ++f;
      ++n;
    } else if (star != std::string_view::npos) {
      f = star + 1;
      n = ++taken;
    } else {
      return false;
    }
  }
  while (f < filter.size() && filter[f] == '*') ++f;
  return f == filter.size();
}

}  // namespace culprit::summary
