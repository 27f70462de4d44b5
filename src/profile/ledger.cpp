#include "profile/ledger.h"

#include <tsl/hopscotch_map.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/hash.h"
#include "core/saturating.h"
#include "cycles/name_hints.h"
#include "profile/exposed.h"
#include "profile/function_name.h"
#include "profile/leaves.h"
#include "profile/stack_code.h"
#include "profile/stream_waits.h"
#include "trace/sort_runs.h"

namespace culprit::profile {

namespace {

using model::LedgerState;

class LedgerBuilder {
 public:
  LedgerBuilder(const Trace& trace, const SliceOrder& order, const cycles::Found& found,
                std::span<const std::uint32_t> row_of_cycle, model::Profile& profile)
      : trace_(trace),
        cycles_(found.cycles.cycles),
        row_of_cycle_(row_of_cycle),
        profile_(profile),
        whole_(model::whole_periods(found.cycles)),
        anchor_given_(found.cycles.anchor_given),
        order_(order),
        waits_for_(waits_for_devices(trace)) {
    for (std::vector<StringId>& known : names_) known.assign(trace.strings.size(), kNone);
  }

  void build() {
    add_hosts();
    add_devices();
  }

 private:
  using Key = std::pair<LedgerState, StringId>;
  struct Sum {
    std::int64_t count = 0;
    Ns time = 0;
  };
  using Line = std::pair<Key, Sum>;
  struct Stretch {
    GpuIndex row = 0;
    Ns begin = 0;
    Ns end = 0;
  };

  [[nodiscard]] bool counts(std::size_t cycle) const { return whole_[cycle] && row_of_cycle_[cycle] != kNone; }

  /// The thread on which most cycles of a process begin with a slice.
  [[nodiscard]] std::map<std::uint32_t, TrackId> threads() const {
    std::map<std::uint32_t, std::set<Ns>> begins;
    for (const model::Cycle& cycle : cycles_) begins[cycle.process].insert(cycle.begin);
    std::vector<std::uint64_t> hits(trace_.tracks.size());
    for (std::size_t i = 0; i < trace_.slices.size(); ++i) {
      const Slice& slice = trace_.slices[i];
      const Track& track = trace_.tracks[slice.track];
      if (slice.gpu != kNone || track.kind != TrackKind::thread) continue;
      const auto process = begins.find(track.process);
      if (process != begins.end() && process->second.contains(slice.begin)) ++hits[slice.track];
    }
    std::map<std::uint32_t, TrackId> best;
    for (TrackId track = 0; track < hits.size(); ++track) {
      if (hits[track] == 0) continue;
      const auto [at, is_new] = best.try_emplace(trace_.tracks[track].process, track);
      if (!is_new && hits[track] > hits[at->second]) at->second = track;
    }
    return best;
  }

  /// What the scheduler says of a thread: [begin, end) in a state; nothing where it does not know.
  struct Off {
    Ns begin = 0;
    Ns end = 0;
    LedgerState state = LedgerState::blocked;
  };
  [[nodiscard]] std::vector<Off> off_cpu(TrackId thread) const {
    std::vector<Off> off;
    const Track& of = trace_.tracks[thread];
    for (TrackId id = 0; id < trace_.tracks.size(); ++id) {
      const Track& track = trace_.tracks[id];
      if (track.kind != TrackKind::sched || track.process != of.process || track.tid != of.tid) continue;
      std::optional<Ns> last;
      for (std::uint64_t k = order_.track_begin[id]; k < order_.track_begin[id + 1]; ++k) {
        const Slice& slice = trace_.slices[order_.order[k]];
        const std::string_view name = trace_.name(slice);
        const Ns begin = std::max(slice.begin, last.value_or(slice.begin));
        if (name != "oncpu" && begin < slice.end())
          off.push_back({begin, slice.end(), name == "runq" ? LedgerState::run_queue : LedgerState::blocked});
        last = std::max(slice.end(), last.value_or(slice.end()));
      }
      return off;
    }
    return off;
  }

