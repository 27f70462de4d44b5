#include "profile/run_profile.h"

#include <fmt/format.h>
#include <tsl/hopscotch_map.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <tuple>
#include <utility>

#include "core/hash.h"
#include "core/intervals.h"
#include "core/saturating.h"
#include "cycles/name_hints.h"
#include "profile/counter.h"
#include "profile/exposed.h"
#include "profile/function_kind.h"
#include "profile/function_name.h"
#include "profile/ledger.h"
#include "profile/nesting.h"
#include "trace/counter_samples.h"
#include "trace/rank_numbers.h"
#include "trace/request_times.h"

namespace culprit::profile {

namespace {

using model::FunctionUse;
using model::Profile;
using model::Provenance;
using model::ResourceSeries;
using model::ResourceUse;

/// A series with what is needed to sum any stretch of it at once.
struct Series {
  CounterMeaning meaning;
  std::string_view host;
  std::uint16_t rank = 0;
  std::vector<CounterSample> samples;  ///< SI
  double centre = 0;                   ///< subtracted before summing, so that squares keep their digits
  std::vector<double> sums;            ///< of the first i samples
  std::vector<double> squares;
};

std::string_view host_of(const Trace& trace, const Process& process) {
  if (process.host != 0) return trace.strings[process.host];
  if (process.text != 0) return trace.strings[process.text];
  return process.rank < trace.ranks.size() ? std::string_view(trace.ranks[process.rank].host) : std::string_view{};
}

std::string place_of(const CounterMeaning& meaning) {
  if (meaning.device >= 0) return fmt::format("GPU {}", meaning.device);
  return meaning.place.empty() ? "Host" : meaning.place;
}

std::vector<Series> read_series(const Trace& trace) {
  std::vector<Series> all;
  for (const CounterSeries& from : trace.counters) {
    Series series;
    series.meaning = meaning_of(trace, from);
    series.host = host_of(trace, trace.processes[from.process]);
    series.rank = trace.processes[from.process].rank;
    double sum = 0;
    for (const CounterSample& sample : from.samples) {
      if (!std::isfinite(sample.value)) continue;
      series.samples.push_back({sample.at, sample.value * series.meaning.to_si});
      sum += series.samples.back().value;
    }
    if (series.samples.empty()) continue;
    series.centre = sum / static_cast<double>(series.samples.size());
    series.sums.push_back(0);
    series.squares.push_back(0);
    for (const CounterSample& sample : series.samples) {
      const double off = sample.value - series.centre;
      series.sums.push_back(series.sums.back() + off);
      series.squares.push_back(series.squares.back() + off * off);
    }
    all.push_back(std::move(series));
  }
  return all;
}

struct UseKey {
  std::uint32_t cycle = 0;
  ProcessId process = 0;
  StringId name = 0;
  std::int32_t device = -1;
  FunctionKind kind = FunctionKind::other;
  bool operator==(const UseKey&) const = default;
};
struct UseHash {
  std::size_t operator()(const UseKey& key) const {
    return hash_parts(key.cycle, key.process, key.name, key.device, key.kind);
  }
};

struct Sum {
  UseKey key;
  std::int64_t count = 0;
  Ns duration = 0;
  Ns exposed = -1;
  Ns own = -1;
  StringId parent = 0;  ///< of the profile: who has the majority so far, as Boyer and Moore vote
  Ns majority = 0;
  bool mixed = false;  ///< it had several parents
  Ns inside = 0;       ///< of `duration`, in the parent that the vote found
  double size = 0;
};

/// What one operation of a device works on.
double size_of(const GpuSlice& gpu) {
  if (gpu.bytes > 0) return static_cast<double>(gpu.bytes);
  double threads = 1;
  for (int i = 0; i < 3; ++i) threads *= static_cast<double>(gpu.grid[i]) * static_cast<double>(gpu.block[i]);
  return threads;
}

/// What the executions of one use saw of one series.
struct Link {
  std::uint32_t series = 0;
  std::uint64_t samples = 0;
  double sum = 0;
  double squares = 0;
  double between = 0;  ///< interpolated values times duration
  double weight = 0;   ///< duration of the executions that have samples on both sides
  bool all_well_sampled = true;
};

class Builder {
 public:
  Builder(const Trace& trace, const cycles::Found& found, const RunProfileOptions& options, SliceOrder order)
      : trace_(trace), found_(found), options_(options), order_(std::move(order)), rank_numbers_(rank_numbers(trace)) {}

