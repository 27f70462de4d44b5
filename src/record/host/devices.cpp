#include "record/host/devices.h"
#include "core/error.h"
#include "core/text.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <set>

namespace culprit::record {

namespace {

constexpr std::size_t kMostDevices = 256;
constexpr double kSectorBytes = 512;  // of /proc/diskstats, whatever the disk's own sectors are

RateTrack rate(const std::string& name, const char* unit, double scale = 1) { return {{name, unit}, scale}; }

}  // namespace

DiskSampler::DiskSampler(const std::string& root) : root_(root), file_(root + "/proc/diskstats") {}

DiskSampler::Disk& DiskSampler::disk_of(std::string_view name) {
  const auto found = disks_.find(name);
  if (found != disks_.end()) return found->second;
  const std::string prefix = "host.disk." + track_part(name);
  std::string folder(name);
  for (char& c : folder)
    if (c == '/') c = '!';  // as in /sys
  const bool whole = access(fmt::format("{}/sys/block/{}", root_, folder).c_str(), F_OK) == 0;
  Disk disk{whole,
            rate(prefix + ".read", "bytes/s", kSectorBytes),
            rate(prefix + ".written", "bytes/s", kSectorBytes),
            rate(prefix + ".reads", "count/s"),
            rate(prefix + ".writes", "count/s"),
            rate(prefix + ".busy", "fraction", 1e-3),
            rate(prefix + ".queue", "count", 1e-3)};
  return disks_.emplace(std::string(name), std::move(disk)).first->second;
}

void DiskSampler::sample(Ns now, Emitter& emitter) {
  std::string_view text = file_.read(buffer_);
  while (!text.empty()) {
    std::string_view line = take_line(text);
    take_word(line);
    take_word(line);
    const std::string_view name = take_word(line);
    // reads, merged, sectors, ms; writes, merged, sectors, ms; in flight, ms busy, ms weighted by requests in flight
    std::array<std::uint64_t, 11> f{};
    std::size_t known = 0;
    for (; known < f.size(); ++known) {
      const auto value = parse_number<std::uint64_t>(take_word(line));
      if (!value) break;
      f[known] = *value;
    }
    if (known < f.size() || name.empty()) continue;
    if (disks_.find(name) == disks_.end() && ((f[0] == 0 && f[4] == 0) || disks_.size() >= kMostDevices)) continue;
    Disk& disk = disk_of(name);
    if (!disk.whole) continue;
    disk.reads.put(emitter, now, f[0]);
    disk.read.put(emitter, now, f[2]);
    disk.writes.put(emitter, now, f[4]);
    disk.written.put(emitter, now, f[6]);
    disk.busy.put(emitter, now, f[9]);
    disk.queue.put(emitter, now, f[10]);
  }
}

void DiskSampler::sights(std::vector<Sight>& out) const {
  const bool open = file_.is_open();
  out.push_back({"disks: bytes, time busy, queue", open,
                 open ? "" : fmt::format("/proc/diskstats: {}", errno_text(file_.error())), open ? "" : "mount /proc"});
}

NetworkSampler::NetworkSampler(const std::string& root)
    : devices_(root + "/proc/net/dev"),
      snmp_(root + "/proc/net/snmp"),
      retransmits_{{"host.tcp.retransmits", "count/s"}},
      segments_{{"host.tcp.segments_sent", "count/s"}} {}

void NetworkSampler::sample(Ns now, Emitter& emitter) {
  std::string_view text = devices_.read(buffer_);
  while (!text.empty()) {
    std::string_view line = take_line(text);
    const std::size_t colon = line.rfind(':');  // an alias has a colon in its name
    if (colon == std::string_view::npos) continue;
    const std::string_view name = trim(line.substr(0, colon));
    line.remove_prefix(colon + 1);
    std::array<std::uint64_t, 12> f{};
    std::size_t known = 0;
    for (; known < f.size(); ++known) {
      const auto value = parse_number<std::uint64_t>(take_word(line));
      if (!value) break;
      f[known] = *value;
    }
    if (known < f.size() || name.empty()) continue;
    auto found = interfaces_.find(name);
    if (found == interfaces_.end()) {
      if ((f[0] == 0 && f[8] == 0) || interfaces_.size() >= kMostDevices) continue;
      const std::string prefix = "host.net." + track_part(name);
      Interface interface {
        rate(prefix + ".received", "bytes/s"), rate(prefix + ".sent", "bytes/s"),
            rate(prefix + ".receive_drops", "count/s"), rate(prefix + ".send_drops", "count/s"),
            rate(prefix + ".errors", "count/s")
      };
      found = interfaces_.emplace(std::string(name), std::move(interface)).first;
    }
    Interface& interface = found->second;
    interface.received.put(emitter, now, f[0]);
    interface.receive_drops.put(emitter, now, f[3]);
    interface.sent.put(emitter, now, f[8]);
    interface.send_drops.put(emitter, now, f[11]);
    interface.errors.put(emitter, now, f[2] + f[10]);
  }
  // A line of names, then a line of values, for every protocol.
  text = snmp_.read(buffer_);
  while (!text.empty()) {
    std::string_view names = take_line(text);
    if (!names.starts_with("Tcp:")) continue;
    std::string_view values = take_line(text);
    for (std::string_view name = take_word(names); !name.empty(); name = take_word(names)) {
      const auto value = parse_number<std::uint64_t>(take_word(values));
      if (value && name == "RetransSegs") retransmits_.put(emitter, now, *value);
      if (value && name == "OutSegs") segments_.put(emitter, now, *value);
    }
  }
}

void NetworkSampler::sights(std::vector<Sight>& out) const {
  const bool open = devices_.is_open();
  out.push_back({"networks of the recorder's own network namespace", open,
                 open ? "" : fmt::format("/proc/net/dev: {}", errno_text(devices_.error())),
                 open ? "" : "mount /proc"});
}

SensorSampler::SensorSampler(const std::string& root) {
  std::set<std::string> taken;
  const auto add_temperature = [&](const std::string& name, const std::string& path) {
    KernelFile file(path);
    if (!file.is_open() || !parse_number<std::int64_t>(trim(file.read(buffer_))) ||
        temperatures_.size() >= kMostDevices)
      return;
    std::string track = fmt::format("host.temperature.{}", name);
    for (int n = 2; !taken.insert(track).second; ++n) track = fmt::format("host.temperature.{}_{}", name, n);
    temperatures_.push_back({{track, "celsius"}, std::move(file)});
  };
  const std::string hwmon = root + "/sys/class/hwmon";
  for (const std::string& chip : list_folder(hwmon)) {
    const std::string folder = fmt::format("{}/{}", hwmon, chip);
    const std::string chip_name = read_word(folder + "/name");
    for (const std::string& entry : list_folder(folder)) {
      if (!entry.starts_with("temp") || !entry.ends_with("_input")) continue;
      const std::string sensor = entry.substr(0, entry.size() - 6);
      const std::string label = read_word(fmt::format("{}/{}_label", folder, sensor));
      add_temperature(fmt::format("{}.{}", track_part(chip_name.empty() ? chip : chip_name),
                                  track_part(label.empty() ? sensor : label)),
                      fmt::format("{}/{}", folder, entry));
    }
  }
  const std::string thermal = root + "/sys/class/thermal";
  if (temperatures_.empty())
    for (const std::string& zone : list_folder(thermal)) {
      if (!zone.starts_with("thermal_zone")) continue;
      const std::string type = read_word(fmt::format("{}/{}/type", thermal, zone));
      add_temperature(track_part(type.empty() ? zone : type), fmt::format("{}/{}/temp", thermal, zone));
    }
  const std::string powercap = root + "/sys/class/powercap";
  std::set<std::string> domains;
  for (const std::string& zone : list_folder(powercap)) {
    if (zone.find(':') == std::string::npos) continue;
    const std::string folder = fmt::format("{}/{}", powercap, zone);
    KernelFile file(folder + "/energy_uj");
    if (!file.is_open()) {
      energy_trouble_ = fmt::format("{}/energy_uj: {}", zone, errno_text(file.error()));
      continue;
    }
    if (energies_.size() >= kMostDevices) break;
    std::string domain = read_word(folder + "/name");
    if (domain.empty()) domain = zone;
    // Sub-zones ("intel-rapl:0:1") are named alike in every package.
    if (zone.find(':') != zone.rfind(':')) domain = fmt::format("{}-{}", zone.substr(zone.find(':') + 1), domain);
    if (!domains.insert(domain).second) domain = zone;
    const auto range = parse_number<std::uint64_t>(read_word(folder + "/max_energy_range_uj"));
    energies_.push_back({{{"host.power." + track_part(domain), "W"}, 1e-6}, std::move(file), range.value_or(0)});
  }
}

void SensorSampler::sample(Ns now, Emitter& emitter) {
  for (Temperature& t : temperatures_)
    if (const auto value = parse_number<std::int64_t>(trim(t.file.read(buffer_))))
      emitter.put(t.track, now, static_cast<double>(*value) * 1e-3);
  for (Energy& e : energies_)
    if (const auto value = parse_number<std::uint64_t>(trim(e.file.read(buffer_))))
      e.track.put(emitter, now, *value, e.wraps_at);
}

void SensorSampler::sights(std::vector<Sight>& out) const {
  const bool warm = !temperatures_.empty();
  out.push_back({"temperatures", warm, warm ? "" : "no sensor in /sys/class/hwmon or /sys/class/thermal",
                 warm ? "" : "load the driver of the sensors; a virtual machine has none"});
  const bool power = !energies_.empty();
  const bool closed = !energy_trouble_.empty();
  out.push_back({"power of the CPUs (RAPL)", power,
                 power    ? ""
                 : closed ? energy_trouble_
                          : "no energy counter in /sys/class/powercap",
                 power    ? ""
                 : closed ? "run as root, or chmod o+r /sys/class/powercap/*/energy_uj"
                          : "modprobe intel_rapl_msr; a virtual machine has none"});
}

}  // namespace culprit::record