  void add_hosts() {
    for (const auto& [process, thread] : threads()) {
      const std::vector<Leaf>& leaves = leaves_on(thread);
      const std::vector<Off> off = off_cpu(thread);
      std::vector<SampledWindow> windows;
      for (std::size_t c = 0; c < cycles_.size(); ++c) {
        const model::Cycle& cycle = cycles_[c];
        if (!counts(c) || cycle.process != process || cycle.period <= 0) continue;
        const Ns end = cycle.begin + cycle.period;
        for_each_leaf(leaves, cycle.begin, end,
                      [&](const Leaf& leaf, Ns from, Ns to) { add_thread(leaf, from, to, off); });
        count_calls(
            std::span(order_.order)
                .subspan(order_.track_begin[thread], order_.track_begin[thread + 1] - order_.track_begin[thread]),
            cycle.begin, end);
        take_no_work(cycle, {LedgerState::between, LedgerState::blocked});
        write(row_of_cycle_[c], -1, cycle.period);
        // What a thread does while it has nothing to do is no part of its work.
        if (anchor_given_ || cycle.no_work == 0) windows.push_back({cycle.begin, end, row_of_cycle_[c]});
      }
      add_samples(thread, leaves, windows);
    }
    for (const auto& [key, found] : samples_) {
      const auto& [cycle, range, function] = key;
      profile_.ledger.samples.push_back({cycle, range, function, found.count, found.time});
    }
  }

  struct SampledWindow {
    Ns begin = 0;
    Ns end = 0;
    std::uint32_t row = 0;  ///< of the profile's cycles
  };
  /// What samples found where the thread was between functions. `windows` in the order of time.
  void add_samples(TrackId thread, const std::vector<Leaf>& leaves, const std::vector<SampledWindow>& windows) {
    const Track& of = trace_.tracks[thread];
    for (std::size_t i = 0; i < trace_.stack_samples.size(); ++i) {
      const StackSample& sample = trace_.stack_samples[i];
      const Track& track = trace_.tracks[sample.track];
      if (sample.kind != StackSample::Kind::on_cpu || sample.frame == kNone) continue;
      if (track.process != of.process || track.tid != of.tid) continue;
      const auto window = std::ranges::upper_bound(windows, sample.at, {}, &SampledWindow::end);
      if (window == windows.end() || sample.at < window->begin) continue;
      for_each_leaf(leaves, sample.at, sample.at + 1, [&](const Leaf& leaf, Ns, Ns) {
        const Key key = key_of(LedgerState::function, leaf.slice);
        if (key.first != LedgerState::between) return;
        Sum& found = samples_[{window->row, key.second, function_of(sample.frame)}];
        ++found.count;
        found.time = add_saturating(found.time, sample.time);
      });
    }
  }

  /// The innermost function of Python of a stack, else its innermost code.
  StringId function_of(std::uint32_t frame) {
    if (python_.empty()) python_ = frames_of_python(trace_);
    const auto [known, is_new] = functions_.try_emplace(python_[frame] == kNone ? frame : python_[frame]);
    if (is_new)
      known->second = profile_.texts.intern(code_name(trace_.strings[trace_.stack_frames[known->first].function]));
    return known->second;
  }

  void add_thread(const Leaf& leaf, Ns from, Ns to, const std::vector<Off>& off) {
    auto next = std::ranges::upper_bound(off, from, {}, &Off::end);
    for (; next != off.end() && next->begin < to; ++next) {
      add(LedgerState::function, leaf, from, std::max(from, next->begin));
      from = std::max(from, next->begin);
      const Ns until = std::min(to, next->end);
      add(next->state, leaf, from, until);
      from = until;
    }
    add(LedgerState::function, leaf, from, to);
  }

  /// Functions are counted where they begin; a call that gave all its time to others counts, too. `slices` by begin.
  void count_calls(std::span<const SliceIndex> slices, Ns begin, Ns end) {
    const auto begin_of = [&](SliceIndex i) { return trace_.slices[i].begin; };
    for (auto k = std::ranges::lower_bound(slices, begin, {}, begin_of); k != slices.end() && begin_of(*k) < end; ++k) {
      const auto line = rows_.find(key_of(LedgerState::function, *k));
      if (line != rows_.end() && line->first.first == LedgerState::function) ++sums_[line->second].second.count;
    }
  }

