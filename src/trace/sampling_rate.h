// How often the recorder of a trace took stacks of what ran: less often than it was asked to where that took too much.
#pragma once

#include <optional>
#include <string>

#include "trace/trace.h"

namespace culprit {

/// Of each CPU, a second.
struct SamplingRates {
  double asked = 0;
  double mean = 0;
  double lowest = 0;
};

/// What the recorder says; nullopt: it took none, or was killed before it could say.
std::optional<SamplingRates> sampling_rates(const Trace& trace);

/// Some stacks stand for more time than others.
bool was_lowered(const SamplingRates& rates);

/// "48.7 a second and CPU on average, 24.8 at least, of 99".
std::string to_string(const SamplingRates& rates);

}  // namespace culprit
