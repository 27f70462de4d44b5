// Disks that answer late, and who keeps them busy.
#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <string_view>

#include "diagnose/pages.h"
#include "diagnose/rules.h"
#include "diagnose/text.h"

namespace culprit::diagnose {

namespace {

constexpr double kLeastLatency = 1.5;        // times longer
constexpr double kLeastSlowerRequest = 5e4;  // ns: what takes less longer was in memory
constexpr double kLeastDiskPressure = 0.05;  // of the time
constexpr double kMuchTraffic = 1e7;         // bytes per second
constexpr double kMuchRead = 1e6;            // bytes per second: nobody reads that much by chance
constexpr double kMostOfReads = 0.5;         // of what a step took, or of what it waited longer
constexpr double kMemoryGone = 0.95;         // of what was available
constexpr double kMemoryShort = 0.02;        // of the time
constexpr double kRefaults = 20;             // pages per second
constexpr std::string_view kUninterruptible = ", uninterruptible";

/// Whether a state is a wait in one of these calls.
bool is_in(std::string_view state, std::span<const char* const> calls) {
  constexpr std::string_view kBlocked = "blocked in ";
  if (!state.starts_with(kBlocked)) return false;
  state.remove_prefix(kBlocked.size());
  return std::ranges::any_of(calls, [&](const char* call) {
    return state == call || (state.ends_with("64") && state.substr(0, state.size() - 2) == call);
  });
}

/// What files and connections share; of a file nothing ends the wait, which recordings then say.
constexpr std::array kReads = {"read", "readv", "sendfile", "splice"};
constexpr std::array kOfSocketsToo = {"read", "readv", "write", "writev"};

bool is_of_a_file(std::string_view state) { return state.ends_with(kUninterruptible); }

bool reads_file(std::string_view state) {
  constexpr std::array kOfFiles = {"pread", "preadv", "preadv2"};
  if (is_in(state, kOfFiles)) return true;
  if (!is_of_a_file(state)) return false;
  state.remove_suffix(kUninterruptible.size());
  return is_in(state, kReads);
}

bool faults(std::string_view state) { return state == "blocked in page_fault"; }

}  // namespace

bool surely_waits_for_disk(std::string_view state) {
  constexpr std::array kCalls = {"fsync",    "fdatasync", "sync",           "syncfs",    "msync",     "sync_file_range",
                                 "pread",    "preadv",    "preadv2",        "pwrite",    "pwritev",   "pwritev2",
                                 "open",     "openat",    "rename",         "renameat",  "renameat2", "unlink",
                                 "unlinkat", "truncate",  "ftruncate",      "fallocate", "getdents",  "newfstatat",
                                 "statx",    "readahead", "copy_file_range"};
  return sleeps_in_no_call(state) || is_of_a_file(state) || is_in(state, kCalls);
}

bool sleeps_in_no_call(std::string_view state) {
  return state == "blocked, uninterruptible" || state == "blocked in disk or memory";
}

bool reads_pages(std::string_view state) { return faults(state) || reads_file(state); }

namespace {

bool is_late(const Sides& mean) {
  return mean.without > 0 && mean.ratio() >= kLeastLatency && mean.rise() >= kLeastSlowerRequest;
}

}  // namespace

bool answers_late(const Evidence& evidence) {
  return std::ranges::any_of(evidence.comparison().disks,
                             [&](const model::DiskChange& disk) { return is_late(evidence.turned(disk.mean_ns)); });
}

bool reads_cold_files(const Evidence& evidence) {
  if (evidence.felt(evidence.states(faults).rise()) < kLeastImpact * evidence.states_of()) return false;
  const auto available = evidence.counter("host.memory.available");
  if (available && available->ratio() < kMemoryGone) return false;
  for (const char* pressure : {"host.pressure.memory.some", "cgroup.pressure.memory.some"})
    if (evidence.rise(pressure) >= kMemoryShort) return false;
  if (evidence.rise("cgroup.memory.refaults") >= kRefaults) return false;
  return std::ranges::any_of(evidence.comparison().disks, [&](const model::DiskChange& disk) {
    const Sides bytes = evidence.turned(disk.bytes_per_second);
    return disk.name.ends_with(" read") && bytes.with >= kMuchRead && bytes.ratio() >= 2;
  });
}

namespace {

/// Waits for disks per step.
struct Waits {
  Sides all;
  Sides sure;   ///< of them in what nothing but a disk makes wait
  Sides reads;  ///< of those in reads
};

Waits waits_of(const Evidence& evidence) {
  const bool cold = reads_cold_files(evidence);
  const auto reads = [&](std::string_view state) { return reads_file(state) || (cold && faults(state)); };
  const auto sure = [&](std::string_view state) { return surely_waits_for_disk(state) || reads(state); };
  return {evidence.states([&](std::string_view state) { return sure(state) || is_in(state, kOfSocketsToo); }),
          evidence.states(sure), evidence.states(reads)};
}

/// What a limit pushes out of memory is read back: a stage of that. Where a disk answers late, and the limit is the
/// same, others may keep it busy.
bool is_stage_of_limit(const Evidence& evidence, const Waits& waits, bool late) {
  if (late && !has_tighter_limit(evidence)) return false;
  const double reads = waits.reads.rise() + evidence.states(sleeps_in_no_call).rise();
  return reads >= kMostOfReads * (late ? waits.all : waits.sure).rise();
}

void disk(const Evidence& evidence, Verdicts& verdicts) {
  bool late = false;
  bool crowded = false;
  model::Verdict verdict;
  for (const model::DiskChange& disk : evidence.comparison().disks) {
    const Sides mean = evidence.turned(disk.mean_ns);
    const Sides bytes = evidence.turned(disk.bytes_per_second);
    if (is_late(mean)) {
      late = true;
      if (verdict.evidence.size() < 2)
        verdict.evidence.push_back(fmt::format("A request of {} took {}", disk.name, instead(mean)));
    }
    crowded = crowded || (bytes.with >= kMuchTraffic && bytes.ratio() >= 2);
    if (bytes.with > 1e6 && bytes.ratio() >= 2 && verdict.evidence.size() < 3)
      verdict.evidence.push_back(fmt::format("{} by everybody: {}/s instead of {}/s", disk.name,
                                             format_bytes(bytes.with), format_bytes(bytes.without)));
  }
  const auto pressure = evidence.counter("host.pressure.io.some");
  const auto own = evidence.counter("cgroup.pressure.io.some");
  if (own && own->rise() >= kLeastDiskPressure)
    verdict.evidence.push_back(fmt::format("Its control group waited for disks {} of the time", instead_percent(*own)));
  else if (pressure && pressure->rise() >= kLeastDiskPressure)
    verdict.evidence.push_back(fmt::format("Somebody waited for disks {} of the time", instead_percent(*pressure)));
  // Sockets and pipes are read and written, too: then only a disk that answers later tells.
  const Waits waits = waits_of(evidence);
  const Sides& time = late ? waits.all : waits.sure;
  if (std::ranges::any_of(verdicts, is_of_memory_limit) && is_stage_of_limit(evidence, waits, late)) return;
  if (verdict.evidence.empty() || evidence.felt(time.rise()) < kLeastImpact * evidence.states_of()) return;
  // The disks of virtual machines answer several times as late in one recording as in the next, and nobody knows why.
  const auto step = evidence.step();
  const bool mostly = step && evidence.felt(time.rise()) >= kMostOfReads * step->all().without;
  if (!evidence.is_slower() && !crowded && !mostly) return;
  verdict.cause = "disk_io";
  verdict.side = evidence.side();
  verdict.confidence = verdict.evidence.size() > 1 ? 0.9 : 0.75;
  verdict.evidence.insert(
      verdict.evidence.begin(),
      fmt::format("Its threads waited {} in calls that read, write or sync files", instead_each(evidence, time)));
  const bool by_reads = waits.reads.rise() >= kMostOfReads * time.rise();
  if (by_reads)
    verdict.evidence.insert(verdict.evidence.begin() + 1, fmt::format("Of that, {} until what it read was there",
                                                                      instead_each(evidence, waits.reads)));
  verdict.impact_ns = evidence.felt(time.rise());
  for (const Beside& beside : evidence.more_beside()) {
    verdict.evidence.push_back(took(beside));
    break;
  }
  if (!late && by_reads)
    verdict.against.emplace_back(
        "No request of a disk is known to have taken longer: more to read, or other files, would look alike");
  else if (!late)
    verdict.against.emplace_back(
        "No request of a disk is known to have taken longer: more to write, or a lock of the file system, would look "
        "alike");
  verdict.next_step =
      by_reads
          ? "see whether what it reads fits into memory and stays there (free, fincore), and who else reads (iotop, "
            "pidstat -d)"
          : "see who writes (iotop, pidstat -d), and whether what it waits for must be on this disk";
  verdicts.push_back(std::move(verdict));
}

constexpr std::array kDiskRules = {Rule{"disk.io", disk}};

}  // namespace

std::span<const Rule> disk_rules() { return kDiskRules; }

}  // namespace culprit::diagnose
