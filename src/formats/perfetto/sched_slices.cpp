#include "formats/perfetto/sched_slices.h"

#include <algorithm>
#include <limits>
#include <vector>

#include <tsl/hopscotch_map.h>

#include "core/hash.h"
#include "core/saturating.h"
#include "formats/perfetto/costs.h"

namespace culprit::perfetto {

namespace {

constexpr std::size_t kMostPeers = 256;  ///< remembered per thread
constexpr std::size_t kShownPeers = 16;
constexpr std::size_t kMostStays = 256;  ///< remembered per CPU

enum class State : std::uint8_t { unknown, running, waiting, blocked };

struct Thread {
  bool own = false;
  State state = State::unknown;
  Ns since = 0;
  std::int32_t cpu = -1;   ///< the last one it ran on
  bool preempted = false;  ///< of one that waits: it has not slept since
  StringId blocked_name = 0;
  StringId name = 0;
  TrackId track = kNone;
  ThreadSched sched;
  tsl::hopscotch_map<std::int32_t, SchedPeer, Hash> wakers;
  tsl::hopscotch_map<std::int32_t, SchedPeer, Hash> rivals;
  Ns stretch = 0;                                                    ///< in which its last wait for a CPU ended
  tsl::hopscotch_map<std::int32_t, SchedPeer, Hash> stretch_rivals;  ///< of the waits that ended in it
};

/// Who had one CPU, and since when; until the next one.
struct Stay {
  Ns begin = 0;
  std::int32_t tid = 0;  ///< 0: nobody, or it is not known
  StringId name = 0;
};

/// The last stays of one CPU, oldest first.
class Stays {
 public:
  /// One thread leaves for another.
  void change(Ns at, std::int32_t from, StringId from_name, std::int32_t to, StringId to_name) {
    if (stays_.empty()) add({std::numeric_limits<Ns>::min(), from, from_name});
    // Recorders that do not tell what bystanders do among themselves show the last of them when it leaves, if at all
    // for a moment before: what seemed idle was theirs.
    const bool appeared = stays_.size() > 1 && last(0).tid == from && last(0).begin == at;
    if (Stay& before = last(appeared ? 1 : 0); before.tid == 0 && from != 0) {
      before.tid = from;
      before.name = from_name;
    }
    add({at, to, to_name});
  }

  /// Calls `take(stay, ns)` with every stay that lies in [from, to) in part, latest first.
  template <class Take>
  void each_within(Ns from, Ns to, const Take& take) const {
    Ns end = to;
    for (std::size_t back = 0; back < stays_.size() && end > from; ++back) {
      const Stay& stay = stays_[(first_ + stays_.size() - 1 - back) % stays_.size()];
      if (stay.begin < end) take(stay, end - std::max(stay.begin, from));
      end = std::min(end, stay.begin);
    }
  }

 private:
  Stay& last(std::size_t back) { return stays_[(first_ + stays_.size() - 1 - back) % stays_.size()]; }

  void add(Stay stay) {
    if (stays_.size() < kMostStays) {
      stays_.push_back(stay);
      return;
    }
    stays_[first_] = stay;
    first_ = (first_ + 1) % kMostStays;
  }

  std::vector<Stay> stays_;
  std::size_t first_ = 0;  ///< the oldest
};

void count_peer(tsl::hopscotch_map<std::int32_t, SchedPeer, Hash>& peers, std::int32_t tid, StringId name, Ns time) {
  auto it = peers.find(tid);
  if (it == peers.end()) {
    if (peers.size() >= kMostPeers) return;
    it = peers.emplace(tid, SchedPeer{name, tid, 0, 0}).first;
  }
  SchedPeer& peer = it.value();
  if (name != 0) peer.name = name;
  ++peer.count;
  peer.time = add_saturating(peer.time, time);
}

std::vector<SchedPeer> ordered(const tsl::hopscotch_map<std::int32_t, SchedPeer, Hash>& peers, bool by_time) {
  std::vector<SchedPeer> list;
  list.reserve(peers.size());
  for (const auto& [tid, peer] : peers) list.push_back(peer);
  std::ranges::sort(list, [&](const SchedPeer& a, const SchedPeer& b) {
    if (by_time && a.time != b.time) return a.time > b.time;
    if (a.count != b.count) return a.count > b.count;
    return a.tid < b.tid;
  });
  if (list.size() > kShownPeers) list.resize(kShownPeers);
  return list;
}

class SchedMachine {
 public:
  SchedMachine(const ProcessOf& process_of, TraceBuilder& builder, formats::Expansion& expansion)
      : process_of_(process_of),
        expansion_(expansion),
        builder_(builder),
        category_(builder.category("sched")),
        oncpu_(builder.intern("oncpu")),
        runq_(builder.intern("runq")),
        blocked_(builder.intern("blocked")),
        uninterruptible_(builder.intern("blocked_uninterruptible")),
        stopped_(builder.intern("stopped")) {}