  Profile build() {
    oncpu_ = trace_.strings.find("oncpu", kNone);
    add_cycles();
    if ((options_.own_times || options_.ledger) && order_.track_begin.empty()) order_ = order_slices(trace_);
    sum_uses();
    if (stopped()) return {};
    order_uses();
    if (options_.ledger) {
      add_ledger(trace_, order_, found_, cycle_row_, profile_);
      if (options_.between && trace_.gpu.empty()) add_between();
    }
    series_ = read_series(trace_);
    if (options_.resource_uses) {
      link_series();
      if (stopped()) return {};
      add_resources();
    }
    add_all_series();
    return std::move(profile_);
  }

 private:
  [[nodiscard]] std::int32_t rank_number(std::uint16_t row) const { return culprit::rank_number(rank_numbers_, row); }
  [[nodiscard]] bool stopped() const { return options_.task.stop.stop_requested(); }
  /// To be asked for every slice of a pass; now and then tells how far it is, and whether to end.
  [[nodiscard]] bool goes_on(std::size_t slice, std::size_t pass) const {
    constexpr std::size_t kNowAndThen = 1U << 14U;
    if (slice % kNowAndThen != 0) return true;
    const std::size_t passes = options_.resource_uses ? 2 : 1;
    options_.task.report("measuring", pass * trace_.slices.size() + slice, passes * trace_.slices.size());
    return !stopped();
  }

  /// Kinds depend on name and class alone: one look-up per pair.
  FunctionKind kind_of_slice(const Slice& slice) {
    const SliceClass c = trace_.slice_class(slice);
    const auto [it, fresh] = kinds_.try_emplace({slice.name, c});
    if (fresh) it.value() = kind_of(c, trace_.name(slice));
    return it->second;
  }

  void add_cycles() {
    const auto& cycles = found_.cycles;
    cycle_row_.assign(cycles.cycles.size(), kNone);
    const std::vector<bool> whole = model::whole_periods(cycles);
    const bool any_whole = std::ranges::any_of(whole, std::identity());
    for (std::size_t c = 0; c < cycles.cycles.size(); ++c) {
      const model::Cycle& cycle = cycles.cycles[c];
      // Where none has a known end they are all there is.
      if (options_.whole_cycles_only && (any_whole ? !whole[c] : cycle.partial || cycle.warm_up)) continue;
      cycle_row_[c] = static_cast<std::uint32_t>(profile_.cycles.size());
      found_row_.push_back(static_cast<std::uint32_t>(c));
      model::ProfileCycle out;
      out.number = cycle.number;
      out.anchor = profile_.texts.intern(cycles.anchor);
      out.begin = trace_.base_ns + cycle.begin;
      out.duration = cycle.period > 0 ? cycle.period : cycle.span_end - cycle.span_begin;
      out.phase = cycle.phase;
      out.phase_guessed = cycle.phase_guessed;
      out.workload = cycle.workload;
      out.rank = rank_number(cycle.rank);
      if (cycle.process != kNone) out.pid = trace_.processes[cycle.process].pid;
      profile_.cycles.push_back(out);
    }
  }

  /// Who called it, or launched it on a device: the next of another name outside of it that is no call of a runtime, a
  /// range without its numbers; 0: none. What one call launches as a graph has no parent: all of the step has that one;
  /// nor has what lies in the step alone. Not looked for behind deep recursion, which would take the square of its
  /// depth.
  StringId parent_of(const Nesting& nesting, SliceIndex index) {
    const Slice& slice = trace_.slices[index];
    SliceIndex outer = slice.gpu == kNone ? nesting.parent[index] : trace_.gpu[slice.gpu].launcher;
    if (slice.gpu != kNone && outer != kNone && cycles::is_graph_launch(trace_.name(trace_.slices[outer]))) return 0;
    const auto is_passed_over = [&](const Slice& by) {
      const SliceClass c = trace_.slice_class(by);
      return by.name == slice.name || c == SliceClass::runtime || c == SliceClass::driver;
    };
    constexpr int kMostPassedOver = 32;
    for (int i = 0; i < kMostPassedOver && outer != kNone; ++i, outer = nesting.parent[outer])
      if (!is_passed_over(trace_.slices[outer]))
        return is_step(trace_.slices[outer], index) ? 0 : parent_name(trace_.slices[outer]);
    return 0;
  }

