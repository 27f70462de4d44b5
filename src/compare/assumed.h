// By how much two recordings of the same are assumed to differ where nothing measured it: what the machine does between
// them, and not the program.
#pragma once

#include <span>

#include "compare/cycle_time.h"
#include "model/cycles.h"
#include "model/profile.h"

namespace culprit::compare {

/// When recordings were taken and how long they are. `begins`: since the epoch, ns; what is no day is not known.
struct Taken {
  std::span<const Ns> begins;
  Ns lasting = 0;  ///< all together
};

/// The recordings of the two sides were taken in turns: whatever drifted meanwhile hit both.
bool in_turns(const Taken& base, const Taken& candidate);

/// Minutes lie between the sides: the machine may be another one by then. Not known is near.
bool far_apart(const Taken& base, const Taken& candidate);

/// How many times more recordings differ when they lie apart, or the machine moved between them.
double when_apart(const Taken& base, const Taken& candidate, bool machine_moved);

/// On a host: short recordings more than `of_long_ones` (windows of half a second of vLLM's load differ by 12 to 18 %,
/// of four by 5 to 6; traces of 80 ms of a training loop by 12), and those that lie apart more (recordings of vLLM and
/// SGLang by 4 to 6 % within minutes, by 13 to 15 within an hour: docs/accuracy.md), as do those between which the
/// machine is seen to have moved.
double spread_on_host(double of_long_ones, const Taken& base, const Taken& candidate, bool machine_moved);

/// Of steps on devices, which are steadier, and wait for their host for a part of them (waits_for_host()): that part
/// differs as hosts do.
double spread_on_device(double of_devices, double of_hosts, double waits, const Taken& base, const Taken& candidate,
                        bool machine_moved);

/// Share of the steps of a phase in which the device that idles least waits for its host; 0 without devices.
double waits_for_host(const model::Profile& profile, model::Phase phase);

}  // namespace culprit::compare
