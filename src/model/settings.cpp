#include "model/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace culprit::model {

namespace {

/// How surely a fact that one side does not tell is none there.
enum class Absent : std::uint8_t {
  none,       ///< whoever tells anything of the program would tell it
  by_kernel,  ///< whoever tells anything of the kernel would
  unknown,
};

struct Known {
  std::string_view prefix;
  std::string_view noun;
  std::string_view detail;
  Absent absent = Absent::none;
};
constexpr std::string_view kVulnerability = "env.cpu.vulnerability.";
constexpr std::array kKnown = {
    Known{"env.target.option.", "The option --", "option"},
    Known{"env.target.variable.", "The variable ", "variable"},
    Known{"env.target.package.", "The package ", "version"},
    Known{"env.target.library.", "The library ", "version"},
    Known{"env.target.python.version", "Python", "version", Absent::unknown},
    Known{"env.gpu.driver", "The driver of the devices", "version", Absent::unknown},
    Known{"env.kernel.release", "The kernel", "version", Absent::unknown},
    Known{"env.target.cgroup.cpu.", "The control group's cpu.", "limit", Absent::unknown},
    Known{"env.target.cgroup.memory.", "The control group's memory.", "limit", Absent::unknown},
    Known{"env.target.sched.nice", "Its nice value", "limit", Absent::unknown},
    Known{"env.target.sched.policy", "Its scheduling policy", "limit", Absent::unknown},
    Known{"env.target.sched.realtime_priority", "Its realtime priority", "limit", Absent::unknown},
    Known{"env.target.transparent_hugepages", "The program's use of transparent huge pages", "machine",
          Absent::unknown},
    Known{"env.gpu.mig", "MIG of a device", "device", Absent::unknown},
    Known{"env.gpu.ecc", "ECC of a device", "device", Absent::unknown},
    Known{"env.gpu.compute_mode", "The compute mode of a device", "device", Absent::unknown},
    Known{"env.gpu.persistence", "The persistence mode of a device", "device", Absent::unknown},
    Known{"env.gpu.application_", "The setting of a device, application_", "device", Absent::unknown},
    Known{"env.gpu.power_limit_mw", "The power limit of a device (mW)", "device", Absent::unknown},
    Known{"env.cpu.model", "The CPU", "machine", Absent::unknown},
    Known{"env.cpu.smt", "SMT of the CPUs", "machine", Absent::unknown},
    Known{"env.cpu.boost", "Boost of the CPUs", "machine", Absent::unknown},
    Known{"env.cpu.no_turbo", "no_turbo of the CPUs", "machine", Absent::unknown},
    Known{"env.cpu.scaling_", "The setting of the CPUs, scaling_", "machine", Absent::unknown},
    Known{"env.cpu.energy_performance_preference", "The CPUs' energy_performance_preference", "machine",
          Absent::unknown},
    Known{kVulnerability, "What is done against the CPU's vulnerability ", "machine", Absent::unknown},
    Known{"env.kernel.boot.", "The kernel's boot option ", "machine", Absent::by_kernel},
    Known{"env.kernel.clocksource", "The clock source", "machine", Absent::unknown},
    Known{"env.memory.transparent_hugepage.", "The setting transparent_hugepage/", "machine", Absent::unknown},
    Known{"env.setting.vm.", "The setting vm.", "machine", Absent::unknown},
    Known{"env.setting.kernel.numa_balancing", "The setting kernel.numa_balancing", "machine", Absent::unknown},
    Known{"env.setting.kernel.sched_", "The setting kernel.sched_", "machine", Absent::unknown},
    Known{"env.setting.net.", "The setting net.", "machine", Absent::unknown},
    Known{"env.disk.", "The setting of a disk, ", "machine", Absent::unknown}};

/// Where it listens, what it draws its lots with, and reserves and limits of a machine, which are seldom met.
bool is_harmless(std::string_view name) {
  constexpr auto kNames = std::to_array<std::string_view>(
      {"env.target.option.port", "env.target.option.seed", "env.target.option.random-seed",
       "env.target.variable.VLLM_PORT", "env.setting.vm.min_free_kbytes", "env.setting.vm.max_map_count",
       "env.setting.kernel.sched_rt_runtime_us"});
  if (std::ranges::find(kNames, name) != kNames.end()) return true;
  return (name.starts_with("env.setting.net.core.") && name.ends_with("mem_max")) ||
         (name.starts_with("env.disk.") && name.ends_with(".rotational"));
}
constexpr std::array<std::string_view, 2> kNumbered = {"env.target", "env.gpu"};

/// "env.target2.option.x" -> "env.target.option.x": more than one process, or device, is told of by number.
std::string without_number(const std::string& key) {
  for (const std::string_view prefix : kNumbered) {
    if (!key.starts_with(prefix)) continue;
    const std::size_t end = key.find_first_not_of("0123456789", prefix.size());
    if (end != std::string::npos && end > prefix.size() && key[end] == '.')
      return std::string(prefix) + key.substr(end);
  }
  return key;
}

using Values = std::array<std::set<std::string>, 2>;

/// What processes after the first one have. A process that only one side has tells nothing of the others: no matter
/// which number it has, the sets of the values are the same but for its own.
struct OfLater {
  Values values;
  bool is_alone = false;  ///< some are told of one side only

