#include "record/host/cpu.h"
#include "core/error.h"
#include "core/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace culprit::record {

namespace {

constexpr std::size_t kMostCores = 8192;

/// What a state counts as. Time that the host of this virtual machine took (steal) is no use of ours.
enum Share : std::size_t {
  kBusyShare,
  kUserShare,
  kSystemShare,
  kIrqShare,
  kSoftirqShare,
  kStealShare,
  kIowaitShare,
  kIdleShare
};

using Shares = std::array<double, 8>;

Shares shares_of(const std::array<double, kCpuStates>& ticks, double all) {
  Shares shares{};
  shares[kUserShare] = (ticks[kUser] + ticks[kNice]) / all;
  shares[kSystemShare] = ticks[kSystem] / all;
  shares[kIrqShare] = ticks[kIrq] / all;
  shares[kSoftirqShare] = ticks[kSoftirq] / all;
  shares[kStealShare] = ticks[kSteal] / all;
  shares[kIowaitShare] = ticks[kIowait] / all;
  shares[kIdleShare] = ticks[kIdle] / all;
  shares[kBusyShare] = shares[kUserShare] + shares[kSystemShare] + shares[kIrqShare] + shares[kSoftirqShare];
  return shares;
}

}  // namespace

void parse_cpu_stat(std::string_view text, CpuStat& stat) {
  stat.cores.clear();
  stat.switches = stat.forks = stat.running = stat.blocked = std::nullopt;
  while (!text.empty()) {
    std::string_view line = take_line(text);
    if (line.starts_with("intr ") || line.starts_with("softirq ")) continue;
    const std::string_view key = take_word(line);
    if (key.starts_with("cpu") && key.size() > 3) {
      const auto number = parse_number<std::uint64_t>(key.substr(3));
      CpuTicks ticks{};
      std::size_t known = 0;
      for (; known < kCpuStates; ++known) {
        const auto value = parse_number<std::uint64_t>(take_word(line));
        if (!value) break;
        ticks[known] = *value;
      }
      // Kernels before 2.6.11 end after softirq; less than idle is no answer.
      if (number && *number < kMostCores && known > kIdle && stat.cores.size() < kMostCores)
        stat.cores.emplace_back(static_cast<int>(*number), ticks);
    } else if (key == "ctxt") {
      stat.switches = parse_number<std::uint64_t>(take_word(line));
    } else if (key == "processes") {
      stat.forks = parse_number<std::uint64_t>(take_word(line));
    } else if (key == "procs_running") {
      stat.running = parse_number<std::uint64_t>(take_word(line));
    } else if (key == "procs_blocked") {
      stat.blocked = parse_number<std::uint64_t>(take_word(line));
    }
  }
}

std::array<Track, 8> CpuSampler::tracks_of(const std::string& prefix) {
  constexpr std::array names = {"busy", "user", "system", "irq", "softirq", "steal", "iowait", "idle"};
  std::array<Track, 8> tracks;
  for (std::size_t i = 0; i < names.size(); ++i) tracks[i] = {fmt::format("{}.{}", prefix, names[i]), "fraction"};
  return tracks;
}

CpuSampler::CpuSampler(const std::string& root)
    : root_(root),
      stat_file_(root + "/proc/stat"),
      host_(tracks_of("host.cpu")),
      used_track_{"host.cpu.used", "count"},
      switches_{{"host.cpu.switches", "count/s"}},
      forks_{{"host.cpu.forks", "count/s"}},
      running_{"host.cpu.runnable", "count"},
      blocked_{"host.cpu.blocked", "count"} {
  const std::string folder = root + "/sys/devices/system/cpu";
  for (const std::string& name : list_folder(folder)) {
    if (!name.starts_with("cpu")) continue;
    const auto number = parse_number<std::uint64_t>(std::string_view(name).substr(3));
    if (!number || *number >= kMostCores) continue;
    KernelFile file(fmt::format("{}/{}/cpufreq/scaling_cur_freq", folder, name));
    if (!file.is_open()) continue;
    cpufreq_ = true;
    frequencies_.emplace(static_cast<int>(*number),
                         Frequency{{fmt::format("host.cpu{}.frequency", *number), "Hz"}, std::move(file)});
  }
  if (!cpufreq_) {
    const auto text = read_text(root + "/proc/cpuinfo", 64 * 1024);
    cpuinfo_mhz_ = text && text->find("cpu MHz") != std::string::npos;
  }
}

