#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "core/saturating.h"
#include "kernels/align_logs.h"
#include "kernels/blocks.h"
#include "kernels/fusion.h"
#include "kernels/launch_identity.h"
#include "kernels/launch_tables.h"

namespace culprit::kernels {

namespace {

using model::BlockNode;
using model::Cell;
using model::ColumnType;
using model::KernelLog;
using model::Table;

constexpr std::size_t kNamesShown = 64;

Cell share_of(double part, Ns total) { return total > 0 ? Cell(part / static_cast<double>(total)) : Cell(); }
Cell share_of(Ns part, Ns total) { return share_of(static_cast<double>(part), total); }
Cell integer(std::uint64_t value) { return static_cast<std::int64_t>(value); }
Cell text_or_empty(std::string text) {
  Cell cell;
  if (!text.empty()) cell = std::move(text);
  return cell;
}
Cell integer_or_empty(std::int64_t value, bool known) {
  Cell cell;
  if (known) cell = value;
  return cell;
}
Cell number_or_empty(double value) {
  Cell cell;
  if (!std::isnan(value)) cell = value;
  return cell;
}

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

void add_block_rows(const std::vector<BlockNode>& nodes, const model::Lane& lane, Ns total, int depth, Table& table) {
  for (const BlockNode& node : nodes) {
    std::vector<Cell> row = {lane_name(lane),
                             std::string(static_cast<std::size_t>(2 * depth), ' ') + block_label(node),
                             integer(node.first + 1u),
                             integer(node.copies),
                             integer(node.launches),
                             node.time,
                             depth == 0 ? share_of(node.time, total) : Cell()};
    if (node.copies > 1) {
      row.emplace_back(std::string(likeness_text(node.likeness)));
      row.push_back(integer(node.changed_copies));
      row.push_back(integer(
          static_cast<std::uint64_t>(std::ranges::count(node.positions, true, &model::BlockPosition::unstable))));
    } else {
      row.insert(row.end(), 3, Cell());
    }
    table.rows.push_back(std::move(row));
    add_block_rows(node.children, lane, total, depth + 1, table);
  }
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
  Table table;
  table.title = "Repeated blocks";
  table.key = "blocks";
  table.columns = {{"Stream", "stream", ColumnType::text},
                   {"Block", "block", ColumnType::name},
                   {"From launch", "first", ColumnType::count},
                   {"Copies", "copies", ColumnType::count, 3, true},
                   {"Launches", "launches", ColumnType::count},
                   {"Time", "time_ns", ColumnType::time},
                   {"Share", "share", ColumnType::percent, 2},
                   {"Alike by", "alike_by", ColumnType::text, 3, true},
                   {"Changed", "changed_copies", ColumnType::count, 3, true},
                   {"Unstable", "unstable_positions", ColumnType::count}};
  Ns total = 0;
  for (const model::KernelLaunch& launch : log.launches) total = add_saturating(total, launch.latency);
  for (const model::LaneBlocks& lane : lanes) add_block_rows(lane.nodes, lane.lane, total, 0, table);
  table.notes.emplace_back(
      "A sequence has no natural beginning: a block begins at the first launch that repeats. Changed: copies that are "
      "not "
      "name for name like the first; unstable: positions whose time varies by more than 10 %, or that are missing or "
      "replaced in a copy");
  return table;
}

Table position_table(const KernelLog& log, std::span<const model::LaneBlocks> lanes, bool only_unstable) {
  Table table;
  table.title = only_unstable ? "Unstable positions of blocks" : "Positions of blocks";
  table.key = "positions";
  table.columns = {{"Block", "block", ColumnType::name},
                   {"Launch", "position", ColumnType::count},
                   {"Kernel", "name", ColumnType::name},
                   {"Copies", "copies", ColumnType::count, 3, true},
                   {"Mean", "mean_ns", ColumnType::time},
                   {"CV", "cv", ColumnType::percent, 1, true},
                   {"Min", "min_ns", ColumnType::time, 3, true},
                   {"Max", "max_ns", ColumnType::time, 3, true},
                   {"Mark", "mark", ColumnType::text}};
  for (const model::LaneBlocks& lane : lanes)
    for (const BlockNode& node : lane.nodes) {
      std::int64_t number = 0;
      for (const model::BlockPosition& position : node.positions) {
        ++number;
        if (only_unstable && !position.unstable) continue;
        std::string mark;
        if (position.other_names)
          mark = "other kernels";
        else if (position.copies < node.copies)
          mark = "missing";
        else if (position.unstable)
          mark = "unstable";
        table.rows.push_back(
            {block_label(node), number, std::string(log.names[position.name]), integer(position.copies), position.mean,
             number_or_empty(position.mean > 0 ? position.deviation / position.mean : model::kNoNumber), position.min,
             position.max, text_or_empty(mark)});
      }
    }
  return table;
}

Table fusion_table(const KernelLog& log, const model::FusionReport& report, std::span<const model::LaneBlocks> lanes,
                   std::size_t limit) {
  Table table;
  table.title = "Launches in a row that one kernel could do";
  table.key = "fusion";
  table.columns = {{"Idiom", "idiom", ColumnType::name},
                   {"Places", "places", ColumnType::count, 3, true},
                   {"Launches", "launches_per_place", ColumnType::count},
                   {"Time", "time_ns", ColumnType::time},
                   {"Share", "share", ColumnType::percent, 2},
                   {"Saves at most", "bound_ns", ColumnType::time},
                   {"Of all", "bound_share", ColumnType::percent, 2, true},
                   {"Longest stays", "careful_ns", ColumnType::time, 3, true},
                   {"First", "first", ColumnType::count},
                   {"Where", "where", ColumnType::text, 3, true},
                   {"Model", "model", ColumnType::text, 3, true},
                   {"Kernels", "kernels", ColumnType::name}};
  std::size_t shown = report.candidates.size();
  if (limit > 0) shown = std::min(shown, limit);
  constexpr std::string_view kModels[] = {"traffic once", "longest remains", "pass remains", "removed"};
  for (std::size_t i = 0; i < shown; ++i) {
    const model::FusionCandidate& candidate = report.candidates[i];
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
    const std::string where = place_in_blocks(candidate, lanes);
    table.rows.push_back({candidate.idiom + (candidate.by_shape ? " (by shape)" : ""), integer(candidate.begins.size()),
                          integer(candidate.names.size()), candidate.time, share_of(candidate.time, report.total),
                          candidate.bound, share_of(candidate.bound, report.total), candidate.careful,
                          integer(candidate.begins.front() + 1u), text_or_empty(where),
                          std::string(kModels[static_cast<std::size_t>(candidate.model)]), kernels});
  }
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
  Table table;
  table.title = "Gaps between kernels";
  table.key = "gaps";
  table.columns = {{"From", "from_ns", ColumnType::time},
                   {"To", "to_ns", ColumnType::time},
                   {"Gaps", "gaps", ColumnType::count},
                   {"Time", "time_ns", ColumnType::time},
                   {"Share", "share", ColumnType::percent, 2}};
  for (const model::GapBin& gap : report.gaps)
    table.rows.push_back({gap.from, integer_or_empty(gap.to, &gap != &report.gaps.back()), integer(gap.count), gap.time,
                          share_of(gap.time, report.window)});
  if (report.begins_known)
    table.notes.push_back(fmt::format("Devices were busy {} of {} (share: of that window)",
                                      format_duration(report.busy), format_duration(report.window)));
  else
    table.notes.emplace_back("The input does not say when launches began: gaps are unknown");
  Ns total = 0;
  for (const model::KernelLaunch& launch : log.launches) total = add_saturating(total, launch.latency);
  table.notes.push_back(fmt::format(
      "{} of {} launches ({} of {}) are shorter than {}, about what one launch costs the host",
      format_count(report.short_kernels.launches), format_count(log.launches.size()),
      format_duration(report.short_kernels.time), format_duration(total), format_duration(report.launch_cost)));
  return table;
}

Table stretch_table(const KernelLog& log, const model::LaunchReport& report) {
  Table table;
  table.title = "Stretches in which a device waited longer than it worked";
  table.key = "launch_bound";
  table.columns = {{"Device", "device", ColumnType::count}, {"First launch", "first", ColumnType::count},
                   {"Kernel", "name", ColumnType::name},    {"Launches", "launches", ColumnType::count},
                   {"Begin", "begin_ns", ColumnType::time}, {"Duration", "duration_ns", ColumnType::time},
                   {"Busy", "busy_ns", ColumnType::time}};
  for (const model::LaunchBoundStretch& stretch : report.stretches)
    table.rows.push_back({integer_or_empty(stretch.device, stretch.device >= 0), integer(stretch.first + 1u),
                          std::string(log.names[log.launches[stretch.first].name]), integer(stretch.launches),
                          stretch.begin, stretch.duration, stretch.busy});
  return table;
}

namespace {

std::vector<model::Column> change_columns(std::string_view where, std::string_view key) {
  return {{"Kernel", "name", ColumnType::name},
          {std::string(where), std::string(key), ColumnType::text},
          {"Change", "change", ColumnType::text},
          {"Calls A", "calls_a", ColumnType::count},
          {"Calls B", "calls_b", ColumnType::count},
          {"Median A", "median_a_ns", ColumnType::time, 3, true},
          {"Median B", "median_b_ns", ColumnType::time, 3, true},
          {"B / A", "ratio", ColumnType::number, 3},
          {"Limit", "limit", ColumnType::percent, 1, true},
          {"Note", "note", ColumnType::text}};
}

std::vector<Cell> change_row(const model::KernelChange& change) {
  std::string note = change.note;
  if (!change.name_b.empty()) note = "now " + change.name_b;
  if (change.class_a != change.class_b && change.class_a != model::UseClass::unknown &&
      change.class_b != model::UseClass::unknown)
    note +=
        fmt::format("{}class: {} -> {}", note.empty() ? "" : "; ", to_string(change.class_a, model::ComputeAxis::sm),
                    to_string(change.class_b, model::ComputeAxis::sm));
  return {change.name,
          text_or_empty(change.where),
          std::string(to_string(change.change)),
          integer(change.calls_a),
          integer(change.calls_b),
          number_or_empty(change.median_a),
          number_or_empty(change.median_b),
          number_or_empty(change.median_b / change.median_a),
          number_or_empty(change.limit > 0 ? change.limit : model::kNoNumber),
          text_or_empty(note)};
}

}  // namespace

Table name_change_table(const model::LogComparison& comparison, bool all) {
  Table table;
  table.title = "Kernels, A against B";
  table.key = "kernel_changes";
  table.columns = change_columns("Size", "size");
  std::size_t same = 0;
  for (const model::KernelChange& change : comparison.names) {
    same += change.change == model::Change::same ? 1u : 0u;
    const bool moved = change.class_a != change.class_b;
    if (all || moved || change.change != model::Change::same) table.rows.push_back(change_row(change));
  }
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
  Table table;
  table.title = "Positions in blocks, A against B";
  table.key = "position_changes";
  table.columns = change_columns("Position", "position");
  for (const model::KernelChange& change : comparison.positions) table.rows.push_back(change_row(change));
  table.notes.push_back(fmt::format("{} positions compared", comparison.positions_compared));
  return table;
}

}  // namespace culprit::kernels
