#include "kernels/fusion.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

#include "core/saturating.h"
#include "kernels/classes.h"
#include "kernels/fusion_idioms.h"
#include "profile/function_kind.h"

namespace culprit::kernels {

namespace {

using model::FusionCandidate;
using model::FusionModel;
using model::KernelLaunch;

/// Shorter launches do not run long enough for their DRAM use to show what the memory can do.
constexpr Ns kTrustedLatency = 10'000;
constexpr Ns kLaunchSizedGap = 20'000;
/// What the device waited for this long came from elsewhere in the program: nobody would write one kernel for both.
constexpr Ns kApartGap = 1'000'000;
/// No kernel does more operations of a model than this.
constexpr std::size_t kMostTogether = 32;
/// Launches of one operation over equal chunks differ by about this much.
constexpr double kChunkNoise = 0.10;
constexpr std::size_t kMostChunked = 4096;
/// Element-wise work leaves the tensor pipe idle: whatever uses it this much multiplies matrices, whatever its name.
constexpr double kProductTensor = 0.10;

class Search {
 public:
  Search(const model::KernelLog& log, const FusionOptions& options) : log_(log), options_(options) {
    role_.resize(log.names.size());
    product_.resize(log.names.size());
    report_.shortest = std::numeric_limits<Ns>::max();
    for (const KernelLaunch& launch : log.launches) {
      report_.total = add_saturating(report_.total, launch.latency);
      report_.shortest = std::min(report_.shortest, launch.latency);
      const auto use = static_cast<double>(launch.dram);
      if (launch.latency >= kTrustedLatency && use > 0 && !(use <= report_.best_dram)) report_.best_dram = use;
    }
    if (log.launches.empty()) report_.shortest = 0;
  }

  void lane(const model::Lane& lane) {
    const auto& rows = lane.launches;
    for (std::size_t begin = 0; begin < rows.size();) {
      const FusionRole role = role_of(rows[begin]);
      if (role == FusionRole::none) {
        ++begin;
        continue;
      }
      std::size_t end = begin + 1;
      while (end < rows.size() && together(role, role_of(rows[end])) && !apart(rows[end - 1], rows[end]) &&
             (end - begin < kMostTogether || role == FusionRole::layout || role == FusionRole::optimizer))
        ++end;
      const bool between = begin > 0 && end < rows.size() && is_product(rows[begin - 1]) && is_product(rows[end]);
      if (end - begin >= 2 || role == FusionRole::layout)
        run(std::span(rows).subspan(begin, end - begin), role, between);
      begin = end;
    }
  }

  model::FusionReport finish() {
    for (auto& [key, candidate] : found_) report_.candidates.push_back(std::move(candidate));
    std::ranges::stable_sort(report_.candidates, [](const FusionCandidate& a, const FusionCandidate& b) {
      return a.bound != b.bound ? a.bound > b.bound : a.begins.front() < b.begins.front();
    });
    return std::move(report_);
  }

 private:
  FusionRole role_of(std::uint32_t row) {
    const KernelLaunch& launch = log_.launches[row];
    auto& role = role_[launch.name];
    if (!role) role = fusion_role(log_.names[launch.name]);
    return compute_use(launch) >= options_.low ? FusionRole::none : *role;
  }

  bool is_product(std::uint32_t row) {
    const KernelLaunch& launch = log_.launches[row];
    auto& product = product_[launch.name];
    if (!product) {
      const KernelFamily family = family_of(log_.names[launch.name]);
      product = family == KernelFamily::gemm || family == KernelFamily::convolution;
    }
    return *product || static_cast<double>(launch.tensor) >= kProductTensor;
  }

  [[nodiscard]] bool apart(std::uint32_t before, std::uint32_t after) const {
    const KernelLaunch& a = log_.launches[before];
    const KernelLaunch& b = log_.launches[after];
    return a.begin >= 0 && b.begin >= 0 && b.begin - add_saturating(a.begin, a.latency) > kApartGap;
  }

  static bool together(FusionRole first, FusionRole next) {
    const auto apart = [](FusionRole role) { return role == FusionRole::layout || role == FusionRole::optimizer; };
    if (next == FusionRole::none) return false;
    return apart(first) || apart(next) ? first == next : true;
  }

  /// Time that DRAM traffic of the launch takes at the best rate seen.
  [[nodiscard]] double traffic_time(const KernelLaunch& launch) const {
    return static_cast<double>(launch.dram) * static_cast<double>(launch.latency) / report_.best_dram;
  }

  void run(std::span<const std::uint32_t> rows, FusionRole first, bool between) {
    Ns time = 0;
    Ns gaps = 0;
    bool use_known = !std::isnan(report_.best_dram);
    std::vector<StringId> names;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const KernelLaunch& launch = log_.launches[rows[i]];
      time = add_saturating(time, launch.latency);
      use_known = use_known && !std::isnan(launch.dram);
      names.push_back(launch.name);
      if (i == 0) continue;
      const KernelLaunch& before = log_.launches[rows[i - 1]];
      if (launch.begin < 0 || before.begin < 0) continue;
      const Ns gap = launch.begin - add_saturating(before.begin, before.latency);
      if (gap > 0 && gap <= kLaunchSizedGap) gaps = add_saturating(gaps, gap);
    }
    FusionModel model = use_known ? FusionModel::traffic_once : FusionModel::longest_remains;
    if (first == FusionRole::layout) model = FusionModel::removed;
    if (first == FusionRole::optimizer) model = FusionModel::pass_remains;
    const auto [rest_bound, rest_careful] = remaining(rows, model, use_known);

