// What the rules of memory and of disks share: a page that was pushed out of memory is read back from a disk.
#pragma once

#include <string_view>

#include "diagnose/evidence.h"

namespace culprit::diagnose {

/// Page faults and reads of files make a thread wait in this state of HostEvidence.
bool reads_pages(std::string_view state);
/// Sleep that no signal ends, too short for the recording to keep its call.
bool sleeps_in_no_call(std::string_view state);
/// Requests of a disk took half as long again.
bool answers_late(const Evidence& evidence);
/// A limit on the memory of its control group is new, or lower by more than pods of one size differ.
bool has_tighter_limit(const Evidence& evidence);

inline constexpr const char* kRaiseLimit =
    "raise the limit of its control group (memory.max, memory.high, memory.limit_in_bytes, --memory of its container), "
    "or let it use less";

}  // namespace culprit::diagnose