  void take(const SchedEvent& event) {
    last_ = std::max(last_, event.at);
    switch (event.kind) {
      case SchedEvent::Kind::switched:
        leave(event);
        enter(event);
        break;
      case SchedEvent::Kind::woken:
        wake(event);
        break;
      case SchedEvent::Kind::exited:
        // It is still running; its last switch ends the slice.
        break;
    }
  }

  void finish(Ns end) {
    last_ = std::max(last_, end);
    std::vector<std::int32_t> tids;
    for (const auto& [tid, thread] : threads_)
      if (thread.own) tids.push_back(tid);
    std::ranges::sort(tids);
    for (const std::int32_t tid : tids) {
      Thread& thread = threads_.find(tid).value();
      close(tid, thread, last_);
      if (thread.track == kNone) continue;
      write_stretch(thread);
      thread.sched.track = thread.track;
      thread.sched.woken_by = ordered(thread.wakers, false);
      thread.sched.ran_instead = ordered(thread.rivals, true);
      Track& track = builder_.trace().tracks[thread.track];
      if (track.name == 0) track.name = thread.name;
      builder_.trace().sched.push_back(std::move(thread.sched));
    }
    std::ranges::sort(builder_.trace().sched, {}, &ThreadSched::track);
  }

 private:
  Thread& thread(std::int32_t tid, StringId name) {
    auto it = threads_.find(tid);
    if (it == threads_.end()) {
      it = threads_.emplace(tid, Thread{}).first;
      expansion_.spend(kSchedThreadCost);
      it.value().own = tid > 0 && process_of_(tid).has_value();
    }
    if (name != 0) it.value().name = name;
    return it.value();
  }

  void emit(std::int32_t tid, Thread& thread, Ns end, StringId name) {
    if (!thread.own) return;
    if (thread.track == kNone)
      thread.track = builder_.track({.pid = process_of_(tid).value_or(-1), .tid = tid, .kind = TrackKind::sched});
    Slice slice;
    slice.begin = thread.since;
    slice.duration = std::clamp<Ns>(end - thread.since, 0, kMaxDuration);
    slice.name = name;
    slice.track = thread.track;
    slice.category = category_;
    builder_.add(slice);
  }

  /// Ends what the thread was doing.
  void close(std::int32_t tid, Thread& thread, Ns at) {
    if (thread.state == State::running) emit(tid, thread, at, oncpu_);
    if (thread.state == State::waiting) emit(tid, thread, at, runq_);
    if (thread.state == State::blocked) emit(tid, thread, at, thread.blocked_name);
    thread.state = State::unknown;
  }

  [[nodiscard]] StringId blocked_name(std::uint16_t state) const {
    if ((state & 0x2U) != 0) return uninterruptible_;
    return (state & 0xcU) != 0 ? stopped_ : blocked_;
  }

  void leave(const SchedEvent& event) {
    // Whoever ran here by the last switch but is not the one that leaves now has left unseen: until when is unknown.
    if (const auto current = current_.find(event.cpu); current != current_.end() && current->second != event.prev) {
      const auto lost = threads_.find(current->second);
      if (lost != threads_.end() && lost->second.state == State::running && lost->second.cpu == event.cpu)
        lost.value().state = State::unknown;
    }
    current_[event.cpu] = event.next;
    stays_of(event.cpu).change(event.at, event.prev, event.prev_name, event.next, event.next_name);
    if (event.prev <= 0) return;
    Thread& prev = thread(event.prev, event.prev_name);
    if (prev.state == State::running && prev.cpu == event.cpu) close(event.prev, prev, event.at);
    prev.cpu = event.cpu;
    prev.since = event.at;
    ++prev.sched.switches;
    constexpr std::uint16_t kPreempted = 0x100, kDead = 0x30;
    if (event.prev_state == 0 || (event.prev_state & kPreempted) != 0) {
      ++prev.sched.preemptions;
      prev.state = State::waiting;
      prev.preempted = true;
    } else if ((event.prev_state & kDead) != 0) {
      prev.state = State::unknown;
    } else {
      prev.state = State::blocked;
      prev.blocked_name = blocked_name(event.prev_state);
    }
  }

