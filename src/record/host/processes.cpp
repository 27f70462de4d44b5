#include "record/host/processes.h"
#include "core/text.h"

#include <dirent.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ctime>

#include "core/utf8.h"

namespace culprit::record {

namespace {

constexpr std::uint64_t kMostCoresOfOne = 8192;  // that one process can keep busy

/// CPU time of a process by its clock. The number of the clock is that of clock_getcpuclockid(3), without its
/// check, which costs another system call.
std::optional<std::uint64_t> clock_of(std::int64_t pid) {
  constexpr unsigned kSched = 2;
  const auto id = static_cast<clockid_t>((~static_cast<unsigned>(pid) << 3) | kSched);
  timespec time{};
  if (clock_gettime(id, &time) != 0) return std::nullopt;
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(time.tv_nsec);
}

/// Calls `use(pid)` for every process, in no order.
template <class Use>
void each_process(const std::string& proc, Use use) {
  DIR* folder = opendir(proc.c_str());
  if (folder == nullptr) return;
  while (const dirent* entry = readdir(folder))  // NOLINT(concurrency-mt-unsafe): a handle of its own
    if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9')
      if (const auto pid = parse_number<std::int64_t>(entry->d_name)) use(*pid);
  closedir(folder);
}

}  // namespace

std::optional<ProcessStat> parse_process_stat(std::string_view text) {
  const std::size_t open = text.find('(');
  const std::size_t close = text.rfind(')');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) return std::nullopt;
  ProcessStat stat;
  stat.name = text.substr(open + 1, close - open - 1);
  std::string_view rest = text.substr(close + 1);
  const std::string_view state = take_word(rest);
  if (state.size() != 1) return std::nullopt;
  stat.state = state.front();
  // Fields 4 to 24; some may be negative.
  std::array<std::uint64_t, 25> field{};
  for (std::size_t i = 4; i <= 24; ++i) {
    const auto value = parse_number<std::int64_t>(take_word(rest));
    if (!value) {
      return std::nullopt;
    }
    field[i] = *value > 0 ? static_cast<std::uint64_t>(*value) : 0;
  }
  stat.parent = static_cast<std::int64_t>(field[4]);
  stat.minor_faults = field[10];
  stat.major_faults = field[12];
  stat.user = field[14];
  stat.system = field[15];
  stat.children = field[16] + field[17];
  stat.threads = field[20];
  stat.start = field[22];
  stat.resident_pages = field[24];
  return stat;
}

ProcessSampler::ProcessSampler(ProcessOptions options)
    : options_(std::move(options)),
      total_{"target.cpu", "count"},
      recorder_track_{"recorder.cpu", "count"},
      minor_{{"target.faults.minor", "count/s"}},
      major_{{"target.faults.major", "count/s"}} {}

