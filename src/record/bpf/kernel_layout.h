// What the running kernel has, and where it keeps what programs cannot ask for by name, from its BTF.
#pragma once

#include <cstdint>
#include <optional>

struct btf;

namespace culprit::record::bpf {

/// Whether the tracepoint sched_switch hands over the state of prev as a fourth argument.
bool switch_has_state(const btf* kernel);

/// Whether the kernel has a tracepoint of this name ("btf_trace_...") for BTF programs.
bool has_tracepoint(const btf* kernel, const char* type_name);

/// How far a CPU's preemption count lies behind its run queue, in bytes. Both are variables of a CPU, of which BTF
/// knows the places among all such variables; programs may name such a variable only where the kernel keeps the names
/// of its data (CONFIG_KALLSYMS_ALL), but every thread knows its run queue. nullopt: this kernel has no such count (it
/// is kept in the thread on other machines than x86-64), or a thread does not know its run queue.
std::optional<std::int64_t> preempt_count_from_run_queue(const btf* kernel);

}  // namespace culprit::record::bpf
