// How the stages load what the library's options ask for.
#pragma once

#include <culprit/load.h>

#include "formats/load.h"

namespace culprit::library {

/// The result refers to `options`.
formats::LoadOptions load_options(const LoadOptions& options);

}  // namespace culprit::library
