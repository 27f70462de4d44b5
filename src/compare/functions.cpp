#include "compare/functions.h"

#include <tsl/hopscotch_map.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "compare/call_counts.h"
#include "compare/chance.h"
#include "compare/cost_shift.h"
#include "compare/cycle_positions.h"
#include "compare/cycle_time.h"
#include "compare/function_names.h"
#include "compare/like_work.h"
#include "compare/series.h"
#include "compare/workload.h"
#include "core/hash.h"
#include "stats/benjamini_hochberg.h"
#include "stats/distributions.h"
#include "stats/quantile.h"

namespace culprit::compare {

namespace {

using model::FunctionFinding;
using model::FunctionStatus;
using model::Phase;
using model::Profile;
using model::RestsOn;

constexpr std::uint32_t kNowhere = 0xffffffff;
constexpr std::size_t kFewestToShare = 5;  // functions
constexpr double kHostDrift = 0.05;        // of a time on the host, from recording to recording; assumed
constexpr double kRare = 2.772;            // 1.96 sqrt(2): a difference of two recordings of the same that is rare

struct Key {
  Phase phase = Phase::other;
  std::uint32_t process = 0;
  StringId function = 0;
  StringId kind = 0;
  StringId device = 0;
  bool operator==(const Key&) const = default;
};
struct KeyHash {
  std::size_t operator()(const Key& key) const {
    return hash_parts(key.phase, key.process, key.function, key.kind, key.device);
  }
};

struct Chance {
  double p = 1;
  RestsOn rests_on = RestsOn::time;
};

/// One function on one side.
struct Uses {
  std::vector<CycleValue> times;   ///< ns, by cycle
  std::vector<CycleValue> lasts;   ///< the same of whole calls, also of what was hidden, on a device
  std::vector<CycleValue> counts;  ///< calls, by cycle
  std::int64_t calls = 0;
  double called = 0;                             ///< ns of all calls
  double size = 0;                               ///< of all calls
  std::map<std::uint32_t, double> of_recording;  ///< ns
  double lasted = 0;                             ///< ns of all calls with what they called
  std::map<StringId, double> inside;             ///< of it, by the function that it lay in or was launched by
};

class Comparer {
 public:
  Comparer(const Roles& roles, const std::vector<Phase>& phases, StringTable& texts, const FunctionOptions& options)
      : roles_(roles), phases_(phases.begin(), phases.end()), texts_(texts), options_(options) {}

