// What the kernel says of loaded programs.
#pragma once

#include <bpf/libbpf.h>
#include <linux/bpf.h>

#include "bpf/records.h"

namespace culprit::record::bpf {

/// Zeros while it is not loaded.
bpf_prog_info info_of(const bpf_program* program);

/// Adds how often the kernel left out a program because it was interrupted on that CPU as it ran: at most so much is
/// missing, because that may have concerned other processes.
void add_left_out(culprit_losses& losses, const bpf_object* programs);

}  // namespace culprit::record::bpf
