// Memory of the host: too little of it, or too little of its bandwidth and caches.
#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "diagnose/cpu.h"
#include "diagnose/pages.h"
#include "diagnose/rules.h"
#include "diagnose/text.h"
#include "diagnose/thresholds.h"

namespace culprit::diagnose {

namespace {

using model::Verdict;

constexpr double kLeastMemoryPressure = 0.02;  // of the time
constexpr double kSlowerMemory = 1.1;          // than what the same CPUs computed
constexpr double kLeastHits = 1;               // of a group's limit, per second
constexpr double kNearLimit = 0.97;            // of the limit
constexpr double kMore = 1.5;                  // times what it was
constexpr double kTighter = 0.95;              // of what it was: pods of one size differ by less

Verdict memory_verdict(const Evidence& evidence, std::string detail, double confidence) {
  return verdict_of(evidence, "host_memory_pressure", std::move(detail), confidence);
}

Sides faulting(const Evidence& evidence) {
  return evidence.states([](std::string_view state) {
    return state == "blocked in page_fault" || state == "blocked, uninterruptible" ||
           state == "blocked in disk or memory";
  });
}

/// What happens for want of memory, each more than without.
struct Shortage {
  double swapped = 0;  ///< bytes per second
  double stalls = 0;   ///< allocations per second that had to wait
  double faults = 0;   ///< pages per second that the program had to read
  explicit Shortage(const Evidence& evidence)
      : swapped(std::max(0.0, evidence.rise("host.swap.in")) + std::max(0.0, evidence.rise("host.swap.out"))),
        stalls(evidence.rise("host.memory.reclaim.stalls")),
        faults(evidence.rise("target.faults.major")) {}

  void tell(std::vector<std::string>& evidence) const {
    if (swapped >= kLeastSwap) evidence.push_back(fmt::format("{}/s more were swapped", format_bytes(swapped)));
    if (stalls >= kLeastStalls)
      evidence.push_back(fmt::format("{:.3g} allocations a second more had to wait until memory was freed", stalls));
    if (faults >= kLeastFaults)
      evidence.push_back(fmt::format("It had to read {} pages a second more from a disk", rate_text(faults)));
  }
};

/// By how much a counter rose that became so many times as large; 0: it did not.
double grew(const Evidence& evidence, std::string_view name, double times) {
  const auto counter = evidence.counter(name);
  return counter && counter->ratio() >= times ? counter->rise() : 0;
}

/// How many times as much it did, by units, answers or steps a second; at least 1.
double load_ratio(const Evidence& evidence) {
  const model::RunComparison& all = evidence.comparison();
  double most = 1;
  const auto take = [&](const std::array<double, 2>& rates) {
    const double ratio = evidence.turned(rates).ratio();
    if (std::isfinite(ratio)) most = std::max(most, ratio);
  };
  if (all.work) take(all.work->throughput.value);
  if (all.host) {
    take(all.host->answered_per_second);
    take(all.host->steps_per_second);
  }
  return most;
}

bool is_tighter(const Sides& limit) {
  return limit.with > 0 && (limit.without <= 0 || limit.with <= kTighter * limit.without);
}

/// How the memory of a control group meets its limit. Who does more meets the same limit more often.
struct GroupLimit {
  Sides used;   ///< bytes; 0: not known
  Sides limit;  ///< bytes; 0: there is none, or it is not known
  Sides high;   ///< the same of the limit above which the kernel slows the group down
  bool tighter = false;
  double times = kMore;  ///< so many times what it was is more than its load explains
  double hits = 0;
  double high_hits = 0;
  double refaults = 0;  ///< pages per second
  double pressure = 0;  ///< of the time
  explicit GroupLimit(const Evidence& evidence)
      : used(evidence.counter("cgroup.memory.used").value_or(Sides{})),
        limit(evidence.counter("cgroup.memory.limit").value_or(Sides{})),
        high(evidence.counter("cgroup.memory.high").value_or(Sides{})),
        tighter(has_tighter_limit(evidence)),
        times(tighter ? kMore : kMore * load_ratio(evidence)),
        hits(grew(evidence, "cgroup.memory.limit_hits", times)),
        high_hits(grew(evidence, "cgroup.memory.high_hits", times)),
        refaults(grew(evidence, "cgroup.memory.refaults", times)),
        pressure(grew(evidence, "cgroup.pressure.memory.some", times)) {
    // A full group reads pages back all the time, and waits longer for each where the disk is late.
    if (!is_its_own() && answers_late(evidence)) pressure = 0;
  }

