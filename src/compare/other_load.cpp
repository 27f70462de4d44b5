#include "compare/other_load.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "compare/held_back.h"

namespace culprit::compare {

namespace {

constexpr double kMoreContext = 1.25;  // classes of contexts are half of a doubling wide

bool is_known(const std::array<double, 2>& value) { return value[0] > 0 && value[1] > 0; }

/// Each request of one side looks back at more: no waiting does that.
bool has_other_contexts(const model::CycleTimeOutcome& outcome) {
  if (!is_known(outcome.looked_back) || !is_known(outcome.requests)) return false;
  const double ratio = outcome.looked_back[1] / outcome.requests[1] / (outcome.looked_back[0] / outcome.requests[0]);
  return ratio > kMoreContext || ratio < 1 / kMoreContext;
}

}  // namespace

bool has_more_to_do(const model::CycleTimeOutcome& outcome, std::size_t side) {
  constexpr double kMore = 1.05;  // recordings under the same load differ by a few in a hundred
  const auto is_more = [&](const std::array<double, 2>& value, double least) {
    return value.at(side) > least * value.at(1 - side);
  };
  const std::array known = {std::pair(outcome.requests, kMore), std::pair(outcome.prompt_tokens, kMore),
                            std::pair(outcome.looked_back, kMoreContext)};
  if (std::ranges::none_of(known, [&](const auto& of) { return is_known(of.first); })) return true;
  return std::ranges::any_of(known, [&](const auto& of) { return is_known(of.first) && is_more(of.first, of.second); });
}

bool waits_for_itself(const model::CycleTimeOutcome& outcome, bool together) {
  return together && outcome.phase == model::Phase::decode && outcome.most_requests[0] == outcome.most_requests[1] &&
         !has_other_contexts(outcome);
}

std::array<bool, 2> may_be_slower_by_load(const std::vector<model::CycleTimeOutcome>& outcomes, bool together) {
  constexpr double kMost = 0.5;
  constexpr double kFew = 0.1;
  constexpr double kMostlyAlike = 0.5;
  constexpr double kMuchOfIt = 0.1;
  double all = 0;
  double other = 0;
  std::array<double, 2> more{};
  std::array<double, 2> alike{};
  std::array<double, 2> all_of{};
  for (const model::CycleTimeOutcome& o : outcomes) {
    const auto steps = static_cast<double>(o.cycles[0] + o.cycles[1] + o.other_work[0] + o.other_work[1]);
    all += steps;
    for (std::size_t side = 0; side < 2; ++side) {
      alike.at(side) += static_cast<double>(o.cycles.at(side));
      all_of.at(side) += static_cast<double>(o.cycles.at(side) + o.other_work.at(side));
    }
    if (waits_for_itself(o, together) || !model::tells_usual_work(o)) continue;
    other += steps * o.other_share;
    for (std::size_t side = 0; side < 2; ++side)
      if (has_more_to_do(o, side)) more.at(side) += steps * o.other_share;
  }
  if (alike[0] < kFew * all_of[0] && alike[1] < kFew * all_of[1]) return {true, true};
  const bool like_ones = alike[0] > kMostlyAlike * all_of[0] && alike[1] > kMostlyAlike * all_of[1];
  const bool mostly = other > kMost * all && !like_ones;
  return {mostly && more[0] > kMuchOfIt * other, mostly && more[1] > kMuchOfIt * other};
}

std::vector<std::string> leave_open_longer_contexts(std::vector<model::CycleTimeOutcome>& outcomes) {
  constexpr std::array kNames = {"baseline", "candidate"};
  std::vector<std::string> sentences;
  for (std::size_t side = 0; side < 2; ++side) {
    if (!model::has_longer_prompts(outcomes, side)) continue;
    for (model::CycleTimeOutcome& o : outcomes) {
      if (!model::looks_back_unseen(o) || o.outcome != slower_by(side)) continue;
      o.outcome = model::Outcome::inconclusive;
      sentences.push_back(
          fmt::format("Prompts of the {} are longer, and steps ({}) do not tell how much they look back at: that they "
                      "take longer there is no outcome",
                      kNames.at(side), model::phase_name(o.phase)));
    }
  }
  return sentences;
}

}  // namespace culprit::compare
