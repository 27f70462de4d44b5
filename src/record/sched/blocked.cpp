#include "record/sched/blocked.h"

#include <algorithm>

#include "record/bpf/records.h"
#include "record/bpf/syscall_name.h"
#include "record/sched/sched.h"

namespace culprit::record::sched {

namespace {

constexpr Ns kEarly = 50'000;  // by how much a wake-up may be recorded before the switch it ends
constexpr std::int64_t kDead = 0x10;

}  // namespace

void BlockedIntervals::take_stacks(Thread& thread, std::uint32_t place, Ns at) {
  Blocked& blocked = thread.blocked;
  auto known = std::ranges::find_if(thread.places, [&](const Thread::Place& other) {
    return other.syscall == blocked.syscall && other.place == place;
  });
  const bool is_known = known != thread.places.end();
  if (blocked.stack >= 0 || blocked.python != 0) {
    if (!is_known) known = std::ranges::min_element(thread.places, {}, &Thread::Place::at);
    *known = {at, blocked.syscall, place, blocked.stack, blocked.python};
  } else if (is_known && blocked.syscall >= 0 && known->at != 0 && at - known->at < kSamePlace) {
    blocked.stack = known->stack;
    blocked.python = known->python;
    blocked.earlier_stack = true;
  }
}

void BlockedIntervals::on_switch(const culprit_switch& record, bool prev_is_target, bool next_is_target) {
  const auto at = static_cast<Ns>(record.head.at);
  const std::int64_t state = reported_state(record.prev_state);
  if (prev_is_target && state == kDead) {
    threads_.erase(record.prev_tid);
  } else if (prev_is_target) {
    Thread& thread = threads_[record.prev_tid];
    const bool early = thread.woken_early >= 0 && thread.woken_early <= at && at - thread.woken_early < kEarly;
    thread.woken_early = -1;
    // That it came back was told by nobody (kernels were seen that do not tell every switch): it was there by now.
    if (thread.is_blocked && at > thread.blocked.begin) {
      thread.blocked.end = at;
      sink_(thread.blocked);
    }
    thread.is_blocked = state != 0 && !early;
    if (thread.is_blocked) {
      thread.blocked = {};
      thread.blocked.tid = record.prev_tid;
      thread.blocked.tgid = record.prev_tgid;
      thread.blocked.begin = at;
      thread.blocked.state = state;
      thread.blocked.syscall = record.syscall;
      thread.blocked.stack = record.stack;
      thread.blocked.python = record.python;
      take_stacks(thread, record.place, at);
    }
  }
  if (!next_is_target) return;
  const auto found = threads_.find(record.next_tid);
  if (found == threads_.end()) return;
  Thread& thread = found->second;
  thread.woken_early = -1;
  if (!thread.is_blocked) return;
  // Its wake-up was lost or came from a place without a record.
  thread.is_blocked = false;
  thread.blocked.end = at;
  if (at > thread.blocked.begin) sink_(thread.blocked);
}

void BlockedIntervals::on_waking(const culprit_waking& record) {
  if (record.is_new != 0) return;
  const auto at = static_cast<Ns>(record.head.at);
  Thread& thread = threads_[record.tid];
  if (!thread.is_blocked) {
    thread.woken_early = at;
    return;
  }
  thread.is_blocked = false;
  Blocked& blocked = thread.blocked;
  blocked.end = at;
  blocked.context = record.context;
  if (record.context != CULPRIT_HARDIRQ) {
    blocked.waker_tid = record.waker_tid;
    blocked.waker_tgid = record.waker_tgid;
    blocked.waker = bpf::comm(record.waker_comm);
  }
  if (at > blocked.begin) sink_(blocked);
  blocked.waker = {};
}

void BlockedIntervals::on_exit(std::int32_t tid) { threads_.erase(tid); }

void BlockedIntervals::hand_over_open(Ns now) {
  std::vector<Blocked> open;
  for (const auto& [tid, thread] : threads_) {
    if (!thread.is_blocked || now <= thread.blocked.begin) continue;
    open.push_back(thread.blocked);
    open.back().end = now;
    open.back().open = true;
  }
  std::ranges::sort(open, {}, &Blocked::tid);
  for (const Blocked& blocked : open) sink_(blocked);
}

void BlockedIntervals::finish(Ns now) {
  hand_over_open(now);
  for (auto& [tid, thread] : threads_) thread.is_blocked = false;
}

void BlockedIntervals::cut(Ns now) {
  hand_over_open(now);
  for (auto& [tid, thread] : threads_)
    if (thread.is_blocked) thread.blocked.begin = std::max(thread.blocked.begin, now);
}

std::string blocked_name(const Blocked& blocked) {
  constexpr std::int64_t kStopped = 4 | 8;
  if ((blocked.state & kStopped) != 0) return "blocked:stopped";
  if (blocked.syscall >= 0) return "blocked:" + bpf::syscall_name(blocked.syscall);
  return blocked.state == 2 ? "blocked:page_fault" : "blocked:unknown";
}

}  // namespace culprit::record::sched
