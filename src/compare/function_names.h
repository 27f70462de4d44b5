// Which functions of two runs are one function under two names: a kernel whose tiles were chosen anew, one that a
// compiler numbered or hashed again, a function of Python that stands some lines further down.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/string_table.h"
#include "model/cycles.h"

namespace culprit::compare {

/// The name with '#' for what may be another from build to build or from process to process: numbers, sizes of tiles
/// (64x64, stages5, align8), numeric template arguments, addresses, hashes, Triton's suffixes. What says which work is
/// done stays: types (f16), architectures (sm80), layouts (nt), digits inside of words (conv2d).
std::string match_key(std::string_view name);

/// A function that one side alone has in a phase, a process and on a device.
struct OneSided {
  std::size_t side = 0;
  model::Phase phase = model::Phase::other;
  std::uint32_t process = 0;
  StringId kind = 0;
  StringId device = 0;
  std::string_view name;
  std::string_view short_name;
  StringId parent = 0;  ///< 0: not known
  bool on_device = false;
  double calls = 0;  ///< per cycle
  double time = 0;   ///< of a call
};

/// By how much calls per cycle may differ where several could be meant.
inline constexpr double kAsManyCalls = 0.05;

inline constexpr std::size_t kMostAlike = 64;

/// Rows of the baseline and the candidate that are one function, each in one pair at most: those of one match_key() of
/// their names, if each side has one of it; of several the ones of one parent and as many calls, in the order of their
/// times. Then, of what is left, those of one match_key() of their short names if each side has one of it, called as
/// often, from the same parent; at last, on devices, whatever their names are, if the parent launches one alone on each
/// side that the other does not have, as often: a kernel that took another's place. More than kMostAlike rows of one
/// key are nobody. O(n log n).
std::vector<std::pair<std::size_t, std::size_t>> pair_renamed(const std::vector<OneSided>& rows);

}  // namespace culprit::compare
