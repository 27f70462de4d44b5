#include "profile/off_cpu.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "core/intervals.h"
#include "core/saturating.h"
#include "cycles/answers.h"
#include "cycles/waits.h"
#include "cycles/work_threads.h"
#include "model/comparison.h"
#include "profile/stack_code.h"
#include "profile/step_threads.h"
#include "trace/span.h"

namespace culprit::profile {

namespace {

constexpr std::size_t kMostWindows = 40;  // as many as make a spread
constexpr std::string_view kStopped = "stopped";
constexpr std::string_view kNoStack = "[no stack]";

/// A time in which a thread was blocked, as far as it is told in what.
struct Wait {
  Ns begin = 0;
  Ns end = 0;
  StringId name = 0;
};

/// Where it stood meanwhile, and who ended it.
struct Place {
  Ns begin = 0;
  std::uint32_t frame = kNone;
  StringId waker = 0;
};

struct Thread {
  std::vector<Wait> waits;
  std::vector<Place> places;
  std::vector<Ns> uninterruptible;  ///< begins of waits that no signal ends: they are part of the work
  std::set<StringId> own_wakers;    ///< names that only recorded threads have, of those that woke it
};

using ThreadKey = std::pair<ProcessId, std::int64_t>;

class Finder {
 public:
  Finder(const Trace& trace, const std::vector<model::WorkWindow>& windows, const model::Cycles& cycles)
      : trace_(trace) {
    make_windows(windows);
    count_steps(cycles);
  }

  model::OffCpu find() {
    out_.shortest = std::string(fact_of(trace_, "sched.shortest_blocked_ns"));
    gather();
    if (told_ || !out_.shortest.empty()) {
      out_.wakers.emplace();
      out_.handed.emplace();
      find_own_wakers();
      answers_ = cycles::answers_by_process(trace_);
      if (with_stacks_) {
        out_.functions.emplace();
        out_.inputs.emplace();
      }
      for (auto& [key, thread] : threads_) follow(key, thread);
    }
    if (!trace_.sched.empty()) add_rivals();
    return std::move(out_);
  }

 private:
  void make_windows(const std::vector<model::WorkWindow>& windows) {
    const std::size_t together = (windows.size() + kMostWindows - 1) / kMostWindows;
    for (std::size_t i = 0; i < windows.size(); i += together) {
      const std::size_t end = std::min(windows.size(), i + together);
      Ns length = 0;
      for (std::size_t w = i; w < end; ++w) length += windows[w].end - windows[w].begin;
      out_.first.push_back(i);
      out_.seconds.push_back(static_cast<double>(length) * 1e-9);
      windows_.push_back({windows[i].begin, windows[end - 1].end});
    }
    if (!windows.empty()) out_.first.push_back(windows.size());
  }

  void count_steps(const model::Cycles& cycles) {
    if (cycles.cycles.empty()) return;
    out_.steps.resize(windows_.size());
    for (const model::Cycle& cycle : cycles.cycles) {
      if (cycle.period <= 0) continue;
      const Interval step = {cycle.begin, add_saturating(cycle.begin, cycle.period)};
      steps_[cycle.process].push_back(step);
      each_window(step, [&](std::size_t w, double ns) { out_.steps[w] += ns / static_cast<double>(cycle.period); });
    }
    for (auto& [process, steps] : steps_) {
      std::ranges::sort(steps);
      if (most_steps_ == nullptr || steps.size() > most_steps_->size()) most_steps_ = &steps;
    }
    step_threads_ = threads_of_steps(trace_, cycles);
  }

  /// Calls `take(window, ns)` with the part that lies in each window.
  template <class Take>
  void each_window(Interval span, const Take& take) const {
    auto window = std::ranges::upper_bound(windows_, span.begin, {}, &Interval::begin);
    if (window != windows_.begin()) --window;
    for (; window != windows_.end() && window->begin < span.end; ++window) {
      const Ns inside = std::min(span.end, window->end) - std::max(span.begin, window->begin);
      if (inside > 0) take(static_cast<std::size_t>(window - windows_.begin()), static_cast<double>(inside));
    }
  }

  void gather() {
    std::vector<bool> reasons;
    reasons.reserve(trace_.categories.size());
    for (const Category& category : trace_.categories) reasons.push_back(category.name == "blocked");
    const StringId uninterruptible = trace_.strings.find("blocked_uninterruptible", kNone);
    for (std::size_t i = 0; i < trace_.slices.size(); ++i) {
      const Slice& slice = trace_.slices[i];
      const Track& track = trace_.tracks[slice.track];
      if (reasons[slice.category])
        threads_[{track.process, track.tid}].waits.push_back({slice.begin, slice.end(), slice.name});
      else if (track.kind == TrackKind::sched && slice.name == uninterruptible)
        threads_[{track.process, track.tid}].uninterruptible.push_back(slice.begin);
    }
    for (std::size_t i = 0; i < trace_.stack_samples.size(); ++i) {
      const StackSample& sample = trace_.stack_samples[i];
      if (sample.kind != StackSample::Kind::off_cpu) continue;
      told_ = true;
      with_stacks_ = with_stacks_ || sample.frame != kNone;
      const Track& track = trace_.tracks[sample.track];
      threads_[{track.process, track.tid}].places.push_back({sample.at, sample.frame, sample.waker});
    }
  }

