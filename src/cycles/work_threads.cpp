#include "cycles/work_threads.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include "core/intervals.h"
#include "core/saturating.h"
#include "core/text.h"
#include "core/units.h"
#include "cycles/file_waits.h"
#include "cycles/waits.h"
#include "trace/span.h"

namespace culprit::cycles {

namespace {

constexpr std::size_t kLeastWindows = 20;
constexpr Ns kSameRound = 10'000'000;
constexpr std::size_t kMostWindows = 4096;
constexpr std::string_view kTitle = ": ";

using ThreadKey = std::pair<ProcessId, std::int64_t>;

/// Length of the name of an interpreter with its version: 7 of "python3".
std::size_t versioned(std::string_view name) {
  constexpr std::array<std::string_view, 6> kInterpreters = {"python", "pypy", "perl", "ruby", "php", "lua"};
  for (const std::string_view interpreter : kInterpreters)
    if (name.starts_with(interpreter)) {
      const std::size_t end = name.find_first_not_of("0123456789.", interpreter.size());
      return end == std::string_view::npos ? name.size() : end;
    }
  return 0;
}

struct State {
  enum class Kind : std::uint8_t { on_cpu, run_queue, blocked, uninterruptible, stopped };
  Ns begin = 0;
  Ns end = 0;
  Kind kind = Kind::on_cpu;
};

struct Reason {
  Ns begin = 0;
  StringId name = 0;
};

struct Rows {
  std::vector<State> states;
  std::vector<Reason> reasons;
};

/// Whoever is woken by an event reads or writes something. One that asks again and again without blocking polls.
bool is_woken_by_time(const WorkThread& thread) {
  constexpr std::uint64_t kWaitsPerEvent = 10;
  constexpr double kLongestPoll = 1e6;  // CPU time, ns
  std::uint64_t waits = 0;
  std::uint64_t events = 0;
  for (const auto& [name, count] : thread.calls) {
    if (is_event_wait(name) || name == "sched_yield") waits += count;
    if (is_receive(name) || is_send(name) || is_accept(name)) events += count;
  }
  const bool for_events = thread.wait.empty() || is_event_wait(thread.wait);
  return for_events && waits > kWaitsPerEvent * events && thread.on_cpu < kLongestPoll * static_cast<double>(waits);
}

class Finder {
 public:
  explicit Finder(const Trace& trace) : trace_(trace) {}

  WorkThreads find() {
    gather();
    if (out_.threads.empty() && !records_scheduling(trace_)) return std::move(out_);
    make_windows();
    count_calls();
    for (std::size_t i = 0; i < out_.threads.size(); ++i) {
      follow(out_.threads[i], rows_[i]);
      out_.threads[i].by_time = out_.has_calls && is_woken_by_time(out_.threads[i]);
    }
    return std::move(out_);
  }

 private:
  std::size_t thread_of(TrackId id) {
    const Track& track = trace_.tracks[id];
    const auto [at, is_new] = numbers_.try_emplace(ThreadKey{track.process, track.tid}, out_.threads.size());
    if (is_new) {
      WorkThread& thread = out_.threads.emplace_back();
      rows_.emplace_back();
      thread.process = track.process;
      thread.tid = track.tid;
      thread.process_name = program_name(trace_, track.process);
    }
    WorkThread& thread = out_.threads[at->second];
    if (track.kind != TrackKind::async && track.name != 0)
      thread.thread_name = without_numbers(trace_.strings[track.name]);
    return at->second;
  }

