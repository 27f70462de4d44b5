// How long a system call takes that does next to nothing, counted and not: what is counted is made slower by it.
#pragma once

namespace culprit::record::bpf {

/// ns that such a call takes: the median of several handfuls.
double short_call();

/// The same for a thread whose calls are counted, and one in eight of them timed, as of those that make many. The
/// calling thread is `measured` meanwhile; `first`: it has not made many calls yet.
double counted_call(volatile int& measured, bool first);

}  // namespace culprit::record::bpf
