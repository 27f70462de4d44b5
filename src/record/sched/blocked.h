// From switches and wake-ups to blocked intervals with their reason: what the ledger's "blocked" is made of.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "bpf/records.h"
#include "core/units.h"

namespace culprit::record::sched {

/// One thread not running and not runnable.
struct Blocked {
  std::int32_t tid = 0;
  std::int32_t tgid = 0;
  Ns begin = 0;
  Ns end = 0;  ///< woken
  std::int64_t state = 0;
  std::int32_t syscall = -1;
  std::int32_t stack = -1;
  std::uint32_t python = 0;    ///< number of its stack of Python; 0: none
  std::int32_t waker_tid = 0;  ///< 0: unknown, or an interrupt
  std::int32_t waker_tgid = 0;
  std::string waker;  ///< its name
  std::uint32_t context = CULPRIT_CONTEXT_UNKNOWN;
  bool open = false;           ///< had not ended when asked
  bool earlier_stack = false;  ///< the stacks are those of a wait of the thread before, in the same call and place
};

/// Follows the threads of the targets. A wake-up may come before the switch it ends, because CPUs write their
/// records on their own; such an interval has no length and is left out.
class BlockedIntervals {
 public:
  /// A thread that waits again in the same call, as deep in its stack, within this time is taken to stand where it
  /// stood: the kernel's side takes the stack of such a place once in a millisecond only.
  static constexpr Ns kSamePlace = 2'000'000;

  using Sink = std::function<void(const Blocked&)>;
  explicit BlockedIntervals(Sink sink) : sink_(std::move(sink)) {}

  /// `prev_is_target` and `next_is_target`: whether the thread is followed.
  void on_switch(const culprit_switch& record, bool prev_is_target, bool next_is_target);
  void on_waking(const culprit_waking& record);
  void on_exit(std::int32_t tid);
  /// Hands over what has not ended, in the order of tid.
  void finish(Ns now);
  /// The same; what comes later of them begins at `now`.
  void cut(Ns now);

 private:
  struct Thread {
    Blocked blocked;
    bool is_blocked = false;
    Ns woken_early = -1;
    /// Of the waits for which stacks were taken last.
    struct Place {
      Ns at = 0;  ///< 0: none
      std::int32_t syscall = -1;
      std::uint32_t place = 0;
      std::int32_t stack = -1;
      std::uint32_t python = 0;
    };
    std::array<Place, 2 * CULPRIT_STACK_PLACES> places;
  };
  static void take_stacks(Thread& thread, std::uint32_t place, Ns at);
  void hand_over_open(Ns now);

  Sink sink_;
  std::unordered_map<std::int32_t, Thread> threads_;
};

/// "blocked:futex", "blocked:page_fault", "blocked:stopped", "blocked:unknown".
std::string blocked_name(const Blocked& blocked);

}  // namespace culprit::record::sched
