// Attaching what looks at system calls, beside whoever goes on meanwhile: the kernel waits until all CPUs have passed a
// quiet moment, for seconds where they are busy.
#pragma once

#include <future>

struct bpf_link;
struct bpf_program;

namespace culprit::record::bpf {

/// `exit` only while calls are timed.
struct CallLinks {
  bpf_link* enter = nullptr;  ///< null: the kernel refuses
  bpf_link* exit = nullptr;

  void destroy() const;
};

/// Attached by a thread of its own; where no more threads are allowed it is done when this returns. `exit` null: calls
/// are not timed.
std::future<CallLinks> attach_calls(bpf_program* enter, bpf_program* exit);

}  // namespace culprit::record::bpf
