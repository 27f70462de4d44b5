#include "deepdive/suspicion.h"

#include <fmt/format.h>
#include <tsl/hopscotch_map.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <span>
#include <utility>

#include "core/hash.h"
#include "formats/io/missing_text.h"
#include "stats/mann_whitney.h"
#include "stats/moments.h"
#include "stats/welch.h"

namespace culprit::deepdive {

namespace {

constexpr double kSmallestSpread = 1e-9;  // below it the reference gives no z-score
constexpr double kSmallestMove = 1e-6;    // of mu, in the conclusion
constexpr std::size_t kMostFindings = 3;
constexpr StringId kDropped = 0xFFFFFFFF;

struct Triplet {
  StringId function;
  StringId metric;
  StringId device;
  bool operator==(const Triplet&) const = default;
};
struct TripletHash {
  std::size_t operator()(const Triplet& t) const { return hash_parts(t.function, t.metric, t.device); }
};

/// The rows of one triplet on one side.
struct TripletRows {
  std::vector<double> beta;
  std::vector<double> mu;
  std::vector<std::int64_t> cycles;
};

struct GroupPair {
  Triplet key;
  std::array<TripletRows, 2> sides;
};

/// Ids of one profile's texts as ids of the comparison's; a function without a name maps to kDropped.
class Translation {
 public:
  Translation(const StringTable& from, StringTable& to) : from_(from), to_(to), ids_(from.size(), kUnknown) {}
  StringId operator()(StringId id) {
    if (ids_[id] == kUnknown) ids_[id] = formats::is_missing_text(from_[id]) ? kDropped : to_.intern(from_[id]);
    return ids_[id];
  }

 private:
  static constexpr StringId kUnknown = 0xFFFFFFFE;
  const StringTable& from_;
  StringTable& to_;
  std::vector<StringId> ids_;
};

/// Group statistics with the reference's substitutes for what is missing.
struct Summary {
  stats::GroupSummary beta;
  stats::GroupSummary mu;
  double log_mean = 0;
  double log_std = 0;
};

double or_zero(double value) { return std::isnan(value) ? 0 : value; }

Summary summarise(TripletRows& group) {
  std::sort(group.cycles.begin(), group.cycles.end());
  const auto cycles = static_cast<double>(std::unique(group.cycles.begin(), group.cycles.end()) - group.cycles.begin());
  std::vector<double> logs(group.mu.size());
  std::transform(group.mu.begin(), group.mu.end(), logs.begin(), [](double mu) { return std::log1p(mu); });
  const stats::Moments beta = stats::moments(group.beta);
  const stats::Moments mu = stats::moments(group.mu);
  const stats::Moments log = stats::moments(logs);
  return {{or_zero(beta.mean), or_zero(beta.std), cycles},
          {or_zero(mu.mean), or_zero(mu.std), cycles},
          or_zero(log.mean),
          or_zero(log.std)};
}

double z_score(double base, double candidate, double spread) {
  return spread > kSmallestSpread ? (candidate - base) / spread : 0;
}

std::optional<double> u_test(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() < 2 || b.size() < 2) return 1.0;
  return stats::mann_whitney_p(a, b);
}

SuspicionRow score(GroupPair& pair) {
  const Summary a = summarise(pair.sides[0]);
  const Summary b = summarise(pair.sides[1]);
  SuspicionRow row;
  row.function = pair.key.function;
  row.metric = pair.key.metric;
  row.device = pair.key.device;
  row.beta = {a.beta.mean, b.beta.mean};
  row.delta_beta = b.beta.mean - a.beta.mean;
  row.z_beta = z_score(a.beta.mean, b.beta.mean, a.beta.std);
  row.p_beta = stats::welch_p(a.beta, b.beta);
  row.u_beta = u_test(pair.sides[0].beta, pair.sides[1].beta);
  row.mu = {a.mu.mean, b.mu.mean};
  row.delta_mu = b.mu.mean - a.mu.mean;
  row.z_mu = z_score(a.mu.mean, b.mu.mean, a.mu.std);
  row.z_log_mu = z_score(a.log_mean, b.log_mean, a.log_std);
  row.p_mu = stats::welch_p(a.mu, b.mu);
  row.u_mu = u_test(pair.sides[0].mu, pair.sides[1].mu);
  row.score = std::fabs(row.delta_beta) * (std::fabs(row.z_beta) + std::fabs(row.z_log_mu));
  return row;
}

/// Total time shares per (function, device), whether a resource was measured or not.
class Shares {
 public:
  struct Share {
    std::array<double, 2> beta{};
    bool scored = false;
  };

  void add(StringId function, StringId device, std::size_t side, double beta) {
    if (!std::isnan(beta)) at(function, device).beta[side] += beta;
  }
  void scored(StringId function, StringId device) { at(function, device).scored = true; }

  std::vector<UnscoredFunction> unscored(const std::array<std::size_t, 2>& cycles, const StringTable& texts) const {
    std::vector<UnscoredFunction> result;
    for (const auto& [key, share] : shares_) {
      if (share.scored) continue;
      UnscoredFunction entry{key.function, key.device, {}};
      for (std::size_t s = 0; s < 2; ++s)
        entry.beta[s] = cycles[s] == 0 ? 0 : share.beta[s] / static_cast<double>(cycles[s]);
      result.push_back(entry);
    }
    std::sort(result.begin(), result.end(), [&](const UnscoredFunction& x, const UnscoredFunction& y) {
      const double dx = std::fabs(x.beta[1] - x.beta[0]);
      const double dy = std::fabs(y.beta[1] - y.beta[0]);
      if (dx != dy) return dx > dy;
      if (x.function != y.function) return texts[x.function] < texts[y.function];
      return texts[x.device] < texts[y.device];
    });
    return result;
  }

