#include "diagnose/limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "core/saturating.h"
#include "core/text.h"
#include "core/units.h"
#include "diagnose/pages.h"
#include "diagnose/rules.h"
#include "diagnose/run_times.h"
#include "diagnose/step_parts.h"

namespace culprit::diagnose {

namespace {

using model::Recording;
using model::ResourceSeries;
using model::Verdict;

constexpr double kHotCpu = 90;           // degrees Celsius or more: near where CPUs lower their clock
constexpr double kHotGpu = 85;           // degrees Celsius or more: the same of devices
constexpr double kLowClock = 0.5;        // of the highest clock, or less, of CPUs that are busy: no mere lack of turbo
constexpr double kLittleMemory = 0.05;   // of the machine's memory, or less: what is left before it has to reclaim
constexpr double kFullGroup = 0.97;      // of the limit of a control group, or more
constexpr double kHits = 1;              // of such a limit, per second: or more
constexpr double kMissed = 20;           // pages per second that are read again, or more
constexpr double kWaited = 0.02;         // of the time, for memory, or more
constexpr double kBusyDisk = 0.8;        // of the time, or more: requests hardly ever find it free
constexpr double kLostShare = 0.01;      // of TCP segments, or more: links that work lose far fewer
constexpr double kLostSegments = 1;      // per second, or more
constexpr double kLeastSent = 100;       // per second
constexpr double kBusyCpu = 0.5;         // of the time: an idle one lowers its clock
constexpr double kMost = 0.5;            // of the time that was looked at: a peak is no level
constexpr Ns kShortest = 1'000'000'000;  // ns of it: a burst is none, either
constexpr std::size_t kFewest = 5;       // samples
constexpr double kUnfelt = 0.3;          // confidence in what nothing shows to be felt
constexpr double kFelt = 0.6;

/// When the steps ran, on the clock of series; everything where there are none.
struct Span {
  Ns begin = 0;
  Ns end = 0;
};

std::optional<Span> steps_of(const Recording& run) {
  std::optional<Span> span;
  for (const model::ProfileCycle& cycle : run.profile.cycles) {
    const Span one{cycle.begin, add_saturating(cycle.begin, cycle.duration)};
    span = span ? Span{std::min(span->begin, one.begin), std::max(span->end, one.end)} : one;
  }
  return span && span->begin < span->end ? span : std::nullopt;
}

/// A level over the time of the steps; of several series they follow each other.
struct Level {
  double sum = 0;     ///< of value times ns
  double time = 0;    ///< ns
  double beyond = 0;  ///< of that, beyond the limit
  std::size_t samples = 0;
  [[nodiscard]] double mean() const { return time > 0 ? sum / time : 0; }
  [[nodiscard]] double share() const { return time > 0 ? beyond / time : 0; }
  [[nodiscard]] bool lasts() const {
    return samples >= kFewest && time >= static_cast<double>(kShortest) && share() > kMost;
  }
};

/// A value holds until the next one.
template <class IsBeyond>
void add_series(const ResourceSeries& series, const std::optional<Span>& span, const IsBeyond& is_beyond,
                Level& level) {
  for (std::size_t i = 0; i + 1 < series.values.size(); ++i) {
    const Ns begin = span ? std::max(series.times[i], span->begin) : series.times[i];
    const Ns end = span ? std::min(series.times[i + 1], span->end) : series.times[i + 1];
    if (begin >= end) continue;
    const auto time = static_cast<double>(subtract_saturating(end, begin));
    level.sum += series.values[i] * time;
    level.time += time;
    level.beyond += is_beyond(series.values[i]) ? time : 0;
    ++level.samples;
  }
}

template <class IsBeyond>
Level level_of(const ResourceSeries& series, const std::optional<Span>& span, const IsBeyond& is_beyond) {
  Level level;
  add_series(series, span, is_beyond, level);
  return level;
}

std::string for_share(const Level& level) { return fmt::format("for {:.0f} % of the time", level.share() * kPercent); }

/// The lowest number of a fact, of which hosts, or CPUs ("3500000, 2400000"), may tell several. nullopt: none is told.
std::optional<double> lowest_fact(const Recording& run, std::string_view key) {
  const auto fact = run.environment.find(std::string(key));
  if (fact == run.environment.end()) return std::nullopt;
  std::optional<double> lowest;
  for (const std::string& text : fact->second) {
    std::string_view rest = text;
    while (!rest.empty()) {
      const std::string_view part = rest.substr(0, rest.find(','));
      rest.remove_prefix(std::min(rest.size(), part.size() + 1));
      const auto number = parse_number<double>(trim(part));
      if (!number || !(*number > 0)) return std::nullopt;
      lowest = std::min(lowest.value_or(*number), *number);
    }
  }
  return lowest;
}

/// Gives a latent verdict with that evidence; none where the cause has been named, of which it becomes evidence.
Verdict* told(Verdicts& verdicts, std::string_view cause, std::string_view detail, std::string evidence) {
  const auto known = std::ranges::find(verdicts, cause, &Verdict::cause);
  Verdict& verdict = known == verdicts.end() ? verdicts.emplace_back() : *known;
  verdict.evidence.push_back(std::move(evidence));
  if (!verdict.cause.empty()) {
    if (verdict.detail.empty()) verdict.detail = detail;
    return nullptr;
  }
  verdict.cause = cause;
  verdict.detail = detail;
  verdict.state = model::VerdictState::latent;
  verdict.confidence = kUnfelt;
  return &verdict;
}

/// Its threads waited that long: active.
void felt(const Recording& run, double waited, std::string_view whereby, Verdict& verdict) {
  const double time = std::min(waited, most_felt(run));
  if (!(time > 0) || time < kLeastImpact * mean_step(run)) return;
  verdict.state = model::VerdictState::active;
  verdict.confidence = kFelt;
  verdict.impact_ns = time;
  verdict.evidence.push_back(fmt::format("Its threads waited {} per {} {}", format_duration(time),
                                         run.host.per_second ? "second" : "step", whereby));
}

/// Sensors of CPUs, by their drivers (hwmon) and zones.
bool is_of_cpu(std::string_view metric) {
  constexpr std::string_view kSensor = "host.temperature.";
  constexpr std::array<std::string_view, 6> kDrivers = {"coretemp",    "k10temp",     "zenpower",
                                                        "cpu_thermal", "cpu-thermal", "x86_pkg_temp"};
  if (metric == "cpu_temp") return true;
  if (!metric.starts_with(kSensor)) return false;
  return std::ranges::any_of(kDrivers,
                             [&](std::string_view d) { return metric.substr(kSensor.size()).starts_with(d); });
}

void cpu_temperature(const Recording& run, const std::optional<Span>& span, Verdicts& verdicts) {
  const ResourceSeries* hottest = nullptr;
  Level most;
  for (const ResourceSeries& series : run.profile.series) {
    if (!is_of_cpu(run.profile.texts[series.metric])) continue;
    const Level level = level_of(series, span, [](double degrees) { return degrees >= kHotCpu; });
    if (!level.lasts() || level.mean() < std::max(kHotCpu, most.mean())) continue;
    hottest = &series;
    most = level;
  }
  if (hottest == nullptr) return;
  Verdict* const verdict = told(verdicts, "cpu_frequency_drop", "throttle_thermal",
                                fmt::format("{} is {:.0f} degrees Celsius in the mean, and {:.0f} or more {}",
                                            run.profile.texts[hottest->metric], most.mean(), kHotCpu, for_share(most)));
  if (verdict == nullptr) return;
  verdict->against.emplace_back("There is no baseline: some CPUs are made to run as hot, at their usual clock");
  verdict->next_step = "see fans, power limit and clock (sensors, turbostat)";
}

/// Number of the CPU in "host.cpu3.frequency"; empty: it is none of that kind.
std::string_view cpu_in(std::string_view metric, std::string_view kind) {
  constexpr std::string_view kCpu = "host.cpu";
  if (!metric.starts_with(kCpu) || !metric.ends_with(kind) || metric.size() <= kCpu.size() + kind.size()) return {};
  return metric.substr(kCpu.size(), metric.size() - kCpu.size() - kind.size());
}

/// CPUs that work for half of the time or more, as "host/number".
std::set<std::string> busy_cpus(const Recording& run, const std::optional<Span>& span) {
  std::set<std::string> busy;
  for (const ResourceSeries& series : run.profile.series) {
    const std::string_view number = cpu_in(run.profile.texts[series.metric], ".busy");
    if (number.empty()) continue;
    if (level_of(series, span, [](double share) { return share >= kBusyCpu; }).lasts())
      busy.insert(fmt::format("{}/{}", run.profile.texts[series.host], number));
  }
  return busy;
}

void cpu_clock(const Recording& run, const std::optional<Span>& span, Verdicts& verdicts) {
  constexpr double kHertz = 1e3;
  constexpr double kGiga = 1e9;
  const auto highest = lowest_fact(run, "env.cpu.cpuinfo_max_freq_khz");
  if (!highest) return;
  const double limit = kLowClock * *highest * kHertz;
  const std::set<std::string> busy = busy_cpus(run, span);
  Level level;  // of all of them: each is read in its turn
  std::size_t cpus = 0;
  for (const ResourceSeries& series : run.profile.series) {
    const std::string_view number = cpu_in(run.profile.texts[series.metric], ".frequency");
    if (number.empty() || !busy.contains(fmt::format("{}/{}", run.profile.texts[series.host], number))) continue;
    add_series(
        series, span, [&](double hertz) { return hertz > 0 && hertz <= limit; }, level);
    ++cpus;
  }
  if (!level.lasts() || level.mean() > limit) return;
  Verdict* const verdict = told(
      verdicts, "cpu_frequency_drop", "",
      fmt::format("The clock of the {} that work{} is {:.2f} GHz in the mean, and half of the highest, {:.2f} GHz, "
                  "or less {}",
                  cpus == 1 ? "CPU" : fmt::format("{} CPUs", cpus), cpus == 1 ? "s" : "", level.mean() / kGiga,
                  *highest * kHertz / kGiga, for_share(level)));
  if (verdict == nullptr) return;
  verdict->against.emplace_back(
      "There is no baseline: where all CPUs work none reaches the clock that one alone may have, and waits for memory "
      "are no shorter at a higher one");
  verdict->next_step = "see governor, power limit and temperature (cpupower frequency-info, sensors)";
}

void memory(const Recording& run, const std::optional<Span>& span, Verdicts& verdicts) {
  const auto total = lowest_fact(run, "env.memory.total_bytes");
  if (!total) return;
  const double limit = kLittleMemory * *total;
  for (const ResourceSeries& series : run.profile.series) {
    if (run.profile.texts[series.metric] != "host.memory.available") continue;
    const Level level = level_of(series, span, [&](double bytes) { return bytes <= limit; });
    if (!level.lasts() || level.mean() > limit) continue;
    Verdict* const verdict =
        told(verdicts, "host_memory_pressure", "available",
             fmt::format("{} of {} of memory are available in the mean, and {:.0f} % or less {}",
                         format_bytes(level.mean()), format_bytes(*total), kLittleMemory * kPercent, for_share(level)));
    if (verdict == nullptr) return;
    felt(run, state_time(run, [](std::string_view state) { return state == "blocked in page_fault"; }), "for pages",
         *verdict);
    verdict->against.emplace_back("There is no baseline: a machine that is sized for its program has as little left");
    verdict->next_step = "more memory, or a smaller working set; ps, sorted by resident memory, names who has it";
    return;
  }
}

/// What of the memory of a control group was missed, in sentences. Files fill any group up to its limit, and their
/// oldest pages make room: that does no harm by itself.
std::vector<std::string> missed_in_group(const Recording& run) {
  std::vector<std::string> missed;
  if (const double refaults = counter(run, "cgroup.memory.refaults"); refaults >= kMissed)
    missed.push_back(fmt::format("{} pages a second are read again that had just been pushed out of the group's memory",
                                 rate_text(refaults)));
  if (const double faults = counter(run, "target.faults.major"); faults >= kMissed)
    missed.push_back(fmt::format("It has to read {} pages a second from a disk", rate_text(faults)));
  if (const double waited = counter(run, "cgroup.pressure.memory.some"); waited >= kWaited)
    missed.push_back(fmt::format("Somebody in the group waits for memory {:.3g} % of the time", waited * kPercent));
  return missed;
}

/// Host, rank and process that a series of a control group is told of.
using GroupKey = std::tuple<StringId, std::int32_t, std::int64_t>;
GroupKey group_of(const ResourceSeries& series) { return {series.host, series.rank, series.pid}; }

/// The lowest limit of each group that has one, bytes.
std::map<GroupKey, double> limits_of_groups(const Recording& run, const std::optional<Span>& span) {
  std::map<GroupKey, double> lowest;
  for (const ResourceSeries& series : run.profile.series) {
    const std::string_view metric = run.profile.texts[series.metric];
    if (metric != "cgroup.memory.limit" && metric != "cgroup.memory.high") continue;
    const double bytes = level_of(series, span, [](double) { return true; }).mean();
    if (!(bytes > 0)) continue;
    const auto [at, is_new] = lowest.try_emplace(group_of(series), bytes);
    if (!is_new) at->second = std::min(at->second, bytes);
  }
  return lowest;
}

void group_memory(const Recording& run, const std::optional<Span>& span, Verdicts& verdicts) {
  const double hits = counter(run, "cgroup.memory.limit_hits") + counter(run, "cgroup.memory.high_hits");
  const std::vector<std::string> missed = missed_in_group(run);
  if (hits < kHits || missed.empty()) return;
  const std::map<GroupKey, double> limits = limits_of_groups(run, span);
  for (const ResourceSeries& series : run.profile.series) {
    if (run.profile.texts[series.metric] != "cgroup.memory.used") continue;
    const auto known = limits.find(group_of(series));
    if (known == limits.end()) continue;
    const double limit = known->second;
    const Level level = level_of(series, span, [&](double bytes) { return bytes >= kFullGroup * limit; });
    if (!level.lasts() || level.mean() < kFullGroup * limit) continue;
    std::string evidence = fmt::format(
        "Its control group uses {} of its limit of {} of memory in the mean, and {:.0f} % or more {}; {} allocations a "
        "second meet it",
        format_bytes(level.mean()), format_bytes(limit), kFullGroup * kPercent, for_share(level), rate_text(hits));
    Verdict* verdict = told(verdicts, "host_memory_pressure", "memory_limit", std::move(evidence));
    if (verdict != nullptr) {
      verdict->evidence.insert(verdict->evidence.end(), missed.begin(), missed.end());
      felt(run, state_time(run, [](std::string_view s) { return reads_pages(s) || sleeps_in_no_call(s); }),
           "for pages and files", *verdict);
    } else {
      verdict = &*std::ranges::find(verdicts, "host_memory_pressure", &Verdict::cause);
      verdict->evidence.insert(verdict->evidence.end(), missed.begin(), missed.end());
      verdict->detail = "memory_limit";
      verdict->against.clear();
    }
    verdict->against.emplace_back("There is no baseline: a group that is sized for its program is as full");
    verdict->next_step = kRaiseLimit;
    return;
  }
}

void disk(const Recording& run, const std::optional<Span>& span, Verdicts& verdicts) {
  constexpr std::string_view kDisk = "host.disk.";
  constexpr std::string_view kBusy = ".busy";
  std::string name;
  Level most;
  for (const ResourceSeries& series : run.profile.series) {
    const std::string_view metric = run.profile.texts[series.metric];
    if (!metric.starts_with(kDisk) || !metric.ends_with(kBusy) || metric.size() <= kDisk.size() + kBusy.size())
      continue;
    const Level level = level_of(series, span, [](double share) { return share >= kBusyDisk; });
    if (!level.lasts() || level.mean() < std::max(kBusyDisk, most.mean())) continue;
    name = metric.substr(kDisk.size(), metric.size() - kDisk.size() - kBusy.size());
    most = level;
  }
  if (name.empty()) return;
  Verdict* const verdict =
      told(verdicts, "disk_io", "busy",
           fmt::format("{} has requests in flight for {:.0f} % of the time in the mean, and for {:.0f} % "
                       "or more {}",
                       name, most.mean() * kPercent, kBusyDisk * kPercent, for_share(most)));
  if (verdict == nullptr) return;
  felt(run, state_time(run, surely_waits_for_disk), "in calls that wait for disks", *verdict);
  verdict->against.emplace_back(
      "There is no baseline: a disk that serves many requests at once is busy all the time, and may do more yet");
  verdict->next_step = "see who reads and writes (iotop, pidstat -d)";
}

/// Programs that wait for others wait for work as well, so nothing tells what of that it cost.
void network(const Recording& run, const std::optional<Span>& span, Verdicts& verdicts) {
  std::array<Level, 2> levels;  // sent again, and sent
  for (const ResourceSeries& series : run.profile.series) {
    const std::string_view metric = run.profile.texts[series.metric];
    if (metric == "host.tcp.retransmits")
      add_series(
          series, span, [](double segments) { return segments >= kLostSegments; }, levels[0]);
    else if (metric == "host.tcp.segments_sent")
      add_series(
          series, span, [](double) { return false; }, levels[1]);
  }
  const double sent = levels[1].mean();
  if (!levels[0].lasts() || sent < kLeastSent || levels[0].mean() < std::max(kLostSegments, kLostShare * sent)) return;
  Verdict* const verdict = told(verdicts, "interconnect_contention", "network",
                                fmt::format("{:.3g} of {:.3g} TCP segments a second are sent again, {:.1f} %",
                                            levels[0].mean(), sent, kPercent * levels[0].mean() / sent));
  if (verdict == nullptr) return;
  verdict->against.emplace_back(
      "Whose segments these are is not known, nor whether somebody waited for them; answers to those who only scan the "
      "machine count, too");
  verdict->next_step = "ss -ti shows each connection; see the link, its queues and who else sends over it";
}

/// All devices that are as hot are one verdict: they share what cools them, or their work.
void device_temperature(const Recording& run, const std::optional<Span>& span, Verdicts& verdicts) {
  constexpr std::array<std::string_view, 2> kHeat = {"gpu_temp", "GPU temperature"};
  std::set<std::string> hot;
  RankDevice hottest;
  Level most;
  for (const ResourceSeries& series : run.profile.series) {
    if (std::ranges::find(kHeat, run.profile.texts[series.metric]) == kHeat.end()) continue;
    const Level level = level_of(series, span, [](double degrees) { return degrees >= kHotGpu; });
    if (!level.lasts() || level.mean() < kHotGpu) continue;
    const RankDevice place{series.rank, std::string(run.profile.texts[series.device])};
    hot.insert(place_text(place, true));
    if (level.mean() < most.mean()) continue;
    hottest = place;
    most = level;
  }
  if (hot.empty()) return;
  const std::string name = place_text(hottest, has_ranks(run));
  std::string evidence =
      fmt::format("{} is {:.0f} degrees Celsius in the mean, and {:.0f} or more {}{}", name, most.mean(), kHotGpu,
                  for_share(most), hot.size() > 1 ? fmt::format("; others that are as hot: {}", hot.size() - 1) : "");
  // Where its clock is known to be low that has been told, of it or of its rank.
  const auto known = std::ranges::find_if(verdicts, [&](const Verdict& v) {
    return (v.cause == "gpu_clock_drop" && v.where == name) ||
           (v.detail == "gpu_clock_drop" && v.rank == hottest.first);
  });
  if (known != verdicts.end()) {
    known->evidence.push_back(std::move(evidence));
    return;
  }
  Verdict& verdict = verdicts.emplace_back();
  verdict.cause = "gpu_clock_drop";
  verdict.detail = "throttle_thermal";
  verdict.scope = model::VerdictScope::device;
  verdict.state = model::VerdictState::latent;
  verdict.confidence = kUnfelt;
  if (hot.size() == 1) {
    verdict.where = name;
    verdict.rank = hottest.first;
  }
  verdict.evidence.push_back(std::move(evidence));
  verdict.against.emplace_back("There is no baseline: whether its clock is lower by that was not seen");
  verdict.next_step = "nvidia-smi -q -d CLOCK,PERFORMANCE,POWER,TEMPERATURE says what limits the clock";
}

}  // namespace

void limits(const Recording& run, Verdicts& verdicts) {
  const std::optional<Span> span = steps_of(run);
  for (const auto rule : {cpu_clock, cpu_temperature, group_memory, memory, disk, network, device_temperature})
    rule(run, span, verdicts);
}

}  // namespace culprit::diagnose