  /// What a cycle had nothing to do is known by its length alone: time outside of functions, in these states, first.
  void take_no_work(const model::Cycle& cycle, std::initializer_list<LedgerState> states) {
    Ns left = anchor_given_ ? 0 : cycle.no_work;
    Sum taken;
    if (left > 0) std::ranges::sort(sums_, {}, &Line::first);
    for (const LedgerState state : states)
      for (auto& [key, sum] : sums_) {
        if (key.first != state) continue;
        const Ns part = std::min(left, sum.time);
        sum.time -= part;
        left -= part;
        taken.time += part;
        taken.count = 1;
      }
    if (taken.time > 0) sums_.push_back({{LedgerState::no_work, profile_.texts.intern("")}, taken});
  }

  void add_devices() {
    std::map<std::pair<std::uint16_t, std::int32_t>, std::vector<Stretch>> owners;
    for_each_exposure(trace_, [&](GpuIndex row, Ns begin, Ns end) {
      auto& stretches = owners[{trace_.slices[trace_.gpu[row].slice].rank, trace_.gpu[row].device}];
      if (!stretches.empty() && stretches.back().row == row && stretches.back().end == begin)
        stretches.back().end = end;
      else
        stretches.push_back({row, begin, end});
    });
    std::map<std::pair<std::uint16_t, std::int32_t>, std::vector<SliceIndex>> operations;
    for (std::size_t g = 0; g < trace_.gpu.size(); ++g)
      operations[{trace_.slices[trace_.gpu[g].slice].rank, trace_.gpu[g].device}].push_back(trace_.gpu[g].slice);
    for (auto& [device, slices] : operations)
      sort_runs(slices.begin(), slices.end(),
                [&](SliceIndex a, SliceIndex b) { return trace_.slices[a].begin < trace_.slices[b].begin; });
    for (std::size_t c = 0; c < cycles_.size(); ++c) {
      if (!counts(c)) continue;
      for (const model::DeviceWindow& window : cycles_[c].devices) {
        const auto device = owners.find({cycles_[c].rank, window.device});
        if (device == owners.end() || window.end <= window.begin) continue;
        add_device(device->second, window.begin, window.end);
        count_calls(operations[{cycles_[c].rank, window.device}], window.begin, window.end);
        take_no_work(cycles_[c], {LedgerState::idle_host, LedgerState::idle_unknown, LedgerState::idle_latency});
        write(row_of_cycle_[c], window.device, window.end - window.begin);
      }
    }
  }

  void add_device(const std::vector<Stretch>& stretches, Ns now, Ns end) {
    auto next = std::ranges::upper_bound(stretches, now, {}, &Stretch::end);
    while (now < end) {
      if (next != stretches.end() && next->begin <= now) {
        const Ns until = std::min(next->end, end);
        const Leaf operation{next->begin, next->end, trace_.gpu[next->row].slice};
        add(LedgerState::function, operation, now, until);
        now = until;
        ++next;
        continue;
      }
      const Ns until = next == stretches.end() ? end : std::min(next->begin, end);
      explain(next == stretches.end() ? kNone : next->row, next == stretches.begin() ? kNone : std::prev(next)->row,
              now, until);
      now = until;
    }
  }

