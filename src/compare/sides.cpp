#include "compare/sides.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "compare/comparable.h"
#include "compare/standstill.h"
#include "compare/work.h"

namespace culprit::compare {

namespace {

using model::Recording;

std::string name_of(const Recording& recording) { return recording.files.empty() ? "" : recording.files.front(); }

Error given_twice(const Recording& one, const Recording& other) {
  const std::string remedy = "give every recording once";
  if (one.is_part == other.is_part)
    return usage_error(fmt::format("'{}' and '{}' are the same recording", name_of(one), name_of(other)), remedy);
  const auto& [part, whole] = one.is_part ? std::tie(one, other) : std::tie(other, one);
  return usage_error(
      fmt::format("'{}' is a part of the recording '{}', and no recording of its own", name_of(part), name_of(whole)),
      remedy);
}

/// Why two recordings are none of one run; phases that were guessed never stand between them.
std::optional<Refusal> why_apart(const Recording& one, const Recording& other) {
  if (stand_alike(one, other)) return std::nullopt;
  if (are_of_work({&one, 1}, {&other, 1})) return why_no_common_work({&one, 1}, {&other, 1});
  if (!needs_forgetting(one.cycles, other.cycles)) return why_not_comparable(one.cycles, other.cycles);
  std::array both = {one.cycles, other.cycles};
  for (model::Cycles& cycles : both) forget_guessed_phases(cycles.cycles);
  return why_not_comparable(both[0], both[1]);
}

}  // namespace

Status check_sides(std::span<const Recording> base, std::span<const Recording> candidate) {
  if (base.empty() || candidate.empty()) return usage_error("a comparison needs a recording on each side");
  std::vector<const Recording*> all;
  for (const auto& side : {base, candidate})
    for (const Recording& recording : side) all.push_back(&recording);
  for (std::size_t i = 0; i < all.size(); ++i)
    for (std::size_t k = i + 1; k < all.size(); ++k)
      if (all[i]->digest != 0 && all[i]->digest == all[k]->digest) return given_twice(*all[i], *all[k]);
  for (const auto& side : {base, candidate}) {
    std::vector<std::size_t> linked = {0};
    std::vector<bool> is_linked(side.size());
    is_linked[0] = true;
    for (std::size_t at = 0; at < linked.size(); ++at)
      for (std::size_t i = 0; i < side.size(); ++i)
        if (!is_linked[i] && !why_apart(side[linked[at]], side[i])) {
          is_linked[i] = true;
          linked.push_back(i);
        }
    const auto odd = std::ranges::find(is_linked, false);
    if (odd == is_linked.end()) continue;
    const Recording& recording = side[static_cast<std::size_t>(odd - is_linked.begin())];
    return input_error(fmt::format("is no recording of the same run as {}: {}", name_of(side.front()),
                                   why_apart(side.front(), recording)->reason),
                       name_of(recording), "give only runs that belong together on one side");
  }
  return {};
}

}  // namespace culprit::compare
