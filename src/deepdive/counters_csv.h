// The counter samples that the reference tool exports beside a profile (`*_counters_data.csv`).
#pragma once

#include <string>

#include "deepdive/profile.h"

namespace culprit::deepdive {

/// The samples as text, six decimals, in the order of CounterLog::samples.
std::string write_counters_csv(const CounterLog& log);

}  // namespace culprit::deepdive
