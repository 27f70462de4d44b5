// What the two sides were told or given: options, variables, versions, limits, settings of the machine and its devices.
// That one of them differs is no evidence that it matters, but the first thing to know where steps differ.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/comparison.h"

namespace culprit::model {

struct SettingChange {
  std::string what;         ///< "The variable VLLM_LOGGING_LEVEL"
  std::string_view detail;  ///< of verdicts: "option", "variable", "version", "limit", "device", "machine"
  std::array<std::string, 2> value;
};

/// Of the facts of the environment that differ, the program's own first. Where a program listens and what it draws its
/// lots with is none.
std::vector<SettingChange> settings_that_differ(const std::vector<EnvironmentChange>& environment);

}  // namespace culprit::model