 private:
  Share& at(StringId function, StringId device) { return shares_[Triplet{function, 0, device}]; }
  tsl::hopscotch_map<Triplet, Share, TripletHash> shares_;
};

/// The first (function, device) pairs whose score is above the threshold, at most three, each with the resources that
/// moved.
void choose_findings(Comparison& comparison) {
  const auto& rows = comparison.rows;
  auto& findings = comparison.findings;
  findings.clear();
  const auto same = [&](std::size_t a, std::size_t b) {
    return rows[a].function == rows[b].function && rows[a].device == rows[b].device;
  };
  for (std::size_t i = 0; i < rows.size() && rows[i].score > kSuspicionThreshold; ++i) {
    auto found =
        std::find_if(findings.begin(), findings.end(), [&](const SuspicionFinding& f) { return same(f.row, i); });
    if (found == findings.end()) {
      if (findings.size() == kMostFindings) continue;
      findings.push_back({i, {}});
      found = findings.end() - 1;
    }
    if (found->resources.size() < kMostFindings && std::fabs(rows[i].delta_mu) > kSmallestMove)
      found->resources.push_back(i);
  }
}

class Comparer {
 public:
  Comparer(Comparison& result, const ProcessPair& processes) : result_(result) {
    result_.sides[0].pid = processes.base_pid;
    result_.sides[1].pid = processes.candidate_pid;
    missing_device_ = result_.texts.intern("N/A");
  }

  void add_side(std::size_t side, const Profile& profile) {
    ComparisonSide& facts = result_.sides[side];
    facts.file = profile.input.file;
    Translation translate(profile.texts, result_.texts);
    std::vector<char> counted(profile.functions.size(), 0);
    std::set<std::pair<std::int64_t, double>> cycles;
    for (const ResourceUse& resource : profile.resources) {
      const FunctionUse& use = profile.functions[resource.use];
      if (profile.processes[use.process].pid != facts.pid) continue;
      ++facts.rows;
      const ProfileCycle& cycle = profile.cycles[use.cycle];
      const StringId function = translate(use.function);
      StringId device = translate(use.device);
      if (device == kDropped) device = missing_device_;
      if (!counted[resource.use]) {
        counted[resource.use] = 1;
        cycles.emplace(cycle.number, cycle.duration_us);
        if (const StringId anchor = translate(cycle.anchor); anchor != kDropped) facts.anchors.push_back(anchor);
        if (function != kDropped) shares_.add(function, device, side, use.beta_pct);
      }
      if (function == kDropped) ++facts.rows_no_name;
      if (resource.metric == 0) ++facts.rows_no_metric;
      if (function == kDropped || resource.metric == 0) continue;
      shares_.scored(function, device);
      const Triplet key{function, translate(resource.metric), device};
      const auto [found, added] = index_.try_emplace(key, groups_.size());
      if (added) groups_.push_back({key, {}});
      TripletRows& group = groups_[found->second].sides[side];
      group.beta.push_back(use.beta_pct);
      group.mu.push_back(or_zero(resource.mu_pct));
      group.cycles.push_back(cycle.number);
    }
    cycle_count_[side] = cycles.size();
    double total = 0;
    for (const auto& [number, duration] : cycles) {
      facts.cycle_us.push_back(duration);
      total += duration;
    }
    if (!cycles.empty()) facts.mean_cycle_us = total / static_cast<double>(cycles.size());
    std::sort(facts.cycle_us.begin(), facts.cycle_us.end(), std::greater<>());
    sort_texts(facts.anchors);
  }

  void finish() {
    for (GroupPair& pair : groups_) result_.rows.push_back(score(pair));
    const StringTable& texts = result_.texts;
    std::sort(result_.rows.begin(), result_.rows.end(), [&](const SuspicionRow& a, const SuspicionRow& b) {
      if (a.score != b.score) return a.score > b.score;
      if (a.function != b.function) return texts[a.function] < texts[b.function];
      if (a.metric != b.metric) return texts[a.metric] < texts[b.metric];
      return texts[a.device] < texts[b.device];
    });
    result_.anchors_differ = result_.sides[0].anchors != result_.sides[1].anchors;
    result_.unscored = shares_.unscored(cycle_count_, texts);
    choose_findings(result_);
  }

 private:
  void sort_texts(std::vector<StringId>& ids) const {
    std::sort(ids.begin(), ids.end());
    ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
    std::sort(ids.begin(), ids.end(), [&](StringId a, StringId b) { return result_.texts[a] < result_.texts[b]; });
  }

  Comparison& result_;
  StringId missing_device_ = 0;
  std::array<std::size_t, 2> cycle_count_{};
  tsl::hopscotch_map<Triplet, std::size_t, TripletHash> index_;
  std::vector<GroupPair> groups_;
  Shares shares_;
};

}  // namespace

Comparison compare_by_suspicion(const Profile& base, const Profile& candidate, const ProcessPair& processes,
                                std::string identifier, std::string base_name) {
  Comparison result;
  result.pairing = processes.pairing;
  result.identifier = std::move(identifier);
  result.base_name = std::move(base_name);
  const bool strict = processes.pairing == Pairing::strict;
  result.sides[0].label = strict ? "normal" : fmt::format("normal_pid_{}", processes.base_pid);
  result.sides[1].label = strict ? "abnormal" : fmt::format("abnormal_pid_{}", processes.candidate_pid);
  Comparer comparer(result, processes);
  comparer.add_side(0, base);
  comparer.add_side(1, candidate);
  comparer.finish();
  return result;
}

}  // namespace culprit::deepdive
