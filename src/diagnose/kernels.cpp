#include "diagnose/kernels.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace culprit::diagnose {

namespace {

constexpr double kSlower = 1.03;  // a kernel's time per call, of those that surely changed
constexpr double kLarger = 1.02;  // threads

enum class Bound : std::uint8_t { arithmetic, memory, unknown };

Bound bound_of(std::string_view name, model::Phase phase) {
  constexpr std::array kArithmetic = {"gemm", "cutlass", "xmma", "conv", "wgrad", "dgrad", "nvjet", "cijk"};
  constexpr std::array kMemory = {"elementwise", "vectorized", "layer_norm", "layernorm",   "rmsnorm",
                                  "rms_norm",    "softmax",    "copy",       "reduce",      "act_and_mul",
                                  "rotary",      "embedding",  "adam",       "multi_tensor"};
  std::string lower(name);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const auto holds = [&](const char* word) { return lower.find(word) != std::string::npos; };
  // One token of each request: weights and caches are read, and hardly used.
  if (phase == model::Phase::decode) return Bound::memory;
  if (std::ranges::any_of(kArithmetic, holds)) return Bound::arithmetic;
  return std::ranges::any_of(kMemory, holds) ? Bound::memory : Bound::unknown;
}

/// A kernel that both sides have.
struct Kernel {
  double weight = 0;
  double log = 0;  ///< of the ratio of its calls' times
  bool sure = false;
  bool larger = false;
  Bound bound = Bound::unknown;
};

/// Sums that become the means of a device.
struct Sums {
  std::vector<Kernel> all;
  DeviceKernels kernels;
  double log = 0;
  double slower_weight = 0;
  double slower_log = 0;
  double slower_square = 0;
  double size_log = 0;
  std::map<model::Phase, double> rises;
};

void add(KernelTime& time, double weight, bool slower, bool larger) {
  time.all += weight;
  if (slower) time.slower += weight;
  if (larger) time.larger += weight;
  if (slower && larger) time.slower_and_larger += weight;
}

}  // namespace

bool does_more(const DeviceKernels& kernels) {
  constexpr double kMostKernels = 0.5;   // of their time
  constexpr double kLeastLarger = 1.05;  // threads
  const double share = std::max(kernels.all.share_larger(), kernels.all.share_larger_of_slower());
  return share >= kMostKernels && kernels.size_ratio >= kLeastLarger;
}

std::vector<DeviceKernels> kernels_of(const Evidence& evidence) {
  const model::RunComparison& comparison = evidence.comparison();
  std::map<Place, Sums> devices;
  for (const model::FunctionFinding& f : comparison.functions) {
    if (comparison.texts[f.kind] != "gpu_compute") continue;
    Sums& sums = devices[evidence.place_of(f)];
    const Sides time = evidence.turned(f.time_ns);
    sums.rises[f.phase] += time.rise();
    sums.kernels.rise += evidence.weight_of(f.phase) * time.rise();
    // A kernel that was chosen anew tells of itself, not of the device or the load.
    if (f.was != 0 || !(f.work_ratio > 0) || !std::isfinite(f.work_ratio)) continue;
    const double weight = evidence.weight_of(f.phase) * time.without;
    const double log = (evidence.side() == 1 ? 1 : -1) * std::log(f.work_ratio);
    const bool slower = (model::has_changed(f) || last_another_time(f)) && log > std::log(kSlower);
    const Sides size = evidence.turned(f.size);
    const bool larger = size.without > 0 && size.with > kLarger * size.without;
    sums.all.push_back({weight, log, slower, larger, bound_of(comparison.texts[f.function], f.phase)});
    sums.log += weight * log;
    if (larger) sums.size_log += weight * std::log(size.with / size.without);
    if (!slower) continue;
    ++sums.kernels.kinds;
    sums.slower_weight += weight;
    sums.slower_log += weight * log;
    sums.slower_square += weight * log * log;
  }
  std::vector<DeviceKernels> result;
  for (auto& [place, sums] : devices) {
    // One whose calls spread is slower as the others are when it lies nearer to them than to nothing.
    const double half = sums.kernels.kinds > 0 ? sums.slower_log / sums.slower_weight / 2 : 0;
    for (const Kernel& kernel : sums.all) {
      const bool slower = kernel.sure || (half > 0 && kernel.log >= half);
      add(sums.kernels.all, kernel.weight, slower, kernel.larger);
      if (kernel.bound == Bound::arithmetic) add(sums.kernels.arithmetic, kernel.weight, slower, kernel.larger);
      if (kernel.bound == Bound::memory) add(sums.kernels.memory, kernel.weight, slower, kernel.larger);
    }
    DeviceKernels& kernels = result.emplace_back(std::move(sums.kernels));
    kernels.place = place;
    if (kernels.all.all > 0) kernels.ratio = std::exp(sums.log / kernels.all.all);
    if (kernels.all.larger > 0) kernels.size_ratio = std::exp(sums.size_log / kernels.all.larger);
    if (sums.slower_weight > 0) {
      const double mean = sums.slower_log / sums.slower_weight;
      kernels.slower_ratio = std::exp(mean);
      kernels.spread = std::sqrt(std::max(0.0, sums.slower_square / sums.slower_weight - mean * mean));
    }
    for (const auto& [phase, rise] : sums.rises)
      if (const double step = evidence.step_time(phase); step > 0)
        kernels.largest_rise = std::max(kernels.largest_rise, rise / step);
  }
  return result;
}

}  // namespace culprit::diagnose
