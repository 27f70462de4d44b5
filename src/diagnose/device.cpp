// A GPU whose clock fell, that others use too, or whose links are crowded.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/text.h"
#include "diagnose/rules.h"
#include "diagnose/text.h"

namespace culprit::diagnose {

namespace {

using model::Verdict;

constexpr double kLeastClock = 0.1;      // by so much it fell
constexpr double kLeastOthersUse = 0.1;  // of the device, by other processes
constexpr double kLeastSlower = 1.1;     // a kernel's time
constexpr double kHotter = 3;            // degrees more
constexpr double kHot = 85;              // degrees

Verdict verdict_of(const Evidence& evidence, std::string cause, std::string detail, const std::string& device,
                   double confidence) {
  Verdict verdict;
  verdict.cause = std::move(cause);
  verdict.detail = std::move(detail);
  verdict.scope = model::VerdictScope::device;
  verdict.where = device;
  verdict.side = evidence.side();
  verdict.confidence = confidence;
  return verdict;
}

std::optional<Sides> resource_of(const Evidence& evidence, std::string_view metric, std::string_view device) {
  for (const Evidence::DeviceResource& found : evidence.resource(metric))
    if (found.device == device) return found.value;
  return std::nullopt;
}

/// What its kernels that compute took more of a step, ns; with `of` instead of "gpu_compute" others.
double rise_of_kernels(const Evidence& evidence, std::string_view device, std::string_view of = "gpu_compute") {
  double sum = 0;
  const model::RunComparison& all = evidence.comparison();
  for (const model::FunctionFinding& f : all.functions)
    if (all.texts[f.device] == device && all.texts[f.kind].starts_with(of)) sum += evidence.turned(f.time_ns).rise();
  return sum;
}

/// Active where the steps are called slower and these kernels took a part of it that matters.
model::VerdictState state_of(const Evidence& evidence, double impact) {
  const double step = evidence.longest_step();
  const bool matters = !(step > 0) || impact >= kLeastImpact * step;
  return evidence.is_slower() && matters ? model::VerdictState::active : model::VerdictState::latent;
}

/// "env.gpu7.power_limit_mw" is of "GPU 7", and of "GPU", the only one of a run.
bool is_limit_of(std::string_view key, std::string_view device) {
  constexpr std::string_view kBegin = "env.gpu";
  constexpr std::string_view kEnd = ".power_limit_mw";
  constexpr std::string_view kDevice = "GPU ";
  if (!key.starts_with(kBegin) || !key.ends_with(kEnd) || key.size() <= kBegin.size() + kEnd.size()) return false;
  const std::string_view index = key.substr(kBegin.size(), key.size() - kBegin.size() - kEnd.size());
  return device == "GPU" || (device.starts_with(kDevice) && device.substr(kDevice.size()) == index);
}

bool lower(const std::string& with, const std::string& without) {
  const auto a = parse_number<double>(with);
  const auto b = parse_number<double>(without);
  return a && b && *a < *b;
}

/// Why the clock is low, as far as it is recorded.
std::string reason_of(const Evidence& evidence, const std::string& device, Verdict& verdict) {
  for (const model::EnvironmentChange& fact : evidence.comparison().environment)
    if (is_limit_of(fact.key, device) && lower(fact.value[evidence.side()], fact.value[1 - evidence.side()])) {
      verdict.evidence.push_back(fmt::format("{} is {} instead of {}", fact.key.substr(4), fact.value[evidence.side()],
                                             fact.value[1 - evidence.side()]));
      return "throttle_power";
    }
  if (const auto heat = resource_of(evidence, "gpu_temp", device);
      heat && heat->with >= kHot && heat->rise() >= kHotter) {
    verdict.evidence.push_back(fmt::format("It is {:.0f} degrees hot instead of {:.0f}", heat->with, heat->without));
    return "throttle_thermal";
  }
  return "unknown";
}

void clock(const Evidence& evidence, Verdicts& verdicts) {
  for (const auto& [device, clock] : evidence.clocks()) {
    if (clock.without <= 0 || clock.ratio() > 1 - kLeastClock) continue;
    // An idle device lowers its clock, too, and nobody's work takes longer by that.
    const double slower = evidence.kernels_ratio(device);
    if (slower < kLeastSlower) continue;
    Verdict verdict = verdict_of(evidence, "gpu_clock_drop", "", device, 0.9);
    verdict.detail = reason_of(evidence, device, verdict);
    verdict.work_ratio = slower;
    verdict.impact_ns = rise_of_kernels(evidence, device);
    verdict.state = state_of(evidence, verdict.impact_ns);
    verdict.evidence.insert(
        verdict.evidence.begin(),
        {fmt::format("The clock of {} while it worked is {:.0f} % of what it was", device, clock.ratio() * 100),
         fmt::format("The same kernels took x{:.2f} there", slower)});
    verdict.next_step = "nvidia-smi -q -d CLOCK,PERFORMANCE,POWER,TEMPERATURE says what limits the clock";
    verdicts.push_back(std::move(verdict));
  }
}

/// Kernels that are bound by arithmetic, or by memory, by their names.
enum class Bound : std::uint8_t { arithmetic, memory, unknown };
Bound bound_of(std::string_view name) {
  constexpr std::array kArithmetic = {"gemm", "cutlass", "xmma", "conv", "wgrad", "dgrad"};
  constexpr std::array kMemory = {"elementwise", "vectorized", "layer_norm", "layernorm",
                                  "rmsnorm",     "softmax",    "copy",       "reduce"};
  const auto holds = [&](const char* word) { return name.find(word) != std::string_view::npos; };
  if (std::ranges::any_of(kArithmetic, holds)) return Bound::arithmetic;
  return std::ranges::any_of(kMemory, holds) ? Bound::memory : Bound::unknown;
}

/// Time of the kernels of one kind, ns per step, and of those of them that are slower.
struct Slow {
  double all = 0;
  double slower = 0;
  [[nodiscard]] double share() const { return all > 0 ? slower / all : 0; }
};

/// Kernels that became slower alike share what they share: the device, not their code. Of a clock that was not recorded
/// that is all there is: arithmetic is slower by it, and memory is not; where others use the memory it is the other way
/// round.
void alike(const Evidence& evidence, Verdicts& verdicts) {
  constexpr std::size_t kFewest = 3;
  constexpr double kNearlyAll = 0.9;
  constexpr double kFew = 0.5;
  constexpr double kSpread = 0.1;  // of logarithms
  const model::RunComparison& all = evidence.comparison();
  struct Device {
    std::array<Slow, 3> of;
    std::vector<std::pair<double, double>> logs;  // with their time
    double rise = 0;
  };
  std::map<std::string, Device> devices;
  for (const model::FunctionFinding& f : all.functions) {
    if (all.texts[f.kind] != "gpu_compute" || !(f.work_ratio > 0) || !std::isfinite(f.work_ratio)) continue;
    Device& device = devices[std::string(all.texts[f.device])];
    Slow& slow = device.of[static_cast<std::size_t>(bound_of(all.texts[f.function]))];
    const Sides time = evidence.turned(f.time_ns);
    slow.all += time.without;
    const double log = (evidence.side() == 1 ? 1 : -1) * std::log(f.work_ratio);
    if (!model::has_changed(f) || log < std::log(kLeastSlower)) continue;
    slow.slower += time.without;
    device.logs.emplace_back(log, time.without);
    device.rise += time.rise();
  }
  for (const auto& [name, device] : devices) {
    const auto seen = [&](const Verdict& v) { return v.where == name && v.cause == "gpu_clock_drop"; };
    if (device.logs.size() < kFewest || std::ranges::any_of(verdicts, seen)) continue;
    double weights = 0;
    double mean = 0;
    double square = 0;
    for (const auto& [log, weight] : device.logs) {
      weights += weight;
      mean += weight * log;
      square += weight * log * log;
    }
    mean /= weights;
    if (std::sqrt(std::max(0.0, square / weights - mean * mean)) > kSpread) continue;
    const double arithmetic = device.of[static_cast<std::size_t>(Bound::arithmetic)].share();
    const double memory = device.of[static_cast<std::size_t>(Bound::memory)].share();
    // Without kernels of the other kind nothing tells the device from their code.
    if (std::ranges::any_of(std::array{Bound::arithmetic, Bound::memory},
                            [&](Bound bound) { return !(device.of[static_cast<std::size_t>(bound)].all > 0); }))
      continue;
    const bool clock = arithmetic >= kNearlyAll && memory < kFew;
    if (!clock && !(memory >= kNearlyAll && arithmetic < kFew)) continue;
    Verdict verdict = clock ? verdict_of(evidence, "gpu_clock_drop", "unknown", name, 0.6)
                            : verdict_of(evidence, "gpu_contention", "memory_pressure", name, 0.6);
    verdict.work_ratio = std::exp(mean);
    verdict.impact_ns = device.rise;
    verdict.state = state_of(evidence, device.rise);
    verdict.evidence = {fmt::format(
        "{} kernels took x{:.2f} alike: {:.0f} % of the time of those that are bound by arithmetic, {:.0f} % of "
        "those that are bound by memory",
        device.logs.size(), verdict.work_ratio, arithmetic * 100, memory * 100)};
    verdict.against.emplace_back("No counter of the device says so; a library built anew could do that, too");
    verdict.next_step = "record the device's clocks and use (nvidia-smi dmon), and compare the versions of libraries";
    verdicts.push_back(std::move(verdict));
  }
}

void other_process(const Evidence& evidence, Verdicts& verdicts) {
  for (const auto& [device, used] : evidence.resource("gpu_usage")) {
    const auto own = resource_of(evidence, "process_gpu_usage", device);
    // What is not listed did not move. Percent in the reference's tables.
    const double unit = std::max(used.with, used.without) > 1.5 ? 100 : 1;
    const Sides others = own ? Sides{(used.without - own->without) / unit, (used.with - own->with) / unit}
                             : Sides{used.without / unit, used.with / unit};
    const double slower = evidence.kernels_ratio(device);
    if (others.rise() < kLeastOthersUse || slower < kLeastSlower) continue;
    Verdict verdict = verdict_of(evidence, "gpu_contention", "other_process", device, 0.8);
    verdict.work_ratio = slower;
    verdict.impact_ns = rise_of_kernels(evidence, device);
    verdict.state = state_of(evidence, verdict.impact_ns);
    verdict.evidence = {fmt::format("{} was used {} of the time{}", device, instead_percent(others),
                                    own ? " by other processes" : ", by this process as before"),
                        fmt::format("The same kernels took x{:.2f} there", slower)};
    verdict.next_step = "nvidia-smi names the processes on it";
    verdicts.push_back(std::move(verdict));
  }
}

/// Transfers that take longer while kernels that compute do not: not the clock, and not the device.
void links(const Evidence& evidence, Verdicts& verdicts) {
  struct Link {
    std::string_view kind;
    std::string_view detail;
    std::string_view words;
    std::string_view next;
  };
  constexpr std::array kLinks = {
      Link{"gpu_comm", "", "Collectives",
           "nvidia-smi nvlink -s, and whether another rank came late (all ranks are needed to see that)"},
      Link{"gpu_memcpy", "pcie", "Copies between host and device", "nvidia-smi -q -d PCIE, and who else copies"}};
  const model::RunComparison& all = evidence.comparison();
  for (const Link& link : kLinks) {
    std::map<std::string, std::array<double, 3>> devices;  // weight, weighted log, rise
    for (const model::FunctionFinding& f : all.functions) {
      const std::string_view kind = all.texts[f.kind];
      const bool is_of =
          link.kind == "gpu_comm" ? kind == link.kind : kind == "gpu_memcpy_h2d" || kind == "gpu_memcpy_d2h";
      if (!is_of || !(f.work_ratio > 0) || !std::isfinite(f.work_ratio)) continue;
      if (!model::has_changed(f)) continue;
      const Sides time = evidence.turned(f.time_ns);
      auto& [weight, log, rise] = devices[std::string(all.texts[f.device])];
      weight += time.without;
      log += time.without * (evidence.side() == 1 ? 1 : -1) * std::log(f.work_ratio);
      rise += time.rise();
    }
    for (const auto& [device, sums] : devices) {
      const auto& [weight, log, rise] = sums;
      if (!(weight > 0)) continue;
      const double slower = std::exp(log / weight);
      const double kernels = evidence.kernels_ratio(device);
      if (slower < kLeastSlower * kLeastSlower || slower < kLeastSlower * kernels) continue;
      Verdict verdict = verdict_of(evidence, "interconnect_contention", std::string(link.detail), device,
                                   link.kind == "gpu_comm" ? 0.5 : 0.7);
      verdict.work_ratio = slower;
      verdict.impact_ns = rise;
      verdict.state = state_of(evidence, rise);
      verdict.evidence = {
          fmt::format("{} of {} took x{:.2f}, its other kernels x{:.2f}", link.words, device, slower, kernels)};
      if (link.kind == "gpu_comm")
        verdict.against.emplace_back("Who waits in a collective for a late rank takes as long");
      verdict.next_step = link.next;
      verdicts.push_back(std::move(verdict));
    }
  }
}

constexpr std::array kRules = {Rule{"gpu.clock", clock}, Rule{"gpu.alike", alike},
                               Rule{"gpu.other_process", other_process}, Rule{"gpu.links", links}};

}  // namespace

std::span<const Rule> device_rules() { return kRules; }

}  // namespace culprit::diagnose
