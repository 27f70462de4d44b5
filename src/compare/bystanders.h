// Processes beside the recorded ones: what counts as taking more of the CPUs is said once.
#pragma once

#include <array>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace culprit::compare {

/// Name and mean CPUs of baseline and candidate of those that differ by 0.1 CPUs and by half of the smaller one, which
/// normal recordings do not. Largest difference first.
std::vector<std::pair<std::string, std::array<double, 2>>> bystanders_that_moved(
    const std::map<std::string, double>& base, const std::map<std::string, double>& candidate);

}  // namespace culprit::compare