  void find_own_wakers() {
    std::set<std::pair<std::uint16_t, std::int64_t>> recorded;
    for (const ThreadSched& sched : trace_.sched) recorded.insert(thread_number(sched.track));
    for (const ThreadSched& sched : trace_.sched) {
      const Track& track = trace_.tracks[sched.track];
      const auto thread = threads_.find({track.process, track.tid});
      if (thread == threads_.end()) continue;
      std::set<StringId>& own = thread->second.own_wakers;
      const auto is_own = [&](const SchedPeer& peer) {
        return recorded.contains({trace_.processes[track.process].rank, peer.tid});
      };
      for (const SchedPeer& peer : sched.woken_by)
        if (is_own(peer)) own.insert(peer.name);
      for (const SchedPeer& peer : sched.woken_by)
        if (!is_own(peer)) own.erase(peer.name);
    }
  }

  [[nodiscard]] std::pair<std::uint16_t, std::int64_t> thread_number(TrackId track) const {
    return {trace_.processes[trace_.tracks[track].process].rank, trace_.tracks[track].tid};
  }

  [[nodiscard]] std::string_view call_of(StringId name) const { return cycles::blocked_call(trace_.strings[name]); }

  /// Whoever sleeps through a whole step waits for something else than that.
  [[nodiscard]] bool lasts_through_a_step(ProcessId process, const Wait& wait) const {
    if (most_steps_ == nullptr) return false;
    const auto own = steps_.find(process);
    const std::vector<Interval>& steps = own == steps_.end() ? *most_steps_ : own->second;
    const auto step = std::ranges::lower_bound(steps, wait.begin, {}, &Interval::begin);
    return step != steps.end() && step->end <= wait.end;
  }

  void follow(const ThreadKey& key, Thread& thread) {
    std::ranges::sort(thread.uninterruptible);
    std::ranges::stable_sort(thread.places, {}, &Place::begin);
    const auto in_signal_reach = [&](const Wait& wait) {
      return !std::ranges::binary_search(thread.uninterruptible, wait.begin);
    };
    std::map<cycles::Wait, cycles::WaitSum> kinds;
    for (const Wait& wait : thread.waits) {
      if (!in_signal_reach(wait)) continue;
      cycles::WaitSum& kind = kinds[cycles::wait_of(call_of(wait.name))];
      ++kind.count;
      kind.time = add_saturating(kind.time, wait.end - wait.begin);
    }
    const cycles::Wait usual = cycles::main_wait(kinds);
    const bool runs_steps = step_threads_.contains(key);
    std::vector<std::pair<const Wait*, StringId>> handed;
    std::size_t idle = 0;
    for (const Wait& wait : thread.waits) {
      const std::string_view call = call_of(wait.name);
      if (call == kStopped || lasts_through_a_step(key.first, wait)) continue;
      const auto place = std::ranges::lower_bound(thread.places, wait.begin, {}, &Place::begin);
      const bool known = place != thread.places.end() && place->begin == wait.begin;
      if (!runs_steps && in_signal_reach(wait) && cycles::is_idle(cycles::wait_of(call), usual)) {
        if (known && place->waker != 0) ++idle;
        if (known && answers_[key.first] > 0 && thread.own_wakers.contains(place->waker))
          handed.emplace_back(&wait, place->waker);
        continue;
      }
      if (out_.functions) add(*sums_of_function(known ? place->frame : kNone, wait.name), wait);
      if (known && out_.functions) {
        const model::NamedSums::key_type& function = function_key(place->frame, wait.name);
        add_end(function, *place, wait);
        if (runs_steps || step_threads_.empty())
          if (const std::string& input = input_of(place->frame); !input.empty()) {
            add(*row(*out_.inputs, input, call_of(wait.name)), wait);
            if (input != function.first) add_end({input, function.second}, *place, wait);
          }
      }
      if (known && place->waker != 0) add(*row_of(*out_.wakers, wakers_, {place->waker, wait.name}), wait);
    }
    // Who is given its work by another thread waits for that one.
    if (2 * handed.size() < idle)
      for (const auto& [wait, waker] : handed) add(*row_of(*out_.handed, handed_, {waker, wait->name}), *wait);
  }

