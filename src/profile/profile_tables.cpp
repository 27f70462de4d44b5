#include "profile/profile_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "core/saturating.h"
#include "core/units.h"

namespace culprit::profile {

namespace {

using model::Cell;
using model::ColumnType;
using model::FunctionUse;
using model::Phase;
using model::Profile;
using model::Table;

Cell number(double value) { return std::isfinite(value) ? Cell(value) : Cell(); }
Cell known(std::int64_t value) { return value >= 0 ? Cell(value) : Cell(); }
Cell text(const Profile& profile, StringId id) { return std::string(profile.texts[id]); }
Cell whole(double ns) { return static_cast<std::int64_t>(std::llround(ns)); }

constexpr std::array kPhases = {Phase::prefill, Phase::decode, Phase::mixed, Phase::train_step, Phase::other};

struct Group {
  std::int64_t count = 0;
  Ns duration = 0;
  Ns exposed = 0;
  bool has_exposed = false;
  double beta = 0;
  StringId kind = 0;
};

using Owner = std::pair<std::int32_t, std::int64_t>;     // rank and process of a cycle
using GroupKey = std::tuple<Owner, StringId, StringId>;  // of the cycle, function, device

Table phase_table(const Profile& profile, Phase phase, const SummaryOptions& options) {
  std::map<Owner, std::uint64_t> cycles_of;
  std::set<std::int32_t> all_ranks;
  Ns time = 0;
  std::uint64_t n = 0;
  for (const model::ProfileCycle& cycle : profile.cycles)
    if (cycle.phase == phase) {
      ++cycles_of[{cycle.rank, cycle.pid}];
      all_ranks.insert(cycle.rank);
      time = add_saturating(time, cycle.duration);
      ++n;
    }
  std::map<GroupKey, Group> groups;
  bool gpu = false;
  for (const FunctionUse& use : profile.functions) {
    const model::ProfileCycle& cycle = profile.cycles[use.cycle];
    if (cycle.phase != phase) continue;
    Group& group = groups[{Owner{cycle.rank, cycle.pid}, use.function, use.device}];
    group.kind = use.kind;
    group.count += use.count;
    group.duration = add_saturating(group.duration, use.duration);
    if (use.exposed >= 0) {
      group.exposed = add_saturating(group.exposed, use.exposed);
      group.has_exposed = true;
      gpu = true;
    }
    if (std::isfinite(use.beta)) group.beta += use.beta;
  }
  std::vector<std::pair<GroupKey, const Group*>> rows;
  for (const auto& [key, group] : groups)
    if (!gpu || !options.gpu_only || group.has_exposed) rows.emplace_back(key, &group);
  const auto order = [&](const std::pair<GroupKey, const Group*>& row) {
    return std::tuple(row.second->has_exposed ? -row.second->exposed : -row.second->duration, -row.second->duration,
                      profile.texts[std::get<1>(row.first)], row.first);
  };
  std::ranges::sort(rows, {}, order);

  Table table;
  table.key = fmt::format("phase_{}", to_string(phase));
  table.title =
      fmt::format("{}: {} cycles, {} on average", to_string(phase), n,
                  format_duration(static_cast<double>(time) / static_cast<double>(std::max<std::uint64_t>(n, 1))));
  const bool ranks = all_ranks.size() > 1;
  const bool processes = cycles_of.size() > all_ranks.size();
  table.columns = {{"Function", "function", ColumnType::name, 0}, {"Kind", "kind", ColumnType::text, 0}};
  if (ranks) table.columns.push_back({"Rank", "rank", ColumnType::count, 0});
  if (processes) table.columns.push_back({"Process", "pid", ColumnType::count, 0});
  table.columns.insert(table.columns.end(), {{"Device", "device", ColumnType::text, 0},
                                             {"Time/cycle", "time_per_cycle_ns", ColumnType::time, 3},
                                             {"Exposed", "exposed_per_cycle_ns", ColumnType::time, 3},
                                             {"Beta", "beta", ColumnType::percent, 2},
                                             {"Calls/cycle", "calls_per_cycle", ColumnType::number, 1}});
  const std::size_t shown = options.limit == 0 ? rows.size() : std::min(rows.size(), options.limit);
  for (std::size_t r = 0; r < shown; ++r) {
    const auto& [key, group] = rows[r];
    const auto& [owner, function, device] = key;
    const auto cycles = static_cast<double>(cycles_of[owner]);
    std::vector<Cell> row = {text(profile, function), text(profile, group->kind)};
    if (ranks) row.push_back(known(owner.first));
    if (processes) row.push_back(known(owner.second));
    row.push_back(text(profile, device));
    row.push_back(whole(static_cast<double>(group->duration) / cycles));
    row.push_back(group->has_exposed ? whole(static_cast<double>(group->exposed) / cycles) : Cell());
    row.push_back(number(group->beta / cycles));
    row.push_back(number(static_cast<double>(group->count) / cycles));
    table.rows.push_back(std::move(row));
  }
  if (shown < rows.size())
    table.notes.push_back(fmt::format("{} more functions are not shown; --limit 0 shows all", rows.size() - shown));
  return table;
}

Table series_table(const Profile& profile, std::size_t limit) {
  Table table;
  table.key = "series";
  table.title = "Resources";
  table.columns = {{"Resource", "metric", ColumnType::name, 0},  {"Unit", "unit", ColumnType::text, 0},
                   {"Host", "host", ColumnType::text, 0},        {"Device", "device", ColumnType::text, 0},
                   {"Process", "pid", ColumnType::count, 0},     {"Samples", "samples", ColumnType::count, 0},
                   {"Mean", "mean", ColumnType::number, 3},      {"Lowest", "lowest", ColumnType::number, 3},
                   {"Highest", "highest", ColumnType::number, 3}};
  for (const model::ResourceSeries& series : profile.series) {
    if (limit != 0 && table.rows.size() == limit) {
      table.notes.push_back(
          fmt::format("{} more series are not shown; --limit 0 shows all", profile.series.size() - limit));
      break;
    }
    double sum = 0;
    for (const double value : series.values) sum += value;
    const bool busy = series.only_while_busy;
    const auto [low, high] = std::ranges::minmax(series.values);
    table.rows.push_back({text(profile, series.metric), std::string(unit_name(series.unit)), text(profile, series.host),
                          text(profile, series.device), known(series.pid),
                          static_cast<std::int64_t>(busy ? series.busy_samples : series.values.size()),
                          number(busy ? series.busy_mean : sum / static_cast<double>(series.values.size())),
                          number(low), number(high)});
  }
  if (std::ranges::any_of(profile.series, &model::ResourceSeries::only_while_busy))
    table.notes.emplace_back("Means of device clocks are over the samples taken while the device was busy");
  return table;
}

}  // namespace

std::string_view to_string(model::Provenance provenance) {
  constexpr std::array<std::string_view, 4> kNames = {"none", "measured", "interpolated", "pooled"};
  return kNames[static_cast<std::size_t>(provenance)];
}

std::string_view to_string(model::Phase phase) {
  constexpr std::array<std::string_view, 5> kNames = {"prefill", "decode", "mixed", "train_step", "other"};
  return kNames[static_cast<std::size_t>(phase)];
}

Table cycles_table(const Profile& profile) {
  Table table;
  table.key = "cycles";
  table.title = "Cycles";
  table.columns = {{"Cycle", "cycle", ColumnType::count, 0},        {"Rank", "rank", ColumnType::count, 0},
                   {"Process", "pid", ColumnType::count, 0},        {"Phase", "phase", ColumnType::text, 0},
                   {"Anchor", "anchor", ColumnType::name, 0},       {"Begin", "begin_ns", ColumnType::count, 0},
                   {"Duration", "duration_ns", ColumnType::time, 3}};
  for (const model::ProfileCycle& cycle : profile.cycles)
    table.rows.push_back({cycle.number, known(cycle.rank), known(cycle.pid), std::string(to_string(cycle.phase)),
                          text(profile, cycle.anchor), cycle.begin, cycle.duration});
  return table;
}

Table functions_table(const Profile& profile) {
  Table table;
  table.key = "functions";
  table.title = "Functions";
  table.columns = {{"Cycle", "cycle", ColumnType::count, 0},
                   {"Rank", "rank", ColumnType::count, 0},
                   {"Phase", "phase", ColumnType::text, 0},
                   {"Process", "pid", ColumnType::count, 0},
                   {"Host", "host", ColumnType::text, 0},
                   {"Function", "function", ColumnType::name, 0},
                   {"Short name", "short_name", ColumnType::name, 0},
                   {"Kind", "kind", ColumnType::text, 0},
                   {"Device", "device", ColumnType::text, 0},
                   {"Calls", "count", ColumnType::count, 0},
                   {"Time", "duration_ns", ColumnType::time, 3},
                   {"Exposed", "exposed_ns", ColumnType::time, 3},
                   {"Beta", "beta", ColumnType::percent, 2}};
  for (const FunctionUse& use : profile.functions) {
    const model::ProfileCycle& cycle = profile.cycles[use.cycle];
    const model::ProfileProcess& process = profile.processes[use.process];
    table.rows.push_back({cycle.number, known(cycle.rank), std::string(to_string(cycle.phase)), process.pid,
                          text(profile, process.host), text(profile, use.function), text(profile, use.short_name),
                          text(profile, use.kind), text(profile, use.device), use.count, use.duration,
                          known(use.exposed), number(use.beta)});
  }
  return table;
}

Table resources_table(const Profile& profile) {
  Table table;
  table.key = "resources";
  table.title = "Resources of functions";
  table.columns = {{"Cycle", "cycle", ColumnType::count, 0},    {"Rank", "rank", ColumnType::count, 0},
                   {"Process", "pid", ColumnType::count, 0},    {"Function", "function", ColumnType::name, 0},
                   {"Device", "device", ColumnType::text, 0},   {"Resource", "metric", ColumnType::name, 0},
                   {"Unit", "unit", ColumnType::text, 0},       {"Mu", "mu", ColumnType::number, 6},
                   {"Sigma", "sigma", ColumnType::number, 6},   {"From", "provenance", ColumnType::text, 0},
                   {"Samples", "samples", ColumnType::count, 0}};
  for (const model::ResourceUse& resource : profile.resources) {
    if (resource.metric == 0) continue;
    const FunctionUse& use = profile.functions[resource.use];
    const model::ProfileCycle& cycle = profile.cycles[use.cycle];
    table.rows.push_back({cycle.number, known(cycle.rank), profile.processes[use.process].pid,
                          text(profile, use.function), text(profile, use.device), text(profile, resource.metric),
                          std::string(unit_name(resource.unit)), number(resource.mu), number(resource.sigma),
                          std::string(to_string(resource.provenance)), static_cast<std::int64_t>(resource.samples)});
  }
  return table;
}

Table counters_table(const Profile& profile) {
  Table table;
  table.key = "counters";
  table.title = "Counter samples";
  table.columns = {{"Resource", "metric", ColumnType::name, 0}, {"Unit", "unit", ColumnType::text, 0},
                   {"Host", "host", ColumnType::text, 0},       {"Rank", "rank", ColumnType::count, 0},
                   {"Device", "device", ColumnType::text, 0},   {"Process", "pid", ColumnType::count, 0},
                   {"Time", "time_ns", ColumnType::count, 0},   {"Value", "value", ColumnType::number, 6}};
  for (const model::ResourceSeries& series : profile.series)
    for (std::size_t i = 0; i < series.times.size(); ++i)
      table.rows.push_back({text(profile, series.metric), std::string(unit_name(series.unit)),
                            text(profile, series.host), known(series.rank), text(profile, series.device),
                            known(series.pid), series.times[i], number(series.values[i])});
  return table;
}

std::vector<Table> summary_tables(const Profile& profile, const SummaryOptions& options) {
  std::vector<Table> tables;
  for (const Phase phase : kPhases)
    if (std::ranges::find(profile.cycles, phase, &model::ProfileCycle::phase) != profile.cycles.end())
      tables.push_back(phase_table(profile, phase, options));
  if (!profile.series.empty()) tables.push_back(series_table(profile, options.limit));
  return tables;
}

}  // namespace culprit::profile