  /// A range that takes most of the cycle of `index` is the step itself, in which everything lies.
  [[nodiscard]] bool is_step(const Slice& range, SliceIndex index) const {
    const Ns period = profile_.cycles[cycle_row_[found_.cycle_of_slice[index]]].duration;
    return trace_.slice_class(range) == SliceClass::annotation && range.duration > period / 2;
  }

  StringId parent_name(const Slice& slice) {
    const SliceClass c = trace_.slice_class(slice);
    const auto [known, is_new] = parent_names_.try_emplace({slice.name, c});
    if (is_new)
      known.value() = profile_.texts.intern(c == SliceClass::annotation ? cycles::pattern_of(trace_.name(slice), 'N')
                                                                        : without_addresses(trace_.name(slice)));
    return known->second;
  }

  /// The first of the names that are the same but for addresses of objects.
  StringId function_of(StringId name) {
    StringId& function = functions_[name];
    if (function == kNone)
      function = trace_.strings[name].find(" at 0x") == std::string_view::npos
                     ? name
                     : by_plain_name_.try_emplace(without_addresses(trace_.strings[name]), name).first->second;
    return function;
  }

  static void vote(Sum& sum, StringId parent, Ns duration) {
    sum.mixed = sum.mixed || (sum.count > 1 && sum.parent != parent);
    if (sum.parent == parent)
      sum.majority = add_saturating(sum.majority, duration);
    else if (sum.majority >= duration)
      sum.majority -= duration;
    else {
      sum.parent = parent;
      sum.majority = duration - sum.majority;
    }
  }

  void sum_uses() {
    const std::vector<Ns> exposed = exposed_times(trace_);
    Nesting nesting = options_.own_times ? find_nesting(trace_, std::move(order_)) : Nesting();
    const std::vector<Ns>& self = nesting.self;
    use_of_slice_.assign(trace_.slices.size(), kNone);
    functions_.assign(trace_.strings.size(), kNone);
    const std::size_t known = std::min(found_.cycle_of_slice.size(), trace_.slices.size());
    for (std::size_t i = 0; i < known; ++i) {
      if (!goes_on(i, 0)) return;
      const std::uint32_t c = found_.cycle_of_slice[i];
      if (c == kNone || cycle_row_[c] == kNone) continue;
      const Slice& slice = trace_.slices[i];
      const FunctionKind kind = kind_of_slice(slice);
      if (kind == FunctionKind::gpu_annotation || trace_.categories[slice.category].name == kRequestCategory) continue;
      // What outlasts the cycle it begins in encloses cycles (the program, the recording) and is no part of one.
      const Ns period = profile_.cycles[cycle_row_[c]].duration;
      if (slice.gpu == kNone && period > 0 && slice.duration > period) continue;
      UseKey key{cycle_row_[c], trace_.tracks[slice.track].process, function_of(slice.name), -1, kind};
      if (slice.gpu != kNone) {
        const GpuSlice& gpu = trace_.gpu[slice.gpu];
        key.device = gpu.device;
        if (gpu.launcher != kNone)
          key.process = trace_.tracks[trace_.slices[gpu.launcher].track].process;
        else if (found_.cycles.cycles[c].process != kNone)
          key.process = found_.cycles.cycles[c].process;
      }
      if (kind == FunctionKind::oncpu && oncpu_ != kNone) key.name = oncpu_;
      const auto [it, fresh] = use_ids_.try_emplace(key, static_cast<std::uint32_t>(sums_.size()));
      if (fresh) sums_.push_back({key, 0, 0, slice.gpu != kNone ? Ns{0} : Ns{-1}});
      Sum& sum = sums_[it->second];
      ++sum.count;
      sum.duration = add_saturating(sum.duration, slice.duration);
      if (slice.gpu != kNone) sum.size += size_of(trace_.gpu[slice.gpu]);
      if (slice.gpu != kNone && sum.exposed >= 0) sum.exposed = add_saturating(sum.exposed, exposed[slice.gpu]);
      if (!self.empty() && trace_.tracks[slice.track].kind == TrackKind::thread)
        sum.own = add_saturating(std::max<Ns>(sum.own, 0), self[i]);
      if (!self.empty()) vote(sum, parent_of(nesting, static_cast<SliceIndex>(i)), slice.duration);
      if (key.device >= 0) {
        Ns& longest = longest_[std::pair(key.cycle, key.device)];
        longest = std::max(longest, slice.duration);
      }
      use_of_slice_[i] = it->second;
    }
    if (!self.empty()) count_inside(nesting);
    if (options_.own_times) order_ = std::move(nesting.order);
  }

