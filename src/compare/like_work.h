// A number of each cycle, freed of what the cycle worked on: a prompt of two thousand tokens takes four times as long
// as one of five hundred, and between cycles of both kinds a kernel that became slower by a quarter is not to be seen.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "compare/series.h"

namespace culprit::compare {

/// Which cycles of two sides did like work: a class for each position.
struct LikeWork {
  std::array<std::vector<std::uint32_t>, 2> class_of;
  std::size_t classes = 0;
  std::array<std::vector<double>, 2> cycles{};  ///< of each class
};

/// Of the classes of positions, with their numbers of cycles.
LikeWork like_work_of(std::array<std::vector<std::uint32_t>, 2> class_of, std::size_t classes);

/// Both sides' values, each scaled by what all cycles have in the mean over what those of its class have (the mean of
/// both sides' means; classes weigh as the mean of their shares of the sides' cycles), so that the means differ by what
/// cycles of like work do. Where cycles of a class have none of it in the mean, each class weighs as its share instead.
/// `absent_is_nothing`: a cycle without a value counts as 0; else it does not count, and neither do values of a class
/// that the other side lacks. Positions beyond those whose class is known keep their values. O(values + cycles).
std::array<std::vector<CycleValue>, 2> at_like_work(const std::array<std::vector<CycleValue>, 2>& values,
                                                    const LikeWork& work, bool absent_is_nothing);

}  // namespace culprit::compare