  void add_side(std::size_t side, const Profile& profile) {
    std::vector<StringId> ids(profile.texts.size(), kNowhere);
    const auto translate = [&](StringId id) {
      if (ids[id] == kNowhere) ids[id] = texts_.intern(profile.texts[id]);
      return ids[id];
    };
    std::vector<bool> is_input;
    for (std::size_t id = 0; id < profile.texts.size(); ++id)
      is_input.push_back(model::is_input(profile.texts[static_cast<StringId>(id)]));
    // A process with one device has "its" device, whatever number that has on the machine, and in each recording.
    std::vector<std::map<std::uint32_t, std::set<StringId>>> devices(profile.processes.size());
    for (const model::FunctionUse& use : profile.functions)
      if (profile.texts[use.device] != "Host")
        devices[use.process][profile.cycles[use.cycle].recording].insert(use.device);
    std::vector<bool> has_one_device;
    for (const auto& of_recordings : devices)
      has_one_device.push_back(
          std::ranges::all_of(of_recordings, [](const auto& recording) { return recording.second.size() == 1; }));
    const StringId its_device = texts_.intern("GPU");

    CyclePositions cycles(profile);
    for (const model::FunctionUse& use : profile.functions)
      if (counts(profile, side, use)) cycles.see(roles_.of_side[side][use.process], use.cycle);
    cycles.number();
    for (const model::FunctionUse& use : profile.functions) {
      if (!counts(profile, side, use)) continue;
      const std::uint32_t process = roles_.of_side[side][use.process];
      const bool on_host = profile.texts[use.device] == "Host";
      const bool only_device = !on_host && has_one_device[use.process];
      const Key key{profile.cycles[use.cycle].phase, process, translate(use.function), translate(use.kind),
                    only_device ? its_device : translate(use.device)};
      const auto [it, fresh] = rows_.try_emplace(key, static_cast<std::uint32_t>(keys_.size()));
      if (fresh) {
        keys_.push_back(key);
        short_names_.push_back(translate(use.short_name));
        uses_.emplace_back();
      }
      Uses& row = uses_[it->second][side];
      // What the step waits for as input it waits for wherever inside of it.
      const bool whole = use.own < 0 || (on_host && is_input[use.function]);
      // Where it calls itself, no longer than the cycle.
      const Ns own =
          whole ? std::min(use.duration, std::max<Ns>(use.own, profile.cycles[use.cycle].duration)) : use.own;
      const auto time = static_cast<double>(use.exposed >= 0 ? use.exposed : own);
      const std::uint32_t position = cycles.position(process, use.cycle);
      add(row.times, position, time);
      add(row.counts, position, static_cast<double>(use.count));
      if (on_host) on_host_[side][{key.phase, process}][position] += time;
      if (!on_host) add(row.lasts, position, static_cast<double>(use.duration));
      row.of_recording[profile.cycles[use.cycle].recording] += time;
      row.calls += use.count;
      row.size += use.size;
      row.called += static_cast<double>(on_host ? own : use.duration);
      row.lasted += static_cast<double>(use.duration);
      if (!profile.texts[use.parent].empty()) row.inside[translate(use.parent)] += static_cast<double>(use.inside);
    }
    for (auto& row : uses_) {
      std::ranges::stable_sort(row[side].times, {}, &CycleValue::position);
      for (std::size_t i = 0; i < row[side].lasts.size(); ++i) row[side].lasts[i].value /= row[side].counts[i].value;
      std::ranges::stable_sort(row[side].counts, {}, &CycleValue::position);
      std::ranges::stable_sort(row[side].lasts, {}, &CycleValue::position);
    }
    cycles_.push_back(std::move(cycles));
    for (const model::ProfileCycle& cycle : profile.cycles) {
      auto& [sum, count] = durations_[cycle.phase];
      sum += static_cast<double>(cycle.duration);
      count += 1;
    }
  }

  std::vector<FunctionFinding> finish() {
    // What called a function under two names may be one itself.
    constexpr int kMostRounds = 3;
    for (int round = 0; round < kMostRounds && join_renamed(); ++round) {
    }
    std::vector<FunctionFinding> findings;
    std::vector<double> p;
    compare_like_work();
    if (options_.between_on_host > 0) find_common_changes();
    if (options_.between_on_host > 0) find_effects_of_recordings();
    std::vector<double> p_of_calls;
    findings.reserve(keys_.size());
    for (std::size_t i = 0; i < keys_.size(); ++i) {
      const Key& key = keys_[i];
      const std::array cycles = {cycles_[0].total(key.phase, key.process), cycles_[1].total(key.phase, key.process)};
      findings.push_back(describe(i, cycles));
      double chance = judge(uses_[i], cycles, findings.back());
      if (options_.between_on_host > 0 && texts_[key.device] == "Host" && findings.back().time_ns[0] > 0 &&
          findings.back().time_ns[1] > 0) {
        FunctionFinding& finding = findings.back();
        const auto measured = chance_of_recordings(i, finding.impact_ns);
        if (measured || chance < 1) {
          const Chance judged = measured ? Chance{*measured, RestsOn::recordings} : more_than_the_machine(i, cycles);
          chance = measured ? judged.p : std::max(chance, judged.p);
          if (finding.status != FunctionStatus::same) finding.rests_on = judged.rests_on;
        }
        if (matters_little(finding)) chance = 1;
      }
      p.push_back(chance);
      p_of_calls.push_back(chance_of_calls(uses_[i], findings.back()));
      if (const auto calls =
              steady_calls({std::move(uses_[i][0].counts), std::move(uses_[i][1].counts)}, like_work(key)))
        findings.back().steady_calls = *calls;
    }
    const std::vector<double> q_of_calls = stats::false_discovery_rates(p_of_calls);
    for (std::size_t i = 0; i < findings.size(); ++i) findings[i].q_of_calls = q_of_calls[i];
    const std::vector<double> q = stats::false_discovery_rates(p);
    for (std::size_t i = 0; i < findings.size(); ++i) {
      findings[i].q = q[i];
      if (findings[i].status == FunctionStatus::same) continue;
      if (q[i] > options_.discovery) {
        // Half of the rate: it is the second question that is asked of the function.
        if (texts_[findings[i].device] != "Host" && findings[i].q_of_calls <= options_.discovery / 2 &&
            lasts_otherwise(findings[i], options_.tolerance)) {
          findings[i].status = FunctionStatus::changed;
          findings[i].rests_on = RestsOn::per_call;
          findings[i].q = findings[i].q_of_calls;
        }
        continue;
      }
      const auto& [before, after] = uses_[i];
      findings[i].status = before.times.empty()  ? FunctionStatus::added
                           : after.times.empty() ? FunctionStatus::gone
                                                 : FunctionStatus::changed;
    }
    std::map<Phase, double> may_remain;
    for (const auto& [phase, cycles] : durations_)
      may_remain[phase] = options_.cycle_tolerance * cycles.first / cycles.second;
    mark_cost_shifts(findings, may_remain, texts_);
    std::ranges::sort(findings, {}, [&](const FunctionFinding& f) {
      const double work = std::isfinite(f.work_ratio) && f.work_ratio > 0 ? std::abs(std::log(f.work_ratio)) : 0;
      return std::tuple(-std::abs(f.impact_ns), -work, f.phase, texts_[f.function], texts_[f.device], f.process,
                        texts_[f.kind]);
    });
    return findings;
  }

