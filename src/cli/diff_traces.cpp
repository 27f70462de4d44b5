#include "cli/diff_traces.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "cli/environment.h"
#include "cli/output.h"
#include "compare/comparable.h"
#include "compare/cycle_time.h"
#include "compare/host_changes.h"
#include "cycles/find.h"
#include "deepdive/from_native.h"
#include "deepdive/pairing.h"
#include "deepdive/suspicion.h"
#include "deepdive/trace_rows.h"
#include "profile/host_evidence.h"
#include "profile/profile_tables.h"
#include "profile/run_profile.h"
#include "trace/builder.h"

namespace culprit::cli {

namespace {

namespace fs = std::filesystem;

/// One side, ready to be compared.
struct Side {
  model::Profile profile;
  model::Cycles cycles;
  std::vector<std::string> notes;
  compare::RunFacts facts;
  std::vector<compare::StepTime> times;  ///< of every recording
  model::HostEvidence host;              ///< of every recording
  std::string name;                      ///< of the first file
  Environment environment;               ///< what recordings say of their machine, every value of a key
};

void add_facts(const Trace& trace, compare::RunFacts& facts) {
  for (const Rank& rank : trace.ranks) {
    if (rank.rank >= 0) facts.ranks.insert(rank.rank);
    facts.world_size = std::max(facts.world_size, rank.world_size);
  }
  facts.gpu_work = facts.gpu_work || !trace.gpu.empty();
  std::set<std::pair<std::uint16_t, std::int32_t>> worked;
  for (std::size_t g = 0; g < trace.gpu.size(); ++g)
    worked.emplace(trace.slices[trace.gpu[g].slice].rank, trace.gpu[g].device);
  const auto add = [&](bool all) {
    for (const Device& device : trace.devices)
      if (!device.name.empty() && (all || worked.contains({device.rank, device.id})))
        facts.device_models.insert(device.name);
  };
  add(false);
  // Some writers number the devices of the machine and list those of the process.
  if (facts.device_models.empty() && !worked.empty()) add(true);
}

std::string periods_of(const model::Cycles& cycles) {
  std::vector<Ns> periods;
  const std::vector<bool> whole = model::whole_periods(cycles);
  for (std::size_t i = 0; i < whole.size(); ++i)
    if (whole[i]) periods.push_back(cycles.cycles[i].period);
  if (periods.empty()) return "unknown";
  std::ranges::sort(periods);
  return format_duration(periods[periods.size() / 2]);
}

std::vector<SideBySide> side_by_side(const Side& base, const Side& candidate) {
  return {{"cycles", std::to_string(base.cycles.cycles.size()), std::to_string(candidate.cycles.cycles.size())},
          {"median period of whole cycles", periods_of(base.cycles), periods_of(candidate.cycles)}};
}

bool looks_like_trace(const fs::path& path) {
  const std::string name = path.filename().string();
  return std::ranges::any_of(std::array{".json", ".json.gz", ".json.zst", ".pftrace", ".perfetto-trace"},
                             [&](const char* end) { return name.ends_with(end); }) &&
         !name.ends_with(".truth.json");
}

/// Directories are replaced by the traces directly in them, by name.
Result<std::vector<std::string>> expand(const std::vector<std::string>& paths) {
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    std::error_code code;
    if (!fs::is_directory(path, code)) {
      files.push_back(path);
      continue;
    }
    std::vector<std::string> found;
    for (const fs::directory_entry& entry : fs::directory_iterator(path, code))
      if (looks_like_trace(entry.path())) found.push_back(entry.path().string());
    if (code) return input_error("cannot be listed", path, "check its rights");
    if (found.empty())
      return usage_error(
          fmt::format("'{}' is a directory without traces (*.json, .json.gz, .json.zst, .pftrace, .perfetto-trace)",
                      path),
          "name files, or one directory with normal_perf_data and abnormal_perf_data");
    std::ranges::sort(found);
    files.insert(files.end(), found.begin(), found.end());
  }
  return files;
}

bool are_ranks(const std::vector<Trace>& traces) {
  std::set<std::int64_t> ranks;
  for (const Trace& trace : traces)
    if (trace.ranks.size() != 1 || trace.ranks.front().rank < 0 || !ranks.insert(trace.ranks.front().rank).second)
      return false;
  return true;
}

void judge_cycle_times(const Side& base, const Side& candidate, const std::vector<model::Phase>& phases, bool forgot,
                       deepdive::ComparisonSet& set) {
  for (const model::Phase phase : phases) {
    const auto of_phase = [&](const Side& side) {
      std::vector<double> values;
      for (const compare::StepTime& t : side.times)
        if ((forgot && t.guessed ? model::Phase::other : t.phase) == phase) values.push_back(t.time);
      return values;
    };
    set.cycle_times.push_back(compare::judge_cycle_time(of_phase(base), of_phase(candidate)));
    set.cycle_times.back().phase = phase;
  }
  set.outcome = compare::overall(set.cycle_times);
}

Status add_run(const Trace& trace, const TraceSides& sides, const std::string& file, Side& side) {
  cycles::FindOptions find;
  find.anchor = sides.anchor;
  const auto found = cycles::find_cycles(trace, order_slices(trace), find);
  if (!found) return found.error();
  add_facts(trace, side.facts);
  add_environment(trace, side.environment);
  const std::vector<compare::StepTime> times = compare::step_times(found->cycles);
  side.times.insert(side.times.end(), times.begin(), times.end());
  compare::add_replicate(side.host, found->cycles.cycles.empty() ? profile::host_evidence_per_second(trace)
                                                                 : profile::host_evidence(trace, found->cycles));
  profile::RunProfileOptions options;
  options.whole_cycles_only = true;
  model::Profile profile = profile::run_profile(trace, *found, options);
  if (const auto note = loss_note(trace.losses)) side.notes.push_back(fmt::format("{}: {}", file, *note));
  if (side.name.empty()) {
    side.name = file;
    side.profile = std::move(profile);
    side.cycles = found->cycles;
    return {};
  }
  if (const auto why = compare::why_not_comparable(side.cycles, found->cycles))
    return input_error(fmt::format("is no recording of the same run as {}: {}", side.name, why->reason), file,
                       "give only runs that belong together on one side");
  compare::append_replicate(side.profile, profile);
  side.cycles.cycles.insert(side.cycles.cycles.end(), found->cycles.cycles.begin(), found->cycles.cycles.end());
  return {};
}

Result<Side> load_side(const std::vector<std::string>& paths, const TraceSides& sides) {
  auto files = expand(paths);
  if (!files) return files.error();
  Side side;
  if (files->size() == 1) {
    const auto trace = load_with_progress(*files, sides.load);
    if (!trace) return trace.error();
    if (const Status status = add_run(*trace, sides, files->front(), side); !status) return status.error();
    return side;
  }
  std::vector<Trace> traces;
  for (const std::string& file : *files) {
    auto trace = load_with_progress({file}, sides.load);
    if (!trace) return trace.error();
    traces.push_back(std::move(*trace));
  }
  if (are_ranks(traces)) {
    const Trace run = merge(std::move(traces));
    if (const Status status = add_run(run, sides, files->front(), side); !status) return status.error();
    return side;
  }
  for (std::size_t f = 0; f < traces.size(); ++f) {
    if (const Status status = add_run(traces[f], sides, (*files)[f], side); !status) return status.error();
    traces[f] = {};
  }
  side.notes.push_back(fmt::format("{} recordings of one run are pooled", files->size()));
  return side;
}

}  // namespace

