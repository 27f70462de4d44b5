// What the recorder itself takes.
#pragma once

#include <cstdint>

#include "core/units.h"

namespace culprit::record {

/// CPU of this process so far, user and kernel.
Ns own_cpu();

/// The largest resident size so far, bytes.
std::int64_t peak_memory();

}  // namespace culprit::record