  void gather() {
    const auto id = [&](std::string_view text) { return trace_.strings.find(text, kNone); };
    const std::array<std::pair<StringId, State::Kind>, 5> kinds = {
        {{id("oncpu"), State::Kind::on_cpu},
         {id("runq"), State::Kind::run_queue},
         {id("blocked"), State::Kind::blocked},
         {id("blocked_uninterruptible"), State::Kind::uninterruptible},
         {id("stopped"), State::Kind::stopped}}};
    std::vector<bool> reasons;
    reasons.reserve(trace_.categories.size());
    for (const Category& category : trace_.categories) reasons.push_back(category.name == "blocked");
    for (TrackId t = 0; t < trace_.tracks.size(); ++t)
      if (trace_.tracks[t].kind == TrackKind::sched) thread_of(t);
    for (const auto& [key, number] : numbers_) out_.threads[number].scheduled = true;
    for (TrackId t = 0; t < trace_.tracks.size(); ++t)
      if (const Track& track = trace_.tracks[t]; numbers_.contains({track.process, track.tid})) thread_of(t);
    for (std::size_t i = 0; i < trace_.slices.size(); ++i) {
      const Slice& slice = trace_.slices[i];
      const Track& track = trace_.tracks[slice.track];
      const bool scheduling = track.kind == TrackKind::sched;
      if (!scheduling && !reasons[slice.category]) continue;
      const auto at = numbers_.find({track.process, track.tid});
      if (at == numbers_.end()) continue;
      if (!scheduling) {
        rows_[at->second].reasons.push_back({slice.begin, slice.name});
        continue;
      }
      const auto kind = std::ranges::find(kinds, slice.name, &std::pair<StringId, State::Kind>::first);
      if (kind != kinds.end()) rows_[at->second].states.push_back({slice.begin, slice.end(), kind->second});
    }
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      std::ranges::stable_sort(rows_[i].states, {}, &State::begin);
      std::ranges::stable_sort(rows_[i].reasons, {}, &Reason::begin);
      if (rows_[i].states.empty()) continue;
      out_.threads[i].begin = rows_[i].states.front().begin;
      out_.threads[i].end = rows_[i].states.back().end;
    }
    const Interval span = recorded_span(trace_);
    begin_ = span.begin;
    end_ = span.end;
  }

  /// When totals were taken. A thread that ends has its last ones taken then, which is no time of its own.
  [[nodiscard]] std::vector<Ns> rounds() const {
    std::vector<Ns> last(trace_.tracks.size(), std::numeric_limits<Ns>::min());
    for (const CallTotal& total : trace_.calls) last[total.track] = std::max(last[total.track], total.at);
    std::vector<Ns> rounds;
    for (const CallTotal& total : trace_.calls)
      if (total.at > begin_ && total.at < end_ && total.at < last[total.track]) rounds.push_back(total.at);
    std::ranges::sort(rounds);
    // Of a round the last one: its threads are read one after the other.
    std::size_t kept = 0;
    for (std::size_t i = 0; i < rounds.size(); ++i)
      if (i + 1 == rounds.size() || subtract_saturating(rounds[i + 1], rounds[i]) > kSameRound)
        rounds[kept++] = rounds[i];
    rounds.resize(kept);
    if (!rounds.empty() && subtract_saturating(end_, rounds.back()) <= kSameRound) rounds.pop_back();
    if (!trace_.calls.empty()) rounds.push_back(end_);
    if (rounds.size() <= kMostWindows) return rounds;
    const std::size_t together = (rounds.size() + kMostWindows - 1) / kMostWindows;
    std::vector<Ns> fewer;
    for (std::size_t i = together - 1; i < rounds.size(); i += together) fewer.push_back(rounds[i]);
    fewer.back() = end_;
    return fewer;
  }

  void make_windows() {
    std::vector<Ns> ends = rounds();
    out_.has_calls = !ends.empty();
    const Ns all = subtract_saturating(end_, begin_);
    if (ends.empty() || (ends.size() == 1 && all > 2 * kSecond)) {
      ends.clear();
      const Ns length = std::max(std::clamp<Ns>(all / static_cast<Ns>(kLeastWindows), 1, kSecond),
                                 all / static_cast<Ns>(kMostWindows));
      for (Ns at = begin_; subtract_saturating(end_, at) >= length;) ends.push_back(at += length);
      if (!ends.empty() && ends.back() < end_) ends.push_back(end_);
    }
    Ns begin = begin_;
    for (const Ns end : ends) {
      model::WorkWindow& window = out_.windows.emplace_back();
      window.begin = std::exchange(begin, end);
      window.end = end;
    }
    // The last totals are taken when everything ends, or a moment after others: too short to say much.
    if (out_.windows.size() > 1) {
      const model::WorkWindow last = out_.windows.back();
      const model::WorkWindow& before = out_.windows[out_.windows.size() - 2];
      if ((last.end - last.begin) * 2 < before.end - before.begin) {
        out_.windows.pop_back();
        out_.windows.back().end = last.end;
      }
    }
  }

