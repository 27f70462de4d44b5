// Disks that answer late, and who keeps them busy.
#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <string_view>

#include "diagnose/rules.h"
#include "diagnose/text.h"

namespace culprit::diagnose {

namespace {

constexpr double kLeastLatency = 1.5;    // times longer
constexpr double kLeastSlower = 5e4;     // ns: what takes less longer was in memory
constexpr double kLeastPressure = 0.05;  // of the time
constexpr double kMuchTraffic = 1e7;     // bytes per second
constexpr double kMostly = 0.5;          // of what a step took

/// Whether a state is a wait in one of these calls.
bool is_in(std::string_view state, std::span<const char* const> calls) {
  constexpr std::string_view kBlocked = "blocked in ";
  if (!state.starts_with(kBlocked)) return false;
  state.remove_prefix(kBlocked.size());
  return std::ranges::any_of(calls, [&](const char* call) {
    return state == call || (state.ends_with("64") && state.substr(0, state.size() - 2) == call);
  });
}

}  // namespace

bool surely_waits_for_disk(std::string_view state) {
  constexpr std::array kCalls = {"fsync",    "fdatasync", "sync",      "syncfs",   "msync",     "sync_file_range",
                                 "pread",    "preadv",    "preadv2",   "pwrite",   "pwritev",   "pwritev2",
                                 "open",     "openat",    "rename",    "renameat", "renameat2", "unlink",
                                 "unlinkat", "truncate",  "ftruncate", "fallocate"};
  return state == "blocked, uninterruptible" || state == "blocked in disk or memory" || is_in(state, kCalls);
}

namespace {

bool waits_for_disk(std::string_view state) {
  constexpr std::array kOfSocketsToo = {"read", "readv", "write", "writev"};
  return surely_waits_for_disk(state) || is_in(state, kOfSocketsToo);
}

void disk(const Evidence& evidence, Verdicts& verdicts) {
  const Sides time = evidence.states(waits_for_disk);
  const double least = kLeastImpact * evidence.states_of();
  if (evidence.felt(time.rise()) < least) return;
  // Sockets and pipes are read and written, too: then only a disk that answers later tells.
  const bool sure = evidence.felt(evidence.states(surely_waits_for_disk).rise()) >= least;
  bool late = false;
  bool crowded = false;
  model::Verdict verdict;
  for (const model::DiskChange& disk : evidence.comparison().disks) {
    const Sides mean = evidence.turned(disk.mean_ns);
    const Sides bytes = evidence.turned(disk.bytes_per_second);
    if (mean.without > 0 && mean.ratio() >= kLeastLatency && mean.rise() >= kLeastSlower) {
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
  if (pressure && pressure->rise() >= kLeastPressure)
    verdict.evidence.push_back(fmt::format("Somebody waited for disks {} of the time", instead_percent(*pressure)));
  if (verdict.evidence.empty() || !(sure || late)) return;
  // The disks of virtual machines answer several times as late in one recording as in the next, and nobody knows why.
  const auto step = evidence.step();
  const bool mostly = step && evidence.felt(time.rise()) >= kMostly * step->all().without;
  if (!evidence.is_slower() && !crowded && !mostly) return;
  verdict.cause = "disk_io";
  verdict.side = evidence.side();
  verdict.confidence = verdict.evidence.size() > 1 ? 0.9 : 0.75;
  verdict.evidence.insert(
      verdict.evidence.begin(),
      fmt::format("Its threads waited {} per step in calls that read, write or sync files", instead(time)));
  verdict.impact_ns = evidence.felt(time.rise());
  for (const Beside& beside : evidence.more_beside()) {
    verdict.evidence.push_back(took(beside));
    break;
  }
  if (!late)
    verdict.against.emplace_back(
        "No request of a disk is known to have taken longer: more to write, or a lock of the file system, would look "
        "alike");
  verdict.next_step = "see who writes (iotop, pidstat -d), and whether what it waits for must be on this disk";
  verdicts.push_back(std::move(verdict));
}

constexpr std::array kRules = {Rule{"disk.io", disk}};

}  // namespace

std::span<const Rule> disk_rules() { return kRules; }

}  // namespace culprit::diagnose