  /// The vote finds whoever has the majority, if anybody has: how much that is takes another look where there were
  /// several.
  void count_inside(const Nesting& nesting) {
    for (Sum& sum : sums_)
      if (!sum.mixed) sum.inside = sum.duration;
    for (std::size_t i = 0; i < use_of_slice_.size(); ++i) {
      if (use_of_slice_[i] == kNone) continue;
      Sum& sum = sums_[use_of_slice_[i]];
      if (sum.mixed && sum.parent != 0 && parent_of(nesting, static_cast<SliceIndex>(i)) == sum.parent)
        sum.inside = add_saturating(sum.inside, trace_.slices[i].duration);
    }
  }

  void order_uses() {
    std::vector<std::uint32_t> order(sums_.size());
    for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::sort(order, [&](std::uint32_t a, std::uint32_t b) {
      const Sum& x = sums_[a];
      const Sum& y = sums_[b];
      const auto key = [&](const Sum& s) {
        return std::tuple(s.key.cycle, s.key.process, -s.duration, trace_.strings[s.key.name], s.key.device,
                          s.key.kind);
      };
      return key(x) < key(y);
    });
    use_row_.assign(sums_.size(), 0);
    std::map<ProcessId, std::uint32_t> processes;
    for (const Sum& sum : sums_) processes.emplace(sum.key.process, 0);
    for (auto& [id, row] : processes) {
      row = static_cast<std::uint32_t>(profile_.processes.size());
      const Process& process = trace_.processes[id];
      profile_.processes.push_back({process.pid, profile_.texts.intern(host_of(trace_, process))});
      profile_.processes.back().rank = rank_number(process.rank);
    }
    for (const std::uint32_t i : order) {
      const Sum& sum = sums_[i];
      use_row_[i] = static_cast<std::uint32_t>(profile_.functions.size());
      FunctionUse use;
      use.cycle = sum.key.cycle;
      use.process = processes[sum.key.process];
      const std::string name = without_addresses(trace_.strings[sum.key.name]);
      use.function = profile_.texts.intern(name);
      use.device = profile_.texts.intern(sum.key.device < 0 ? "Host" : fmt::format("GPU {}", sum.key.device));
      use.kind = profile_.texts.intern(to_string(sum.key.kind));
      use.short_name = short_name_of(sum.key.name, name);
      use.count = sum.count;
      use.duration = sum.duration;
      use.exposed = sum.exposed;
      use.own = sum.own;
      use.parent = sum.parent;
      use.inside = sum.inside;
      use.size = sum.size;
      const Ns whole = window_of(sum.key);
      if (whole > 0) use.beta = static_cast<double>(sum.duration) / static_cast<double>(whole);
      profile_.functions.push_back(use);
    }
  }

  /// The time of the program's own code between functions, by the range it lies in: functions of the thread that runs
  /// the cycles.
  void add_between() {
    FunctionUse use;
    use.kind = profile_.texts.intern("between");
    use.device = profile_.texts.intern("Host");
    for (std::size_t w = 0; w < profile_.ledger.windows.size(); ++w) {
      use.cycle = profile_.ledger.windows[w].cycle;
      const model::ProfileCycle& cycle = profile_.cycles[use.cycle];
      const auto process = std::ranges::find_if(profile_.processes, [&](const model::ProfileProcess& p) {
        return p.pid == cycle.pid && p.rank == cycle.rank;
      });
      if (process == profile_.processes.end()) continue;
      use.process = static_cast<std::uint32_t>(process - profile_.processes.begin());
      for (const model::LedgerLine& line : model::lines_of(profile_.ledger, w)) {
        if (line.state != model::LedgerState::between) continue;
        use.function = use.short_name =
            profile_.texts.intern(model::ledger_line_name(line.state, profile_.texts[line.function]));
        use.count = line.count;
        use.duration = use.own = use.inside = line.time;
        use.parent = line.function;
        profile_.functions.push_back(use);
      }
    }
  }