  [[nodiscard]] std::size_t window_at(Ns at) const {
    const auto window = std::ranges::upper_bound(out_.windows, at, {}, &model::WorkWindow::begin);
    return window == out_.windows.begin() ? 0 : static_cast<std::size_t>(window - out_.windows.begin()) - 1;
  }

  void count_calls() {
    for (const CallTotal& total : trace_.calls) {
      const Track& track = trace_.tracks[total.track];
      const auto at = numbers_.find({track.process, track.tid});
      if (at == numbers_.end()) continue;
      const std::string name(trace_.strings[total.name]);
      WorkThread& thread = out_.threads[at->second];
      thread.calls[name] += total.count;
      if (is_receive(name) || is_send(name) || is_accept(name) || begins_turn(name)) {
        std::vector<std::uint32_t>& windows = thread.calls_per_window[name];
        windows.resize(out_.windows.size());
        windows[window_at(total.at - 1)] += static_cast<std::uint32_t>(total.count);
      }
      add(out_.calls, name, total.count, total.time);
      out_.calls[name].waits = wait_of(name) == Wait::for_work && !is_receive(name);
    }
  }

  static void add(std::map<std::string, model::CountedTime>& sums, const std::string& name, std::uint64_t count,
                  Ns time) {
    model::CountedTime& sum = sums[name];
    sum.name = name;
    sum.count += count;
    sum.total_ns += static_cast<double>(time);
  }

  void spread(Ns begin, Ns end, double model::WorkWindow::*part) {
    for (std::size_t w = window_at(begin); w < out_.windows.size() && out_.windows[w].begin < end; ++w) {
      model::WorkWindow& window = out_.windows[w];
      const Ns overlap = std::min(end, window.end) - std::max(begin, window.begin);
      if (overlap > 0) window.*part += static_cast<double>(overlap);
    }
  }

  /// The reason of a blocked state, as far as one was kept; both begin at the switch.
  [[nodiscard]] static StringId reason_at(const std::vector<Reason>& reasons, std::size_t& next, Ns begin) {
    while (next < reasons.size() && reasons[next].begin < begin) ++next;
    return next < reasons.size() && reasons[next].begin == begin ? reasons[next].name : kNone;
  }

  [[nodiscard]] std::string_view call_of(StringId reason) const { return blocked_call(trace_.strings[reason]); }

  void follow(WorkThread& thread, const Rows& rows) {
    // By time; the most frequent one stands for what was too short to keep its reason.
    std::map<StringId, WaitSum> sums;
    std::size_t next = 0;
    for (const State& state : rows.states) {
      if (state.kind != State::Kind::blocked) continue;
      const StringId reason = reason_at(rows.reasons, next, state.begin);
      if (reason == kNone) continue;
      ++sums[reason].count;
      sums[reason].time += state.end - state.begin;
    }
    StringId usual = kNone;
    std::map<Wait, WaitSum> kinds;
    for (const auto& [name, sum] : sums) {
      WaitSum& kind = kinds[wait_of(call_of(name))];
      kind.count += sum.count;
      kind.time += sum.time;
      if (usual == kNone || sum.count > sums[usual].count) usual = name;
    }
    const Wait waits_for = main_wait(kinds);
    StringId longest = kNone;
    for (const auto& [name, sum] : sums)
      if (wait_of(call_of(name)) == waits_for && (longest == kNone || sum.time > sums[longest].time)) longest = name;
    if (longest != kNone) thread.wait = call_of(longest);

    next = 0;
    Ns woken = -1;
    for (const State& state : rows.states) {
      const Ns length = state.end - state.begin;
      bool waits = false;
      if (state.kind == State::Kind::blocked) {
        StringId reason = reason_at(rows.reasons, next, state.begin);
        if (reason == kNone) reason = usual;
        const std::string what = reason == kNone ? std::string("unknown") : std::string(call_of(reason));
        waits = is_idle(wait_of(what), waits_for);
        add(waits ? out_.waits : out_.blocked, what, 1, length);
      } else if (state.kind == State::Kind::uninterruptible || state.kind == State::Kind::stopped) {
        const StringId reason = reason_at(rows.reasons, next, state.begin);
        const std::string_view call = reason == kNone ? std::string_view("unknown") : call_of(reason);
        add(out_.blocked,
            state.kind == State::Kind::stopped ? std::string("stopped")
            : call == "unknown"                ? std::string("disk or memory")
                                               : call_without_signals(call),
            1, length);
      }
      if (waits) {
        if (woken >= 0) thread.latencies.push_back(state.begin - woken);
        woken = -1;
        spread(state.begin, state.end, &model::WorkWindow::waiting);
        if (state.end < end_) thread.wakes.push_back(woken = state.end);
        continue;
      }
      thread.worked += static_cast<double>(length);
      if (state.kind == State::Kind::on_cpu) thread.on_cpu += static_cast<double>(length);
      spread(state.begin, state.end,
             state.kind == State::Kind::on_cpu      ? &model::WorkWindow::on_cpu
             : state.kind == State::Kind::run_queue ? &model::WorkWindow::run_queue
                                                    : &model::WorkWindow::blocked);
    }
  }