 private:
  /// What the sides call by two names becomes one row, under the candidate's; false when there is none.
  bool join_renamed() {
    std::vector<OneSided> one_sided;
    std::vector<std::size_t> row_of;
    for (std::size_t i = 0; i < keys_.size(); ++i) {
      const std::size_t side = uses_[i][0].calls > 0 ? 0 : 1;
      if (uses_[i][1 - side].calls > 0) continue;
      const Key& key = keys_[i];
      const auto cycles = static_cast<double>(cycles_[side].total(key.phase, key.process));
      one_sided.push_back(
          {side, key.phase, key.process, key.kind, key.device, texts_[key.function], texts_[short_names_[i]],
           parent_of(uses_[i][side]), texts_[key.device] != "Host", static_cast<double>(uses_[i][side].calls) / cycles,
           uses_[i][side].called / static_cast<double>(std::max<std::int64_t>(1, uses_[i][side].calls))});
      row_of.push_back(i);
    }
    was_.resize(keys_.size());
    std::vector<bool> gone(keys_.size(), false);
    std::map<std::tuple<Phase, std::uint32_t, StringId>, StringId> names;
    const auto pairs = pair_renamed(one_sided);
    for (const auto& [before, after] : pairs) {
      const std::size_t from = row_of[before];
      const std::size_t to = row_of[after];
      was_[to] = keys_[from].function;
      names[{keys_[from].phase, keys_[from].process, keys_[from].function}] = keys_[to].function;
      uses_[to][0] = std::move(uses_[from][0]);
      gone[from] = true;
    }
    for (std::size_t i = 0; i < uses_.size(); ++i) {
      auto& uses = uses_[i];
      std::map<StringId, double> inside;
      for (const auto& [parent, time] : uses[0].inside) {
        const auto renamed = names.find({keys_[i].phase, keys_[i].process, parent});
        inside[renamed == names.end() ? parent : renamed->second] += time;
      }
      uses[0].inside = std::move(inside);
    }
    std::size_t kept = 0;
    for (std::size_t i = 0; i < keys_.size(); ++i) {
      if (gone[i]) continue;
      if (kept != i) {
        keys_[kept] = keys_[i];
        short_names_[kept] = short_names_[i];
        uses_[kept] = std::move(uses_[i]);
        was_[kept] = was_[i];
      }
      ++kept;
    }
    keys_.resize(kept);
    short_names_.resize(kept);
    uses_.resize(kept);
    was_.resize(kept);
    return !pairs.empty();
  }

  static void add(std::vector<CycleValue>& values, std::uint32_t position, double value) {
    if (!values.empty() && values.back().position == position)
      values.back().value += value;
    else
      values.push_back({position, value});
  }

  const LikeWork& like_work(const Key& key) {
    const auto [work, fresh] = like_work_.try_emplace({key.phase, key.process});
    if (!fresh) return work->second;
    std::map<WorkClass, std::uint32_t> numbers;
    std::array<std::vector<std::uint32_t>, 2> class_of;
    for (std::size_t s = 0; s < 2; ++s)
      for (const WorkClass& of : cycles_[s].work(key.phase, key.process))
        class_of[s].push_back(numbers.try_emplace(of, static_cast<std::uint32_t>(numbers.size())).first->second);
    return work->second = like_work_of(std::move(class_of), numbers.size());
  }

