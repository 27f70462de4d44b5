// Requests of a device overlap; slices of one track must not. Each gets the first lane that is free at its begin.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/units.h"

namespace culprit::record::syscalls {

class Lanes {
 public:
  static constexpr std::size_t kMost = 256;

  /// Intervals must come in the order of their ends, nearly. nullopt: all lanes are taken.
  std::optional<std::uint32_t> place(Ns begin, Ns end) {
    for (std::size_t lane = 0; lane < ends_.size(); ++lane) {
      if (ends_[lane] > begin) continue;
      ends_[lane] = end;
      return static_cast<std::uint32_t>(lane);
    }
    if (ends_.size() == kMost) return std::nullopt;
    ends_.push_back(end);
    return static_cast<std::uint32_t>(ends_.size() - 1);
  }

 private:
  std::vector<Ns> ends_;
};

}  // namespace culprit::record::syscalls