bool is_profile_table(const std::string& path) { return path.ends_with(".csv"); }

Result<TraceComparison> compare_traces(const TraceSides& sides) {
  auto base = load_side(sides.base, sides);
  if (!base) return base.error();
  auto candidate = load_side(sides.candidate, sides);
  if (!candidate) return candidate.error();
  TraceComparison result;
  result.differences = compare::differences_of(base->facts, candidate->facts);
  const bool forgot =
      compare::forget_guessed_phases(base->cycles, candidate->cycles, base->profile, candidate->profile);
  result.not_comparable = compare::why_not_comparable(base->cycles, candidate->cycles);
  if (!result.differences.empty() && result.differences.front().blocks)
    result.not_comparable = {compare::to_string(result.differences),
                             "Compare runs on devices of one model and with the same number of ranks"};
  if (result.not_comparable) {
    result.side_by_side = side_by_side(*base, *candidate);
    if (base->host.per_second && candidate->host.per_second)
      result.set.host = compare::host_changes(base->host, candidate->host);
    return result;
  }

  const compare::Roles roles = compare::match_roles(base->profile, candidate->profile);
  const std::vector<model::Phase> phases = compare::common_phases(base->cycles, candidate->cycles);
  for (const model::Phase phase : phases) {
    const deepdive::Profile a = deepdive::for_suspicion(base->profile, phase, roles.base);
    const deepdive::Profile b = deepdive::for_suspicion(candidate->profile, phase, roles.candidate);
    deepdive::FilePair files;
    files.base = base->name;
    files.candidate = candidate->name;
    files.identifier = fmt::format("{}_vs_{}", files.base.filename().string(), files.candidate.filename().string());
    if (phases.size() > 1) files.suffix = fmt::format("_{}", profile::to_string(phase));
    std::set<std::int64_t> ours;
    std::set<std::int64_t> theirs;
    for (const deepdive::FunctionUse& use : a.functions) ours.insert(a.processes[use.process].pid);
    for (const deepdive::FunctionUse& use : b.functions) theirs.insert(b.processes[use.process].pid);
    if (base->host.scheduling) ours.erase(-1), theirs.erase(-1);  // work of the machine, of no process
    for (const std::int64_t pid : ours) {
      if (!theirs.contains(pid)) {
        result.set.unpaired.push_back({base->name, pid, "the candidate has no process of this role"});
        continue;
      }
      const deepdive::ProcessPair pair{deepdive::Pairing::strict, pid, pid};
      result.set.comparisons.push_back(deepdive::compare_by_suspicion(a, b, pair, files.identifier + files.suffix,
                                                                      deepdive::comparison_base_name(files, pair)));
      deepdive::judge_on_traces(result.set.comparisons.back());
    }
    for (const std::int64_t pid : theirs)
      if (!ours.contains(pid))
        result.set.unpaired.push_back({candidate->name, pid, "the baseline has no process of this role"});
  }
  judge_cycle_times(*base, *candidate, phases, forgot, result.set);
  model::HostChanges host = compare::host_changes(base->host, candidate->host);
  if (!host.states.empty() || !host.counters.empty()) result.set.host = std::move(host);
  for (const Side* side : {&*base, &*candidate}) {
    deepdive::InputReport input;
    input.file = side->name;
    input.rows = side->profile.functions.size();
    result.set.inputs.push_back(std::move(input));
  }
  result.set.notes = compare::comparison_notes(base->cycles, candidate->cycles);
  if (forgot)
    result.set.notes.emplace_back("Phases that were guessed from names of kernels differ and are not told apart");
  for (const compare::Difference& d : result.differences)
    result.set.notes.push_back(fmt::format("{} differ: {} against {}", d.what, d.base, d.candidate));
  const std::vector<std::string> environment = environment_notes(base->environment, candidate->environment);
  result.set.notes.insert(result.set.notes.end(), environment.begin(), environment.end());
  result.set.notes.push_back(
      fmt::format("Cycles begin at '{}' on both sides: {}", base->cycles.anchor, base->cycles.reason));
  for (const Side* side : {&*base, &*candidate})
    result.set.notes.insert(result.set.notes.end(), side->notes.begin(), side->notes.end());
  return result;
}

}  // namespace culprit::cli
