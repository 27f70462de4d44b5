#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ranges>
#include <string>

#include "core/saturating.h"
#include "kernels/align_logs.h"
#include "kernels/blocks.h"
#include "kernels/fusion.h"
#include "kernels/launch_identity.h"
#include "kernels/launch_tables.h"
#include "model/table_rows.h"

namespace culprit::kernels {

namespace {

using model::BlockNode;
using model::Cell;
using model::cell_of;
using model::ColumnType;
using model::KernelLog;
using model::known_cell;
using model::number_cell;
using model::share_cell;
using model::Table;
using model::text_cell;

constexpr std::size_t kNamesShown = 64;

std::string lane_name(const model::Lane& lane) {
  std::string text;
  if (lane.process >= 0) text += fmt::format("process {} ", lane.process);
  if (lane.device >= 0) text += fmt::format("device {} ", lane.device);
  if (lane.stream >= 0) text += fmt::format("stream {} ", lane.stream);
  if (!text.empty()) text.pop_back();
  return text.empty() ? "all" : text;
}

std::string_view likeness_text(model::Likeness likeness) {
  switch (likeness) {
    case model::Likeness::same_kernel:
      return "name and size";
    case model::Likeness::same_name:
      return "name";
    case model::Likeness::same_family:
      return "family";
  }
  return "";
}

/// A node of a lane, and how many others it lies in.
struct BlockRow {
  const model::Lane* lane;
  const BlockNode* node;
  std::size_t depth;
};

void add_block_rows(const model::Lane& lane, const std::vector<BlockNode>& nodes, std::size_t depth,
                    std::vector<BlockRow>& rows) {
  for (const BlockNode& node : nodes) {
    rows.push_back({&lane, &node, depth});
    add_block_rows(lane, node.children, depth + 1, rows);
  }
}

Ns time_of(const KernelLog& log) {
  Ns total = 0;
  for (const model::KernelLaunch& launch : log.launches) total = add_saturating(total, launch.latency);
  return total;
}

/// "in 24 x [40 launches]: launch 5 to 20", when all of the first few places are the same.
std::string place_in_blocks(const model::FusionCandidate& candidate, std::span<const model::LaneBlocks> lanes) {
  const std::uint32_t row = candidate.begins.front();
  for (const model::LaneBlocks& lane : lanes) {
    const auto at = std::ranges::find(lane.lane.launches, row);
    if (at == lane.lane.launches.end()) continue;
    const auto position = static_cast<std::uint32_t>(at - lane.lane.launches.begin());
    for (const BlockNode& node : lane.nodes) {
      if (position < node.first || position >= node.first + node.launches || node.copies < 2) continue;
      const auto copy = std::ranges::upper_bound(node.starts, position) - 1;
      return fmt::format("launch {} of {} x [{} launch{}]", position - *copy + 1, node.copies, node.period,
                         node.period == 1 ? "" : "es");
    }
  }
  return {};
}

}  // namespace

Table block_table(const KernelLog& log, std::span<const model::LaneBlocks> lanes) {
  std::vector<BlockRow> rows;
  for (const model::LaneBlocks& lane : lanes) add_block_rows(lane.lane, lane.nodes, 0, rows);
  const Ns total = time_of(log);
  /// What only blocks with several copies have.
  const auto repeated = [](auto give) {
    return [give](const BlockRow& row) { return row.node->copies > 1 ? cell_of(give(*row.node)) : Cell(); };
  };
  Table table = model::make_table<BlockRow>(
      "Repeated blocks", "blocks",
      {{{"Stream", "stream"}, [](const BlockRow& row) { return lane_name(*row.lane); }},
       {{"Block", "block", ColumnType::name},
        [](const BlockRow& row) { return std::string(2 * row.depth, ' ') + block_label(*row.node); }},
       {{"From launch", "first", ColumnType::count, 3, true}, [](const BlockRow& row) { return row.node->first + 1U; }},
       {{"Copies", "copies", ColumnType::count, 3, true}, [](const BlockRow& row) { return row.node->copies; }},
       {{"Launches", "launches", ColumnType::count}, [](const BlockRow& row) { return row.node->launches; }},
       {{"Time", "time_ns", ColumnType::time}, [](const BlockRow& row) { return row.node->time; }},
       {{"Share", "share", ColumnType::percent, 2},
        [&](const BlockRow& row) { return row.depth == 0 ? share_cell(row.node->time, total) : Cell(); }},
       {{"Alike by", "alike_by", ColumnType::text, 3, true},
        repeated([](const BlockNode& node) { return likeness_text(node.likeness); })},
       {{"Changed", "changed_copies", ColumnType::count, 3, true},
        repeated([](const BlockNode& node) { return node.changed_copies; })},
       {{"Unstable", "unstable_positions", ColumnType::count, 3, true}, repeated([](const BlockNode& node) {
          return std::ranges::count(node.positions, true, &model::BlockPosition::unstable);
        })}},
      rows);
  table.notes.emplace_back(
      "A sequence has no natural beginning: a block begins at the first launch that repeats. Changed: copies that are "
      "not "
      "name for name like the first; unstable: positions whose time varies by more than 10 %, or that are missing or "
      "replaced in a copy");
  return table;
}

Table position_table(const KernelLog& log, std::span<const model::LaneBlocks> lanes, bool only_unstable) {
  struct Row {
    const BlockNode& node;
    const model::BlockPosition& position;
  };
  std::vector<Row> rows;
  for (const model::LaneBlocks& lane : lanes)
    for (const BlockNode& node : lane.nodes)
      for (const model::BlockPosition& position : node.positions)
        if (position.unstable || !only_unstable) rows.push_back({node, position});
  const auto mark = [](const Row& row) -> Cell {
    if (row.position.other_names) return "other kernels";
    if (row.position.copies < row.node.copies) return "missing";
    return row.position.unstable ? Cell("unstable") : Cell();
  };
  return model::make_table<Row>(
      only_unstable ? "Unstable positions of blocks" : "Positions of blocks", "positions",
      {{{"Block", "block", ColumnType::name}, [](const Row& row) { return block_label(row.node); }},
       {{"Launch", "position", ColumnType::count},
        [](const Row& row) { return &row.position - row.node.positions.data() + 1; }},
       {{"Kernel", "name", ColumnType::name}, [&](const Row& row) { return log.names[row.position.name]; }},
       {{"Copies", "copies", ColumnType::count, 3, true}, [](const Row& row) { return row.position.copies; }},
       {{"Mean", "mean_ns", ColumnType::time}, [](const Row& row) { return row.position.mean; }},
       {{"CV", "cv", ColumnType::percent, 1, true},
        [](const Row& row) {
          return row.position.mean > 0 ? number_cell(row.position.deviation / row.position.mean) : Cell();
        }},
       {{"Min", "min_ns", ColumnType::time, 3, true}, [](const Row& row) { return row.position.min; }},
       {{"Max", "max_ns", ColumnType::time, 3, true}, [](const Row& row) { return row.position.max; }},
       {{"Mark", "mark"}, mark}},
      rows);
}

namespace {

/// "3 x gemm, softmax": what a candidate launches, cut when that is long.
std::string kernels_of(const model::FusionCandidate& candidate, const KernelLog& log) {
  std::string kernels;
  std::size_t pieces = 0;
  for (std::size_t k = 0; k < candidate.names.size();) {
    std::size_t same = 1;
    while (k + same < candidate.names.size() && candidate.names[k + same] == candidate.names[k]) ++same;
    if (++pieces > kNamesShown) {
      kernels += ", ...";
      break;
    }
    kernels += kernels.empty() ? "" : ", ";
    if (same > 1) kernels += fmt::format("{} x ", same);
    model::KernelLaunch launch;
    launch.name = candidate.names[k];
    kernels += shown_name(log, launch);
    k += same;
  }
  return kernels;
}

}  // namespace

Table fusion_table(const KernelLog& log, const model::FusionReport& report, std::span<const model::LaneBlocks> lanes,
                   std::size_t limit) {
  using model::FusionCandidate;
  constexpr std::string_view kModels[] = {"traffic once", "longest remains", "pass remains", "removed"};
  Table table = model::make_table<FusionCandidate>(
      "Launches in a row that one kernel could do", "fusion",
      {{{"Idiom", "idiom", ColumnType::name},
        [](const FusionCandidate& c) { return c.idiom + (c.by_shape ? " (by shape)" : ""); }},
       {{"Places", "places", ColumnType::count, 3, true}, [](const FusionCandidate& c) { return c.begins.size(); }},
       {{"Launches", "launches_per_place", ColumnType::count}, [](const FusionCandidate& c) { return c.names.size(); }},
       {{"Time", "time_ns", ColumnType::time}, &FusionCandidate::time},
       {{"Share", "share", ColumnType::percent, 2},
        [&](const FusionCandidate& c) { return share_cell(c.time, report.total); }},
       {{"Saves at most", "bound_ns", ColumnType::time}, &FusionCandidate::bound},
       {{"Of all", "bound_share", ColumnType::percent, 2, true},
        [&](const FusionCandidate& c) { return share_cell(c.bound, report.total); }},
       {{"Longest stays", "careful_ns", ColumnType::time, 3, true}, &FusionCandidate::careful},
       {{"First", "first", ColumnType::count}, [](const FusionCandidate& c) { return c.begins.front() + 1U; }},
       {{"Where", "where", ColumnType::text, 3, true},
        [&](const FusionCandidate& c) { return text_cell(place_in_blocks(c, lanes)); }},
       {{"Model", "model", ColumnType::text, 3, true},
        [&](const FusionCandidate& c) { return kModels[static_cast<std::size_t>(c.model)]; }},
       {{"Kernels", "kernels", ColumnType::name}, [&](const FusionCandidate& c) { return kernels_of(c, log); }}},
      report.candidates, limit);
  if (report.candidates.empty()) {
    table.notes.emplace_back("No run of fusable launches");
    return table;
  }
  double bound = 0;
  double careful = 0;
  for (const model::FusionCandidate& candidate : report.candidates) {
    bound += candidate.bound;
    careful += candidate.careful;
  }
  table.notes.push_back(
      fmt::format("All {} candidates together: at most {} ({:.1f} % of kernel time); {} when the longest "
                  "launch of each place stays",
                  report.candidates.size(), format_duration(bound),
                  report.total > 0 ? 100 * bound / static_cast<double>(report.total) : 0.0, format_duration(careful)));
  using model::FusionModel;
  constexpr FusionModel kAll[] = {FusionModel::traffic_once, FusionModel::longest_remains, FusionModel::pass_remains,
                                  FusionModel::removed};
  for (const FusionModel model : kAll)
    if (std::ranges::any_of(report.candidates, [model](const auto& c) { return c.model == model; }))
      table.notes.push_back(fmt::format("{}: {}", kModels[static_cast<std::size_t>(model)], describe(model)));
  if (!std::isnan(report.best_dram))
    table.notes.push_back(fmt::format("Best DRAM use of this log: {:.0f} %; shortest launch: {}",
                                      report.best_dram * 100, format_duration(report.shortest)));
  if (std::ranges::any_of(report.candidates, &model::FusionCandidate::by_shape))
    table.notes.emplace_back("By shape: names do not say what the kernels compute; concluded from their order");
  return table;
}

Table gap_table(const KernelLog& log, const model::LaunchReport& report) {
  using model::GapBin;
  Table table = model::make_table<GapBin>(
      "Gaps between kernels", "gaps",
      {{{"From", "from_ns", ColumnType::time}, &GapBin::from},
       {{"To", "to_ns", ColumnType::time},
        [&](const GapBin& gap) { return &gap != &report.gaps.back() ? Cell(gap.to) : Cell(); }},
       {{"Gaps", "gaps", ColumnType::count}, &GapBin::count},
       {{"Time", "time_ns", ColumnType::time}, &GapBin::time},
       {{"Share", "share", ColumnType::percent, 2},
        [&](const GapBin& gap) { return share_cell(gap.time, report.window); }}},
      report.gaps);
  if (report.begins_known)
    table.notes.push_back(fmt::format("Devices were busy {} of {} (share: of that window)",
                                      format_duration(report.busy), format_duration(report.window)));
  else
    table.notes.emplace_back("The input does not say when launches began: gaps are unknown");
  table.notes.push_back(fmt::format(
      "{} of {} launches ({} of {}) are shorter than {}, about what one launch costs the host",
      format_count(report.short_kernels.launches), format_count(log.launches.size()),
      format_duration(report.short_kernels.time), format_duration(time_of(log)), format_duration(report.launch_cost)));
  return table;
}

Table stretch_table(const KernelLog& log, const model::LaunchReport& report) {
  using model::LaunchBoundStretch;
  return model::make_table<LaunchBoundStretch>(
      "Stretches in which a device waited longer than it worked", "launch_bound",
      {{{"Device", "device", ColumnType::count},
        [](const LaunchBoundStretch& stretch) { return known_cell(stretch.device); }},
       {{"First launch", "first", ColumnType::count},
        [](const LaunchBoundStretch& stretch) { return stretch.first + 1U; }},
       {{"Kernel", "name", ColumnType::name},
        [&](const LaunchBoundStretch& stretch) { return log.names[log.launches[stretch.first].name]; }},
       {{"Launches", "launches", ColumnType::count}, &LaunchBoundStretch::launches},
       {{"Begin", "begin_ns", ColumnType::time}, &LaunchBoundStretch::begin},
       {{"Duration", "duration_ns", ColumnType::time}, &LaunchBoundStretch::duration},
       {{"Busy", "busy_ns", ColumnType::time}, &LaunchBoundStretch::busy}},
      report.stretches);
}

namespace {

std::string note_of(const model::KernelChange& change) {
  std::string note = change.note;
  if (!change.name_b.empty()) note = "now " + change.name_b;
  if (change.class_a != change.class_b && change.class_a != model::UseClass::unknown &&
      change.class_b != model::UseClass::unknown)
    note +=
        fmt::format("{}class: {} -> {}", note.empty() ? "" : "; ", to_string(change.class_a, model::ComputeAxis::sm),
                    to_string(change.class_b, model::ComputeAxis::sm));
  return note;
}

/// `where` heads what says which calls of a kernel are meant.
model::ColumnsOf<model::KernelChange> change_columns(std::string_view where, std::string_view key) {
  using model::KernelChange;
  return {{{"Kernel", "name", ColumnType::name}, &KernelChange::name},
          {{std::string(where), std::string(key)}, [](const KernelChange& c) { return text_cell(c.where); }},
          {{"Change", "change"}, [](const KernelChange& c) { return to_string(c.change); }},
          {{"Calls A", "calls_a", ColumnType::count}, &KernelChange::calls_a},
          {{"Calls B", "calls_b", ColumnType::count}, &KernelChange::calls_b},
          {{"Median A", "median_a_ns", ColumnType::time, 3, true},
           [](const KernelChange& c) { return number_cell(c.median_a); }},
          {{"Median B", "median_b_ns", ColumnType::time, 3, true},
           [](const KernelChange& c) { return number_cell(c.median_b); }},
          {{"B / A", "ratio", ColumnType::number, 3}, [](const KernelChange& c) { return number_cell(c.ratio); }},
          {{"Limit", "limit", ColumnType::percent, 1, true},
           [](const KernelChange& c) { return c.limit > 0 ? number_cell(c.limit) : Cell(); }},
          {{"Note", "note"}, [](const KernelChange& c) { return text_cell(note_of(c)); }}};
}

}  // namespace

Table name_change_table(const model::LogComparison& comparison, bool all) {
  const auto is_listed = [&](const model::KernelChange& change) {
    return all || change.class_a != change.class_b || change.change != model::Change::same;
  };
  Table table =
      model::make_table<model::KernelChange>("Kernels, A against B", "kernel_changes", change_columns("Size", "size"),
                                             comparison.names | std::views::filter(is_listed));
  const auto same = std::ranges::count(comparison.names, model::Change::same, &model::KernelChange::change);
  table.notes.push_back(fmt::format("{} of {} kernels take the same time per call", same, comparison.names.size()));
  const auto launches = [](std::uint64_t n) { return fmt::format("{} launch{}", n, n == 1 ? "" : "es"); };
  table.notes.push_back(fmt::format("A: {}, {}; B: {}, {}; {} matched", launches(comparison.launches_a),
                                    format_duration(comparison.time_a), launches(comparison.launches_b),
                                    format_duration(comparison.time_b), launches(comparison.aligned)));
  if (std::ranges::any_of(comparison.names,
                          [](const model::KernelChange& c) { return c.change == model::Change::not_judged; }))
    table.notes.emplace_back("Not judged: communication, and what differs in fewer than four calls on a side");
  table.notes.emplace_back("More or fewer calls are work, not a change; times are compared per call, by medians");
  for (const std::string& note : comparison.notes) table.notes.push_back(note);
  return table;
}

Table position_change_table(const model::LogComparison& comparison) {
  Table table = model::make_table<model::KernelChange>("Positions in blocks, A against B", "position_changes",
                                                       change_columns("Position", "position"), comparison.positions);
  table.notes.push_back(fmt::format("{} positions compared", comparison.positions_compared));
  return table;
}

}  // namespace culprit::kernels
