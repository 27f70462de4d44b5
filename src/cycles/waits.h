// Which waits of a thread are waits for work, and which are part of the work.
#pragma once

#include <cstdint>
#include <map>
#include <string_view>

#include "core/units.h"

namespace culprit::cycles {

enum class Wait : std::uint8_t {
  for_work,  ///< for events, connections, messages, children
  time,      ///< for time to pass: for work in threads that mostly wait so (timers, polls), else part of the work
  pool,      ///< on a lock or a condition: for work in threads that mostly wait so, else part of the work
  in_work,   ///< for a disk, memory, room in a buffer, ...
};

/// "futex" of "blocked:futex", as recordings name a wait; other names stay.
std::string_view blocked_call(std::string_view reason);

/// By the name of the system call in which a thread is blocked.
Wait wait_of(std::string_view call);

/// Waits of one kind of one thread.
struct WaitSum {
  std::uint64_t count = 0;
  Ns time = 0;
};

/// How a thread waits for work: in what it waits longest. Who sleeps no more often than it waits otherwise sleeps in
/// its work, however long.
Wait main_wait(const std::map<Wait, WaitSum>& kinds);
/// Whether a wait of a thread whose main_wait() is `usual` is one for work.
bool is_idle(Wait wait, Wait usual);

/// Calls that take something from a connection, a pipe or another thread, and calls that give something.
bool is_receive(std::string_view call);
bool is_send(std::string_view call);
/// Calls that wait for several connections at once: what they tell of may be nothing to receive.
bool is_event_wait(std::string_view call);
/// A call with which each turn of an event loop begins: those, and io_uring_enter.
bool begins_turn(std::string_view call);
/// Calls that accept a connection.
bool is_accept(std::string_view call);

}  // namespace culprit::cycles
