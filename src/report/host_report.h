// What the operating system saw of two recordings, as tables.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/host_evidence.h"
#include "model/table.h"

namespace culprit::report {

/// A value in SI with a unit that people read: "1.50 GiB", "98.1 %", "1410 MHz". An unknown unit follows the number.
std::string readable(double value, std::string_view unit);

/// "Throttled by a CPU quota: 0.0 ms/s -> 691.2 ms/s; quota none -> 0.30 CPUs", where that moved; else empty.
std::string throttled_text(const model::HostChanges& changes);

/// "144/s -> 49.8/s, -65.5 % (like ones 6.928ms -> 20.099ms)": as many as there were, and what one takes with the
/// baseline's mix of phases on both sides; empty where no period is known.
std::string steps_text(const model::HostChanges& changes);
/// "Beside it stress-ng took 1.44 CPUs (baseline 0.00)"; empty without any.
std::string beside_text(const model::HostChanges& changes);

/// "The machine was slower: fixed work of the recorder took +12.1 % (95 % interval +9.0 % to +15.3 %)"; empty where
/// that is not shown.
std::string machine_text(const model::HostChanges& changes);

/// "The machine's memory was slower: fixed work of the recorder through it took x2.51 (95 % interval x1.90 to x3.31)";
/// empty where that is not shown, or steps were the other way round.
std::string memory_text(const model::HostChanges& changes);

/// "Requests: time to first token 41.2ms -> 120ms, queue wait 2.1ms -> 80ms (p50)": those that moved; empty without
/// any.
std::string requests_text(const model::HostChanges& changes);

/// The table of requests, that of thread states per step and that of the counters that moved; none that would be empty.
/// `for_people` gives the counters' values as texts with readable units, else they are numbers beside their SI unit.
std::vector<model::Table> host_tables(const model::HostChanges& changes, bool for_people);

/// The same for files, a table each, with or without rows: requests, step_thread, host_states, host_counters.
std::vector<model::Table> host_rows(const model::HostChanges& changes);

}  // namespace culprit::report
