// Whether the kernels of two runs do like work, where nothing else tells what steps work on: a batch that is larger by
// a quarter takes longer, and that is nobody's regression.
#pragma once

#include <string>

#include "model/comparison.h"

namespace culprit::compare {

/// Why the sides do other work: kernels that take most of a device's time were launched with other numbers of threads
/// per call. Empty: they do not, or it is not known, or the steps tell what they work on, and like ones are compared.
std::string other_kernel_sizes(const model::RunComparison& comparison);

}  // namespace culprit::compare