    std::vector<StringId> key = names;
    // Changes of layout are one candidate: only together can they go.
    if (model == FusionModel::removed) key.clear();
    const auto [at, fresh] = found_.try_emplace({model, between && model == FusionModel::traffic_once, key});
    FusionCandidate& candidate = at->second;
    if (fresh) describe_candidate(rows, names, between, model, candidate);
    if (model == FusionModel::removed)
      for (const StringId name : names)
        if (std::ranges::find(candidate.names, name) == candidate.names.end()) candidate.names.push_back(name);
    candidate.begins.push_back(rows.front());
    candidate.time = add_saturating(candidate.time, time);
    candidate.gaps = add_saturating(candidate.gaps, gaps);
    // Gaps between the launches would go too, but they are no kernel time: they stand beside the bound, not in it.
    const auto all = static_cast<double>(time);
    candidate.bound += std::max(0.0, all - rest_bound);
    candidate.careful += std::max(0.0, all - rest_careful);
  }

  void describe_candidate(std::span<const std::uint32_t> rows, const std::vector<StringId>& names, bool between,
                          FusionModel model, FusionCandidate& candidate) {
    std::vector<std::string_view> texts;
    std::vector<FusionRole> roles;
    for (const std::uint32_t row : rows) {
      texts.push_back(log_.names[log_.launches[row].name]);
      roles.push_back(role_of(row));
    }
    Idiom idiom = idiom_of(texts, roles, between);
    candidate.idiom = std::move(idiom.name);
    candidate.by_shape = idiom.by_shape;
    candidate.model = model;
    if (model != FusionModel::removed) candidate.names = names;
  }

  struct Remaining {
    double bound = 0;
    double careful = 0;
  };

  Remaining remaining(std::span<const std::uint32_t> rows, FusionModel model, bool use_known) {
    if (model == FusionModel::removed) return {};
    std::size_t chunks = 1;
    if (model == FusionModel::pass_remains) {
      std::vector<double> times;
      for (const std::uint32_t row : rows) times.push_back(static_cast<double>(log_.launches[row].latency));
      chunks = chunks_of(times);
    }
    Remaining rest;
    for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
      double traffic = static_cast<double>(report_.shortest);
      double longest = 0;
      for (std::size_t i = chunk; i < rows.size(); i += chunks) {
        const KernelLaunch& launch = log_.launches[rows[i]];
        const auto time = static_cast<double>(launch.latency);
        longest = std::max(longest, time);
        const FusionRole role = role_of(rows[i]);
        const bool whole = role == FusionRole::norm || role == FusionRole::softmax;
        traffic = std::max(traffic, whole || !use_known ? time : std::min(time, traffic_time(launch)));
      }
      rest.bound += traffic;
      rest.careful += longest;
    }
    return rest;
  }

  const model::KernelLog& log_;
  const FusionOptions& options_;
  std::vector<std::optional<FusionRole>> role_;
  std::vector<std::optional<bool>> product_;
  std::map<std::tuple<FusionModel, bool, std::vector<StringId>>, FusionCandidate> found_;
  model::FusionReport report_;
};

}  // namespace

std::size_t chunks_of(std::span<const double> times) {
  const std::size_t n = times.size();
  if (n < 4 || n > kMostChunked) return 1;
  // log t[pass][chunk] = a[pass] + c[chunk], judged by the Bayesian information criterion: parameters against fit.
  std::size_t best = 1;
  double best_score = std::numeric_limits<double>::infinity();
  const auto count = static_cast<double>(n);
  for (std::size_t chunks = 1; chunks <= n / 2; ++chunks) {
    if (n % chunks != 0) continue;
    const std::size_t passes = n / chunks;
    std::vector<double> pass_mean(passes, 0.0);
    std::vector<double> chunk_mean(chunks, 0.0);
    double mean = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const double value = std::log(std::max(1.0, times[i]));
      pass_mean[i / chunks] += value / static_cast<double>(chunks);
      chunk_mean[i % chunks] += value / static_cast<double>(passes);
      mean += value / count;
    }
    double squares = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const double fit = pass_mean[i / chunks] + chunk_mean[i % chunks] - mean;
      const double off = std::log(std::max(1.0, times[i])) - fit;
      squares += off * off;
    }
    const auto parameters = static_cast<double>(passes + chunks - 1);
    const double score = count * std::log(squares / count + kChunkNoise * kChunkNoise) + parameters * std::log(count);
    if (score >= best_score) continue;
    best_score = score;
    best = chunks;
  }
  return best;
}

std::string_view describe(model::FusionModel model) {
  switch (model) {
    case FusionModel::traffic_once:
      return "the traffic of the launch that moves most remains, at the best DRAM use of this log";
    case FusionModel::longest_remains:
      return "DRAM use unknown: the longest launch remains; an estimate, no bound";
    case FusionModel::pass_remains:
      return "per chunk of parameters the pass that moves most remains";
    case FusionModel::removed:
      return "all of it can go with one layout throughout";
  }
  return "";
}

model::FusionReport fusion_report(const model::KernelLog& log, std::span<const model::Lane> lanes,
                                  const FusionOptions& options) {
  Search search(log, options);
  for (const model::Lane& lane : lanes) search.lane(lane);
  return search.finish();
}

}  // namespace culprit::kernels