  model::WindowSums* row(model::NamedSums& sums, std::string name, std::string_view call) {
    model::WindowSums& made = sums[{std::move(name), std::string(call)}];
    made.ns.resize(windows_.size());
    made.count.resize(windows_.size());
    return &made;
  }

  const model::NamedSums::key_type& function_key(std::uint32_t frame, StringId call) {
    auto [key, is_new] = keys_.try_emplace({frame, call});
    if (is_new) {
      const std::string_view name = call_of(call);
      key->second = {frame == kNone          ? std::string(kNoStack)
                     : model::is_sleep(name) ? sleeper_named(trace_, frame)
                                             : innermost_named(trace_, frame),
                     std::string(name)};
    }
    return key->second;
  }

  model::WindowSums* sums_of_function(std::uint32_t frame, StringId call) {
    model::WindowSums*& known = functions_[{frame, call}];
    if (known == nullptr) {
      const auto& [name, of_call] = function_key(frame, call);
      known = row(*out_.functions, name, of_call);
    }
    return known;
  }

  /// The innermost function there that waits for input or makes it; empty: there is none.
  const std::string& input_of(std::uint32_t frame) {
    const auto [known, fresh] = inputs_.try_emplace(frame);
    for (std::uint32_t at = frame; fresh && at != kNone && known->second.empty(); at = trace_.stack_frames[at].caller)
      if (std::string name = code_name(trace_.strings[trace_.stack_frames[at].function]); model::is_input(name))
        known->second = std::move(name);
    return known->second;
  }

  using ByWaker = std::map<std::pair<StringId, StringId>, model::WindowSums*>;  ///< and call

  model::WindowSums* row_of(model::NamedSums& sums, ByWaker& rows, const ByWaker::key_type& key) {
    model::WindowSums*& known = rows[key];
    if (known == nullptr) known = row(sums, cycles::without_numbers(trace_.strings[key.first]), call_of(key.second));
    return known;
  }

  /// One wait, counted where it ends.
  void add(model::WindowSums& sums, const Wait& wait) {
    each_window({wait.begin, wait.end}, [&](std::size_t w, double ns) { sums.ns[w] += ns; });
    each_window({wait.end - 1, wait.end}, [&](std::size_t w, double) { sums.count[w] += 1; });
  }

  /// Nameless: it is not known who ended it.
  void add_end(const model::NamedSums::key_type& function, const Place& place, const Wait& wait) {
    const std::string waker =
        place.waker == 0 ? std::string() : std::string(cycles::without_numbers(trace_.strings[place.waker]));
    out_.ended_by[function][waker] += static_cast<double>(wait.end - wait.begin);
  }

  void add_rivals() {
    std::map<std::pair<std::uint16_t, std::int64_t>, ProcessId> recorded;
    for (const Track& track : trace_.tracks)
      if (track.kind == TrackKind::sched)
        recorded.try_emplace({trace_.processes[track.process].rank, track.tid}, track.process);
    model::NamedSums& rivals = out_.rivals.emplace();
    for (const RivalTotal& total : trace_.rivals) {
      const std::uint16_t rank = trace_.processes[trace_.tracks[total.track].process].rank;
      const auto own = recorded.find({rank, total.tid});
      std::string name = own != recorded.end() ? cycles::program_name(trace_, own->second)
                                               : cycles::without_numbers(trace_.strings[total.name]);
      model::WindowSums& sums = *row(rivals, std::move(name), "");
      each_window({total.at, total.at + kRivalStretch}, [&](std::size_t w, double ns) {
        const double share = ns / static_cast<double>(kRivalStretch);
        sums.ns[w] += share * static_cast<double>(total.time);
        sums.count[w] += share * static_cast<double>(total.count);
      });
    }
  }

  const Trace& trace_;
  model::OffCpu out_;
  std::vector<Interval> windows_;
  std::map<ProcessId, std::vector<Interval>> steps_;  ///< by begin
  const std::vector<Interval>* most_steps_ = nullptr;
  std::set<ThreadKey> step_threads_;
  std::vector<std::uint64_t> answers_;  ///< by process
  std::map<ThreadKey, Thread> threads_;
  std::map<std::pair<std::uint32_t, StringId>, model::NamedSums::key_type> keys_;
  std::map<std::pair<std::uint32_t, StringId>, model::WindowSums*> functions_;  ///< by frame and call
  std::map<std::uint32_t, std::string> inputs_;                                 ///< by frame
  ByWaker wakers_;
  ByWaker handed_;
  bool told_ = false;
  bool with_stacks_ = false;
};

}  // namespace

model::OffCpu off_cpu_in(const Trace& trace, const std::vector<model::WorkWindow>& windows,
                         const model::Cycles& cycles) {
  return windows.empty() ? model::OffCpu() : Finder(trace, windows, cycles).find();
}

}  // namespace culprit::profile
