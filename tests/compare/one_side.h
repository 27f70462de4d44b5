// What tests of several parts of a comparison begin with.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "model/recording.h"

namespace culprit::compare {

inline constexpr auto kPrefill = static_cast<std::size_t>(model::Phase::prefill);
inline constexpr auto kDecode = static_cast<std::size_t>(model::Phase::decode);

/// A side of one recording.
inline std::vector<model::Recording> one(model::Recording recording) {
  std::vector<model::Recording> side;
  side.push_back(std::move(recording));
  return side;
}

}  // namespace culprit::compare