  /// Frees what devices and hosts did of what the cycles worked on. What a host's times are held against in their cycle
  /// they are held against as they are.
  void compare_like_work() {
    for (std::size_t i = 0; i < keys_.size(); ++i) {
      const Key& key = keys_[i];
      if (uses_[i][0].times.empty() || uses_[i][1].times.empty()) continue;
      const LikeWork& work = like_work(key);
      auto& [base, candidate] = uses_[i];
      if (texts_[key.device] == "Host" && work.classes >= 2) as_it_was_[i] = {base.times, candidate.times};
      auto times = at_like_work({base.times, candidate.times}, work, true);
      auto lasts = at_like_work({base.lasts, candidate.lasts}, work, false);
      base.times = std::move(times[0]);
      candidate.times = std::move(times[1]);
      base.lasts = std::move(lasts[0]);
      candidate.lasts = std::move(lasts[1]);
    }
  }

  /// p that calls on a device last as long as before, to the tolerance; fills what they do at like work. NaN: not
  /// asked.
  double chance_of_calls(const std::array<Uses, 2>& uses, FunctionFinding& finding) const {
    const std::array<Series, 2> side = {summarise(consecutive(uses[0].lasts), uses[0].lasts.size()),
                                        summarise(consecutive(uses[1].lasts), uses[1].lasts.size())};
    if (side[0].mean > 0 && side[1].mean > 0) finding.work_ratio = side[1].mean / side[0].mean;
    if (side[0].effective < kFewCycles || side[1].effective < kFewCycles) return model::kNoNumber;
    return chance_of_means(side, options_.between);
  }

  [[nodiscard]] bool matters_little(const FunctionFinding& finding) const {
    const auto [sum, count] = durations_.at(finding.phase);
    return std::abs(finding.impact_ns) < kLeastImpact * sum / count;
  }

  [[nodiscard]] bool counts(const Profile& profile, std::size_t side, const model::FunctionUse& use) const {
    const std::string_view kind = profile.texts[use.kind];
    if (use.count == 0 || kind == "gpu_annotation") return false;
    if (kind == "annotation" && !model::is_input(profile.texts[use.function])) return false;
    if (!options_.left_out.empty() && options_.left_out.contains(kind)) return false;
    const model::ProfileCycle& cycle = profile.cycles[use.cycle];
    if (cycle.other_work || !phases_.contains(cycle.phase)) return false;
    const model::ProcessPair& pair = roles_.pairs[roles_.of_side[side][use.process]];
    if (!pair.pid[0] || !pair.pid[1]) return false;
    if (!options_.without_scheduling) return true;
    // Process -1 is the machine's.
    return kind != "oncpu" && kind != "runq" && kind != "blocked" && pair.pid[side] != -1;
  }

  [[nodiscard]] FunctionFinding describe(std::size_t row, const std::array<std::size_t, 2>& cycles) const {
    FunctionFinding finding;
    finding.phase = keys_[row].phase;
    finding.process = keys_[row].process;
    finding.function = keys_[row].function;
    finding.short_name = short_names_[row];
    finding.was = was_[row];
    finding.kind = keys_[row].kind;
    finding.device = keys_[row].device;
    for (std::size_t s = 0; s < 2; ++s) {
      const Uses& uses = uses_[row][s];
      if (cycles[s] > 0) finding.calls[s] = static_cast<double>(uses.calls) / static_cast<double>(cycles[s]);
      if (uses.calls > 0) finding.per_call_ns[s] = uses.called / static_cast<double>(uses.calls);
      if (uses.calls > 0) finding.size[s] = uses.size / static_cast<double>(uses.calls);
    }
    if (finding.per_call_ns[0] > 0) finding.work_ratio = finding.per_call_ns[1] / finding.per_call_ns[0];
    const std::array parents = {parent_of(uses_[row][0]), parent_of(uses_[row][1])};
    if (uses_[row][0].calls == 0 || parents[0] == parents[1])
      finding.parent = parents[1];
    else if (uses_[row][1].calls == 0)
      finding.parent = parents[0];
    return finding;
  }

