// A lower limit for the clock of all cores, by cpufreq in sysfs.

#include <dirent.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "faults/catalog.h"
#include "faults/cpu_frequency.h"
#include "faults/files.h"
#include "faults/injector.h"

namespace culprit::faults {

namespace {

constexpr const char* kFolder = "/sys/devices/system/cpu/cpufreq";

class CpuFrequency final : public Injector {
 public:
  explicit CpuFrequency(std::vector<ClockLimit> limits) : limits_(std::move(limits)) {}

  [[nodiscard]] std::string what() const override {
    return fmt::format("the clock of {} group{} of CPUs is limited to {:.0f} MHz", limits_.size(),
                       limits_.size() == 1 ? "" : "s", static_cast<double>(limits_.front().wanted_khz) / 1e3);
  }
  Status prepare(const std::function<bool()>&) override { return {}; }
  Status begin(Guard& guard) override {
    for (const ClockLimit& limit : limits_) {
      if (Status status = guard.add({Undo::Kind::write_file, {limit.file, fmt::format("{}", limit.before_khz)}});
          !status)
        return status;
      if (Status status = write_small_file(limit.file, fmt::format("{}", limit.wanted_khz)); !status) return status;
    }
    return {};
  }
  Result<Ns> tick(Guard&, Ns now) override { return now + 1'000'000'000; }
  void end() override {}
  [[nodiscard]] std::vector<Figure> figures() const override {
    return {{"groups", static_cast<std::int64_t>(limits_.size())},
            {"limit_hz", limits_.front().wanted_khz * 1000},
            {"limit_before_hz", limits_.front().before_khz * 1000}};
  }

 private:
  std::vector<ClockLimit> limits_;
};

}  // namespace

std::vector<ClockLimit> clock_limits(const std::string& folder, double severity) {
  std::vector<ClockLimit> limits;
  DIR* const handle = opendir(folder.c_str());
  if (handle == nullptr) return limits;
  while (const dirent* entry = readdir(handle)) {  // NOLINT(concurrency-mt-unsafe): a handle of its own
    const std::string policy = fmt::format("{}/{}", folder, entry->d_name);
    const auto lowest = read_number(policy + "/cpuinfo_min_freq");
    const auto highest = read_number(policy + "/cpuinfo_max_freq");
    const auto now = read_number(policy + "/scaling_max_freq");
    if (!lowest || !highest || !now || *highest <= *lowest) continue;
    const auto wanted = *highest - std::llround(severity * static_cast<double>(*highest - *lowest));
    limits.push_back({policy + "/scaling_max_freq", *now, std::min<std::int64_t>(wanted, *now)});
  }
  closedir(handle);
  std::ranges::sort(limits, {}, &ClockLimit::file);
  return limits;
}

Status cpu_frequency_available() {
  const auto limits = clock_limits(kFolder, 1);
  if (limits.empty())
    return environment_error("this machine shows no clock to set (no cpufreq)", kFolder,
                             "virtual machines have none; run on the host");
  if (access(limits.front().file.c_str(), W_OK) != 0)
    return environment_error("cannot be written", limits.front().file, "run as root");
  return {};
}

Result<std::unique_ptr<Injector>> make_cpu_frequency(const Request& request, const ProcessHandle*) {
  auto limits = clock_limits(kFolder, request.severity);
  if (limits.empty()) return environment_error("this machine shows no clock to set (no cpufreq)", kFolder);
  return std::unique_ptr<Injector>(std::make_unique<CpuFrequency>(std::move(limits)));
}

}  // namespace culprit::faults
