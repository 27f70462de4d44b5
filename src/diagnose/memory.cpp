// Memory of the host: too little of it, or too little of its bandwidth and caches.
#include <algorithm>
#include <array>

#include "diagnose/rules.h"
#include "diagnose/text.h"

namespace culprit::diagnose {

namespace {

using model::Verdict;

constexpr double kLeastSwap = 1e6;       // bytes per second
constexpr double kLeastFaults = 20;      // major ones per second
constexpr double kLeastStalls = 1;       // per second
constexpr double kLeastPressure = 0.02;  // of the time
constexpr double kLeastOthers = 0.3;     // CPUs
constexpr double kSlowerMemory = 1.1;    // than what the same CPUs computed

Verdict verdict_of(const Evidence& evidence, std::string detail, double confidence) {
  Verdict verdict;
  verdict.cause = "host_memory_pressure";
  verdict.detail = std::move(detail);
  verdict.side = evidence.side();
  verdict.confidence = confidence;
  return verdict;
}

Sides faulting(const Evidence& evidence) {
  return evidence.states([](std::string_view state) {
    return state == "blocked in page_fault" || state == "blocked, uninterruptible" ||
           state == "blocked in disk or memory";
  });
}

/// Swapping, reclaiming and reading pages back are stages of one thing: the one that went farthest is named.
void pressure(const Evidence& evidence, Verdicts& verdicts) {
  const double swapped = std::max(0.0, evidence.rise("host.swap.in")) + std::max(0.0, evidence.rise("host.swap.out"));
  const double stalls = evidence.rise("host.memory.reclaim.stalls");
  const double faults = evidence.rise("target.faults.major");
  std::string detail;
  if (swapped >= kLeastSwap)
    detail = "swap";
  else if (stalls >= kLeastStalls)
    detail = "reclaim";
  else if (faults >= kLeastFaults)
    detail = "major_faults";
  else
    return;
  const Sides time = faulting(evidence);
  // The machine's pressure may be that of others alone.
  const bool felt =
      evidence.felt(time.rise()) >= kLeastImpact * evidence.states_of() ||
      (evidence.rise("host.pressure.memory.some") >= kLeastPressure && evidence.slowdown() >= kLeastImpact);
  if (!felt) return;
  Verdict verdict = verdict_of(evidence, detail, 0.85);
  if (swapped >= kLeastSwap) verdict.evidence.push_back(fmt::format("{}/s more were swapped", format_bytes(swapped)));
  if (stalls >= kLeastStalls)
    verdict.evidence.push_back(
        fmt::format("{:.3g} allocations a second more had to wait until memory was freed", stalls));
  if (faults >= kLeastFaults)
    verdict.evidence.push_back(fmt::format("It had to read {:.3g} pages a second more from a disk", faults));
  if (time.rise() > 0) {
    verdict.evidence.push_back(fmt::format("Its threads waited {} per step for pages", instead(time)));
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
  Verdict verdict = verdict_of(evidence, "bandwidth", 0.7);
  verdict.impact_ns = step->on_cpu.rise();
  verdict.work_ratio = step->on_cpu.ratio();
  verdict.evidence = {
      fmt::format("The same work took {} per step on its CPUs", instead(step->on_cpu)),
      fmt::format("Fixed steps through memory took the recorder {}, {:.0f} % longer than its arithmetic did",
                  instead(*memory), (slower - 1) * 100),
      took(beside.front())};
  if (const Sides queue = step->runnable; queue.rise() >= kLeastImpact * step->all().without)
    verdict.against.push_back(fmt::format("Its threads waited {} per step for a CPU, too", instead(queue)));
  verdict.next_step =
      fmt::format("see what {} does with memory; other CPUs help only behind other caches", beside.front().name);
  verdicts.push_back(std::move(verdict));
}

constexpr std::array kRules = {Rule{"memory.pressure", pressure}, Rule{"memory.bandwidth", bandwidth}};

}  // namespace

std::span<const Rule> memory_rules() { return kRules; }

}  // namespace culprit::diagnose