  /// In which it spent more than half of its time; 0: none.
  static StringId parent_of(const Uses& uses) {
    for (const auto& [parent, time] : uses.inside)
      if (2 * time > uses.lasted) return parent;
    return 0;
  }

  /// Fills times, impact and what an interval tells; gives p that the times differ by more than the tolerance.
  double judge(const std::array<Uses, 2>& uses, const std::array<std::size_t, 2>& cycles, FunctionFinding& finding) {
    const std::array<Series, 2> side = {summarise(uses[0].times, cycles[0]), summarise(uses[1].times, cycles[1])};
    finding.time_ns = {side[0].mean, side[1].mean};
    finding.impact_ns = side[1].mean - side[0].mean;
    const double tolerated = options_.tolerance * std::min(side[0].mean, side[1].mean);
    finding.apart = are_apart(uses, side, tolerated);
    for (std::size_t s = 0; s < 2; ++s)
      if (uses[s].times.empty()) {
        finding.rests_on = RestsOn::calls;
        return all_on_one_side(uses[1 - s].times, cycles[1 - s], cycles[s]);
      }
    if (side[0].effective < kFewCycles || side[1].effective < kFewCycles)
      return finding.apart ? std::min(1.0, separation_by_chance(side[0].likely, side[1].likely)) : 1;
    const double between =
        options_.between * options_.between * (side[0].mean * side[0].mean + side[1].mean * side[1].mean);
    const MeanDifference d = difference_of(side[0], side[1], between);
    finding.low_ns = d.difference - d.half;
    finding.high_ns = d.difference + d.half;
    if (finding.low_ns >= -tolerated && finding.high_ns <= tolerated) finding.status = FunctionStatus::same;
    return chance_beyond(d, tolerated);
  }

  /// Times of a function on the host in its cycles, and their ratios to what else its process did in the same ones.
  struct HostTimes {
    std::array<std::vector<double>, 2> times;
    std::array<std::vector<double>, 2> ratios;
    bool is_rare = false;  ///< in less than half of the cycles of a side
  };

  [[nodiscard]] HostTimes host_times(std::size_t row, const std::array<std::size_t, 2>& cycles) const {
    HostTimes result;
    for (std::size_t s = 0; s < 2; ++s) {
      const auto all = on_host_[s].find({keys_[row].phase, keys_[row].process});
      const auto as_it_was = as_it_was_.find(row);
      for (const CycleValue& v : uses_[row][s].times) result.times[s].push_back(v.value);
      for (const CycleValue& v : as_it_was == as_it_was_.end() ? uses_[row][s].times : as_it_was->second[s]) {
        const double others = all == on_host_[s].end() ? 0 : all->second.at(v.position) - v.value;
        if (v.value > 0 && others > 0) result.ratios[s].push_back(v.value / others);
      }
      result.is_rare = result.is_rare || 2 * result.ratios[s].size() < cycles[s];
    }
    return result;
  }

  /// By how much the middle one of the functions of a process changed (of logarithms): what they share.
  void find_common_changes() {
    std::map<std::pair<Phase, std::uint32_t>, std::vector<double>> changes;
    for (std::size_t i = 0; i < keys_.size(); ++i) {
      const Key& key = keys_[i];
      if (texts_[key.device] != "Host") continue;
      const HostTimes host =
          host_times(i, {cycles_[0].total(key.phase, key.process), cycles_[1].total(key.phase, key.process)});
      if (host.is_rare) continue;
      const std::array logs = {logs_of(host.times[0]), logs_of(host.times[1])};
      if (logs[0].empty() || logs[1].empty()) continue;
      changes[{key.phase, key.process}].push_back(summarise(logs[1], logs[1].size()).mean -
                                                  summarise(logs[0], logs[0].size()).mean);
    }
    for (auto& [process, values] : changes)
      if (values.size() >= kFewestToShare) common_changes_[process] = stats::median(std::move(values));
  }

  [[nodiscard]] double own_drift(std::size_t fewest_cycles) const {
    return fewest_cycles < kFewToDrift ? std::max(kLooseOwnDrift, options_.own_drift) : options_.own_drift;
  }

  /// Of any recording.
  [[nodiscard]] std::size_t fewest_cycles(std::size_t row) const {
    std::size_t fewest = std::numeric_limits<std::size_t>::max();
    for (const CyclePositions& side : cycles_)
      for (const auto& [recording, cycles] : side.by_recording(keys_[row].phase, keys_[row].process))
        fewest = std::min(fewest, cycles);
    return fewest;
  }

