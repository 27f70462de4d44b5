#include "compare/work.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "compare/assumed.h"
#include "compare/bystanders.h"
#include "compare/collected.h"
#include "compare/cycle_time.h"
#include "compare/earlier.h"
#include "compare/host_changes.h"
#include "compare/series.h"
#include "compare/work_outcome.h"
#include "core/units.h"
#include "stats/distributions.h"
#include "stats/log_buckets.h"
#include "stats/quantile.h"

namespace culprit::compare {

namespace {

using model::CountedTime;
using model::Outcome;
using model::Recording;
using model::UnitKind;
using model::WorkChange;
using model::WorkUnit;
using model::WorkUnits;
using model::WorkWindow;

constexpr double kUnitsPerWindow = 5;         // fewer say nothing of a rate
constexpr double kFewestWindows = 2;          // independent ones; the t distribution makes intervals of few wide
constexpr double kFewOfManyUnits = 8;         // windows that hold enough units: fewer say little
constexpr std::size_t kMostOfLongUnits = 16;  // stretches from end to end
constexpr double kFewestSeconds = 5;          // in which stretches are longer than a window
constexpr double kStretch = 0.5e9;
constexpr double kQuarterSecond = 0.25e9;

constexpr std::string_view kSameLoad = "Record the same program under the same kind of load on both sides";

const WorkUnit* find_unit(const WorkUnits& work, const WorkUnit& like) {
  const auto at = std::ranges::find_if(work.units, [&](const WorkUnit& unit) { return same_unit(unit, like); });
  return at == work.units.end() ? nullptr : &*at;
}

const WorkUnit* common_unit(std::span<const Recording> base, std::span<const Recording> candidate) {
  for (const WorkUnit& unit : base.front().work->units) {
    bool everywhere = true;
    for (const auto& side : {base, candidate})
      for (const Recording& recording : side) everywhere = everywhere && find_unit(*recording.work, unit) != nullptr;
    if (everywhere) return &unit;
  }
  return nullptr;
}

double worked(const WorkWindow& window) { return window.on_cpu + window.run_queue + window.blocked; }

/// One side, its recordings pooled.
struct Side {
  double units = 0;
  double ns = 0;
  WorkWindow sum;
  double confidence = 1;
  std::optional<double> count_error;
  std::vector<double> time;  ///< ns per unit by throughput, of each window
  std::vector<double> work;  ///< ns worked per unit
  std::vector<double> latencies;
  std::vector<std::uint64_t> answers;  ///< counts in log buckets
  double answer_bytes = 0;             ///< of all answers
  bool knows_bytes = true;
  bool over_unix = false;
  std::map<std::string, CountedTime> blocked, calls;
  std::map<std::string, double> others;
};

/// What was worked between two moments; windows are cut evenly.
double worked_between(const WorkUnits& work, Ns begin, Ns end) {
  double sum = 0;
  for (const WorkWindow& window : work.windows) {
    const Ns both = std::min(end, window.end) - std::max(begin, window.begin);
    if (both > 0) sum += worked(window) * static_cast<double>(both) / static_cast<double>(window.end - window.begin);
  }
  return sum;
}

/// Units so long that windows would hold few of them: from the end of one to that of a later one.
void add_long_units(Side& side, const WorkUnits& work, const WorkUnit& unit) {
  const std::size_t together = std::max<std::size_t>(1, unit.ends.size() / kMostOfLongUnits);
  for (std::size_t i = 0; i + together < unit.ends.size(); i += together) {
    const Ns begin = unit.ends[i];
    const Ns end = unit.ends[i + together];
    if (end <= begin) continue;
    side.time.push_back(static_cast<double>(end - begin) / static_cast<double>(together));
    side.work.push_back(worked_between(work, begin, end) / static_cast<double>(together));
  }
}

/// Windows, which are as long as the recorder happened to make them, pooled to stretches of about one length that hold
/// some units: of half a second in recordings of several seconds, because what spreads within a second (a quota, a disk
/// that others fill) averages out in the whole, too.
void add_windows(Side& side, const WorkUnits& work, const WorkUnit& unit) {
  double all = 0;
  for (const WorkWindow& window : work.windows) all += static_cast<double>(window.end - window.begin);
  const double per_stretch = kUnitsPerWindow * all / std::max(1.0, static_cast<double>(unit.count));
  if (!unit.ends.empty() && all < kFewOfManyUnits * std::max(per_stretch, kQuarterSecond))
    return add_long_units(side, work, unit);
  const double length = std::max(per_stretch, all >= kFewestSeconds * kSecond ? kStretch : kQuarterSecond);
  double units = 0;
  double ns = 0;
  double busy = 0;
  for (std::size_t i = 0; i < work.windows.size(); ++i) {
    units += i < unit.per_window.size() ? unit.per_window[i] : 0;
    const auto window = static_cast<double>(work.windows[i].end - work.windows[i].begin);
    ns += window;
    busy += worked(work.windows[i]);
    // Nearer to the length than with the next one, if that is as long.
    if (ns + window / 2 < length || units <= 0) continue;
    side.time.push_back(ns / units);
    side.work.push_back(busy / units);
    units = ns = busy = 0;
  }
}

void add(std::map<std::string, CountedTime>& sums, const std::vector<CountedTime>& more) {
  for (const CountedTime& one : more) {
    CountedTime& sum = sums[one.name];
    sum.name = one.name;
    sum.waits = one.waits;
    sum.count += one.count;
    sum.total_ns += one.total_ns;
  }
}

Side pool(std::span<const Recording> recordings, const WorkUnit& like) {
  Side side;
  for (const Recording& recording : recordings) {
    const WorkUnits& work = *recording.work;
    const WorkUnit& unit = *find_unit(work, like);
    side.units += static_cast<double>(unit.count);
    side.ns += work.seconds * 1e9;
    side.confidence = std::min(side.confidence, unit.confidence);
    side.count_error = std::max(side.count_error, unit.count_error);
    const WorkWindow sum = sum_of(work);
    side.sum.on_cpu += sum.on_cpu;
    side.sum.run_queue += sum.run_queue;
    side.sum.blocked += sum.blocked;
    side.sum.waiting += sum.waiting;
    add_windows(side, work, unit);
    const bool of_its_answers =
        work.latency_kind == model::LatencyKind::answer && work.units.front().process == like.process;
    if (same_unit(work.units.front(), like) || of_its_answers) {
      for (const Ns latency : work.latencies) side.latencies.push_back(static_cast<double>(latency));
      side.answers.resize(std::max(side.answers.size(), work.answers.size()));
      double answers = 0;
      for (std::size_t i = 0; i < work.answers.size(); ++i) {
        side.answers[i] += work.answers[i];
        answers += static_cast<double>(work.answers[i]);
      }
      side.answer_bytes += work.answer_bytes * answers;
      side.knows_bytes = side.knows_bytes && work.answer_bytes > 0;
      side.over_unix = side.over_unix || work.port == model::kUnixSockets;
    }
    add(side.blocked, work.blocked);
    add(side.calls, work.calls);
    for (const model::Bystander& other : work.others)
      side.others[other.name] += other.cpus / static_cast<double>(recordings.size());
  }
  std::ranges::sort(side.latencies);
  return side;
}

/// What was judged of times per unit; the change itself is that of the sums.
std::pair<WorkChange, Outcome> shown(std::string what, const model::CycleTimeOutcome& o, std::array<double, 2> value) {
  WorkChange change;
  change.what = std::move(what);
  change.value = value;
  const double ratio = value[0] > 0 ? value[1] / value[0] : model::kNoNumber;
  change.change = ratio - 1;
  if (std::isfinite(o.low) && std::isfinite(o.change)) {
    const double shift = ratio / (1 + o.change);
    change.low = (1 + o.low) * shift - 1;
    change.high = (1 + o.high) * shift - 1;
  }
  // Where windows are of very different size, their mean and the sums differ: what is shown must bear the outcome.
  const bool borne = !(o.outcome == Outcome::regression && change.low <= 0) &&
                     !(o.outcome == Outcome::improvement && change.high >= 0);
  return {change, borne ? o.outcome : Outcome::inconclusive};
}

/// By how much two recordings of the same must be taken to differ when stretches of one differ so much: servers whose
/// seconds spread by a sixth were seen to differ so from one recording to the next. Of many stretches two neighbours
/// are taken as one.
double drift_of(std::span<const double> times) {
  if (times.size() < kFewestStretches) return 0;
  if (times.size() < 2 * kFewestStretches) return spread_of_logs(times);
  std::vector<double> pairs;
  for (std::size_t i = 0; i + 1 < times.size(); i += 2) pairs.push_back(2 / (1 / times[i] + 1 / times[i + 1]));
  return spread_of_logs(pairs);
}

double mean_of(std::span<const Recording> recordings, std::string_view counter) {
  double sum = 0;
  for (const Recording& recording : recordings)
    for (const model::HostCounter& one : recording.host.counters)
      if (one.name == counter) sum += one.mean;
  return recordings.empty() ? 0 : sum / static_cast<double>(recordings.size());
}

/// Share of the CPUs that worked, or that the machine below took: none of them was left.
double busy_of(std::span<const Recording> recordings) {
  return std::min(1.0, mean_of(recordings, "host.cpu.busy") + mean_of(recordings, "host.cpu.steal"));
}

/// Of recordings: what held a side back.
struct Surroundings {
  double throttled = 0;  ///< ns a second
  double busy = 0;       ///< busy_of
  double run_queue = 0;  ///< ns per unit
};

/// Which side was slower because others held it back: a quota, or programs that took CPUs which it wanted.
std::array<bool, 2> disturbed(const std::array<Surroundings, 2>& of, double ratio,
                              const std::vector<std::pair<std::string, std::array<double, 2>>>& others) {
  double cpus = 0;
  for (const auto& [name, took] : others) cpus += took[1] - took[0];
  const auto held_back = [&](const Surroundings& slower, const Surroundings& other, double more) {
    const bool wanted = slower.run_queue > (1 + kLongerQueue) * other.run_queue || slower.busy > kNoneLeft;
    return was_held_back(wanted ? more : 0, slower.throttled - other.throttled);
  };
  return {ratio < 1 && held_back(of[0], of[1], -cpus), ratio > 1 && held_back(of[1], of[0], cpus)};
}

/// ns per unit, by throughput and by work.
std::array<double, 2> times_per_unit(const Recording& recording, const WorkUnit& unit) {
  const Side side = pool({&recording, 1}, unit);
  return {side.ns / side.units, worked(side.sum) / side.units};
}

/// The same two of all recordings, and the number of each.
struct ByRecording {
  std::array<std::vector<double>, 2> times;
  std::vector<std::uint32_t> numbers;
};

ByRecording by_recording(std::span<const Recording> recordings, const WorkUnit& unit) {
  ByRecording all;
  for (const Recording& recording : recordings) {
    const std::array times = times_per_unit(recording, unit);
    for (std::size_t what = 0; what < 2; ++what) all.times[what].push_back(times[what]);
    all.numbers.push_back(static_cast<std::uint32_t>(all.numbers.size()));
  }
  return all;
}

/// When they began, of days; 0: not known.
std::vector<Ns> begins_of(std::span<const Recording> recordings) {
  std::vector<Ns> begins;
  for (const Recording& recording : recordings)
    begins.push_back(recording.work->windows.empty() ? 0
                                                     : recording.work->base + recording.work->windows.front().begin);
  return begins;
}

/// Of earlier recordings: how much times per unit of the same differ, by throughput and by work.
std::array<std::optional<MeasuredSpread>, 2> spreads_among(std::span<const Recording* const> earlier,
                                                           const WorkUnit& unit) {
  std::array<std::vector<double>, 2> logs;
  for (const Recording* recording : earlier) {
    if (find_unit(*recording->work, unit) == nullptr) continue;
    const std::array times = times_per_unit(*recording, unit);
    for (std::size_t what = 0; what < 2; ++what) logs[what].push_back(std::log(times[what]));
  }
  for (auto& of : logs) std::erase_if(of, [](double log) { return !std::isfinite(log); });
  return {spread_among(logs[0]), spread_among(logs[1])};
}

/// What the numbers of units of both sides may be wrong by, where they are estimates, as the spread of one side.
double count_spread(const Side& a, const Side& b) {
  constexpr double kOf95 = 1.96;
  return std::hypot(a.count_error.value_or(0), b.count_error.value_or(0)) / kOf95 / std::sqrt(2.0);
}

/// Of times per unit, as rates.
WorkChange as_rate(const WorkChange& time) {
  WorkChange rate{"throughput", "1/s", {1e9 / time.value[0], 1e9 / time.value[1]}};
  const auto inverse = [](double change) { return 1 / (1 + change) - 1; };
  rate.change = inverse(time.change);
  rate.low = inverse(time.high);
  rate.high = inverse(time.low);
  return rate;
}

WorkChange plain(std::string what, std::string unit, double base, double candidate) {
  WorkChange change{std::move(what), std::move(unit), {base, candidate}};
  if (base > 0) change.change = candidate / base - 1;
  return change;
}

Stretches stretches_of(const Side& a, const Side& b, const std::array<bool, 2>& held_back) {
  const auto median = [](std::vector<double> times) {
    std::ranges::sort(times);
    return times.empty() ? model::kNoNumber : stats::quantile_of_sorted(times, 0.5);
  };
  const auto slower = [](std::span<const double> side, std::vector<double> other) {
    if (side.empty() || other.empty()) return 0.0;
    std::ranges::sort(other);
    const double nine_of_ten = stats::quantile_of_sorted(other, 0.9);
    const auto count = std::ranges::count_if(side, [&](double time) { return time > nine_of_ten; });
    return static_cast<double>(count) / static_cast<double>(side.size());
  };
  return {std::min(a.time.size(), b.time.size()),
          median(b.time) / median(a.time) - 1,
          held_back,
          {slower(a.time, b.time), slower(b.time, a.time)}};
}

/// In the mean; kNoNumber: not known.
double bytes_of_answer(const Side& side) {
  const auto answers = std::accumulate(side.answers.begin(), side.answers.end(), std::uint64_t{0});
  return side.knows_bytes && answers > 0 ? side.answer_bytes / static_cast<double>(answers) : model::kNoNumber;
}

/// How long requests waited for their answers, where that was measured on both sides.
std::optional<Answered> answered_of(const Side& a, const Side& b) {
  constexpr std::uint64_t kFewestAnswers = 20;
  constexpr double kOnePart = 4096;  // bytes
  Answered answered;
  for (std::size_t s = 0; s < 2; ++s) {
    const Side& side = s == 0 ? a : b;
    const auto median = stats::log_bucket_quantile(side.answers, 0.5);
    const auto all = std::accumulate(side.answers.begin(), side.answers.end(), std::uint64_t{0});
    if (!median || all < kFewestAnswers) return std::nullopt;
    answered.median[s] = *median;
    answered.mean[s] = stats::log_bucket_mean(side.answers).value_or(*median);
    // Over a Unix socket it is the time to the first part; what is short has one.
    answered.whole = answered.whole && (!side.over_unix || bytes_of_answer(side) <= kOnePart);
    answered.per_unit[s] = static_cast<double>(all) / side.units;
  }
  return answered;
}

void add_parts(model::WorkComparison& result, const Side& base, const Side& candidate) {
  const auto part = [&](std::string what, double a, double b) {
    result.parts.push_back(plain(std::move(what), "ns", a / base.units, b / candidate.units));
  };
  part(std::string(kOnCpuOfStep), base.sum.on_cpu, candidate.sum.on_cpu);
  part(std::string(kInRunQueue), base.sum.run_queue, candidate.sum.run_queue);
  std::map<std::string, std::array<const CountedTime*, 2>> blocked;
  for (const auto& [name, sum] : base.blocked) blocked[name][0] = &sum;
  for (const auto& [name, sum] : candidate.blocked) blocked[name][1] = &sum;
  const double least = 0.01 * std::max(worked(base.sum) / base.units, worked(candidate.sum) / candidate.units);
  for (const auto& [name, sums] : blocked) {
    const double a = sums[0] != nullptr ? sums[0]->total_ns / base.units : 0;
    const double b = sums[1] != nullptr ? sums[1]->total_ns / candidate.units : 0;
    if (std::max(a, b) >= least) result.parts.push_back(plain("blocked in " + name, "ns", a, b));
  }
  result.waiting =
      plain("waiting for work, CPUs' worth", "", base.sum.waiting / base.ns, candidate.sum.waiting / candidate.ns);
}

void add_calls(model::WorkComparison& result, const Side& base, const Side& candidate) {
  std::map<std::string, model::CallChange> calls;
  const auto take = [&](const Side& side, std::size_t s) {
    for (const auto& [name, sum] : side.calls) {
      if (sum.count == 0) continue;
      model::CallChange& call = calls[name];
      call.waits |= sum.waits;
      call.per_unit[s] = static_cast<double>(sum.count) / side.units;
      call.per_call_ns[s] = sum.total_ns / static_cast<double>(sum.count);
    }
  };
  take(base, 0);
  take(candidate, 1);
  for (auto& [name, call] : calls) {
    call.name = name;
    result.calls.push_back(std::move(call));
  }
  sort_calls(result.calls);
}

std::optional<double> latency_of(const Side& side, double share) {
  if (!side.answers.empty()) return stats::log_bucket_quantile(side.answers, share);
  if (side.latencies.empty()) return std::nullopt;
  return side.latencies[static_cast<std::size_t>(share * static_cast<double>(side.latencies.size() - 1))];
}

void add_latencies(model::WorkComparison& result, const Side& base, const Side& candidate, model::LatencyKind kind) {
  if (base.answers.empty() != candidate.answers.empty()) return;
  for (const auto& [name, share] : {std::pair("median", 0.5), std::pair("p99", 0.99)}) {
    const auto before = latency_of(base, share);
    const auto after = latency_of(candidate, share);
    if (before && after)
      result.latency.push_back(plain(fmt::format("{}, {}", to_string(kind), name), "ns", *before, *after));
  }
  if (const auto answered = answered_of(base, candidate))
    result.latency.push_back(
        plain(fmt::format("{}, mean", to_string(kind)), "ns", answered->mean[0], answered->mean[1]));
}

std::string described(const Recording& recording) {
  const WorkUnit& unit = recording.work->units.front();
  if (recording.work->idle && recording.work->program.empty()) return fmt::format("nothing ({})", unit.reason);
  if (recording.work->idle) return fmt::format("nothing ({} is idle)", recording.work->program);
  if (unit.kind == UnitKind::window) return fmt::format("no units ({})", recording.work->program);
  return fmt::format(
      "{} of {}{}", unit.kind == UnitKind::process ? "processes" : fmt::format("{}s", to_string(unit.kind)),
      unit.process,
      unit.receive.empty() ? "" : fmt::format(" ({}{}{})", unit.receive, unit.send.empty() ? "" : " to ", unit.send));
}

}  // namespace

bool are_of_work(std::span<const Recording> base, std::span<const Recording> candidate) {
  for (const auto& side : {base, candidate})
    for (const Recording& recording : side)
      if (!recording.work || !recording.work->recorded || recording.work->units.empty() ||
          !recording.cycles.cycles.empty())
        return false;
  return !base.empty() && !candidate.empty();
}

std::optional<Refusal> why_no_common_work(std::span<const Recording> base, std::span<const Recording> candidate) {
  const WorkUnit* unit = common_unit(base, candidate);
  const auto holds = [](const Recording& recording, const std::string& program) {
    return std::ranges::find(recording.work->programs, program) != recording.work->programs.end();
  };
  // Of several processes now the one, now the other may have taken most of the time.
  const bool same_program =
      holds(base.front(), candidate.front().work->program) && holds(candidate.front(), base.front().work->program);
  // Where nothing ran nobody knows which program would have.
  const bool both_idle = base.front().work->idle && candidate.front().work->idle;
  if (unit != nullptr && (same_program || both_idle)) return std::nullopt;
  const std::array held = {described(base.front()), described(candidate.front())};
  return Refusal{held[0] == held[1] ? fmt::format("the baseline runs {}, the candidate {}", base.front().work->program,
                                                  candidate.front().work->program)
                                    : fmt::format("the baseline holds {}, the candidate {}", held[0], held[1]),
                 std::string(kSameLoad)};
}

std::optional<Refusal> why_one_is_idle(std::span<const Recording> base, std::span<const Recording> candidate) {
  const std::array sides = {base, candidate};
  const auto is_idle = [](const Recording& recording) { return recording.work && recording.work->idle; };
  const std::array idle = {std::ranges::all_of(base, is_idle), std::ranges::all_of(candidate, is_idle)};
  if (idle[0] == idle[1]) return std::nullopt;
  const std::size_t side = idle[0] ? 0 : 1;
  const std::string_view name = model::kSideNames.at(side);
  // Threads that never get a CPU leave no trace of what they want.
  constexpr double kFull = 0.95;
  constexpr double kNearlyAll = 0.9;
  const double used = mean_of(sides.at(side), "host.cpu.used");
  const double others = mean_of(sides.at(side), "host.cpu.others");
  if (busy_of(sides.at(side)) >= kFull && used > 0 && others >= kNearlyAll * used)
    return Refusal{fmt::format("the {} hardly ran: nothing was asked of it, or it got no CPU, of which other programs "
                               "had {:.2f} of the {:.2f} in use",
                               name, others, used),
                   "See who had them (below, beside it), and whether somebody asks for something; record again without "
                   "them"};
  return Refusal{
      fmt::format("nothing was asked of the {} ({})", name, sides.at(side).front().work->units.front().reason),
      std::string(kSameLoad)};
}

model::WorkComparison compare_work(std::span<const Recording> base, std::span<const Recording> candidate,
                                   const WorkOptions& options) {
  const WorkUnit& unit = *common_unit(base, candidate);
  const Side a = pool(base, unit);
  const Side b = pool(candidate, unit);
  model::WorkComparison result;
  result.unit = unit;
  result.unit.per_window.clear();
  result.unit.ends.clear();
  result.unit.confidence = std::min(a.confidence, b.confidence);
  result.unit.count_error = std::max(a.count_error, b.count_error);
  result.counts = {static_cast<std::uint64_t>(a.units), static_cast<std::uint64_t>(b.units)};
  result.seconds = {a.ns * 1e-9, b.ns * 1e-9};
  // Recordings of one side average out what differs between two of the same.
  const double replicates = (1 / static_cast<double>(base.size()) + 1 / static_cast<double>(candidate.size())) / 2;
  const std::array per_unit = {a.ns / a.units, b.ns / b.units};
  const auto others = bystanders_that_moved(a.others, b.others);
  const auto surroundings = [](std::span<const Recording> recordings, const Side& side) {
    return Surroundings{mean_of(recordings, kThrottledTime), busy_of(recordings), side.sum.run_queue / side.units};
  };
  const std::array known =
      disturbed({surroundings(base, a), surroundings(candidate, b)}, per_unit[1] / per_unit[0], others);
  const double drift = std::max(known[0] ? 0 : drift_of(a.time), known[1] ? 0 : drift_of(b.time));
  const std::array begins = {begins_of(base), begins_of(candidate)};
  const double assumed = options.between * when_apart({begins[0], 0}, {begins[1], 0}, false);
  const double between = std::max(assumed, drift) * std::sqrt(replicates);
  std::array<CycleTimeOptions, 2> judging;
  const auto measured = spreads_among(options.earlier, unit);
  for (std::size_t what = 0; what < 2; ++what) {
    judging[what] = {options.tolerance, between, kFewestWindows, count_spread(a, b), known, {1, 1}, measured[what]};
    if (judging[what].measured) judging[what].measured->deviation *= std::sqrt(replicates);
  }
  result.not_in_turns = in_turns({begins[0], 0}, {begins[1], 0}) ? 0 : assumed;
  const std::array recordings = {by_recording(base, unit), by_recording(candidate, unit)};
  const auto judge = [&](std::size_t what) {
    const auto measured_here = judge_recordings({recordings[0].times[what], recordings[0].numbers},
                                                {recordings[1].times[what], recordings[1].numbers}, options.tolerance,
                                                std::hypot(result.not_in_turns, count_spread(a, b)));
    if (measured_here) return *measured_here;
    return judge_cycle_time(what == 0 ? a.time : a.work, what == 0 ? b.time : b.work, judging[what]);
  };
  const std::array outcomes = {judge(0), judge(1)};
  result.recordings = outcomes[0].recordings;
  result.smallest_seen = outcomes[0].smallest_seen;
  result.between = result.recordings[0] > 0 ? outcomes[0].between : measured[0] ? measured[0]->deviation : assumed;
  if (measured[0] && result.recordings[0] == 0) result.earlier = measured[0]->recordings;
  const auto [time, time_outcome] = shown("time per unit", outcomes[0], per_unit);
  const auto [work, work_outcome] =
      shown("worked per unit", outcomes[1], {worked(a.sum) / a.units, worked(b.sum) / b.units});
  result.throughput = as_rate(time);
  result.worked = work;
  result.worked.unit = "ns";
  add_parts(result, a, b);
  add_calls(result, a, b);
  for (const auto& [name, cpus] : others) result.others.push_back(plain(name, "CPUs", cpus[0], cpus[1]));
  add_latencies(result, a, b, base.front().work->latency_kind);
  result.answer_bytes = {bytes_of_answer(a), bytes_of_answer(b)};
  decide_work(result, {time_outcome,
                       work_outcome,
                       time.change,
                       options.tolerance,
                       {busy_of(base), busy_of(candidate)},
                       stretches_of(a, b, known),
                       answered_of(a, b)});
  const auto is_idle = [](const Recording& recording) { return recording.work->idle; };
  result.idle = std::ranges::all_of(base, is_idle) && std::ranges::all_of(candidate, is_idle);
  if (result.idle) {
    result.why = fmt::format("nothing was asked of it on either side ({})", unit.reason);
  } else if (unit.kind == UnitKind::window) {
    result.why = fmt::format("no unit of work was found: {}", unit.reason);
  } else if (result.unit.confidence < options.least_confidence) {
    result.why = fmt::format("it is not sure that a {} is a unit of the program's work ({:.0f} %: {})",
                             to_string(unit.kind), result.unit.confidence * 100, unit.reason);
  }
  if (!result.why.empty()) result.outcome = Outcome::inconclusive;
  return result;
}

bool work_far_apart(std::span<const Recording> base, std::span<const Recording> candidate) {
  return far_apart({begins_of(base), 0}, {begins_of(candidate), 0});
}

std::string assumption_of(const model::WorkComparison& work) {
  if (work.idle) return "";
  if (work.recordings[0] == 0)
    return work.earlier > 0
               ? ""
               : fmt::format("two recordings of the same differ by {:g} % (standard deviation)", work.between * 100);
  if (work.not_in_turns <= 0) return "";
  return fmt::format("sides that were not recorded in turns differ by {:g} % more (standard deviation)",
                     work.not_in_turns * 100);
}

std::vector<std::string> estimate_notes(std::span<const model::Recording> base,
                                        std::span<const model::Recording> candidate) {
  std::vector<std::string> notes;
  for (const auto& [name, side] : {std::pair("baseline", base), std::pair("candidate", candidate)}) {
    std::optional<double> error;
    for (const model::Recording& recording : side)
      for (const model::WorkUnit& unit : recording.work->units) error = std::max(error, unit.count_error);
    if (!error) continue;
    const std::string how_sure = *error < 1 ? fmt::format(", ± {:.1f} %", *error * 100) : "";
    notes.push_back(
        fmt::format("System calls of the {} are estimates{}: they were looked at in windows", name, how_sure));
  }
  return notes;
}

}  // namespace culprit::compare
