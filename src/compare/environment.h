// The environment of two recordings side by side: kernel, governor, limits, versions. A difference there explains more
// than any table of functions.
#pragma once

#include <vector>

#include "model/comparison.h"
#include "model/recording.h"

namespace culprit::compare {

/// Facts whose values differ, by key; those that only one side has count when the other side is a recording too.
std::vector<model::EnvironmentChange> environment_changes(const model::Environment& base,
                                                          const model::Environment& candidate);

}  // namespace culprit::compare