  /// p that a time on the host differs by no more than the machine makes it: the time itself, or against what the
  /// functions of its process share, with the spread that its ratio to the others of the same cycles has.
  [[nodiscard]] Chance more_than_the_machine(std::size_t row, const std::array<std::size_t, 2>& cycles) const {
    const HostTimes host = host_times(row, cycles);
    // Who is not in most cycles has no ratio in them: its mean is judged.
    if (host.is_rare)
      return {chance_of_means({summarise(uses_[row][0].times, cycles[0]), summarise(uses_[row][1].times, cycles[1])},
                              options_.between_on_host)};
    const auto time = difference_of_logs(host.times, options_.between_on_host);
    auto own = difference_of_logs(host.ratios, own_drift(fewest_cycles(row)));
    if (!time || !own) return {};
    if (const auto common = common_changes_.find({keys_[row].phase, keys_[row].process});
        common != common_changes_.end())
      own->difference = time->difference - common->second;
    const double tolerated = std::log1p(options_.tolerance);
    // Who took less time while all else took even less has not become slower.
    const bool agree = (own->difference > 0) == (time->difference > 0);
    const Chance of_time{chance_beyond(*time, tolerated)};
    const Chance of_own{agree ? chance_beyond(*own, tolerated) : 1, RestsOn::against_others};
    return of_own.p < of_time.p ? of_own : of_time;
  }

  using Logs = std::array<std::vector<double>, 2>;  // one for each recording of a side

  /// Logarithms of the mean times per cycle. nullopt: too few recordings, or one is without the function.
  [[nodiscard]] std::optional<Logs> logs_of_recordings(std::size_t row) const {
    Logs logs;
    for (std::size_t s = 0; s < 2; ++s) {
      const auto counted = cycles_[s].by_recording(keys_[row].phase, keys_[row].process);
      if (counted.size() < kFewestRecordings) return std::nullopt;
      for (const auto& [recording, cycles] : counted) {
        const auto time = uses_[row][s].of_recording.find(recording);
        if (time == uses_[row][s].of_recording.end() || !(time->second > 0)) return std::nullopt;
        logs[s].push_back(std::log(time->second / static_cast<double>(cycles)));
      }
    }
    return logs;
  }

  static double mean_of(const std::vector<double>& values) {
    double sum = 0;
    for (const double value : values) sum += value;
    return sum / static_cast<double>(values.size());
  }

  /// By how much the functions of a process took longer in one recording than in the others: the middle one.
  void find_effects_of_recordings() {
    std::map<std::pair<Phase, std::uint32_t>, std::array<std::vector<std::vector<double>>, 2>> all;
    for (std::size_t i = 0; i < keys_.size(); ++i) {
      if (texts_[keys_[i].device] != "Host") continue;
      const auto logs = logs_of_recordings(i);
      if (!logs) continue;
      const double usual = (mean_of((*logs)[0]) + mean_of((*logs)[1])) / 2;
      auto& sides = all[{keys_[i].phase, keys_[i].process}];
      for (std::size_t s = 0; s < 2; ++s) {
        sides[s].resize((*logs)[s].size());
        for (std::size_t r = 0; r < (*logs)[s].size(); ++r) sides[s][r].push_back((*logs)[s][r] - usual);
      }
    }
    for (auto& [process, sides] : all) {
      if (sides[0].front().size() < kFewestToShare) continue;
      Logs& effects = effects_[process];
      for (std::size_t s = 0; s < 2; ++s)
        for (std::vector<double>& values : sides[s]) effects[s].push_back(stats::median(std::move(values)));
    }
  }

  /// p that the sides differ by no more than the tolerance: pooled t test, the variance moderated.
  [[nodiscard]] double moderated(const Logs& logs, double assumed) const {
    double squares = kAssumedDegrees * assumed * assumed;
    double degrees = kAssumedDegrees;
    double parts = 0;
    for (const std::vector<double>& side : logs) {
      const double mean = mean_of(side);
      for (const double value : side) squares += (value - mean) * (value - mean);
      degrees += static_cast<double>(side.size()) - 1;
      parts += 1 / static_cast<double>(side.size());
    }
    MeanDifference d;
    d.difference = mean_of(logs[1]) - mean_of(logs[0]);
    d.error = std::sqrt(squares / degrees * parts + (options_.in_turns ? 0 : 2 * assumed * assumed));
    d.degrees = degrees;
    return chance_beyond(d, std::log1p(options_.tolerance));
  }

