// The operations of one rank in the order in which the host started them: the text in which steps repeat. GPU
// operations, or operators of the host where there is no GPU work.
#pragma once

#include <cstdint>
#include <vector>

#include "cycles/name_hints.h"
#include "trace/trace.h"

namespace culprit::cycles {

/// One launch, or one operator. A graph launch is one operation whatever it holds.
struct Operation {
  Ns at = 0;                ///< begin of the launching host call, or of the operator; without host side of the GPU work
  Ns host_end = 0;          ///< end of the launching host call or the operator
  Ns next_from = 0;         ///< when the gap before the next operation begins: launches follow from begin to begin,
                            ///< operators from end to begin
  Ns work = 0;              ///< duration of the GPU work, or of the operator
  std::uint64_t name = 0;   ///< hash of what runs
  std::uint64_t shape = 0;  ///< hash of what runs and its grid
  SliceIndex slice = 0;     ///< its (first) GPU slice; of a synchronisation the host call; of an operator itself
  Role role = Role::none;
  std::uint8_t hint = 0;  ///< of its phase, by its name (PhaseHint)
  bool graph = false;
  bool computes = false;  ///< no copy, no fill
  [[nodiscard]] bool backward() const { return (hint & kHintTrain) != 0; }
};

/// What lies between operation i > 0 and the one before it.
inline Ns gap_before(const std::vector<Operation>& list, std::size_t i) { return list[i].at - list[i - 1].next_from; }

enum class OperationSource : std::uint8_t {
  launches,     ///< GPU work in the order of its launches
  device,       ///< GPU work in the order of its begins, because most of it has no known launcher
  host_thread,  ///< operators of the busiest thread, because there is no GPU work
};

struct Operations {
  std::vector<Operation> list;
  OperationSource source = OperationSource::launches;
  std::uint64_t unlinked = 0;  ///< operations left out, because others have a launcher and they have not
  std::int32_t device = -1;
  TrackId track = kNone;  ///< host_thread only
};

/// Whether a run has GPU work in which steps can be seen.
bool has_gpu_work(const Trace& trace);

/// Per row of Trace::ranks the operations of its busiest device, with the host's synchronisations among them; without
/// GPU work the outermost repeated operators of its busiest thread (the one with most operators).
std::vector<Operations> list_operations(const Trace& trace, const SliceOrder& order);

}  // namespace culprit::cycles
