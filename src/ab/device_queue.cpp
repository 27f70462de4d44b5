#include "ab/device_queue.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "core/text.h"
#include "record/collector/collector.h"
#include "record/collector/kernel_text.h"
#include "record/collector/pid_namespace.h"

namespace culprit::ab {

namespace {

constexpr int kStill = 3;  // looks one after the other at which nothing is done: between two kernels there is a moment

/// A file of one process, kept open.
struct Shown {
  record::KernelFile file;
  bool occupied = false;  ///< it holds cu_occupancy
};

/// Sum of "drm-engine-render: 12345 ns" and "drm-cycles-rcs: 678"; nullopt: the driver tells none.
std::optional<std::uint64_t> engines_of(std::string_view text) {
  std::optional<std::uint64_t> sum;
  while (!text.empty()) {
    const std::string_view line = take_line(text);
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos || line.starts_with("drm-engine-capacity-")) continue;
    if (!line.starts_with("drm-engine-") && !line.starts_with("drm-cycles-")) continue;
    std::string_view rest = trim(line.substr(colon + 1));
    const auto value = parse_number<std::uint64_t>(rest.substr(0, rest.find(' ')));
    if (value) sum = sum.value_or(0) + *value;
  }
  return sum;
}

DeviceWork work_of(std::vector<Shown>& shown, std::vector<char>& buffer) {
  DeviceWork work;
  for (Shown& one : shown) {
    const std::string_view text = one.file.read(buffer);
    if (one.occupied)
      work.occupied += parse_number<std::uint64_t>(trim(text)).value_or(0);
    else
      work.worked += engines_of(text).value_or(0);
  }
  return work;
}

/// What a process has open.
struct Opened {
  bool compute = false;  ///< AMD's
  bool cuda = false;
  std::vector<std::string> numbers;  ///< of descriptors under /dev/dri
};

Opened opened_by(const std::string& process) {
  Opened opened;
  for (const std::string& number : record::list_folder(process + "/fd")) {
    std::error_code code;
    const std::string target = std::filesystem::read_symlink(fmt::format("{}/fd/{}", process, number), code).string();
    opened.compute |= target == "/dev/kfd";
    opened.cuda |= target.starts_with("/dev/nvidia");
    if (target.starts_with("/dev/dri/")) opened.numbers.push_back(number);
  }
  return opened;
}

/// False: the driver does not tell.
bool add_compute(std::vector<Shown>& shown, pid_t process, const DeviceFiles& files) {
  if (!files.first_namespace) return false;
  const std::string folder = fmt::format("{}/sys/class/kfd/kfd/proc/{}", files.root, process);
  bool found = false;
  for (const std::string& name : record::list_folder(folder)) {
    if (!name.starts_with("stats_")) continue;
    record::KernelFile file(fmt::format("{}/{}/cu_occupancy", folder, name));
    if (!file.is_open()) return false;
    shown.push_back({std::move(file), true});
    found = true;
  }
  return found;
}

}  // namespace

bool are_seen(const std::vector<DeviceSight>& sides) {
  return std::ranges::none_of(sides, &DeviceSight::hidden) &&
         std::ranges::any_of(sides, [](const DeviceSight& side) { return static_cast<bool>(side.view); });
}

DeviceFiles own_device_files() { return {"", record::in_first_pid_namespace()}; }

DeviceSight device_sight(const std::vector<pid_t>& processes, const DeviceFiles& files) {
  const auto shown = std::make_shared<std::vector<Shown>>();
  DeviceSight sight;
  std::vector<char> buffer;
  for (const pid_t process : processes) {
    const std::string folder = fmt::format("{}/proc/{}", files.root, process);
    const Opened opened = opened_by(folder);
    sight.hidden |= opened.cuda;
    if (opened.compute) {
      // Its files under /dev/dri tell nothing of that work.
      sight.hidden |= !add_compute(*shown, process, files);
      continue;
    }
    for (const std::string& number : opened.numbers) {
      record::KernelFile file(fmt::format("{}/fdinfo/{}", folder, number));
      if (engines_of(file.read(buffer)))
        shown->push_back({std::move(file), false});
      else
        sight.hidden = true;
    }
  }
  if (sight.hidden || shown->empty()) return sight;
  sight.view = [shown, buffer]() mutable { return work_of(*shown, buffer); };
  return sight;
}

Drained drain(const std::function<DeviceWork()>& view, Ns limit, const std::function<bool()>& pause) {
  Drained drained;
  if (!view) return drained;
  const Ns begin = record::monotonic_now();
  DeviceWork before = view();
  for (int still = 0; still < kStill;) {
    if (!pause()) return drained;
    const DeviceWork now = view();
    still = now.occupied == 0 && now.worked == before.worked ? still + 1 : 0;
    before = now;
    drained.waited = record::monotonic_now() - begin;
    drained.late = still < kStill && drained.waited >= limit;
    if (drained.late) break;
  }
  return drained;
}

}  // namespace culprit::ab
