// The GPU operations of one rank in the order in which the host launched them: the text in which steps repeat.
#pragma once

#include <cstdint>
#include <vector>

#include "cycles/name_hints.h"
#include "trace/trace.h"

namespace culprit::cycles {

/// One launch. A graph launch is one operation whatever it holds.
struct Operation {
  Ns at = 0;                ///< begin of the launching host call; without host side begin of the GPU work
  Ns host_end = 0;          ///< end of the launching host call
  std::uint64_t name = 0;   ///< hash of what runs
  std::uint64_t shape = 0;  ///< hash of what runs and its grid
  SliceIndex slice = 0;     ///< its (first) GPU slice; of a synchronisation the host call
  Role role = Role::none;
  bool graph = false;
  bool backward = false;  ///< a kernel of the backward pass, by its name
};

struct Operations {
  std::vector<Operation> list;
  bool device_time = false;    ///< `at` is GPU time, because most operations have no known launcher
  std::uint64_t unlinked = 0;  ///< operations left out, because others have a launcher and they have not
  std::int32_t device = -1;
};

/// Per row of Trace::ranks the operations of its busiest device, with the host's synchronisations among them.
std::vector<Operations> list_operations(const Trace& trace);

}  // namespace culprit::cycles
