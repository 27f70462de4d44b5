// Which waits of a thread are waits for work, and which are part of the work.
#pragma once

#include <cstdint>
#include <string_view>

namespace culprit::cycles {

enum class Wait : std::uint8_t {
  for_work,  ///< for events, connections, messages, children
  time,      ///< for time to pass: for work in threads that mostly wait so (timers, polls), else part of the work
  pool,      ///< on a lock or a condition: for work in threads that mostly wait so, else part of the work
  in_work,   ///< for a disk, memory, room in a buffer, ...
};

/// By the name of the system call in which a thread is blocked.
Wait wait_of(std::string_view call);

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
