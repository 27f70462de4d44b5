#include "profile/counter.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <utility>

#include "core/text.h"
#include "trace/counter_samples.h"

namespace culprit::profile {

namespace {

using model::Unit;

/// Names without one of these suffixes are judged by their words.
struct Suffix {
  std::string_view text;
  Unit unit;
  double to_si;
};
constexpr Suffix kSuffixes[] = {{"mhz", Unit::hertz, 1e6},
                                {"ghz", Unit::hertz, 1e9},
                                {"khz", Unit::hertz, 1e3},
                                {"hz", Unit::hertz, 1},
                                {"bytes/s", Unit::bytes_per_second, 1},
                                {"bytes", Unit::bytes, 1},
                                {"kib", Unit::bytes, 1024},
                                {"mib", Unit::bytes, 1048576},
                                {"watt", Unit::watt, 1},
                                {"percent", Unit::fraction, 0.01},
                                {"%", Unit::fraction, 0.01}};

void set_unit(CounterMeaning& meaning, std::string_view name) {
  const auto set = [&](Unit unit, double to_si) {
    meaning.unit = unit;
    meaning.to_si = to_si;
  };
  for (const Suffix& suffix : kSuffixes)
    if (name.ends_with(suffix.text)) return set(suffix.unit, suffix.to_si);
  constexpr double kMega = 1e6;
  if (contains(name, "frequency")) return set(Unit::hertz, kMega);
  if (contains(name, "sm_util") || contains(name, "sm_occupancy")) return set(Unit::fraction, 1);
  if (name.starts_with("gpu_link_") || name.starts_with("gpu_pcie_") || name.starts_with("net_"))
    return set(Unit::bytes_per_second, 1);
  if (contains(name, "_temp")) return set(Unit::celsius, 1);
  if (contains(name, "_power")) return set(Unit::watt, 1);
  if (contains(name, "usage")) return set(Unit::fraction, 0.01);
  if (name.starts_with("host_mem_")) return set(Unit::bytes, 1024);
  if (contains(name, "_mem_") || name.starts_with("disk_")) return set(Unit::bytes, 1);
}

/// "gpu 0 clock.mhz" -> 0; the text without the number goes to `rest`.
std::int64_t device_in_name(std::string_view name, std::string& rest) {
  constexpr std::string_view kDevice = "gpu ";
  const std::string small = to_lower(name.substr(0, kDevice.size()));
  if (small != kDevice) return -1;
  std::int64_t device = -1;
  const char* first = name.data() + kDevice.size();
  const auto [end, error] = std::from_chars(first, name.data() + name.size(), device);
  if (error != std::errc() || device < 0) return -1;
  rest = std::string(name.substr(0, kDevice.size() - 1)).append(end, name.data() + name.size());
  return device;
}

/// A recording says the unit, in SI, and whose counter it is.
void set_recorded(const Trace& trace, const CounterSeries& series, CounterMeaning& meaning) {
  constexpr std::pair<std::string_view, Unit> kUnits[] = {
      {"fraction", Unit::fraction},        {"Hz", Unit::hertz},        {"bytes", Unit::bytes},
      {"bytes/s", Unit::bytes_per_second}, {"celsius", Unit::celsius}, {"W", Unit::watt}};
  const auto* unit = std::ranges::find(kUnits, trace.strings[series.unit], &std::pair<std::string_view, Unit>::first);
  meaning.metric = trace.strings[series.name];
  meaning.unit = unit != std::end(kUnits) ? unit->second : Unit::plain;
  meaning.to_si = 1;
  meaning.place.clear();
  const std::int64_t pid = trace.processes[series.process].pid;
  if (pid > 0) meaning.pid = pid;
}

/// "host.cpu3.user": of one CPU of many.
bool is_of_one_cpu(std::string_view metric) {
  constexpr std::string_view kCpu = "host.cpu";
  return metric.starts_with(kCpu) && metric.size() > kCpu.size() && metric[kCpu.size()] >= '0' &&
         metric[kCpu.size()] <= '9';
}

}  // namespace

CounterMeaning meaning_of(const Trace& trace, const CounterSeries& series) {
  const std::string_view name = trace.strings[series.name];
  const std::string_view track =
      series.track == kNone ? std::string_view{} : trace.strings[trace.tracks[series.track].name];
  CounterMeaning meaning;
  meaning.metric = name;
  meaning.device = device_in_name(name, meaning.metric);
  const std::int64_t instance = counter_instance(name, track);
  if (instance >= 0 && track.starts_with("CAT_XPU_")) {
    meaning.device = instance;
  } else if (instance >= 0 && (name.starts_with("process_") || contains(name, "usage_"))) {
    meaning.pid = instance;
    meaning.metric = name.substr(0, name.rfind('_'));
  }
  if (meaning.device < 0 && meaning.pid < 0) meaning.place = track;
  const std::string small = to_lower(meaning.metric);
  set_unit(meaning, small);
  // "GPU clock.MHz": the part behind the dot is only a unit.
  if (const std::size_t dot = small.rfind('.'); dot != std::string::npos && dot > 0)
    for (const Suffix& suffix : kSuffixes)
      if (small.substr(dot + 1) == suffix.text) {
        meaning.metric.resize(dot);
        break;
      }
  if (series.unit != 0) set_recorded(trace, series, meaning);
  meaning.clock = meaning.device >= 0 && (contains(small, "clock") || contains(small, "frequency"));
  return meaning;
}

bool concerns(const CounterMeaning& meaning, std::string_view kind) {
  const std::string_view metric = meaning.metric;
  if (kind == "gpu_compute" || kind == "gpu_comm")
    return meaning.device >= 0 || metric.starts_with("process_gpu") ||
           (kind == "gpu_comm" && metric.starts_with("net_"));
  if (kind.starts_with("gpu_memcpy"))
    return meaning.device >= 0 && (contains(metric, "pcie") || contains(metric, "link"));
  if (meaning.device >= 0 || metric.starts_with("process_gpu")) return false;
  const bool memory = contains(metric, "mem_") || contains(metric, "memory");
  if (is_of_one_cpu(metric)) return false;
  if (kind == "oncpu" || kind == "runq") return contains(metric, "cpu") || memory;
  if (kind == "syscall_memory") return memory;
  const bool disk = metric.starts_with("disk") || metric.starts_with("host.disk") || contains(metric, "pressure.io");
  return disk && (kind == "syscall_file" || kind == "blocked");
}

}  // namespace culprit::profile
