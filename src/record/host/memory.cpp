#include "record/host/memory.h"
#include "core/error.h"
#include "core/text.h"

#include <fmt/format.h>

#include <cstring>

namespace culprit::record {

std::optional<std::uint64_t> pressure_total(std::string_view text, std::string_view kind) {
  while (!text.empty()) {
    std::string_view line = take_line(text);
    if (take_word(line) != kind) continue;
    for (std::string_view word = take_word(line); !word.empty(); word = take_word(line))
      if (word.starts_with("total=")) return parse_number<std::uint64_t>(word.substr(6));
  }
  return std::nullopt;
}

MemorySampler::MemorySampler(const std::string& root, std::uint64_t page_bytes)
    : meminfo_(root + "/proc/meminfo"),
      vmstat_(root + "/proc/vmstat"),
      available_{"host.memory.available", "bytes"},
      cached_{"host.memory.cached", "bytes"},
      dirty_{"host.memory.dirty", "bytes"},
      writeback_{"host.memory.writeback", "bytes"},
      swap_used_{"host.swap.used", "bytes"},
      swap_in_{{"host.swap.in", "bytes/s"}, static_cast<double>(page_bytes)},
      swap_out_{{"host.swap.out", "bytes/s"}, static_cast<double>(page_bytes)},
      minor_{{"host.faults.minor", "count/s"}},
      major_{{"host.faults.major", "count/s"}},
      direct_scans_{{"host.memory.reclaim.direct", "bytes/s"}, static_cast<double>(page_bytes)},
      stalls_{{"host.memory.reclaim.stalls", "count/s"}},
      numa_misses_{{"host.numa.misses", "count/s"}},
      numa_moves_{{"host.numa.migrated", "bytes/s"}, static_cast<double>(page_bytes)},
      oom_kills_{{"host.memory.oom_kills", "count/s"}} {
  for (const std::string resource : {"cpu", "io", "memory"}) {
    Pressure pressure{resource,
                      KernelFile(fmt::format("{}/proc/pressure/{}", root, resource)),
                      {{fmt::format("host.pressure.{}.some", resource), "fraction"}, 1e-6},
                      {{fmt::format("host.pressure.{}.full", resource), "fraction"}, 1e-6}};
    // With psi=0 the files are there and reading them fails.
    pressure.readable = pressure_total(pressure.file.read(buffer_), "some").has_value();
    pressures_.push_back(std::move(pressure));
  }
  const std::string folder = root + "/sys/devices/system/node";
  for (const std::string& name : list_folder(folder)) {
    if (!name.starts_with("node")) continue;
    const auto number = parse_number<std::uint64_t>(std::string_view(name).substr(4));
    if (!number || nodes_.size() >= 1024) continue;
    const std::string prefix = fmt::format("host.numa{}", *number);
    nodes_.push_back({KernelFile(fmt::format("{}/{}/numastat", folder, name)),
                      {RateTrack{{prefix + ".local", "count/s"}}, RateTrack{{prefix + ".other", "count/s"}},
                       RateTrack{{prefix + ".misses", "count/s"}}}});
  }
}

void MemorySampler::sample(Ns now, Emitter& emitter) {
  sample_meminfo(now, emitter);
  sample_vmstat(now, emitter);
  for (Pressure& pressure : pressures_) {
    if (!pressure.readable) continue;
    const std::string_view text = pressure.file.read(buffer_);
    if (const auto total = pressure_total(text, "some")) pressure.some.put(emitter, now, *total);
    if (const auto total = pressure_total(text, "full")) pressure.full.put(emitter, now, *total);
  }
}

void MemorySampler::sample_meminfo(Ns now, Emitter& emitter) {
  std::string_view text = meminfo_.read(buffer_);
  std::optional<double> swap_total;
  std::optional<double> swap_free;
  while (!text.empty()) {
    std::string_view line = take_line(text);
    const std::string_view key = take_word(line);
    const auto kilobytes = parse_number<std::uint64_t>(take_word(line));
    if (!kilobytes) continue;
    const double bytes = static_cast<double>(*kilobytes) * 1024;
    if (key == "MemAvailable:") emitter.put(available_, now, bytes);
    if (key == "Cached:") emitter.put(cached_, now, bytes);
    if (key == "Dirty:") emitter.put(dirty_, now, bytes);
    if (key == "Writeback:") emitter.put(writeback_, now, bytes);
    if (key == "SwapTotal:") swap_total = bytes;
    if (key == "SwapFree:") swap_free = bytes;
  }
  if (swap_total && swap_free) emitter.put(swap_used_, now, *swap_total - *swap_free);
}

void MemorySampler::sample_vmstat(Ns now, Emitter& emitter) {
  std::string_view text = vmstat_.read(buffer_);
  std::optional<std::uint64_t> faults;
  std::optional<std::uint64_t> major;
  std::optional<std::uint64_t> stalls;
  std::optional<std::uint64_t> scans;
  while (!text.empty()) {
    std::string_view line = take_line(text);
    // Of some two hundred names few matter; the first letter sorts out most.
    if (line.empty() || std::strchr("pano", line.front()) == nullptr) continue;
    const std::string_view key = take_word(line);
    const auto value = [&] { return parse_number<std::uint64_t>(take_word(line)); };
    const auto rate = [&](RateTrack& track) {
      if (const auto v = value()) track.put(emitter, now, *v);
    };
    if (key == "pgfault")
      faults = value();
    else if (key == "pgmajfault")
      major = value();
    else if (key == "pswpin")
      rate(swap_in_);
    else if (key == "pswpout")
      rate(swap_out_);
    else if (key == "numa_miss")
      rate(numa_misses_);
    else if (key == "numa_pages_migrated")
      rate(numa_moves_);
    else if (key == "oom_kill")
      rate(oom_kills_);
    else if (key == "pgscan_direct")
      scans = value();
    // One line per zone, or a single one on older kernels.
    else if (key.starts_with("allocstall"))
      stalls = stalls.value_or(0) + value().value_or(0);
  }
  if (faults && major && *faults >= *major) minor_.put(emitter, now, *faults - *major);
  if (major) major_.put(emitter, now, *major);
  if (scans) direct_scans_.put(emitter, now, *scans);
  if (stalls) stalls_.put(emitter, now, *stalls);
}

void MemorySampler::sample_nodes(Ns now, Emitter& emitter) {
  for (Node& node : nodes_) {
    std::string_view text = node.file.read(buffer_);
    while (!text.empty()) {
      std::string_view line = take_line(text);
      const std::string_view key = take_word(line);
      const auto value = parse_number<std::uint64_t>(take_word(line));
      if (!value) continue;
      if (key == "local_node") node.tracks[0].put(emitter, now, *value);
      if (key == "other_node") node.tracks[1].put(emitter, now, *value);
      if (key == "numa_miss") node.tracks[2].put(emitter, now, *value);
    }
  }
}

void MemorySampler::sights(std::vector<Sight>& out) const {
  const auto file = [&](std::string what, const KernelFile& kernel_file, const char* path) {
    const bool open = kernel_file.is_open();
    out.push_back({std::move(what), open, open ? "" : fmt::format("{}: {}", path, errno_text(kernel_file.error())),
                   open ? "" : "mount /proc"});
  };
  file("memory, dirty pages and swap of the host", meminfo_, "/proc/meminfo");
  file("page faults, reclaim and swapping of the host", vmstat_, "/proc/vmstat");
  for (const Pressure& pressure : pressures_) {
    const std::string what = fmt::format("pressure stall times ({})", pressure.resource);
    if (pressure.readable) {
      out.push_back({what, true, "", ""});
      continue;
    }
    const int error = pressure.file.error();
    out.push_back({what, false,
                   fmt::format("/proc/pressure/{}: {}", pressure.resource,
                               error != 0 ? errno_text(error) : "not in the expected form"),
                   "boot with psi=1 (CONFIG_PSI)"});
  }
  const bool nodes = !nodes_.empty();
  out.push_back({"NUMA counters", nodes, nodes ? "" : "/sys/devices/system/node has no nodes",
                 nodes ? "" : "a kernel with CONFIG_NUMA"});
}

}  // namespace culprit::record
