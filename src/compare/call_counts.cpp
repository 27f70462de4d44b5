#include "compare/call_counts.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "model/ledger.h"
#include "stats/quantile.h"

namespace culprit::compare {

namespace {

using model::CallsChange;
using model::FunctionFinding;

/// What lies between functions: once behind each.
constexpr std::string_view kBetween = "between";
constexpr double kMuchSlower = 1.5;
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

/// A function in all processes that call it.
struct Called {
  std::size_t finding = 0;
  std::size_t processes = 0;
  bool is_steady = true;
  std::array<double, 2> calls{};
  double work_ratio = model::kNoNumber;
};

/// By name, of the phase of the waterfall, on devices or on hosts as it is.
std::map<std::string, Called> called_in(std::span<const FunctionFinding> findings, const model::Waterfall& waterfall,
                                        const StringTable& texts) {
  std::map<std::string, Called> all;
  for (std::size_t i = 0; i < findings.size(); ++i) {
    const FunctionFinding& f = findings[i];
    const bool on_host = texts[f.device] == "Host";
    if (f.phase != waterfall.phase || on_host != (waterfall.device < 0) || !is_called(texts[f.kind])) continue;
    const auto [found, fresh] = all.try_emplace(std::string(texts[f.function]));
    Called& called = found->second;
    if (fresh) {
      called.finding = i;
      called.work_ratio = f.work_ratio;
    }
    called.is_steady =
        called.is_steady && std::isfinite(f.steady_calls[0]) && f.steady_calls[0] + f.steady_calls[1] > 0;
    for (std::size_t s = 0; s < 2; ++s) called.calls[s] += f.steady_calls[s];
    ++called.processes;
  }
  for (auto& [name, called] : all)
    for (double& calls : called.calls) calls /= static_cast<double>(called.processes);
  return all;
}

/// Of the time of a function's calls what they would take if they had become no slower than the others: it is much
/// slower by itself else, which is not by their number.
double usual_part(double work_ratio, double speed, std::size_t side) {
  const double slower = side == 1 ? work_ratio / speed : speed / work_ratio;
  return slower > kMuchSlower ? 1 / slower : 1;
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
                                       std::span<const model::Waterfall> waterfalls, const StringTable& texts) {
  std::vector<CallsChange> result;
  for (const model::Waterfall& waterfall : waterfalls) {
    const std::map<std::string, Called> called = called_in(findings, waterfall, texts);
    CallsChange change;
    change.phase = waterfall.phase;
    change.device = waterfall.device;
    std::vector<double> ratios;
    for (const auto& [name, function] : called)
      if (function.is_steady && function.work_ratio > 0 && std::isfinite(function.work_ratio))
        ratios.push_back(function.work_ratio);
    if (!ratios.empty()) change.speed = stats::median(std::move(ratios));
    std::array<double, 2> between{};
    std::array<double, 2> most{};
    for (const model::WaterfallLine& line : waterfall.lines) {
      if (line.state != model::LedgerState::function && line.state != model::LedgerState::between) continue;
      const auto found = called.find(model::ledger_line_name(line.state, texts[line.function]));
      if (found == called.end() || !found->second.is_steady) continue;
      const Called& function = found->second;
      const std::size_t side = function.calls[1] > function.calls[0] ? 1 : 0;
      const double kept = function.calls[1 - side] / function.calls[side];
      const double moved = line.time_ns[side] * (1 - kept) * usual_part(function.work_ratio, change.speed, side);
      if (line.state == model::LedgerState::between) {
        between[side] += moved;
        continue;
      }
      ++change.functions;
      if (!(kept < 1)) continue;
      change.moved_ns[side] += moved;
      if (!(kept > 0)) {
        ++(side == 1 ? change.added : change.gone);
        continue;
      }
      change.of_both_ns[side] += moved;
      std::size_t& count = side == 1 ? change.more : change.fewer;
      if (count++ == 0 || moved > most[side]) {
        most[side] = moved;
        change.example[side] = function.finding;
      }
    }
    if (change.more + change.fewer + change.added + change.gone == 0) continue;
    const auto made_of = [&](const std::array<double, 2>& moved) {
      const double without = waterfall.window_ns[1] - moved[1] + moved[0] * change.speed;
      return without > 0 ? waterfall.window_ns[1] / without - 1 : model::kNoNumber;
    };
    change.change = made_of(change.moved_ns);
    change.change_with_between = made_of({change.moved_ns[0] + between[0], change.moved_ns[1] + between[1]});
    result.push_back(change);
  }
  return result;
}

}  // namespace culprit::compare
