// Context switches and wake-ups as slices of what each thread did: on a CPU, in the run queue, blocked.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include "core/chunked_vector.h"
#include "formats/io/expansion.h"
#include "trace/builder.h"

namespace culprit::perfetto {

struct SchedEvent {
  enum class Kind : std::uint8_t { switched, woken, exited };
  Ns at = 0;
  std::int32_t prev = 0;  ///< woken: who woke
  std::int32_t next = 0;  ///< woken, exited: who
  StringId prev_name = 0;
  StringId next_name = 0;
  std::int32_t cpu = 0;
  std::uint16_t prev_state = 0;
  Kind kind = Kind::switched;
};

/// The process of a thread; nullopt for threads that are none of the recording's own.
using ProcessOf = std::function<std::optional<std::int64_t>(std::int32_t tid)>;

/// Adds a track of kind sched for every thread that `process_of` knows, with slices `oncpu`, `runq` (woken or
/// preempted, until it runs), `blocked` (interruptible sleep), `blocked_uninterruptible`, `stopped`; and Trace::sched.
/// States that last at the end of the events end there, or at `end` when that is later. Ends early when `expansion` is
/// exceeded: every thread counts.
void add_sched_slices(const ChunkedVector<SchedEvent>& events, const ProcessOf& process_of, Ns end,
                      TraceBuilder& builder, formats::Expansion& expansion);

}  // namespace culprit::perfetto
