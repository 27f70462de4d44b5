#include "profile/profile_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <ranges>
#include <set>
#include <tuple>
#include <utility>

#include "core/saturating.h"
#include "core/units.h"
#include "model/table_rows.h"

namespace culprit::profile {

namespace {

using model::Cell;
using model::cell_of;
using model::ColumnType;
using model::FunctionUse;
using model::known_cell;
using model::number_cell;
using model::Phase;
using model::present_if;
using model::Profile;
using model::Table;

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

  const bool ranks = all_ranks.size() > 1;
  const bool processes = cycles_of.size() > all_ranks.size();
  using Row = std::pair<GroupKey, const Group*>;
  const auto owner = [](const Row& row) { return std::get<0>(row.first); };
  const auto per_cycle = [&](const Row& row, auto sum) {
    return static_cast<double>(sum) / static_cast<double>(cycles_of[owner(row)]);
  };
  Table table = model::make_table<Row>(
      fmt::format("{}: {} cycles, {} on average", to_string(phase), n,
                  format_duration(static_cast<double>(time) / static_cast<double>(std::max<std::uint64_t>(n, 1)))),
      fmt::format("phase_{}", to_string(phase)),
      {{{"Function", "function", ColumnType::name, 0},
        [&](const Row& row) { return profile.texts[std::get<1>(row.first)]; }},
       {{"Kind", "kind", ColumnType::text, 0, true}, [&](const Row& row) { return profile.texts[row.second->kind]; }},
       {{"Rank", "rank", ColumnType::count, 0},
        [&](const Row& row) { return known_cell(owner(row).first); },
        present_if(ranks)},
       {{"Process", "pid", ColumnType::count, 0},
        [&](const Row& row) { return known_cell(owner(row).second); },
        present_if(processes)},
       {{"Device", "device", ColumnType::text, 0},
        [&](const Row& row) { return profile.texts[std::get<2>(row.first)]; }},
       {{"Time/cycle", "time_per_cycle_ns", ColumnType::time, 3},
        [&](const Row& row) { return std::llround(per_cycle(row, row.second->duration)); }},
       {{"Exposed", "exposed_per_cycle_ns", ColumnType::time, 3},
        [&](const Row& row) {
          return row.second->has_exposed ? cell_of(std::llround(per_cycle(row, row.second->exposed))) : Cell();
        }},
       {{"Beta", "beta", ColumnType::percent, 2, true},
        [&](const Row& row) { return number_cell(per_cycle(row, row.second->beta)); }},
       {{"Calls/cycle", "calls_per_cycle", ColumnType::number, 1},
        [&](const Row& row) { return per_cycle(row, row.second->count); }}},
      rows, options.limit);
  if (table.rows.size() < rows.size())
    table.notes.push_back(
        fmt::format("{} more functions are not shown; --limit 0 shows all", rows.size() - table.rows.size()));
  return table;
}

Table series_table(const Profile& profile, std::size_t limit) {
  using model::ResourceSeries;
  const auto text = [&](StringId ResourceSeries::*id) {
    return [&profile, id](const ResourceSeries& series) { return profile.texts[series.*id]; };
  };
  Table table = model::make_table<ResourceSeries>(
      "Resources", "series",
      {{{"Resource", "metric", ColumnType::name, 0}, text(&ResourceSeries::metric)},
       {{"Unit", "unit", ColumnType::text, 0}, [](const ResourceSeries& s) { return unit_name(s.unit); }},
       {{"Host", "host", ColumnType::text, 0, true}, text(&ResourceSeries::host)},
       {{"Device", "device", ColumnType::text, 0}, text(&ResourceSeries::device)},
       {{"Process", "pid", ColumnType::count, 0, true}, [](const ResourceSeries& s) { return known_cell(s.pid); }},
       {{"Samples", "samples", ColumnType::count, 0, true},
        [](const ResourceSeries& s) { return s.only_while_busy ? s.busy_samples : s.values.size(); }},
       {{"Mean", "mean", ColumnType::number, 3},
        [](const ResourceSeries& s) {
          return number_cell(s.only_while_busy ? s.busy_mean
                                               : std::accumulate(s.values.begin(), s.values.end(), 0.0) /
                                                     static_cast<double>(s.values.size()));
        }},
       {{"Lowest", "lowest", ColumnType::number, 3, true},
        [](const ResourceSeries& s) { return number_cell(std::ranges::min(s.values)); }},
       {{"Highest", "highest", ColumnType::number, 3, true},
        [](const ResourceSeries& s) { return number_cell(std::ranges::max(s.values)); }}},
      profile.series, limit);
  if (table.rows.size() < profile.series.size())
    table.notes.push_back(
        fmt::format("{} more series are not shown; --limit 0 shows all", profile.series.size() - limit));
  if (std::ranges::any_of(profile.series, &ResourceSeries::only_while_busy))
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
  using model::ProfileCycle;
  return model::make_table<ProfileCycle>(
      "Cycles", "cycles",
      {{{"Cycle", "cycle", ColumnType::count, 0}, &ProfileCycle::number},
       {{"Rank", "rank", ColumnType::count, 0}, [](const ProfileCycle& c) { return known_cell(c.rank); }},
       {{"Process", "pid", ColumnType::count, 0}, [](const ProfileCycle& c) { return known_cell(c.pid); }},
       {{"Phase", "phase", ColumnType::text, 0}, [](const ProfileCycle& c) { return to_string(c.phase); }},
       {{"Anchor", "anchor", ColumnType::name, 0}, [&](const ProfileCycle& c) { return profile.texts[c.anchor]; }},
       {{"Begin", "begin_ns", ColumnType::count, 0}, &ProfileCycle::begin},
       {{"Duration", "duration_ns", ColumnType::time, 3}, &ProfileCycle::duration}},
      profile.cycles);
}

Table functions_table(const Profile& profile) {
  const auto cycle = [&](const FunctionUse& use) -> const model::ProfileCycle& { return profile.cycles[use.cycle]; };
  const auto process = [&](const FunctionUse& use) -> const auto& { return profile.processes[use.process]; };
  const auto text = [&](StringId FunctionUse::*id) {
    return [&profile, id](const FunctionUse& use) { return profile.texts[use.*id]; };
  };
  return model::make_table<FunctionUse>(
      "Functions", "functions",
      {{{"Cycle", "cycle", ColumnType::count, 0}, [&](const FunctionUse& use) { return cycle(use).number; }},
       {{"Rank", "rank", ColumnType::count, 0}, [&](const FunctionUse& use) { return known_cell(cycle(use).rank); }},
       {{"Phase", "phase", ColumnType::text, 0}, [&](const FunctionUse& use) { return to_string(cycle(use).phase); }},
       {{"Process", "pid", ColumnType::count, 0}, [&](const FunctionUse& use) { return process(use).pid; }},
       {{"Host", "host", ColumnType::text, 0},
        [&](const FunctionUse& use) { return profile.texts[process(use).host]; }},
       {{"Function", "function", ColumnType::name, 0}, text(&FunctionUse::function)},
       {{"Short name", "short_name", ColumnType::name, 0}, text(&FunctionUse::short_name)},
       {{"Kind", "kind", ColumnType::text, 0}, text(&FunctionUse::kind)},
       {{"Device", "device", ColumnType::text, 0}, text(&FunctionUse::device)},
       {{"Calls", "count", ColumnType::count, 0}, &FunctionUse::count},
       {{"Time", "duration_ns", ColumnType::time, 3}, &FunctionUse::duration},
       {{"Exposed", "exposed_ns", ColumnType::time, 3}, [](const FunctionUse& use) { return known_cell(use.exposed); }},
       {{"Beta", "beta", ColumnType::percent, 2}, [](const FunctionUse& use) { return number_cell(use.beta); }}},
      profile.functions);
}

Table resources_table(const Profile& profile) {
  using model::ResourceUse;
  const auto use = [&](const ResourceUse& r) -> const FunctionUse& { return profile.functions[r.use]; };
  const auto cycle = [&](const ResourceUse& r) -> const model::ProfileCycle& { return profile.cycles[use(r).cycle]; };
  return model::make_table<ResourceUse>(
      "Resources of functions", "resources",
      {{{"Cycle", "cycle", ColumnType::count, 0}, [&](const ResourceUse& r) { return cycle(r).number; }},
       {{"Rank", "rank", ColumnType::count, 0}, [&](const ResourceUse& r) { return known_cell(cycle(r).rank); }},
       {{"Process", "pid", ColumnType::count, 0},
        [&](const ResourceUse& r) { return profile.processes[use(r).process].pid; }},
       {{"Function", "function", ColumnType::name, 0},
        [&](const ResourceUse& r) { return profile.texts[use(r).function]; }},
       {{"Device", "device", ColumnType::text, 0}, [&](const ResourceUse& r) { return profile.texts[use(r).device]; }},
       {{"Resource", "metric", ColumnType::name, 0}, [&](const ResourceUse& r) { return profile.texts[r.metric]; }},
       {{"Unit", "unit", ColumnType::text, 0}, [](const ResourceUse& r) { return unit_name(r.unit); }},
       {{"Mu", "mu", ColumnType::number, 6}, [](const ResourceUse& r) { return number_cell(r.mu); }},
       {{"Sigma", "sigma", ColumnType::number, 6}, [](const ResourceUse& r) { return number_cell(r.sigma); }},
       {{"From", "provenance", ColumnType::text, 0}, [](const ResourceUse& r) { return to_string(r.provenance); }},
       {{"Samples", "samples", ColumnType::count, 0}, &ResourceUse::samples}},
      profile.resources | std::views::filter([](const ResourceUse& r) { return r.metric != 0; }));
}

Table counters_table(const Profile& profile) {
  struct Sample {
    const model::ResourceSeries& series;
    std::size_t at;
  };
  std::vector<Sample> samples;
  for (const model::ResourceSeries& series : profile.series)
    for (std::size_t i = 0; i < series.times.size(); ++i) samples.push_back({series, i});
  return model::make_table<Sample>(
      "Counter samples", "counters",
      {{{"Resource", "metric", ColumnType::name, 0}, [&](const Sample& s) { return profile.texts[s.series.metric]; }},
       {{"Unit", "unit", ColumnType::text, 0}, [](const Sample& s) { return unit_name(s.series.unit); }},
       {{"Host", "host", ColumnType::text, 0}, [&](const Sample& s) { return profile.texts[s.series.host]; }},
       {{"Rank", "rank", ColumnType::count, 0}, [](const Sample& s) { return known_cell(s.series.rank); }},
       {{"Device", "device", ColumnType::text, 0}, [&](const Sample& s) { return profile.texts[s.series.device]; }},
       {{"Process", "pid", ColumnType::count, 0}, [](const Sample& s) { return known_cell(s.series.pid); }},
       {{"Time", "time_ns", ColumnType::count, 0}, [](const Sample& s) { return s.series.times[s.at]; }},
       {{"Value", "value", ColumnType::number, 6}, [](const Sample& s) { return number_cell(s.series.values[s.at]); }}},
      samples);
}

Table ledger_table(const Profile& profile) {
  struct Row {
    const model::LedgerWindow& window;
    const model::LedgerLine& line;
  };
  std::vector<Row> rows;
  for (std::size_t w = 0; w < profile.ledger.windows.size(); ++w)
    for (const model::LedgerLine& line : lines_of(profile.ledger, w)) rows.push_back({profile.ledger.windows[w], line});
  const auto cycle = [&](const Row& row) -> const model::ProfileCycle& { return profile.cycles[row.window.cycle]; };
  return model::make_table<Row>(
      "Ledger", "ledger",
      {{{"Cycle", "cycle", ColumnType::count, 0}, [&](const Row& row) { return cycle(row).number; }},
       {{"Rank", "rank", ColumnType::count, 0}, [&](const Row& row) { return known_cell(cycle(row).rank); }},
       {{"Phase", "phase", ColumnType::text, 0}, [&](const Row& row) { return to_string(cycle(row).phase); }},
       {{"Process", "pid", ColumnType::count, 0}, [&](const Row& row) { return known_cell(cycle(row).pid); }},
       {{"Device", "device", ColumnType::count, 0}, [](const Row& row) { return known_cell(row.window.device); }},
       {{"Window", "window_ns", ColumnType::time, 3}, [](const Row& row) { return row.window.length; }},
       {{"State", "state", ColumnType::text, 0}, [](const Row& row) { return ledger_state_name(row.line.state); }},
       {{"Function", "function", ColumnType::name, 0},
        [&](const Row& row) {
          const std::string_view name = profile.texts[row.line.function];
          return name.empty() ? Cell() : cell_of(name);
        }},
       {{"Count", "count", ColumnType::count, 0}, [](const Row& row) { return row.line.count; }},
       {{"Time", "time_ns", ColumnType::time, 3}, [](const Row& row) { return row.line.time; }}},
      rows);
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
