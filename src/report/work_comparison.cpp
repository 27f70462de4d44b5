#include "report/work_comparison.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "core/units.h"
#include "model/table_rows.h"
#include "report/collected_report.h"
#include "report/host_report.h"
#include "report/run_comparison_tables.h"
#include "report/work_report.h"

namespace culprit::report {

namespace {

using model::Cell;
using model::ColumnType;
using model::Table;
using model::whole_cell;
using model::WorkChange;
using model::WorkComparison;

constexpr std::size_t kMostOthers = 3;
constexpr double kOtherSize = 0.1;  // of an answer, to be told

std::string rate(double per_second) {
  return per_second >= 1000 ? format_count(static_cast<std::uint64_t>(std::llround(per_second)))
                            : fmt::format("{:.3g}", per_second);
}

std::string percent(double change) { return fmt::format("{:+.1f} %", change * 100); }

std::string interval(const WorkChange& change) {
  return std::isfinite(change.low) && std::isfinite(change.high)
             ? fmt::format(" (95 % interval {} to {})", percent(change.low), percent(change.high))
             : "";
}

Cell ratio(const std::array<double, 2>& value) { return value[0] > 0 ? Cell(value[1] / value[0]) : Cell(); }

/// The part of the work that differs most.
/// The part that differs most the way that all of them do; null: none does.
const WorkChange* largest(const WorkComparison& work) {
  const double sign = work.worked.value[1] < work.worked.value[0] ? -1 : 1;
  const auto size = [&](const WorkChange& c) { return sign * (c.value[1] - c.value[0]); };
  const auto at = std::ranges::max_element(work.parts, {}, size);
  return at == work.parts.end() || size(*at) <= 0 ? nullptr : &*at;
}

void write_change(JsonWriter& json, const WorkChange& change) {
  json.member("what", change.what);
  json.member("unit", change.unit);
  json.member("baseline", change.value[0]);
  json.member("candidate", change.value[1]);
  json.member("change", change.change);
  json.member("low", change.low);
  json.member("high", change.high);
}

void write_changes(JsonWriter& json, std::string_view name, const std::vector<WorkChange>& changes) {
  json.begin_array(name);
  for (const WorkChange& change : changes) {
    json.begin_object(JsonForm::line);
    write_change(json, change);
    json.end_object();
  }
  json.end_array();
}

}  // namespace

std::vector<std::string> work_answer_lines(const model::RunComparison& comparison) {
  const WorkComparison& work = *comparison.work;
  if (work.unit.kind == model::UnitKind::window) return {fmt::format("Outcome: inconclusive: {}", comparison.why)};
  std::vector<std::string> lines = {
      fmt::format("Outcome: {}{}{}; throughput {}{}", to_string(comparison.outcome), comparison.why.empty() ? "" : ": ",
                  comparison.why, percent(work.throughput.change), interval(work.throughput)),
      fmt::format("{}/s -> {}/s, {}", rate(work.throughput.value[0]), rate(work.throughput.value[1]),
                  unit_text(work.unit))};
  if (!work.reading.empty()) lines.push_back(fmt::format("That is, {}.", work.reading));
  return lines;
}

std::vector<std::string> work_detail_lines(const model::RunComparison& comparison) {
  const WorkComparison& work = *comparison.work;
  std::vector<std::string> lines;
  if (comparison.host) lines.push_back(throttled_text(*comparison.host));
  std::string beside;
  for (std::size_t i = 0; i < std::min(work.others.size(), kMostOthers); ++i)
    beside += fmt::format("{}{} took {:.2f} CPUs (baseline {:.2f})", i == 0 ? "Beside it " : ", ", work.others[i].what,
                          work.others[i].value[1], work.others[i].value[0]);
  lines.push_back(std::move(beside));
  if (comparison.host) lines.push_back(machine_text(*comparison.host));
  std::erase_if(lines, [](const std::string& line) { return line.empty(); });
  if (work.unit.kind != model::UnitKind::window) {
    std::string text =
        fmt::format("Worked per {}: {} -> {}, {}{}", to_string(work.unit.kind), format_duration(work.worked.value[0]),
                    format_duration(work.worked.value[1]), percent(work.worked.change), interval(work.worked));
    if (const WorkChange* part = largest(work))
      text += fmt::format(", most of the difference {}: {} -> {}", part->what, format_duration(part->value[0]),
                          format_duration(part->value[1]));
    lines.push_back(std::move(text));
  }
  if (work.idle) return lines;
  if (const double larger = work.answer_bytes[1] / work.answer_bytes[0];
      !work.other_answers && std::abs(larger - 1) >= kOtherSize)
    lines.push_back(fmt::format("An answer is of {} in the mean (baseline {})", format_bytes(work.answer_bytes[1]),
                                format_bytes(work.answer_bytes[0])));
  lines.push_back(
      fmt::format("{:.0f} % sure that these are units of its work: {}", work.unit.confidence * 100, work.unit.reason));
  if (work.unit.count_error)
    lines.push_back(
        *work.unit.count_error < 1
            ? fmt::format("Their numbers are estimates, ± {:.1f} %: system calls were looked at in windows.",
                          *work.unit.count_error * 100)
            : "Their numbers are estimates: system calls were looked at in windows.");
  if (work.recordings[0] > 0)
    lines.push_back(
        fmt::format("Measured: recordings of a side differ by {:.2g} % (standard deviation).", work.between * 100));
  if (work.earlier > 0) lines.push_back(earlier_text(work.between, work.earlier).substr(1));
  if (!comparison.assumptions.empty())
    lines.push_back(fmt::format("Assumed: {}. {}", fmt::join(comparison.assumptions, "; "),
                                what_would_measure(work.recordings[0] > 0 || work.earlier > 0)));
  return lines;
}

Table work_outcome_table(const model::RunComparison& comparison) {
  const WorkComparison& work = *comparison.work;
  const auto number = [](double value) { return model::number_cell(value); };
  return model::make_table<WorkChange>(
      "Outcome", "outcome",
      {{{"Outcome", "outcome"}, [&](const WorkChange&) { return to_string(comparison.outcome); }},
       {{"Of", "what", ColumnType::name}, &WorkChange::what},
       {{"Unit", "unit"}, &WorkChange::unit},
       {{"Baseline", "baseline", ColumnType::number}, [=](const WorkChange& c) { return number(c.value[0]); }},
       {{"Candidate", "candidate", ColumnType::number}, [=](const WorkChange& c) { return number(c.value[1]); }},
       {{"Change", "change", ColumnType::number}, [=](const WorkChange& c) { return number(c.change); }},
       {{"Low", "ci_low", ColumnType::number}, [=](const WorkChange& c) { return number(c.low); }},
       {{"High", "ci_high", ColumnType::number}, [=](const WorkChange& c) { return number(c.high); }}},
      std::array{work.throughput, work.worked});
}

std::vector<Table> work_comparison_tables(const WorkComparison& work, std::size_t most_rows) {
  const bool windows = work.unit.kind == model::UnitKind::window;
  const std::string per = windows ? "window" : std::string(to_string(work.unit.kind));
  std::vector<WorkChange> times = work.parts;
  times.insert(times.end(), work.latency.begin(), work.latency.end());
  std::vector<Table> tables = {model::make_table<WorkChange>(
      fmt::format("What one {} took, all recorded threads", per), "work_time",
      {{{"Threads were", "state", ColumnType::name}, &WorkChange::what},
       {{"Baseline", "baseline_ns", ColumnType::time}, [](const WorkChange& c) { return whole_cell(c.value[0]); }},
       {{"Candidate", "candidate_ns", ColumnType::time}, [](const WorkChange& c) { return whole_cell(c.value[1]); }},
       {{"Difference", "difference_ns", ColumnType::time},
        [](const WorkChange& c) { return whole_cell(c.value[1] - c.value[0]); }},
       {{"Ratio", "ratio", ColumnType::number, 2}, [](const WorkChange& c) { return ratio(c.value); }}},
      times)};
  tables.back().notes.push_back(
      fmt::format("Waiting for work is apart: {:.2f} threads on average in the baseline, {:.2f} in the candidate.",
                  work.waiting.value[0], work.waiting.value[1]));
  Table calls = calls_table(fmt::format("System calls of one {}, and how long one takes", per), "work_calls",
                            work.calls, most_rows);
  if (!calls.rows.empty()) tables.push_back(std::move(calls));
  return tables;
}

void write_work_comparison(JsonWriter& json, const WorkComparison& work) {
  json.begin_object("work");
  json.member("kind", to_string(work.unit.kind));
  json.member("process", work.unit.process);
  json.member("thread", work.unit.thread);
  json.member("receive", work.unit.receive);
  json.member("send", work.unit.send);
  json.member("confidence", work.unit.confidence);
  json.member("reason", work.unit.reason);
  if (work.unit.count_error) json.member("count_error", *work.unit.count_error);
  json.member("reading", work.reading);
  json.member("waited_ns", work.waited);
  json.member("waits_in", work.waits_in);
  json.member("answer_bytes", work.answer_bytes);
  json.member("units", work.counts);
  json.member("seconds", work.seconds);
  json.member("between", work.between);
  json.member("earlier", work.earlier);
  json.member("recordings", work.recordings);
  json.member("detectable", 1 + work.smallest_seen);
  json.begin_object("throughput", JsonForm::line);
  write_change(json, work.throughput);
  json.end_object();
  json.begin_object("worked", JsonForm::line);
  write_change(json, work.worked);
  json.end_object();
  write_changes(json, "parts", work.parts);
  write_changes(json, "latency", work.latency);
  write_changes(json, "others", work.others);
  write_calls(json, "calls", work.calls);
  json.end_object();
}

}  // namespace culprit::report
