// A profile table as the profile that Culprit itself works on: where tables are all there is of a run.
#pragma once

#include "deepdive/profile.h"
#include "model/profile.h"

namespace culprit::deepdive {

/// The same cycles, functions and resources in SI. What a table does not say stays unknown: phases (other), ranks,
/// exposed time, samples. Provenance: values that are partly interpolated count as interpolated.
model::Profile native_profile(Profile table);

}  // namespace culprit::deepdive