std::optional<std::uint64_t> ProcessSampler::cpu_time(std::int64_t pid) {
  if (options_.root.empty()) return clock_of(pid);
  const auto text = read_text(fmt::format("{}/proc/{}/stat", options_.root, pid), 4096);
  const auto stat = text ? parse_process_stat(*text) : std::nullopt;
  if (!stat) return std::nullopt;
  return (stat->user + stat->system) * (1'000'000'000U / options_.ticks_per_second);
}

void ProcessSampler::join(const Target& target) {
  leave(target.pid);
  const auto pid = target.pid;
  const double tick = 1.0 / static_cast<double>(options_.ticks_per_second);
  Process process;
  process.pid = pid;
  process.stat = KernelFile(fmt::format("{}/proc/{}/stat", options_.root, pid));
  if (!process.stat.is_open()) ++unreadable_;
  process.cpu_track = {"process.cpu", "count", pid};
  process.resident = {"process.memory.resident", "bytes", pid};
  process.threads = {"process.threads", "count", pid};
  process.user = {{"process.cpu.user", "count", pid}, tick};
  process.system = {{"process.cpu.system", "count", pid}, tick};
  process.minor = {{"process.faults.minor", "count/s", pid}};
  process.major = {{"process.faults.major", "count/s", pid}};
  // A process that joins while sampling runs has used what it has within this interval: it is new.
  if (sampled_at_ != 0) {
    process.cpu_ns = 0;
    if (const auto stat = parse_process_stat(process.stat.read(buffer_))) {
      constexpr std::uint64_t kYoungTicks = 2;
      timespec boot{};
      clock_gettime(CLOCK_BOOTTIME, &boot);
      const auto uptime = static_cast<std::uint64_t>(boot.tv_sec) * options_.ticks_per_second;
      const bool young = stat->start + kYoungTicks * options_.ticks_per_second > uptime;
      if (!young || !options_.root.empty()) process.cpu_ns = cpu_time(pid);
    }
  } else {
    process.cpu_ns = cpu_time(pid);
  }
  targets_.insert_or_assign(pid, std::move(process));
  others_.erase(pid);
}

void ProcessSampler::leave(std::int64_t pid) {
  const auto found = targets_.find(pid);
  if (found == targets_.end()) return;
  const Process& process = found->second;
  const std::uint64_t cpu = process.cpu_ns.value_or(0);
  departed_ns_.erase(pid);
  // What its parent will get when it waits: its own time and that of its children.
  if (targets_.contains(process.parent)) departed_ns_[process.parent] += cpu + process.children_ns;
  others_[pid].cpu_ns = cpu;  // in case it lives on without us
  others_[pid].round = round_;
  targets_.erase(found);
}

void ProcessSampler::take_stat(Process& process, Ns now, Emitter& emitter) {
  const auto stat = parse_process_stat(process.stat.read(buffer_));
  if (!stat) return;
  process.parent = stat->parent;
  // The open file belongs to the process it was opened for; a reused pid is another file.
  process.user.put(emitter, now, stat->user);
  process.system.put(emitter, now, stat->system);
  const auto faults = [&](RateTrack& track, std::uint64_t value, std::uint64_t& sum) {
    if (track.counter.last && value > *track.counter.last) sum += value - *track.counter.last;
    track.put(emitter, now, value);
  };
  faults(process.minor, stat->minor_faults, minor_sum_);
  faults(process.major, stat->major_faults, major_sum_);
  emitter.put(process.threads, now, static_cast<double>(stat->threads));
  emitter.put(process.resident, now, static_cast<double>(stat->resident_pages * options_.page_bytes));
  const std::uint64_t children = stat->children * (1'000'000'000U / options_.ticks_per_second);
  if (process.children_known && children > process.children_ns) {
    const std::uint64_t grown = children - process.children_ns;
    std::uint64_t& departed = departed_ns_[process.pid];
    const std::uint64_t counted = std::min(grown, departed);
    departed -= counted;
    pending_ns_ += grown - counted;
  }
  process.children_ns = children;
  process.children_known = true;
}

std::optional<double> ProcessSampler::sample(Ns now, Emitter& emitter) {
  std::size_t stats = std::min(options_.stats_per_sample, targets_.size());
  if (next_ >= targets_.size()) next_ = 0;
  auto it = std::next(targets_.begin(), static_cast<std::ptrdiff_t>(next_));
  for (; stats > 0; --stats, ++next_) {
    if (it == targets_.end()) {
      it = targets_.begin();
      next_ = 0;
    }
    take_stat((it++)->second, now, emitter);
  }
  std::uint64_t grown = pending_ns_;
  pending_ns_ = 0;
  for (auto& [pid, process] : targets_) {
    const auto cpu = cpu_time(pid);
    if (!cpu) continue;
    if (process.cpu_ns && *cpu >= *process.cpu_ns) grown += *cpu - *process.cpu_ns;
    process.cpu_ns = cpu;
    if (const auto step = process.cpu.step(*cpu, now, emitter))
      emitter.put(process.cpu_track, step->begin, step->per_second() * 1e-9);
  }
  if (const auto own = options_.own_pid > 0 ? cpu_time(options_.own_pid) : std::nullopt)
    if (const auto step = recorder_.step(*own, now, emitter)) {
      recorder_cores_ = step->per_second() * 1e-9;
      emitter.put(recorder_track_, step->begin, recorder_cores_);
    }
  minor_.put(emitter, now, minor_sum_);
  major_.put(emitter, now, major_sum_);
  const Ns since = std::exchange(sampled_at_, now);
  if (since == 0 || now <= since) return std::nullopt;
  const double cores = static_cast<double>(grown) / static_cast<double>(now - since);
  emitter.put(total_, since, cores);
  return cores;
}

double ProcessSampler::sample_others(Ns now, Emitter& emitter) {
  struct Heavy {
    std::int64_t pid;
    double cores;
  };
  std::vector<Heavy> heavy;
  const Ns since = std::exchange(others_at_, now);
  const bool first = since == 0 || now <= since;
  ++round_;
  each_process(options_.root + "/proc", [&](std::int64_t pid) {
    if (pid == options_.own_pid || targets_.contains(pid)) return;
    const auto cpu = cpu_time(pid);
    if (!cpu) return;
    const auto [found, inserted] = others_.try_emplace(pid);
    Other& other = found->second;
    // Less time than before: the pid belongs to another process now.
    if (*cpu < other.cpu_ns) other = Other{};
    const std::uint64_t before = inserted && first ? *cpu : other.cpu_ns;
    const std::uint64_t grown = *cpu - before;
    other.cpu_ns = *cpu;
    other.round = round_;
    if (first || grown > static_cast<std::uint64_t>(now - since) * kMostCoresOfOne) return;
    const double cores = static_cast<double>(grown) / static_cast<double>(now - since);
    if (cores > options_.other_least) heavy.push_back({pid, cores});
  });
  std::ranges::sort(
      heavy, [](const Heavy& a, const Heavy& b) { return a.cores != b.cores ? a.cores > b.cores : a.pid < b.pid; });
  heavy.resize(std::min(heavy.size(), options_.other_most));
  for (auto it = others_.begin(); it != others_.end();) {
    Other& other = it->second;
    const auto found = std::ranges::find(heavy, it->first, &Heavy::pid);
    if (found != heavy.end()) {
      if (!other.shown) {
        const auto text = read_text(fmt::format("{}/proc/{}/stat", options_.root, it->first), 4096);
        const auto stat = text ? parse_process_stat(*text) : std::nullopt;
        emitter.name_process(it->first, stat ? repair_utf8(stat->name) : "?");
        other.track = {"other.cpu", "count", it->first};
      }
      other.shown = true;
      emitter.put(other.track, since, found->cores);
    } else if (other.shown) {
      emitter.put(other.track, since, 0);
      other.shown = false;
    }
    it = other.round == round_ ? std::next(it) : others_.erase(it);
  }
  double shown = 0;
  for (const Heavy& one : heavy) shown += one.cores;
  return shown;
}

void ProcessSampler::sights(std::vector<Sight>& out) const {
  const bool fine = unreadable_ == 0;
  out.push_back({"CPU time, memory and faults of the targets", fine,
                 fine ? "" : fmt::format("/proc/PID/stat of {} targets could not be opened", unreadable_),
                 fine ? "" : "run as the same user, or mount /proc without hidepid"});
}

}  // namespace culprit::record