  [[nodiscard]] bool differ() const {
    if (!is_alone) return true;
    return !std::ranges::includes(values[0], values[1]) && !std::ranges::includes(values[1], values[0]);
  }
};

/// By name without number: which process has which number may differ from recording to recording, so that what counts
/// is the set of the values.
std::map<std::string, Values> values_of(const std::vector<EnvironmentChange>& environment) {
  std::map<std::string, Values> all;
  std::map<std::string, OfLater> of_later;
  for (const EnvironmentChange& fact : environment) {
    const std::string name = without_number(fact.key);
    const bool is_later = fact.key.starts_with("env.target") && name != fact.key;
    const bool is_alone = is_later && std::ranges::any_of(fact.value, &std::string::empty);
    if (is_alone) of_later[name].is_alone = true;
    Values& values = is_later ? of_later[name].values : all[name];
    for (std::size_t side = 0; side < 2; ++side)
      if (!is_alone || !fact.value[side].empty()) values[side].insert(fact.value[side]);
  }
  for (auto& [name, later] : of_later) {
    if (!later.differ()) continue;
    Values& values = all[name];
    for (std::size_t side = 0; side < 2; ++side) values[side].merge(later.values[side]);
  }
  std::erase_if(all, [](const auto& named) { return named.second[0] == named.second[1]; });
  return all;
}

std::string joined(const std::set<std::string>& values) {
  std::string text;
  for (const std::string& value : values) text += (text.empty() ? "" : ", ") + (value.empty() ? "none" : value);
  return text;
}

}  // namespace

std::vector<SettingChange> settings_that_differ(const std::vector<EnvironmentChange>& environment) {
  const std::map<std::string, Values> facts = values_of(environment);
  const auto lacks = [](const Values& values) {
    return std::ranges::any_of(values, [](const std::set<std::string>& side) { return side.contains(""); });
  };
  const auto kernel = facts.find("env.kernel.release");
  const bool both_tell_the_kernel = kernel == facts.end() || !lacks(kernel->second);
  std::vector<SettingChange> all;
  std::size_t vulnerabilities = 0;
  std::size_t first_vulnerability = 0;
  for (const Known& known : kKnown)
    for (const auto& [name, values] : facts) {
      if (!name.starts_with(known.prefix) || is_harmless(name)) continue;
      if (lacks(values) &&
          (known.absent == Absent::unknown || (known.absent == Absent::by_kernel && !both_tell_the_kernel)))
        continue;
      std::string what = std::string(known.noun) + name.substr(known.prefix.size());
      if (known.prefix == kVulnerability && ++vulnerabilities > 1) continue;
      if (known.prefix == kVulnerability) first_vulnerability = all.size();
      all.push_back({std::move(what), known.detail, {joined(values[0]), joined(values[1])}});
    }
  if (vulnerabilities > 1) {
    std::string& what = all[first_vulnerability].what;
    what = fmt::format("What is done against the CPU's vulnerabilities ({} differ, {} among them)", vulnerabilities,
                       what.substr(what.rfind(' ') + 1));
  }
  return all;
}

}  // namespace culprit::model