  const Trace& trace_;
  WorkThreads out_;
  std::vector<Rows> rows_;
  std::map<ThreadKey, std::size_t> numbers_;
  Ns begin_ = 0;
  Ns end_ = 0;
};

}  // namespace

std::string without_numbers(std::string_view name) {
  const std::size_t kept = versioned(name);
  std::string out(name.substr(0, kept));
  for (std::size_t at = kept; at < name.size();) {
    std::size_t end = at;
    while (end < name.size() && is_digit(name[end])) ++end;
    const bool inside = end < name.size() && is_letter(name[end]) && at > 0 && is_letter(name[at - 1]);
    if (end == at)
      out += name[at++];
    else if (inside)
      out += name.substr(at, end - at);
    else
      out += 'N';
    at = std::max(at, end);
  }
  return out;
}

std::string_view program_of(std::string_view title) { return title.substr(0, title.find(kTitle)); }

std::string program_name(const Trace& trace, ProcessId process) {
  return without_numbers(program_of(trace.strings[trace.processes[process].name]));
}

WorkThreads work_threads(const Trace& trace) { return Finder(trace).find(); }

std::optional<model::Asleep> asleep_in(const Trace& trace) {
  const std::string_view text = fact_of(trace, "sched.asleep_in");
  const bool ran = std::ranges::any_of(trace.tracks, [](const Track& t) { return t.kind == TrackKind::sched; });
  if (text.empty() || ran) return std::nullopt;
  // Children are recorded as well. A lock in shared memory others may hold, and of what is waited for with a time-out
  // the end comes by itself.
  constexpr std::array<std::string_view, 4> kForEachOther = {"futex", "futex in shared memory", "wait4", "waitid"};
  constexpr std::string_view kBetween = ", ";
  model::Asleep asleep{std::string(text), true};
  bool locked = false;
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t end = std::min(rest.find(kBetween), rest.size());
    const std::string_view call = rest.substr(0, std::min(rest.find(" ("), end));
    if (std::ranges::find(kForEachOther, call) == kForEachOther.end()) asleep.for_each_other = false;
    locked = locked || call == kForEachOther.front();
    rest.remove_prefix(std::min(end + kBetween.size(), rest.size()));
  }
  const Interval span = recorded_span(trace);
  asleep.for_each_other = asleep.for_each_other && locked && subtract_saturating(span.end, span.begin) >= kSecond;
  return asleep;
}

std::string idle_reason(const Trace& trace, bool polls) {
  if (const auto asleep = asleep_in(trace))
    return fmt::format("idle: none of its threads ran, they slept in {}", asleep->in);
  return polls ? "idle: threads poll or wake by time, and nothing comes" : "idle: hardly anything ran";
}

}  // namespace culprit::cycles