void CpuSampler::sample(Ns now, Emitter& emitter) {
  used_.reset();
  parse_cpu_stat(stat_file_.read(buffer_), stat_);
  ++round_;
  std::array<double, kCpuStates> sum{};
  double all_cores = 0;
  double used = 0;
  Ns begin = 0;
  for (const auto& [number, ticks] : stat_.cores) {
    auto found = cores_.find(number);
    if (found == cores_.end()) {
      found = cores_.emplace(number, Core{}).first;
      found->second.tracks = tracks_of(fmt::format("host.cpu{}", number));
    }
    Core& core = found->second;
    // A core that was away counts from its return.
    const bool known = core.last && core.round + 1 == round_;
    const CpuTicks before = known ? *core.last : ticks;
    const Ns since = core.at;
    core.last = ticks;
    core.at = now;
    core.round = round_;
    if (!known) continue;
    std::array<double, kCpuStates> grown{};
    double all = 0;
    for (std::size_t i = 0; i < kCpuStates; ++i) {
      // idle and iowait may go back by a little: the kernel adds them up without locks.
      if (ticks[i] < before[i]) {
        if (i != kIdle && i != kIowait) emitter.count_odd();
        continue;
      }
      grown[i] = static_cast<double>(ticks[i] - before[i]);
      all += grown[i];
    }
    if (all == 0) continue;
    const Shares shares = shares_of(grown, all);
    for (std::size_t i = 0; i < shares.size(); ++i) emitter.put(core.tracks[i], since, shares[i]);
    used += shares[kBusyShare];
    // Cores weigh the same however many ticks each of them got.
    for (std::size_t i = 0; i < kCpuStates; ++i) sum[i] += grown[i] / all;
    all_cores += 1;
    begin = since;
  }
  if (all_cores > 0) {
    const Shares shares = shares_of(sum, all_cores);
    for (std::size_t i = 0; i < shares.size(); ++i) emitter.put(host_[i], begin, shares[i]);
    used_ = Used{used, begin};
    emitter.put(used_track_, begin, used);
  }
  if (stat_.switches) switches_.put(emitter, now, *stat_.switches);
  if (stat_.forks) forks_.put(emitter, now, *stat_.forks);
  if (stat_.running) emitter.put(running_, now, static_cast<double>(*stat_.running));
  if (stat_.blocked) emitter.put(blocked_, now, static_cast<double>(*stat_.blocked));
}

void CpuSampler::sample_cpuinfo(Ns now, Emitter& emitter) {
  const auto text = read_text(root_ + "/proc/cpuinfo", std::size_t{4} << 20);
  std::string_view rest = text ? std::string_view(*text) : std::string_view();
  std::optional<std::uint64_t> core;
  while (!rest.empty()) {
    const std::string_view line = take_line(rest);
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    const std::string_view key = trim(line.substr(0, colon));
    const std::string value(trim(line.substr(colon + 1)));
    if (key == "processor") core = parse_number<std::uint64_t>(value);
    if (key != "cpu MHz" || !core || *core >= kMostCores) continue;
    const auto hertz = parse_scaled_decimal(value, 6);
    if (!hertz || *hertz <= 0) continue;
    auto& frequency = frequencies_[static_cast<int>(*core)];
    if (frequency.track.name.empty()) frequency.track = {fmt::format("host.cpu{}.frequency", *core), "Hz"};
    emitter.put(frequency.track, now, static_cast<double>(*hertz));
  }
}

void CpuSampler::sample_frequencies(Ns now, Emitter& emitter) {
  constexpr std::size_t kParts = 10;
  constexpr std::uint64_t kCpuinfoEvery = 50;
  if (!cpufreq_) {
    // Older kernels stop the reader of cpuinfo for milliseconds while they measure.
    if (cpuinfo_mhz_ && frequency_calls_++ % kCpuinfoEvery == 0) sample_cpuinfo(now, emitter);
    return;
  }
  const std::size_t many = (frequencies_.size() + kParts - 1) / kParts;
  for (std::size_t i = 0; i < many; ++i) {
    if (next_frequency_ >= frequencies_.size()) next_frequency_ = 0;
    auto it = std::next(frequencies_.begin(), static_cast<std::ptrdiff_t>(next_frequency_++));
    const auto kilohertz = parse_number<std::uint64_t>(trim(it->second.file.read(buffer_)));
    if (kilohertz && *kilohertz > 0) emitter.put(it->second.track, now, static_cast<double>(*kilohertz) * 1e3);
  }
}

void CpuSampler::sights(std::vector<Sight>& out) const {
  const bool stat = stat_file_.is_open();
  out.push_back({"use of every CPU, steal and interrupts", stat,
                 stat ? "" : fmt::format("/proc/stat: {}", errno_text(stat_file_.error())), stat ? "" : "mount /proc"});
  const bool frequency = cpufreq_ || cpuinfo_mhz_;
  out.push_back({"frequency of every CPU", frequency,
                 frequency ? "" : "neither cpufreq in /sys nor MHz in /proc/cpuinfo",
                 frequency ? "" : "record on the host of this virtual machine, or load a cpufreq driver"});
}

}  // namespace culprit::record
