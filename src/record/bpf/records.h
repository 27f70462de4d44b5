// The records of the kernel's programs as they come out of the ring buffer: checked bytes, handed to who listens.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "bpf/records.h"
#include "core/units.h"

namespace culprit::record::bpf {

/// Hears the records it overrides, in the order of the ring buffer. Across CPUs that is nearly, not exactly, the
/// order of time.
class Listener {
 public:
  virtual ~Listener() = default;
  virtual void on_switch(const culprit_switch& /*record*/) {}
  virtual void on_waking(const culprit_waking& /*record*/) {}
  virtual void on_fork(const culprit_task& /*record*/) {}
  virtual void on_exec(const culprit_task& /*record*/) {}
  virtual void on_exit(const culprit_task& /*record*/) {}
  virtual void on_syscall(const culprit_syscall& /*record*/) {}
  virtual void on_calls(const culprit_calls& /*record*/) {}
  virtual void on_sample(const culprit_sample& /*record*/) {}
  virtual void on_memory(const culprit_memory& /*record*/) {}  ///< of the next sample; `size` bytes are there
  virtual void on_python_stack(const culprit_python_stack& /*record*/) {}  ///< `count` frames are there
  virtual void on_stack(const culprit_stack& /*record*/) {}
  virtual void on_block(const culprit_block& /*record*/) {}
};

/// Hands one record to all listeners, unless it is of later than `end` (totals of calls that are asked for later are
/// those of then). False, and nobody is told, when the bytes are too few for their kind, the kind is unknown, or the
/// times are impossible (negative as Ns, end before begin).
bool dispatch(std::span<const std::byte> bytes, std::span<Listener* const> listeners, Ns end);

/// The wake-up of a thread as a record of its own.
culprit_waking waking_of(const culprit_woken& woken, std::int32_t tid, std::int32_t tgid,
                         const char (&name)[CULPRIT_COMM]);

/// The name in a record's field, which need not end with a zero.
std::string_view comm(const char (&field)[CULPRIT_COMM]);

}  // namespace culprit::record::bpf
