// Attaching what looks at system calls, beside whoever goes on meanwhile: the kernel waits until all CPUs have passed a
// quiet moment, for seconds where they are busy.
#pragma once

#include <cstdint>
#include <future>

#include "core/units.h"

struct bpf_link;
struct bpf_program;

namespace culprit::record::bpf {

/// `exit` only while calls are timed.
struct CallLinks {
  bpf_link* enter = nullptr;  ///< null: the kernel refuses
  bpf_link* exit = nullptr;
  Ns at = 0;  ///< from then on calls count

  void destroy() const;
};

/// Attached by a thread of its own; where no more threads are allowed it is done when this returns. `exit` null: calls
/// are not timed. Attaching takes a while, during which the calls of some CPUs are seen: `uncounted` becomes 0 when all
/// are.
std::future<CallLinks> attach_calls(bpf_program* enter, bpf_program* exit, std::uint32_t& uncounted);

}  // namespace culprit::record::bpf
