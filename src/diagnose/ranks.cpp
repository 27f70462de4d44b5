// Several ranks that wait for each other: which of them is late, and why; and the link between them, of which only what
// is left when all have come says anything.
#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "diagnose/rules.h"
#include "diagnose/text.h"
#include "diagnose/thresholds.h"

namespace culprit::diagnose {

namespace {

using model::CollectiveChange;
using model::Verdict;

constexpr double kLeastSlowerLink = 1.1;  // of transfers
constexpr double kSameCalls = 0.02;       // per step

/// How much more was sent on the side: by its elements, or more calls. nullopt: not known. Where nobody tells elements,
/// as many calls are taken to have sent as much, unless the load changed and steps do not tell what they work on.
std::optional<double> more_sent(const Evidence& evidence, const CollectiveChange& rank, const Verdicts& verdicts) {
  const double calls = evidence.turned(rank.calls).ratio();
  if (const Sides sent = evidence.turned(rank.elements); sent.with > 0 && sent.without > 0)
    return std::max({1.0, calls, sent.ratio()});
  const bool other_work = std::ranges::any_of(
      verdicts, [&](const Verdict& v) { return v.cause == "workload_changed" && v.side == evidence.side(); });
  if (std::abs(calls - 1) > kSameCalls || (other_work && !rank.knows_work)) return std::nullopt;
  return 1;
}

/// All ranks leave a collective together: what it takes when the last has come is the link's.
void link(const Evidence& evidence, Verdicts& verdicts) {
  std::vector<const CollectiveChange*> ranks;
  for (const CollectiveChange& rank : evidence.comparison().collectives)
    if (rank.calls[0] > 0 && rank.calls[1] > 0) ranks.push_back(&rank);
  if (ranks.size() < 2) return;
  std::ranges::stable_sort(ranks, {}, [&](const CollectiveChange* r) { return evidence.turned(r->transfer_ns).with; });
  const CollectiveChange& middle = *ranks[ranks.size() / 2];
  const Sides time = evidence.turned(middle.transfer_ns);
  const std::optional<double> sent = more_sent(evidence, middle, verdicts);
  if (!sent) return;
  const double slower = time.ratio() / *sent;
  const double impact = time.with - time.without * *sent;
  if (!(slower >= kLeastSlowerLink) || impact < kLeastOfDevice * evidence.mean_step()) return;
  Verdict verdict;
  verdict.cause = "interconnect_contention";
  verdict.side = evidence.side();
  verdict.confidence = 0.8;
  verdict.work_ratio = slower;
  verdict.impact_ns = impact;
  verdict.state = evidence.state_of(impact);
  verdict.evidence = {fmt::format("Collectives took {} per step from when the last rank had come, on {} ranks",
                                  instead(time), ranks.size())};
  if (const Sides elements = evidence.turned(middle.elements); elements.with > 0 && elements.without > 0)
    verdict.evidence.push_back(fmt::format("They sent x{:.2f} elements per step", elements.ratio()));
  else
    verdict.against.emplace_back("How much they sent is not recorded; as many calls are taken to have sent as much");
  const auto is_network = [](const Verdict& v) {
    return v.cause == "interconnect_contention" && v.detail == "network";
  };
  if (std::vector<std::string> changed = network_evidence(evidence); !changed.empty()) {
    verdict.detail = "network";
    std::ranges::move(changed, std::back_inserter(verdict.evidence));
    verdict.against.emplace_back("Whether the collectives went over these connections is not known");
    std::erase_if(verdicts, is_network);
  }
  verdict.next_step = "nvidia-smi nvlink -s, the counters of the network, and who else uses them";
  verdicts.push_back(std::move(verdict));
}

/// Why a rank is late: what the other rules say of it and of no other, else what its threads did.
void explain(const Evidence& evidence, Verdict& straggler, Verdicts& verdicts) {
  std::vector<const Verdict*> own;
  for (const Verdict& v : verdicts)
    if (v.rank == straggler.rank && std::ranges::none_of(verdicts, [&](const Verdict& other) {
          return other.rank >= 0 && other.rank != straggler.rank && other.cause == v.cause;
        }))
      own.push_back(&v);
  std::ranges::stable_sort(own, std::ranges::greater(),
                           [](const Verdict* v) { return std::isfinite(v->impact_ns) ? v->impact_ns : 0; });
  if (!own.empty()) {
    const Verdict& most = *own.front();
    straggler.detail = most.cause;
    straggler.work_ratio = most.work_ratio;
    straggler.confidence = std::max(straggler.confidence, most.confidence);
    straggler.against = most.against;
    straggler.next_step = most.next_step;
    straggler.evidence.insert(straggler.evidence.end(), most.evidence.begin(), most.evidence.end());
    for (const Verdict* v : own)
      if (v != &most && v->cause != "kernel_regression" && !v->evidence.empty())
        straggler.evidence.push_back(v->evidence.front());
    std::erase_if(verdicts, [&](const Verdict& v) { return std::ranges::find(own, &v) != own.end(); });
    return;
  }
  const model::RunComparison& all = evidence.comparison();
  Sides queue;
  double others = 0;
  for (const model::FunctionFinding& f : all.functions) {
    if (all.texts[f.kind] != "runq") continue;
    const Sides time = evidence.turned(f.time_ns);
    const double weight = evidence.weight_of(f.phase);
    if (evidence.place_of(f).rank != straggler.rank) {
      others = std::max(others, weight * time.rise());
      continue;
    }
    queue.without += weight * time.without;
    queue.with += weight * time.with;
  }
  if (queue.rise() > kLeastOfDevice * evidence.mean_step() && queue.rise() > 2 * others) {
    straggler.detail = "cpu_contention";
    straggler.evidence.push_back(fmt::format("Its threads waited {} per step for a CPU", instead(queue)));
    straggler.next_step = "culprit record on its host tells who had the CPUs";
    std::erase_if(verdicts, [](const Verdict& v) { return v.cause == "cpu_contention" && v.detail.empty(); });
  }
}

void straggler(const Evidence& evidence, Verdicts& verdicts) {
  const auto& ranks = evidence.comparison().collectives;
  if (ranks.size() < 2) return;
  const auto late = [&](const CollectiveChange& rank) { return evidence.turned(rank.held_up_ns); };
  const auto worst =
      std::ranges::max_element(ranks, {}, [&](const CollectiveChange& rank) { return late(rank).rise(); });
  const Sides time = late(*worst);
  if (!(evidence.mean_step() > 0) || time.rise() < kLeastLate * evidence.mean_step()) return;
  double others = 0;
  double waited = 0;
  for (const CollectiveChange& rank : ranks) {
    if (rank.rank == worst->rank) continue;
    others = std::max(others, late(rank).rise());
    waited = std::max(waited, evidence.turned(rank.wait_ns).rise());
  }
  if (time.rise() < kTwiceAsLate * others || waited < time.rise() / 2) return;
  Verdict verdict;
  verdict.cause = "straggler";
  verdict.scope = model::VerdictScope::rank;
  verdict.where = fmt::format("rank {}", worst->rank);
  verdict.rank = worst->rank;
  verdict.side = evidence.side();
  verdict.confidence = 0.85;
  verdict.impact_ns = time.rise();
  verdict.state = evidence.state_of(time.rise());
  verdict.evidence = {
      fmt::format("It alone held all others up for {} per step: it came last to the collectives", instead(time)),
      fmt::format("Another rank waited up to {} more per step in them", format_duration(waited))};
  verdict.next_step = "culprit record on its host, and its device's clock and errors (nvidia-smi -q)";
  explain(evidence, verdict, verdicts);
  if (verdict.detail.empty())
    verdict.against.emplace_back("Nothing that was recorded says why; a rank with more to do would look alike");
  verdicts.push_back(std::move(verdict));
}

constexpr std::array kRankRules = {Rule{"ranks.link", link}, Rule{"ranks.straggler", straggler}};

}  // namespace

std::span<const Rule> rank_rules() { return kRankRules; }

}  // namespace culprit::diagnose