  void enter(const SchedEvent& event) {
    if (event.next <= 0) return;
    Thread& next = thread(event.next, event.next_name);
    if (next.state == State::waiting) add_rivals(next, event);
    if (next.state == State::running) next.state = State::unknown;  // its leaving was not seen
    close(event.next, next, event.at);
    if (next.cpu >= 0 && next.cpu != event.cpu) ++next.sched.migrations;
    next.cpu = event.cpu;
    next.state = State::running;
    next.since = event.at;
  }

  Stays& stays_of(std::int32_t cpu) {
    auto it = stays_.find(cpu);
    if (it == stays_.end()) {
      it = stays_.emplace(cpu, Stays()).first;
      expansion_.spend(kSchedThreadCost);
    }
    return it.value();
  }

  /// Who had the CPU while the thread waited: the one where it gets to run, or where it was preempted.
  void add_rivals(Thread& next, const SchedEvent& event) {
    const Ns stretch = event.at - event.at % kRivalStretch;
    if (stretch != next.stretch) write_stretch(next);
    next.stretch = stretch;
    const auto add = [&](const Stay& stay, Ns time) {
      if (stay.tid <= 0 || stay.tid == event.next) return;
      count_peer(next.rivals, stay.tid, stay.name, time);
      if (next.own) count_peer(next.stretch_rivals, stay.tid, stay.name, time);
      const auto rival = threads_.find(stay.tid);
      if (rival == threads_.end() || !rival->second.own)
        next.sched.behind_others = add_saturating(next.sched.behind_others, time);
    };
    stays_of(next.preempted ? next.cpu : event.cpu).each_within(next.since, event.at, add);
  }

  /// Of one of our own, which has a track by then: the wait before was a slice.
  void write_stretch(Thread& thread) {
    if (thread.stretch_rivals.empty()) return;
    expansion_.spend(thread.stretch_rivals.size() * kRivalCost);
    for (const auto& [tid, rival] : thread.stretch_rivals)
      builder_.trace().rivals.push_back({thread.stretch, thread.track, rival.name, rival.tid, rival.count, rival.time});
    thread.stretch_rivals.clear();
  }

  void wake(const SchedEvent& event) {
    if (event.next <= 0) return;
    Thread& woken = thread(event.next, event.next_name);
    if (woken.state != State::blocked && woken.state != State::unknown) return;
    close(event.next, woken, event.at);
    woken.state = State::waiting;
    woken.preempted = false;
    woken.since = event.at;
    ++woken.sched.wakeups;
    // Threads that never switch here are known by their number only.
    StringId name = event.prev_name;
    if (const auto waker = threads_.find(event.prev); name == 0 && waker != threads_.end()) name = waker->second.name;
    count_peer(woken.wakers, event.prev, name, 0);
  }

  const ProcessOf& process_of_;
  formats::Expansion& expansion_;
  TraceBuilder& builder_;
  CategoryId category_;
  StringId oncpu_, runq_, blocked_, uninterruptible_, stopped_;
  tsl::hopscotch_map<std::int32_t, Thread, Hash> threads_;
  tsl::hopscotch_map<std::int32_t, std::int32_t, Hash> current_;  ///< by CPU
  tsl::hopscotch_map<std::int32_t, Stays, Hash> stays_;           ///< by CPU
  Ns last_ = 0;
};

}  // namespace

void add_sched_slices(const ChunkedVector<SchedEvent>& events, const ProcessOf& process_of, Ns end,
                      TraceBuilder& builder, formats::Expansion& expansion) {
  if (events.empty()) return;
  std::vector<std::uint32_t> order(events.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::stable_sort(order, [&](std::uint32_t a, std::uint32_t b) { return events[a].at < events[b].at; });
  SchedMachine machine(process_of, builder, expansion);
  for (const std::uint32_t i : order) {
    machine.take(events[i]);
    if (expansion.exceeded()) return;
  }
  machine.finish(end);
}

}  // namespace culprit::perfetto