  /// What a share is of: on a device its own window, which host and device cross at different times; else the period.
  /// Work on side streams may lie outside the window of its cycle; a window that is shorter than one operation of the
  /// cycle says nothing about shares, and the operation counts instead.
  [[nodiscard]] Ns window_of(const UseKey& key) const {
    for (const model::DeviceWindow& window : found_.cycles.cycles[found_row_[key.cycle]].devices)
      if (window.device == key.device && key.device >= 0 && window.end > window.begin) {
        const auto longest = longest_.find({key.cycle, key.device});
        return std::max(window.end - window.begin, longest == longest_.end() ? Ns{0} : longest->second);
      }
    return profile_.cycles[key.cycle].duration;
  }

  StringId short_name_of(StringId id, std::string_view name) {
    const auto it = short_names_.find(id);
    if (it != short_names_.end()) return it->second;
    const StringId simple = profile_.texts.intern(short_name(name));
    short_names_.emplace(id, simple);
    return simple;
  }

  /// Which series a use is linked to: those of its device, its process or its host that concern its kind.
  void link_series() {
    links_.resize(sums_.size());
    if (series_.empty()) return;
    std::map<std::tuple<ProcessId, std::int32_t, FunctionKind>, std::vector<std::uint32_t>> wanted;
    for (std::size_t u = 0; u < sums_.size(); ++u) {
      const UseKey& key = sums_[u].key;
      auto [it, fresh] = wanted.try_emplace({key.process, key.device, key.kind});
      if (fresh) it->second = series_for(key);
      for (const std::uint32_t s : it->second) links_[u].push_back({.series = s});
    }
    for (std::size_t i = 0; i < use_of_slice_.size(); ++i) {
      if (!goes_on(i, 1)) return;
      if (use_of_slice_[i] == kNone) continue;
      const Slice& slice = trace_.slices[i];
      for (Link& link : links_[use_of_slice_[i]]) look(series_[link.series], slice, link);
    }
  }

  [[nodiscard]] std::vector<std::uint32_t> series_for(const UseKey& key) const {
    const Process& process = trace_.processes[key.process];
    const std::string_view host = host_of(trace_, process);
    std::vector<std::uint32_t> rows;
    for (std::uint32_t s = 0; s < series_.size(); ++s) {
      const CounterMeaning& meaning = series_[s].meaning;
      if (!concerns(meaning, to_string(key.kind))) continue;
      // Without host names the files (ranks) tell machines apart.
      const bool same_host =
          host.empty() || series_[s].host.empty() ? series_[s].rank == process.rank : series_[s].host == host;
      const bool same_device = meaning.device < 0 || meaning.device == key.device;
      const bool same_process = meaning.pid < 0 || meaning.pid == process.pid;
      if (same_host && same_device && same_process) rows.push_back(s);
    }
    return rows;
  }

  static void look(const Series& series, const Slice& slice, Link& link) {
    constexpr std::uint64_t kEnough = 3;
    const auto& samples = series.samples;
    const auto first = std::ranges::lower_bound(samples, slice.begin, {}, &CounterSample::at) - samples.begin();
    const auto last = std::ranges::upper_bound(samples, slice.end(), {}, &CounterSample::at) - samples.begin();
    const auto from = static_cast<std::size_t>(first);
    const auto to = static_cast<std::size_t>(std::max(first, last));
    link.samples += to - from;
    link.sum += series.sums[to] - series.sums[from];
    link.squares += series.squares[to] - series.squares[from];
    link.all_well_sampled = link.all_well_sampled && to - from >= kEnough;
    const Ns middle = slice.begin + slice.duration / 2;
    if (middle < samples.front().at || middle > samples.back().at) return;
    const auto weight = static_cast<double>(std::max<Ns>(slice.duration, 1));
    link.between += interpolate(samples, middle) * weight;
    link.weight += weight;
  }

  void add_resources() {
    for (std::size_t u = 0; u < sums_.size(); ++u) {
      for (const Link& link : links_[u]) {
        const Series& series = series_[link.series];
        ResourceUse resource;
        resource.use = use_row_[u];
        resource.metric = profile_.texts.intern(series.meaning.metric);
        resource.unit = series.meaning.unit;
        resource.samples = link.samples;
        const auto n = static_cast<double>(link.samples);
        if (link.samples > 0) {
          resource.mu = series.centre + link.sum / n;
          if (link.samples > 1)
            resource.sigma = std::sqrt(std::max(0.0, (link.squares - link.sum * link.sum / n) / (n - 1)));
          resource.provenance = link.all_well_sampled ? Provenance::measured : Provenance::pooled;
        } else if (link.weight > 0) {
          resource.mu = link.between / link.weight;
          resource.provenance = Provenance::interpolated;
        }
        profile_.resources.push_back(resource);
      }
    }
    // What no resource is linked to keeps one row without a metric, as tables of profiles do.
    for (std::size_t u = 0; u < sums_.size(); ++u)
      if (links_[u].empty()) {
        ResourceUse none;
        none.use = use_row_[u];
        profile_.resources.push_back(none);
      }
    std::ranges::stable_sort(profile_.resources, [&](const ResourceUse& a, const ResourceUse& b) {
      return a.use != b.use ? a.use < b.use : profile_.texts[a.metric] < profile_.texts[b.metric];
    });
  }

