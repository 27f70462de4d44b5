#include "compare/call_counts.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include "stats/quantile.h"

namespace culprit::compare {

namespace {

using model::CallsChange;
using model::FunctionFinding;

/// What lies between functions: once behind each.
constexpr std::string_view kBetween = "between";
constexpr double kParts = 1e6;  // shares of kinds are no whole numbers

/// What most steps of a kind do, and how many of them.
struct Most {
  double count = 0;
  std::size_t steps = 0;
};

Most most_of(const std::map<double, std::size_t>& of_counts) {
  Most most;
  for (const auto& [count, steps] : of_counts)
    if (steps > most.steps) most = {count, steps};
  return most;
}

/// What the program calls; not what threads did by the scheduler's account, nor waiting, which goes on in pieces.
bool is_called(std::string_view kind) {
  return kind == kBetween || kind == "cpu_op" || kind == "python" || kind == "cuda_api" || kind == "gpu_compute" ||
         kind == "gpu_comm" || kind.starts_with("gpu_mem");
}

}  // namespace

std::optional<std::array<double, 2>> steady_calls(const std::array<std::vector<CycleValue>, 2>& counts,
                                                  const LikeWork& work) {
  const std::size_t classes = std::max<std::size_t>(1, work.classes);
  std::array<std::vector<std::size_t>, 2> steps;
  std::array<std::vector<std::map<double, std::size_t>>, 2> of_counts;
  for (std::size_t s = 0; s < 2; ++s) {
    steps[s].resize(classes);
    of_counts[s].resize(classes);
    for (const std::uint32_t of : work.class_of[s]) ++steps[s][of];
    for (std::size_t i = 0; i < counts[s].size();) {
      const std::uint32_t position = counts[s][i].position;
      double count = 0;
      for (; i < counts[s].size() && counts[s][i].position == position; ++i) count += counts[s][i].value;
      if (position < work.class_of[s].size()) ++of_counts[s][work.class_of[s][position]][count];
    }
  }
  std::array<double, 2> sum{};
  double shares = 0;
  double unsteady = 0;
  bool more = false;
  bool fewer = false;
  for (std::size_t c = 0; c < classes; ++c) {
    if (steps[0][c] < kFewestToCount || steps[1][c] < kFewestToCount) continue;
    std::array<double, 2> most{};
    bool steady = true;
    for (std::size_t s = 0; s < 2; ++s) {
      auto& of = of_counts[s][c];
      std::size_t calling = 0;
      for (const auto& [count, some] : of) calling += some;
      of[0] += steps[s][c] - calling;
      const Most found = most_of(of);
      most[s] = found.count;
      steady = steady && static_cast<double>(found.steps) >= kNearlyAllSteps * static_cast<double>(steps[s][c]);
    }
    const double share = static_cast<double>(steps[0][c]) / static_cast<double>(work.class_of[0].size()) +
                         static_cast<double>(steps[1][c]) / static_cast<double>(work.class_of[1].size());
    if (!steady) {
      unsteady += share;
      continue;
    }
    more = more || most[1] > most[0];
    fewer = fewer || most[1] < most[0];
    for (std::size_t s = 0; s < 2; ++s) sum[s] += share * most[s];
    shares += share;
  }
  if (!(shares > unsteady) || (more && fewer)) return std::nullopt;
  const auto whole = [&](double of_shares) { return std::round(of_shares / shares * kParts) / kParts; };
  return std::array{whole(sum[0]), whole(sum[1])};
}

std::vector<CallsChange> calls_changes(std::span<const FunctionFinding> findings,
                                       std::span<const model::CycleTimeOutcome> steps, const StringTable& texts) {
  struct Sums {
    CallsChange change;
    std::pair<bool, double> example;  ///< whether both sides call it, and the time that moved
    std::vector<double> ratios;       ///< by how much a call takes longer
  };
  std::map<std::tuple<model::Phase, std::uint32_t, StringId>, Sums> all;
  for (std::size_t i = 0; i < findings.size(); ++i) {
    const FunctionFinding& f = findings[i];
    if (!std::isfinite(f.steady_calls[0]) || !is_called(texts[f.kind])) continue;
    Sums& sums = all[{f.phase, f.process, f.device}];
    const bool is_function = texts[f.kind] != kBetween;
    if (is_function) ++sums.change.functions;
    if (is_function && f.work_ratio > 0 && std::isfinite(f.work_ratio)) sums.ratios.push_back(f.work_ratio);
    const auto [before, after] = f.steady_calls;
    if (before == after) continue;
    const std::size_t side = after > before ? 1 : 0;
    const double moved = f.time_ns[side] * (1 - std::min(before, after) / std::max(before, after));
    const bool both = before > 0 && after > 0;
    sums.change.moved_ns[side] += moved;
    if (both) sums.change.of_both_ns[side] += moved;
    if (!is_function) continue;
    ++(side == 1 ? sums.change.more : sums.change.fewer);
    if (const std::pair example(both, moved); sums.change.more + sums.change.fewer == 1 || example > sums.example) {
      sums.example = example;
      sums.change.example = i;
    }
  }
  std::vector<CallsChange> result;
  for (auto& [key, sums] : all) {
    CallsChange& change = sums.change;
    if (change.more + change.fewer == 0) continue;
    std::tie(change.phase, change.process, change.device) = key;
    if (!sums.ratios.empty()) change.speed = stats::median(std::move(sums.ratios));
    const auto step = std::ranges::find(steps, change.phase, &model::CycleTimeOutcome::phase);
    if (step != steps.end() && model::is_judged(*step)) {
      const double before = step->time_ns[1] - change.moved_ns[1] + change.moved_ns[0] * change.speed;
      if (before > 0) change.change = step->time_ns[1] / before - 1;
    }
    result.push_back(change);
  }
  return result;
}

}  // namespace culprit::compare