  [[nodiscard]] bool is_hit() const { return hits >= kLeastHits || high_hits >= kLeastHits; }
  /// Nobody else's want of memory looks like it.
  [[nodiscard]] bool is_its_own() const { return tighter || is_hit(); }
  [[nodiscard]] bool is_full() const {
    const double least = high.with > 0 && (limit.with <= 0 || high.with < limit.with) ? high.with : limit.with;
    return least > 0 && used.with >= kNearLimit * least;
  }
  [[nodiscard]] bool is_met() const { return is_hit() || is_full(); }
};

/// Files fill any group up to its limit, and their oldest pages make room: that does no harm until they are missed.
bool lacks_memory(const GroupLimit& group, const Shortage& shortage) {
  if (!group.is_met()) return false;
  if (group.tighter && shortage.faults >= kLeastFaults) return true;
  // Who frees memory of the machine does not meet the limit of a group, and takes the pages of full ones first.
  if (shortage.stalls >= kLeastStalls && !group.tighter) return false;
  if (shortage.swapped >= kLeastSwap && !group.is_its_own()) return false;
  return group.refaults >= kLeastFaults || group.pressure >= kLeastMemoryPressure;
}

/// "4.00 GiB instead of none".
std::string instead_bytes(const Sides& bytes) {
  const auto text = [](double value) { return value > 0 ? format_bytes(value) : std::string("none"); };
  return text(bytes.with) == text(bytes.without)
             ? text(bytes.with)
             : fmt::format("{} instead of {}", text(bytes.with), text(bytes.without));
}

void tell(const GroupLimit& group, std::vector<std::string>& evidence) {
  if (group.limit.with > 0)
    evidence.push_back(fmt::format("The memory limit of its control group is {}", instead_bytes(group.limit)));
  if (group.high.with > 0)
    evidence.push_back(
        fmt::format("Its control group is slowed down above {} (memory.high)", instead_bytes(group.high)));
  if (group.used.with > 0)
    evidence.push_back(fmt::format("The group used {}",
                                   group.used.without > 0 ? instead_bytes(group.used) : format_bytes(group.used.with)));
  if (group.hits >= kLeastHits)
    evidence.push_back(fmt::format("{} allocations a second more met the limit", rate_text(group.hits)));
  if (group.high_hits >= kLeastHits)
    evidence.push_back(fmt::format("It was slowed down {} times a second more", rate_text(group.high_hits)));
  if (group.refaults >= kLeastFaults)
    evidence.push_back(fmt::format("{} pages a second more were read again that had just been pushed out of its memory",
                                   rate_text(group.refaults)));
  if (group.pressure >= kLeastMemoryPressure)
    evidence.push_back(
        fmt::format("Somebody in the group waited for memory {:.3g} % of the time more", group.pressure * 100));
}

/// The memory of a pod or container, which the machine may have plenty of. Gives whether it was named.
bool memory_limit(const Evidence& evidence, const Shortage& shortage, Verdicts& verdicts) {
  const GroupLimit group(evidence);
  if (!lacks_memory(group, shortage)) return false;
  // Whose call is not known may as well sync files.
  const bool any_sleep = group.is_its_own() || !answers_late(evidence);
  const Sides time = evidence.states(
      [&](std::string_view state) { return reads_pages(state) || (any_sleep && sleeps_in_no_call(state)); });
  const bool waited = evidence.felt(time.rise()) >= kLeastImpact * evidence.states_of();
  if (!waited && !(group.pressure >= kLeastMemoryPressure && evidence.slowdown() >= kLeastImpact)) return false;
  Verdict verdict = memory_verdict(evidence, "memory_limit", group.is_hit() ? 0.9 : 0.75);
  tell(group, verdict.evidence);
  shortage.tell(verdict.evidence);
  if (evidence.rise("cgroup.memory.oom_kills") > 0)
    verdict.evidence.emplace_back("Processes of the group were killed for want of memory");
  if (waited) {
    verdict.evidence.push_back(fmt::format("Its threads waited {} for pages and files", instead_each(evidence, time)));
    verdict.impact_ns = evidence.felt(time.rise());
  } else {
    verdict.against.emplace_back("Its own threads waited no longer for pages: they may have freed memory themselves");
  }
  verdict.next_step = kRaiseLimit;
  verdicts.push_back(std::move(verdict));
  return true;
}

/// Swapping, reclaiming and reading pages back are stages of one thing: the one that went farthest is named. Where it
/// is the group that lacks memory they are stages of that.
void pressure(const Evidence& evidence, Verdicts& verdicts) {
  const Shortage shortage(evidence);
  if (memory_limit(evidence, shortage, verdicts)) return;
  std::string detail;
  if (shortage.swapped >= kLeastSwap)
    detail = "swap";
  else if (shortage.stalls >= kLeastStalls)
    detail = "reclaim";
  else if (shortage.faults >= kLeastFaults && !reads_cold_files(evidence))
    detail = "major_faults";
  else
    return;
  const Sides time = faulting(evidence);
  // The machine's pressure may be that of others alone.
  const bool felt =
      evidence.felt(time.rise()) >= kLeastImpact * evidence.states_of() ||
      (evidence.rise("host.pressure.memory.some") >= kLeastMemoryPressure && evidence.slowdown() >= kLeastImpact);
  if (!felt) return;
  Verdict verdict = memory_verdict(evidence, detail, 0.85);
  shortage.tell(verdict.evidence);
  if (time.rise() > 0) {
    verdict.evidence.push_back(fmt::format("Its threads waited {} for pages", instead_each(evidence, time)));
    verdict.impact_ns = evidence.felt(time.rise());
  } else {
    verdict.against.emplace_back("Its own threads waited no longer for pages");
  }
  verdict.next_step =
      "give the machine more memory, or find who took it (host.memory.available, process.memory.resident)";
  verdicts.push_back(std::move(verdict));
}

/// Others that stream through memory make the same code take longer on its CPU, without waiting, and memory longer than
/// arithmetic.
void bandwidth(const Evidence& evidence, Verdicts& verdicts) {
  const auto step = evidence.step();
  const auto memory = evidence.counter("host.speed.memory");
  if (!step || !memory || step->on_cpu.rise() < kLeastImpact * step->all().without) return;
  const auto arithmetic = evidence.counter("host.speed.arithmetic");
  const double slower = memory->ratio() / (arithmetic ? arithmetic->ratio() : 1);
  const auto beside = evidence.more_beside();
  if (!(slower >= kSlowerMemory) || beside.empty() || evidence.more_others() < kLeastOthers) return;
  Verdict verdict = memory_verdict(evidence, "bandwidth", 0.7);
  verdict.impact_ns = step->on_cpu.rise();
  verdict.work_ratio = step->on_cpu.ratio();
  verdict.evidence = {
      fmt::format("The same work took {} on its CPUs", instead_each(evidence, step->on_cpu)),
      fmt::format("Fixed steps through memory took the recorder {}, {:.0f} % longer than its arithmetic did",
                  instead(*memory), (slower - 1) * 100),
      took(beside.front())};
  if (const Sides queue = step->runnable; queue.rise() >= kLeastImpact * step->all().without)
    verdict.against.push_back(fmt::format("Its threads waited {} for a CPU, too", instead_each(evidence, queue)));
  verdict.next_step =
      fmt::format("see what {} does with memory; other CPUs help only behind other caches", beside.front().name);
  verdicts.push_back(std::move(verdict));
}

constexpr std::array kMemoryRules = {Rule{"memory.pressure", pressure}, Rule{"memory.bandwidth", bandwidth}};

}  // namespace

bool has_tighter_limit(const Evidence& evidence) {
  const auto tightens = [&](std::string_view name) {
    const auto limit = evidence.counter(name);
    return limit && is_tighter(*limit);
  };
  return tightens("cgroup.memory.limit") || tightens("cgroup.memory.high");
}

std::string rate_text(double per_second) {
  constexpr double kWhole = 100;
  return per_second < kWhole ? fmt::format("{:.3g}", per_second) : fmt::format("{:.0f}", per_second);
}

std::span<const Rule> memory_rules() { return kMemoryRules; }

}  // namespace culprit::diagnose
