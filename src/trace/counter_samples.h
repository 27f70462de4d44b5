// What a counter says at a time and between two times, and whose counter it is by its name.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "trace/trace.h"

namespace culprit {

/// The samples with begin <= at <= end. `samples` are in time order. O(log n).
std::span<const CounterSample> samples_within(std::span<const CounterSample> samples, Ns begin, Ns end);

/// The value at `at`: linear between the two samples around it, the first or last value outside; of two samples at one
/// time the earlier one holds. `samples` are in time order and not empty. O(log n).
double interpolate(std::span<const CounterSample> samples, Ns at);

/// Mean in [begin, end), by time: a value holds until the next one, and writers leave out values that stay the same.
/// nullopt before the first value. `samples` are in time order. O(log n + samples inside).
std::optional<double> mean_within(std::span<const CounterSample> samples, Ns begin, Ns end);

/// What belongs to which device or process: the number in a track named `CAT_XPU_<n>`, else the number behind the last
/// '_' of a counter that names its process, else -1.
std::int64_t counter_instance(std::string_view name, std::string_view track);

}  // namespace culprit
