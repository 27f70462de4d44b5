#include "diagnose/kernels.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <map>
#include <set>
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

/// Weighted logarithms of ratios.
struct Logs {
  double weight = 0;
  double sum = 0;
  double squares = 0;
  void add(double of, double log) {
    weight += of;
    sum += of * log;
    squares += of * log * log;
  }
  [[nodiscard]] double mean() const { return weight > 0 ? sum / weight : 0; }
  /// Standard deviation.
  [[nodiscard]] double spread() const {
    return weight > 0 ? std::sqrt(std::max(0.0, squares / weight - mean() * mean())) : 0;
  }
};

/// Of the time of a call, with over without.
double log_of(const Evidence& evidence, const model::FunctionFinding& f) {
  return (evidence.side() == 1 ? 1 : -1) * std::log(f.work_ratio);
}

bool surely_another_time(const model::FunctionFinding& f) { return model::has_changed(f) || last_another_time(f); }

/// Sums that become the means of a device.
struct Sums {
  std::vector<Kernel> all;
  DeviceKernels kernels;
  double log = 0;
  Logs slower;
  double size_log = 0;
  std::set<StringId> arithmetic_names;
  Logs arithmetic;
  std::map<model::Phase, double> rises;
};

void add(KernelTime& time, double weight, bool slower, bool larger) {
  time.all += weight;
  if (slower) time.slower += weight;
  if (larger) time.larger += weight;
  if (slower && larger) time.slower_and_larger += weight;
}

}  // namespace

LargerKernels larger_kernels_of(const DeviceKernels& kernels) {
  constexpr double kTells = 0.1;  // of the time of all
  LargerKernels most = {kernels.all.share_larger(), "", false};
  if (const double share = kernels.all.share_larger_of_slower(); share > most.share)
    most = {share, " among those that take longer", true};
  if (const double share = kernels.memory.share_larger();
      share > most.share && kernels.memory.all >= kTells * kernels.all.all)
    most = {share, " among those that are bound by memory", false};
  return most;
}

bool does_more(const DeviceKernels& kernels) {
  constexpr double kMostKernels = 0.5;   // of their time
  constexpr double kLeastLarger = 1.05;  // threads
  return larger_kernels_of(kernels).share >= kMostKernels && kernels.size_ratio >= kLeastLarger;
}

double spread_alike(double ratio) {
  constexpr double kSpread = 0.1;    // of logarithms
  constexpr double kOfChange = 0.3;  // of that of the change
  return std::max(kSpread, kOfChange * std::log(ratio));
}

bool is_one_of_many(const Evidence& evidence, const model::FunctionFinding& kernel) {
  constexpr std::size_t kFewest = 2;  // others
  constexpr double kLeastTime = 0.1;  // of the kernel's, by the others together
  const auto may_differ = [](double log) {
    constexpr double kSpread = 0.05;
    constexpr double kOfChange = 0.15;
    return std::max(kSpread, kOfChange * log);
  };
  const double log = log_of(evidence, kernel);
  if (!std::isfinite(log)) return false;
  struct Other {
    StringId name = 0;
    double log = 0;
    double time = 0;
  };
  std::vector<Other> others;  // that take longer by as much, or by more
  const model::RunComparison& all = evidence.comparison();
  for (const model::FunctionFinding& f : all.functions) {
    if (f.kind != kernel.kind || f.was != 0 || f.function == kernel.function || !surely_another_time(f)) continue;
    const double of_other = log_of(evidence, f);
    if (!(of_other > std::log(kSlower)) || of_other < log - may_differ(log)) continue;
    if (evidence.place_of(f) != evidence.place_of(kernel)) continue;
    others.push_back({f.function, of_other, evidence.weight_of(f.phase) * evidence.turned(f.time_ns).without});
  }
  const double least = kLeastTime * evidence.weight_of(kernel.phase) * evidence.turned(kernel.time_ns).without;
  return std::ranges::any_of(others, [&](const Other& middle) {
    std::set<StringId> names;
    double time = 0;
    for (const Other& other : others) {
      if (std::abs(other.log - middle.log) > may_differ(middle.log)) continue;
      names.insert(other.name);
      time += other.time;
    }
    // Where the kernel itself is not one of them, three are.
    const bool is_one = std::abs(log - middle.log) <= may_differ(middle.log);
    return names.size() >= kFewest + (is_one ? 0 : 1) && time >= least;
  });
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
    const double log = log_of(evidence, f);
    const bool slower = surely_another_time(f) && log > std::log(kSlower);
    const Sides size = evidence.turned(f.size);
    const bool larger = size.without > 0 && size.with > kLarger * size.without;
    sums.all.push_back({weight, log, slower, larger, bound_of(comparison.texts[f.function], f.phase)});
    sums.log += weight * log;
    if (larger) sums.size_log += weight * std::log(size.with / size.without);
    if (!slower) continue;
    ++sums.kernels.kinds;
    sums.slower.add(weight, log);
    if (sums.all.back().bound != Bound::arithmetic) continue;
    sums.arithmetic.add(weight, log);
    sums.arithmetic_names.insert(f.function);
  }
  std::vector<DeviceKernels> result;
  for (auto& [place, sums] : devices) {
    // One whose calls spread is slower as the others are when it lies nearer to them than to nothing.
    const double half = sums.slower.mean() / 2;
    for (const Kernel& kernel : sums.all) {
      const bool slower = kernel.sure || (half > 0 && kernel.log >= half);
      add(sums.kernels.all, kernel.weight, slower, kernel.larger);
      if (kernel.bound == Bound::arithmetic) add(sums.kernels.arithmetic, kernel.weight, slower, kernel.larger);
      if (kernel.bound == Bound::memory) add(sums.kernels.memory, kernel.weight, slower, kernel.larger);
    }
    DeviceKernels& kernels = result.emplace_back(std::move(sums.kernels));
    kernels.place = place;
    kernels.arithmetic_names = sums.arithmetic_names.size();
    kernels.arithmetic_ratio = std::exp(sums.arithmetic.mean());
    kernels.arithmetic_spread = sums.arithmetic.spread();
    if (kernels.all.all > 0) kernels.ratio = std::exp(sums.log / kernels.all.all);
    if (kernels.all.larger > 0) kernels.size_ratio = std::exp(sums.size_log / kernels.all.larger);
    kernels.slower_ratio = std::exp(sums.slower.mean());
    kernels.spread = sums.slower.spread();
    for (const auto& [phase, rise] : sums.rises)
      if (const double step = evidence.step_time(phase); step > 0)
        kernels.largest_rise = std::max(kernels.largest_rise, rise / step);
  }
  return result;
}

}  // namespace culprit::diagnose