  /// Idle time [begin, end), which `next` ends.
  void explain(GpuIndex next, GpuIndex previous, Ns begin, Ns end) {
    const SliceIndex launcher = next == kNone ? kNone : trace_.gpu[next].launcher;
    if (launcher == kNone) return add(LedgerState::idle_unknown, {}, begin, end);
    const Slice& launch = trace_.slices[launcher];
    const Ns launch_begin = std::clamp(launch.begin, begin, end);
    const Ns launch_end = std::clamp(launch.end(), launch_begin, end);
    for_each_leaf(leaves_on(launch.track), begin, launch_begin,
                  [&](const Leaf& leaf, Ns from, Ns to) { add(LedgerState::idle_host, leaf, from, to); });
    add(LedgerState::idle_launch, {}, launch_begin, launch_end);
    const bool in_graph = previous != kNone && trace_.gpu[previous].launcher == launcher;
    if (in_graph) return add(LedgerState::idle_graph, {}, launch_end, end);
    Ns freed = launch_end;
    if (const GpuIndex other = waits_for_.empty() ? kNone : waits_for_[next]; other != kNone) {
      const SliceIndex awaited = trace_.gpu[other].slice;
      freed = std::clamp(trace_.slices[awaited].end(), launch_end, end);
      add(LedgerState::idle_dependency, {launch_end, freed, awaited}, launch_end, freed);
    }
    add(LedgerState::idle_latency, {}, freed, end);
  }

  const std::vector<Leaf>& leaves_on(TrackId track) {
    const auto [found, is_new] = leaves_.try_emplace(track);
    if (is_new) found->second = leaves_of(trace_, order_, track);
    return found->second;
  }

  /// A range is no function; its name without numbers tells where between functions the time went.
  Key key_of(LedgerState state, SliceIndex slice) {
    if (slice == kNone)
      return {state == LedgerState::function ? LedgerState::between : state, profile_.texts.intern("")};
    const bool range = trace_.slice_class(trace_.slices[slice]) == SliceClass::annotation;
    const StringId name = trace_.slices[slice].name;
    StringId& known = names_[range ? 1 : 0][name];
    if (known == kNone)
      known = profile_.texts.intern(range ? cycles::pattern_of(trace_.strings[name], 'N')
                                          : without_addresses(trace_.strings[name]));
    return {range && state == LedgerState::function ? LedgerState::between : state, known};
  }

  void add(LedgerState state, const Leaf& leaf, Ns begin, Ns end) {
    if (end <= begin) return;
    const Key key = key_of(state, leaf.slice);
    const auto [row, is_new] = rows_.try_emplace(key, static_cast<std::uint32_t>(sums_.size()));
    if (is_new) sums_.push_back({key, {}});
    Sum& sum = sums_[row->second].second;
    sum.time += end - begin;
    if (key.first != LedgerState::function) ++sum.count;
  }

  void write(std::uint32_t row, std::int32_t device, Ns length) {
    model::Ledger& ledger = profile_.ledger;
    ledger.windows.push_back({row, device, length, ledger.lines.size()});
    std::ranges::sort(sums_, {}, &Line::first);
    for (const auto& [key, sum] : sums_)
      if (sum.time > 0) ledger.lines.push_back({key.first, key.second, sum.count, sum.time});
    sums_.clear();
    rows_.clear();
  }

  const Trace& trace_;
  const std::vector<model::Cycle>& cycles_;
  std::span<const std::uint32_t> row_of_cycle_;
  model::Profile& profile_;
  std::vector<bool> whole_;
  bool anchor_given_;
  const SliceOrder& order_;
  std::vector<GpuIndex> waits_for_;  ///< waits_for_devices()
  std::map<TrackId, std::vector<Leaf>> leaves_;
  std::array<std::vector<StringId>, 2> names_;                            ///< of functions and of ranges, by name
  std::vector<Line> sums_;                                                ///< of the window at hand
  tsl::hopscotch_map<Key, std::uint32_t, Hash> rows_;                     ///< of sums_
  std::vector<std::uint32_t> python_;                                     ///< by frame of stacks, frames_of_python()
  std::map<std::uint32_t, StringId> functions_;                           ///< by frame of stacks
  std::map<std::tuple<std::uint32_t, StringId, StringId>, Sum> samples_;  ///< by cycle, range, function
};

}  // namespace

void add_ledger(const Trace& trace, const SliceOrder& order, const cycles::Found& found,
                std::span<const std::uint32_t> row_of_cycle, model::Profile& profile) {
  LedgerBuilder(trace, order, found, row_of_cycle, profile).build();
}

}  // namespace culprit::profile