  /// Begin and end of the stretches in which a device was busy, by (rank, device).
  using Busy = std::map<std::pair<std::uint16_t, std::int64_t>, std::vector<Interval>>;
  [[nodiscard]] Busy busy_stretches() const {
    Busy busy;
    for (std::size_t g = 0; g < trace_.gpu.size(); ++g) {
      const Slice& slice = trace_.slices[trace_.gpu[g].slice];
      busy[{slice.rank, trace_.gpu[g].device}].push_back({slice.begin, slice.end()});
    }
    for (auto& [device, stretches] : busy) unite(stretches);
    return busy;
  }

  void add_all_series() {
    const Busy busy = busy_stretches();
    for (const Series& from : series_) {
      ResourceSeries series;
      series.metric = profile_.texts.intern(from.meaning.metric);
      series.host = profile_.texts.intern(from.host);
      series.device = profile_.texts.intern(place_of(from.meaning));
      series.pid = from.meaning.pid;
      series.rank = rank_number(from.rank);
      series.unit = from.meaning.unit;
      series.only_while_busy = from.meaning.clock;
      const auto at = busy.find({from.rank, from.meaning.device});
      double sum = 0;
      for (const CounterSample& sample : from.samples) {
        series.times.push_back(trace_.base_ns + sample.at);
        series.values.push_back(sample.value);
        if (at == busy.end()) continue;
        const auto& stretches = at->second;
        const auto after = std::ranges::upper_bound(stretches, sample.at, {}, &Interval::begin);
        if (after == stretches.begin() || (after - 1)->end < sample.at) continue;
        ++series.busy_samples;
        sum += sample.value;
      }
      if (series.busy_samples > 0) series.busy_mean = sum / static_cast<double>(series.busy_samples);
      profile_.series.push_back(std::move(series));
    }
    std::ranges::stable_sort(profile_.series, [&](const ResourceSeries& a, const ResourceSeries& b) {
      const auto key = [&](const ResourceSeries& s) {
        return std::tuple(profile_.texts[s.metric], profile_.texts[s.host], s.rank, profile_.texts[s.device], s.pid);
      };
      return key(a) < key(b);
    });
  }

  const Trace& trace_;
  const cycles::Found& found_;
  RunProfileOptions options_;
  SliceOrder order_;
  std::vector<std::int32_t> rank_numbers_;  ///< by row of the trace's ranks
  Profile profile_;
  StringId oncpu_ = kNone;
  std::vector<std::uint32_t> cycle_row_;     ///< by row of the cycles found
  std::vector<std::uint32_t> found_row_;     ///< by row of the profile's cycles
  std::vector<std::uint32_t> use_of_slice_;  ///< row of sums_
  std::vector<Sum> sums_;
  tsl::hopscotch_map<std::pair<std::uint32_t, std::int32_t>, Ns, Hash>
      longest_;                         // operation, by row of the cycle and device
  std::vector<std::uint32_t> use_row_;  ///< by row of sums_
  std::vector<std::vector<Link>> links_;
  std::vector<StringId> functions_;  ///< by name
  std::map<std::string, StringId> by_plain_name_;
  std::vector<Series> series_;
  tsl::hopscotch_map<UseKey, std::uint32_t, UseHash> use_ids_;
  tsl::hopscotch_map<std::pair<StringId, SliceClass>, FunctionKind, Hash> kinds_;
  tsl::hopscotch_map<std::pair<StringId, SliceClass>, StringId, Hash> parent_names_;
  tsl::hopscotch_map<StringId, StringId, Hash> short_names_;
};

}  // namespace

model::Profile run_profile(const Trace& trace, const cycles::Found& found, const RunProfileOptions& options,
                           SliceOrder order) {
  return Builder(trace, found, options, std::move(order)).build();
}

}  // namespace culprit::profile
