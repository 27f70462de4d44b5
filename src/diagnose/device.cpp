// A GPU whose clock fell, that others use too, or whose links are crowded.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/text.h"
#include "diagnose/kernels.h"
#include "diagnose/rules.h"
#include "diagnose/text.h"
#include "diagnose/thresholds.h"

namespace culprit::diagnose {

namespace {

using model::Verdict;

constexpr double kLeastClock = 0.05;      // by so much it fell
constexpr double kLeastOthersUse = 0.05;  // of the device, by other processes
constexpr double kLeastSlower = 1.04;     // kernels' time, of all, or of a part of them that matters
constexpr double kLeastPart = 0.1;        // of their time
constexpr double kLeastExplained = 0.3;   // of what the kernels took more: by a clock that tells of them
constexpr std::string_view kNoLinkCounter =
    "No counter of the link says so: memory of the host that is slower, or no longer pinned, would look alike";
constexpr std::array<std::string_view, 2> kUse = {"gpu_usage", "GPU usage"};
constexpr std::array<std::string_view, 2> kOwnUse = {"process_gpu_usage", "GPU process usage"};
constexpr std::array<std::string_view, 2> kHeat = {"gpu_temp", "GPU temperature"};

/// Active where the steps are called slower and its kernels took a part of some phase that matters; `most`: what the
/// cause can have made of that, ns.
Verdict verdict_of(const Evidence& evidence, const DeviceKernels& kernels, std::string cause, std::string detail,
                   double confidence, double most = std::numeric_limits<double>::infinity()) {
  const double explained = kernels.rise > most ? std::max(0.0, most) / kernels.rise : 1;
  Verdict verdict;
  verdict.cause = std::move(cause);
  verdict.detail = std::move(detail);
  verdict.scope = model::VerdictScope::device;
  verdict.where = evidence.name_of(kernels.place);
  verdict.rank = kernels.place.rank;
  verdict.side = evidence.side();
  verdict.confidence = confidence;
  verdict.work_ratio = std::max(kernels.ratio, kernels.slower_ratio);
  if (evidence.mean_step() > 0) verdict.impact_ns = explained * kernels.rise;
  verdict.state = evidence.state_of(explained * kernels.rise, explained * kernels.largest_rise);
  return verdict;
}

/// The same work takes longer there.
bool are_slower(const DeviceKernels& kernels) {
  return kernels.ratio >= kLeastSlower ||
         (kernels.all.share_slower() >= kLeastPart && kernels.slower_ratio >= kLeastSlower);
}

std::string slower_text(const DeviceKernels& kernels) {
  if (kernels.ratio >= kLeastSlower) return fmt::format("The same kernels took x{:.2f} there", kernels.ratio);
  return fmt::format("Kernels that take {:.0f} % of the time there took x{:.2f}", kernels.all.share_slower() * 100,
                     kernels.slower_ratio);
}

/// "env.gpu7.power_limit_mw", which ends in ".power_limit_mw", is of "GPU 7", and of "GPU", the only one of a run.
bool is_limit_of(std::string_view key, std::string_view end, std::string_view device) {
  constexpr std::string_view kBegin = "env.gpu";
  constexpr std::string_view kDevice = "GPU ";
  if (!key.starts_with(kBegin) || !key.ends_with(end) || key.size() <= kBegin.size() + end.size()) return false;
  const std::string_view index = key.substr(kBegin.size(), key.size() - kBegin.size() - end.size());
  return device == "GPU" || (device.starts_with(kDevice) && device.substr(kDevice.size()) == index);
}

bool lower(const std::string& with, const std::string& without) {
  const auto a = parse_number<double>(with);
  const auto b = parse_number<double>(without);
  return a && b && *a < *b;
}

/// Why the clock is low, as far as it is recorded.
std::string reason_of(const Evidence& evidence, const Place& place, Verdict& verdict) {
  for (const auto& [end, reason] :
       {std::pair(".power_limit_mw", "throttle_power"), std::pair(".application_sm_clock_mhz", "locked")})
    for (const model::EnvironmentChange& fact : evidence.comparison().environment) {
      const std::string& with = fact.value[evidence.side()];
      const std::string& without = fact.value[1 - evidence.side()];
      if (!is_limit_of(fact.key, end, place.device) || !lower(with, without)) continue;
      verdict.evidence.push_back(fmt::format("{} is {} instead of {}", fact.key.substr(4), with, without));
      return reason;
    }
  if (const auto heat = evidence.resource_of(kHeat, place);
      heat && heat->value.with >= kHot && heat->value.rise() >= kHotter) {
    verdict.evidence.push_back(
        fmt::format("It is {:.0f} degrees hot instead of {:.0f}", heat->value.with, heat->value.without));
    return "throttle_thermal";
  }
  return "unknown";
}

/// ": 210 instead of 1187 MHz", where the unit is known.
std::string in_megahertz(const Evidence::DeviceResource& clock) {
  constexpr double kMega = 1e6;
  if (clock.unit != model::Unit::hertz) return {};
  return fmt::format(": {:.0f} instead of {:.0f} MHz", clock.value.with / kMega, clock.value.without / kMega);
}

bool fell(const Sides& clock) { return clock.without > 0 && clock.ratio() <= 1 - kLeastClock; }

void clock(const Evidence& evidence, Verdicts& verdicts) {
  for (const DeviceKernels& kernels : kernels_of(evidence)) {
    const auto clock = evidence.clock_of(kernels.place);
    // An idle device lowers its clock, too, and nobody's work takes longer by that.
    if (!clock || !fell(clock->value) || !are_slower(kernels)) continue;
    Verdict verdict =
        verdict_of(evidence, kernels, "gpu_clock_drop", "", 0.9, kernels.all.all * (1 / clock->value.ratio() - 1));
    verdict.detail = reason_of(evidence, kernels.place, verdict);
    verdict.evidence.insert(verdict.evidence.begin(),
                            {fmt::format("The clock of {} while it worked is {:.0f} % of what it was{}", verdict.where,
                                         clock->value.ratio() * 100, in_megahertz(*clock)),
                             slower_text(kernels)});
    if (const double alone = 1 / clock->value.ratio(); verdict.work_ratio > kBeyondClock * alone)
      verdict.against.push_back(fmt::format("They took x{:.2f}; the lower clock alone makes no more than x{:.2f} of it",
                                            verdict.work_ratio, alone));
    verdict.next_step = "nvidia-smi -q -d CLOCK,PERFORMANCE,POWER,TEMPERATURE says what limits the clock";
    verdicts.push_back(std::move(verdict));
  }
}

/// Its use was counted, that of the program, too, and others did not use it more.
bool no_others(const Evidence& evidence, const Place& place) {
  const auto used = evidence.resource_of(kUse, place);
  const auto own = evidence.resource_of(kOwnUse, place);
  if (!used || !own) return false;
  const double unit = std::max(used->value.with, used->value.without) > 1.5 ? 100 : 1;
  return (used->value.rise() - own->value.rise()) / unit < kLeastOthersUse;
}

void other_process(const Evidence& evidence, Verdicts& verdicts) {
  for (const DeviceKernels& kernels : kernels_of(evidence)) {
    const auto used = evidence.resource_of(kUse, kernels.place);
    if (!used || !are_slower(kernels)) continue;
    const auto own = evidence.resource_of(kOwnUse, kernels.place);
    // Percent in the reference's tables.
    const double unit = std::max(used->value.with, used->value.without) > 1.5 ? 100 : 1;
    // Whoever has more to do, or a slower clock, uses a device for as much longer as its kernels take.
    const Sides others =
        own ? Sides{(used->value.without - own->value.without) / unit, (used->value.with - own->value.with) / unit}
            : Sides{std::min(1.0, used->value.without / unit * std::max(1.0, kernels.ratio)), used->value.with / unit};
    if (others.rise() < kLeastOthersUse) continue;
    Verdict verdict = verdict_of(evidence, kernels, "gpu_contention", "other_process", 0.8);
    verdict.evidence = {
        own ? fmt::format("{} was used {} of the time by other processes", verdict.where, instead_percent(others))
            : fmt::format("{} was used {:.3g} % of the time; its slower kernels alone make {:.3g} %", verdict.where,
                          others.with * 100, others.without * 100),
        slower_text(kernels)};
    if (!own)
      verdict.against.emplace_back("Whose use it is was not counted: more launches of its own would look alike");
    verdict.next_step = "nvidia-smi names the processes on it";
    verdicts.push_back(std::move(verdict));
  }
}

/// A device idles, and what it is to do next has been launched: it works for somebody else meanwhile. The kernels that
/// it leaves for that take longer by it, each as often as it is hit; where they are too short to be left, the idle time
/// alone must be most of what a step takes longer, and in each of them.
void turns(const Evidence& evidence, Verdicts& verdicts) {
  constexpr double kLeastLonger = 2;  // times as long: latencies of launches spread
  constexpr double kFarLonger = 10;
  constexpr double kMostOfGrowth = 0.5;
  constexpr double kLittleOfHost = 0.1;  // of that time
  const std::vector<DeviceKernels> devices = kernels_of(evidence);
  for (const DeviceKernels& kernels : devices) {
    const std::string where = evidence.name_of(kernels.place);
    if (std::ranges::any_of(
            verdicts, [&](const Verdict& v) { return v.scope == model::VerdictScope::device && v.where == where; }) ||
        no_others(evidence, kernels.place))
      continue;
    Sides idle;
    bool apart = false;
    double largest = 0;
    double host = 0;
    for (const model::Waterfall& waterfall : evidence.comparison().waterfalls) {
      const bool is_it = devices.size() == 1 || kernels.place.device == fmt::format("GPU {}", waterfall.device);
      if (waterfall.device < 0 || !is_it) continue;
      const auto [of_phase, is_apart] = evidence.launched_idle(waterfall.phase, waterfall.device);
      apart = apart || (is_apart && of_phase.rise() >= kMostOfGrowth * evidence.growth());
      idle.without += evidence.weight_of(waterfall.phase) * of_phase.without;
      idle.with += evidence.weight_of(waterfall.phase) * of_phase.with;
      host += evidence.weight_of(waterfall.phase) * evidence.idle_rise(waterfall.phase).value_or(0);
      if (const double step = evidence.step_time(waterfall.phase); step > 0)
        largest = std::max(largest, of_phase.rise() / step);
    }
    if (idle.rise() < kLeastImpact * evidence.mean_step() || idle.ratio() < kLeastLonger) continue;
    // A host that is late, and a device that slept meanwhile, begin late as well; no kernel takes long by that.
    const bool alone = apart && idle.ratio() >= kFarLonger && idle.rise() >= kMostOfGrowth * evidence.growth() &&
                       host <= kLittleOfHost * idle.rise();
    if ((!are_slower(kernels) && !alone) || host > idle.rise()) continue;
    DeviceKernels felt = kernels;
    felt.rise = idle.rise() + std::max(0.0, kernels.rise);
    felt.largest_rise = std::max(largest, kernels.largest_rise);
    Verdict verdict =
        verdict_of(evidence, felt, "gpu_contention", "other_process", are_slower(kernels) ? kSureOfTurns : 0.6);
    verdict.evidence = {
        fmt::format("{} idled for {} per step though its next work had been launched", where, instead(idle))};
    if (kernels.rise > 0)
      verdict.evidence.push_back(fmt::format("Its kernels took {} more per step", format_duration(kernels.rise)));
    verdict.against.emplace_back(
        "Nobody counted who used it: waiting for another device, or for a function of the host in a stream, would look "
        "alike");
    verdict.next_step = "nvidia-smi names the processes on it";
    verdicts.push_back(std::move(verdict));
  }
}

/// Kernels that became slower alike share what they share: the device, not their code. Of a clock that was not recorded
/// that is all there is: arithmetic is slower by it, and memory is not; where others use the memory it is the other way
/// round; where all is slower, others use the device, or its clock is far down.
void kernels_alike(const Evidence& evidence, Verdicts& verdicts) {
  constexpr std::size_t kFewest = 3;
  constexpr double kNearlyAll = 0.85;
  constexpr double kMost = 0.7;
  constexpr double kFew = 0.5;
  constexpr double kMayDo = 0.03;  // of the kernels' time: a kind that tells
  for (const DeviceKernels& kernels : kernels_of(evidence)) {
    const auto seen = [&](const Verdict& v) {
      return v.scope == model::VerdictScope::device && v.where == evidence.name_of(kernels.place) &&
             !(v.impact_ns < kLeastExplained * kernels.rise);
    };
    if (kernels.kinds < kFewest || std::ranges::any_of(verdicts, seen)) continue;
    if (kernels.slower_ratio < kLeastSlower || kernels.all.share_larger() > kFew || does_more(kernels)) continue;
    // A lower clock makes arithmetic slower alike, and of the rest each kernel in its way.
    const bool all_alike = kernels.spread <= spread_alike(kernels.slower_ratio);
    const bool arithmetic_alike =
        kernels.arithmetic_names >= kFewest && kernels.arithmetic_spread <= spread_alike(kernels.arithmetic_ratio);
    // Without kernels of the other kind nothing tells the device from their code.
    const double least = kMayDo * kernels.all.all;
    if (kernels.arithmetic.all < least || kernels.memory.all < least) continue;
    const double arithmetic = kernels.arithmetic.share_slower();
    const double memory = kernels.memory.share_slower();
    const auto clock = evidence.clock_of(kernels.place);
    std::string cause;
    std::string detail = "unknown";
    double confidence = 0.6;
    if (all_alike && arithmetic >= kNearlyAll && memory >= kNearlyAll) {
      cause = clock ? "gpu_contention" : "gpu_clock_drop";
      if (clock && !no_others(evidence, kernels.place)) detail = "other_process";
      if (!clock) confidence = 0.5;
    } else if ((all_alike || arithmetic_alike) && arithmetic >= kNearlyAll && !clock) {
      cause = "gpu_clock_drop";
      // Far down it makes some of what is bound by memory slower, too, as another process does.
      if (memory >= kFew || !all_alike) confidence = 0.5;
    } else if (all_alike && memory >= kMost && arithmetic < kFew) {
      cause = "gpu_contention";
      detail = "memory_pressure";
    } else {
      continue;
    }
    Verdict verdict = verdict_of(evidence, kernels, cause, detail, confidence);
    verdict.work_ratio = all_alike ? kernels.slower_ratio : kernels.arithmetic_ratio;
    verdict.evidence = {fmt::format(
        "{} kernels took x{:.2f} alike: {:.0f} % of the time of those that are bound by arithmetic, {:.0f} % of "
        "those that are bound by memory",
        all_alike ? kernels.kinds : kernels.arithmetic_names, verdict.work_ratio, arithmetic * 100, memory * 100)};
    if (clock)
      verdict.evidence.push_back(fmt::format("Its clock is {:.0f} % of what it was", clock->value.ratio() * 100));
    verdict.against.emplace_back("No counter of the device says so; a library built anew could do that, too");
    if (confidence < 0.6) verdict.against.emplace_back("Another process on the device would look alike");
    verdict.next_step = "record the device's clocks and use (nvidia-smi dmon), and compare the versions of libraries";
    verdicts.push_back(std::move(verdict));
  }
}

/// Copies between host and device that take longer while kernels that compute do not: not the clock, not the device.
void copies(const Evidence& evidence, Verdicts& verdicts) {
  constexpr double kLeastCopies = 1.1;
  const model::RunComparison& all = evidence.comparison();
  struct Link {
    double weight = 0;
    double log = 0;
    double rise = 0;
    double largest_rise = 0;
    bool larger = false;
  };
  std::map<Place, Link> links;
  for (const model::FunctionFinding& f : all.functions) {
    const std::string_view kind = all.texts[f.kind];
    if (kind != "gpu_memcpy_h2d" && kind != "gpu_memcpy_d2h") continue;
    if (!(f.work_ratio > 0) || !std::isfinite(f.work_ratio) || !last_another_time(f)) continue;
    const Sides time = evidence.turned(f.time_ns);
    const Sides size = evidence.turned(f.size);
    Link& link = links[evidence.place_of(f)];
    const double weight = evidence.weight_of(f.phase) * time.without;
    link.weight += weight;
    link.log += weight * (evidence.side() == 1 ? 1 : -1) * std::log(f.work_ratio);
    link.rise += evidence.weight_of(f.phase) * time.rise();
    if (const double step = evidence.step_time(f.phase); step > 0)
      link.largest_rise = std::max(link.largest_rise, time.rise() / step);
    link.larger = link.larger || size.ratio() > kLeastCopies;
  }
  for (const DeviceKernels& kernels : kernels_of(evidence)) {
    const auto found = links.find(kernels.place);
    if (found == links.end() || !(found->second.weight > 0) || found->second.larger) continue;
    const Link& link = found->second;
    const double slower = std::exp(link.log / link.weight);
    if (slower < kLeastCopies * std::max(1.0, kernels.ratio) || link.rise < kLeastOfDevice * evidence.mean_step())
      continue;
    DeviceKernels as_copies = kernels;
    as_copies.largest_rise = link.largest_rise;
    as_copies.rise = link.rise;
    Verdict verdict = verdict_of(evidence, as_copies, "interconnect_contention", "pcie", 0.7);
    verdict.work_ratio = slower;
    verdict.evidence = {fmt::format("Copies between host and device of {} took x{:.2f}, as many bytes as before",
                                    verdict.where, slower),
                        fmt::format("Its kernels took x{:.2f}", kernels.ratio)};
    verdict.against.emplace_back(kNoLinkCounter);
    verdict.next_step = "nvidia-smi -q -d PCIE, and who else copies";
    verdicts.push_back(std::move(verdict));
  }
}

/// A kind of link of devices by its own counters: whose bytes these are they do not tell.
struct LinkKind {
  std::string_view detail;
  std::string_view name;
  std::array<std::string_view, 2> counters;  ///< words of their names, lower case
  std::array<std::string_view, 3> users;     ///< kinds of functions that send over it
  std::string_view next_step;
};
constexpr LinkKind kNvlink = {"nvlink",
                              "NVLink",
                              {"nvlink", "gpu_link_"},
                              {"gpu_comm", "gpu_memcpy_p2p", "gpu_memcpy_d2d"},
                              "nvidia-smi nvlink -gt d, and what other programs on these devices send"};
constexpr LinkKind kPcie = {"pcie",
                            "PCIe",
                            {"pcie", "pcie"},
                            {"gpu_memcpy_h2d", "gpu_memcpy_d2h", "gpu_memcpy_other"},
                            "nvidia-smi -q -d PCIE, and who else copies"};

/// Bytes a second over it, of all its counters. nullopt: not known of both sides.
std::optional<Sides> traffic_of(const Evidence& evidence, const Place& place, const LinkKind& link) {
  Sides sum;
  bool known = false;
  for (const model::ResourceChange& change : evidence.comparison().resources) {
    if (change.device != place.device || (change.rank != place.rank && change.rank >= 0)) continue;
    if (change.unit != model::Unit::bytes_per_second || !change.value[0] || !change.value[1]) continue;
    if (std::ranges::none_of(link.counters,
                             [&](std::string_view word) { return contains_ignoring_case(change.metric, word); }))
      continue;
    const Sides bytes = evidence.turned(std::array{*change.value[0], *change.value[1]});
    sum.without += bytes.without;
    sum.with += bytes.with;
    known = true;
  }
  return known ? std::optional(sum) : std::nullopt;
}

/// What a program itself sends over a link, per step.
struct OwnUse {
  Sides calls;
  double larger = 1;        ///< times the bytes of a call, of those that have more
  double weight = 0;        ///< ns, of what surely takes longer per call
  double log = 0;           ///< of by how much
  double rise = 0;          ///< ns
  double largest_rise = 0;  ///< of a step of a phase, as a share of it
  [[nodiscard]] double ratio() const { return weight > 0 ? std::exp(log / weight) : 1; }
  [[nodiscard]] double more() const { return std::max(1.0, calls.ratio()) * larger; }
};

OwnUse own_use(const Evidence& evidence, const Place& place, const LinkKind& link) {
  const model::RunComparison& all = evidence.comparison();
  OwnUse own;
  for (const model::FunctionFinding& f : all.functions) {
    if (std::ranges::find(link.users, all.texts[f.kind]) == link.users.end() || evidence.place_of(f) != place) continue;
    const double of_all = evidence.weight_of(f.phase);
    const Sides calls = evidence.turned(f.calls);
    own.calls.without += of_all * calls.without;
    own.calls.with += of_all * calls.with;
    // Of a collective the size is that of its kernel.
    const Sides size = evidence.turned(f.size);
    if (all.texts[f.kind] != "gpu_comm" && size.without > 0) own.larger = std::max(own.larger, size.ratio());
    if (!(f.work_ratio > 0) || !std::isfinite(f.work_ratio) || !last_another_time(f)) continue;
    const Sides time = evidence.turned(f.time_ns);
    own.weight += of_all * time.without;
    own.log += of_all * time.without * (evidence.side() == 1 ? 1 : -1) * std::log(f.work_ratio);
    own.rise += of_all * time.rise();
    if (const double step = evidence.step_time(f.phase); step > 0)
      own.largest_rise = std::max(own.largest_rise, time.rise() / step);
  }
  return own;
}

/// What kernels took more, ns, less what was said of their device.
double unexplained(const DeviceKernels& kernels, std::string_view where, const Verdicts& verdicts) {
  double rest = kernels.rise;
  for (const Verdict& v : verdicts)
    if (v.scope == model::VerdictScope::device && v.where == where)
      rest -= std::isfinite(v.impact_ns) ? v.impact_ns : kernels.rise;
  return rest;
}

/// A link over which far more went than before, and not by more transfers of the program; what sends over it, or, of
/// links between devices, whose bytes go through their memory, all kernels, became slower.
void crowded_link(const Evidence& evidence, Verdicts& verdicts, const LinkKind& link, bool kernels_feel_it) {
  constexpr double kFarMore = 10;
  constexpr double kLeastTraffic = 1e8;  // bytes a second more: less crowds no link
  constexpr double kLeastLonger = 1.1;
  constexpr double kLeastOfKernels = 0.5;
  for (const DeviceKernels& kernels : kernels_of(evidence)) {
    const auto traffic = traffic_of(evidence, kernels.place, link);
    if (!traffic || traffic->rise() < kLeastTraffic) continue;
    const OwnUse own = own_use(evidence, kernels.place, link);
    if (!std::isfinite(own.more()) || traffic->ratio() < kFarMore * own.more()) continue;
    const std::string where = evidence.name_of(kernels.place);
    const bool slower_use = own.ratio() >= kLeastLonger;
    const double rest = unexplained(kernels, where, verdicts);
    const bool slower_kernels =
        kernels_feel_it && kernels.kinds > 0 && are_slower(kernels) && rest >= kLeastOfKernels * kernels.rise;
    DeviceKernels felt = kernels;
    felt.rise = (slower_use ? own.rise : 0) + (slower_kernels ? rest : 0);
    felt.largest_rise = std::max(slower_use ? own.largest_rise : 0, slower_kernels ? kernels.largest_rise : 0);
    if ((!slower_use && !slower_kernels) || felt.rise < kLeastOfDevice * evidence.mean_step()) continue;
    std::vector<std::string> moved = {fmt::format("{}/s instead of {}/s went over {} of {}",
                                                  format_bytes(traffic->with), format_bytes(traffic->without),
                                                  link.name, where)};
    if (own.calls.without > 0)
      moved.push_back(fmt::format("Its own transfers are x{:.2f} of what they were", own.more()));
    const auto known = std::ranges::find_if(verdicts, [&](const Verdict& v) {
      return v.cause == "interconnect_contention" && v.detail == link.detail && v.where == where;
    });
    if (known != verdicts.end()) {
      known->confidence = std::max(known->confidence, 0.8);
      known->evidence.insert(known->evidence.begin(), moved.begin(), moved.end());
      std::erase(known->against, kNoLinkCounter);
      continue;
    }
    Verdict verdict = verdict_of(evidence, felt, "interconnect_contention", std::string(link.detail), 0.8);
    verdict.work_ratio = slower_use ? own.ratio() : verdict.work_ratio;
    verdict.evidence = std::move(moved);
    if (slower_use) verdict.evidence.push_back(fmt::format("What sends over it took x{:.2f} per call", own.ratio()));
    if (slower_kernels) verdict.evidence.push_back(slower_text(kernels));
    verdict.against.emplace_back("The counter does not say whose bytes these are");
    verdict.next_step = link.next_step;
    verdicts.push_back(std::move(verdict));
  }
}

void nvlink(const Evidence& evidence, Verdicts& verdicts) { crowded_link(evidence, verdicts, kNvlink, true); }

/// Kernels work on what lies on their device.
void pcie(const Evidence& evidence, Verdicts& verdicts) { crowded_link(evidence, verdicts, kPcie, false); }

constexpr std::array kDeviceRules = {
    Rule{"gpu.clock", clock}, Rule{"gpu.other_process", other_process}, Rule{"gpu.nvlink", nvlink},
    Rule{"gpu.turns", turns}, Rule{"gpu.alike", kernels_alike},         Rule{"gpu.copies", copies},
    Rule{"gpu.pcie", pcie}};

}  // namespace

std::span<const Rule> device_rules() { return kDeviceRules; }

}  // namespace culprit::diagnose