  /// p by the recordings; nullopt: too few. The time itself, or in the same direction what it differs by from what all
  /// functions of its process share.
  [[nodiscard]] std::optional<double> chance_of_recordings(std::size_t row, double impact) const {
    const auto logs = logs_of_recordings(row);
    if (!logs) return std::nullopt;
    // Recordings of other lengths may tell another story together than each by itself.
    if ((mean_of((*logs)[1]) > mean_of((*logs)[0])) != (impact > 0)) return 1;
    const double of_time = moderated(*logs, kHostDrift);
    const auto effects = effects_.find({keys_[row].phase, keys_[row].process});
    if (effects == effects_.end()) return of_time;
    Logs own = *logs;
    for (std::size_t s = 0; s < 2; ++s)
      for (std::size_t r = 0; r < own[s].size(); ++r) own[s][r] -= effects->second[s][r];
    const bool agree = (mean_of(own[1]) > mean_of(own[0])) == (mean_of((*logs)[1]) > mean_of((*logs)[0]));
    return std::min(of_time, agree ? moderated(own, own_drift(fewest_cycles(row))) : 1);
  }

  /// p that means differ by no more than the tolerance.
  [[nodiscard]] double chance_of_means(const std::array<Series, 2>& side, double between) const {
    if (side[0].effective < kFewCycles || side[1].effective < kFewCycles) return 1;
    const double squares = side[0].mean * side[0].mean + side[1].mean * side[1].mean;
    return chance_beyond(difference_of(side[0], side[1], between * between * squares),
                         options_.tolerance * std::min(side[0].mean, side[1].mean));
  }

  [[nodiscard]] bool are_apart(const std::array<Uses, 2>& uses, const std::array<Series, 2>& side,
                               double tolerated) const {
    const double rare = kRare * options_.between * std::min(side[0].mean, side[1].mean);
    return separate_fully({uses[0].times, uses[1].times}, {side[0].n, side[1].n}) &&
           std::abs(side[1].mean - side[0].mean) > tolerated + rare;
  }

  const Roles& roles_;
  std::set<Phase> phases_;
  StringTable& texts_;
  FunctionOptions options_;
  tsl::hopscotch_map<Key, std::uint32_t, KeyHash> rows_;
  std::vector<Key> keys_;
  std::vector<StringId> short_names_;
  std::vector<StringId> was_;  ///< what the baseline calls it, 0: the same
  std::vector<std::array<Uses, 2>> uses_;
  std::vector<CyclePositions> cycles_;
  std::map<Phase, std::pair<double, double>> durations_;  ///< ns of the cycles of both sides, and how many they are
  /// ns on the host by all functions of a process, by phase and position of the cycle.
  std::array<std::map<std::pair<Phase, std::uint32_t>, tsl::hopscotch_map<std::uint32_t, double>>, 2> on_host_;
  std::map<std::pair<Phase, std::uint32_t>, LikeWork> like_work_;
  std::map<std::size_t, std::array<std::vector<CycleValue>, 2>> as_it_was_;  ///< times of rows on the host
  std::map<std::pair<Phase, std::uint32_t>, Logs> effects_;                  ///< of recordings, on the host
  std::map<std::pair<Phase, std::uint32_t>, double> common_changes_;         ///< of logarithms of times on the host
};

}  // namespace

bool lasts_otherwise(const FunctionFinding& finding, double tolerance) {
  const auto [before, after] = finding.time_ns;
  return before > 0 && after > 0 && (finding.work_ratio > 1) == (after > before) &&
         std::abs(finding.impact_ns) > tolerance * std::min(before, after) &&
         std::abs(std::log(finding.work_ratio)) > std::log1p(tolerance);
}

std::vector<FunctionFinding> compare_functions(const Profile& base, const Profile& candidate, const Roles& roles,
                                               const std::vector<Phase>& phases, StringTable& texts,
                                               const FunctionOptions& options) {
  Comparer comparer(roles, phases, texts, options);
  comparer.add_side(0, base);
  comparer.add_side(1, candidate);
  return comparer.finish();
}

}  // namespace culprit::compare
