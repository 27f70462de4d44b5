#include "formats/ncu_csv/ncu_csv.h"

#include <fmt/format.h>
#include <tsl/hopscotch_map.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <utility>
#include <vector>

#include "formats/io/missing_text.h"
#include "formats/ncu_csv/numbers.h"
#include "formats/ncu_csv/rows.h"
#include "model/launch_metrics.h"
#include "model/profile.h"

namespace culprit::formats::ncu_csv {

namespace {

using namespace model;
using Fields = std::span<const std::string_view>;

constexpr std::size_t kAbsent = static_cast<std::size_t>(-1);
constexpr std::size_t kMostDamage = 20;

enum class Shape : std::uint8_t { unusable, longer, wide, summary };

/// Where the columns of one header are.
struct Layout {
  Shape shape = Shape::unusable;
  std::size_t id = kAbsent, pid = kAbsent, process = kAbsent, kernel = kAbsent, stream = kAbsent, block = kAbsent;
  std::size_t grid = kAbsent, device = kAbsent, metric = kAbsent, unit = kAbsent, value = kAbsent;
  std::size_t invocations = kAbsent, minimum = kAbsent, maximum = kAbsent, average = kAbsent;
  std::size_t width = 0;
  std::vector<std::pair<std::size_t, std::string>> metrics;  ///< wide: column and title
};

Layout read_layout(Fields titles) {
  Layout layout;
  layout.width = titles.size();
  const std::array<std::pair<std::string_view, std::size_t*>, 15> known = {{{"ID", &layout.id},
                                                                            {"Process ID", &layout.pid},
                                                                            {"Process Name", &layout.process},
                                                                            {"Kernel Name", &layout.kernel},
                                                                            {"Stream", &layout.stream},
                                                                            {"Block Size", &layout.block},
                                                                            {"Grid Size", &layout.grid},
                                                                            {"Device", &layout.device},
                                                                            {"Metric Name", &layout.metric},
                                                                            {"Metric Unit", &layout.unit},
                                                                            {"Metric Value", &layout.value},
                                                                            {"Invocations", &layout.invocations},
                                                                            {"Minimum", &layout.minimum},
                                                                            {"Maximum", &layout.maximum},
                                                                            {"Average", &layout.average}}};
  constexpr std::array<std::string_view, 10> kOther = {"Host Name",   "Kernel Time",      "Context",   "CC",
                                                       "Rule Name",   "Rule Description", "Rule Type", "Section Name",
                                                       "Device Name", "Kernel ID"};
  for (std::size_t i = 0; i < titles.size(); ++i) {
    const auto* it = std::ranges::find(known, titles[i], &std::pair<std::string_view, std::size_t*>::first);
    if (it != known.end()) {
      if (*it->second == kAbsent) *it->second = i;
    } else if (!titles[i].empty() && std::ranges::find(kOther, titles[i]) == kOther.end()) {
      layout.metrics.emplace_back(i, titles[i]);
    }
  }
  if (layout.kernel == kAbsent) return layout;
  if (layout.metric == kAbsent)
    layout.shape = Shape::wide;
  else if (layout.value != kAbsent && layout.id != kAbsent)
    layout.shape = Shape::longer;
  else if (layout.average != kAbsent)
    layout.shape = Shape::summary;
  return layout;
}

std::string_view at(Fields fields, std::size_t column) {
  return column < fields.size() ? fields[column] : std::string_view{};
}

/// Units of what can be counted or measured, but not be less than nothing.
bool is_count(std::string_view unit) {
  return unit == "ns" || unit == "byte" || unit == "byte/s" || unit == "hz" || unit == "fraction" || unit == "inst" ||
         unit == "cycle";
}

/// Whole numbers out of "(9, 32, 1)" or "9x32x1". False when one is negative, then nothing is read.
template <class T>
bool read_triple(std::string_view text, T (&out)[3]) {
  for (std::size_t i = 0; i + 1 < text.size(); ++i)
    if (text[i] == '-' && text[i + 1] >= '0' && text[i + 1] <= '9') return false;
  std::size_t found = 0;
  for (std::size_t i = 0; i < text.size() && found < 3;) {
    if (text[i] < '0' || text[i] > '9') {
      ++i;
      continue;
    }
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(text.data() + i, text.data() + text.size(), number);
    if (error != std::errc()) number = std::numeric_limits<std::uint64_t>::max();
    out[found++] = static_cast<T>(std::min<std::uint64_t>(number, std::numeric_limits<T>::max()));
    i = static_cast<std::size_t>(end - text.data());
  }
  return true;
}

template <class T>
T read_integer(std::string_view text, T missing) {
  T number = missing;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? number : missing;
}

/// How the numbers of a file are written, and how sure that is.
struct FoundLocale {
  Locale locale = Locale::point;
  std::string guessed;  ///< a number that could be read in two ways, when nothing in the file decides; else empty
};

/// A launch whose rows are still coming.
struct Pending {
  LaunchFiller filler;
  std::uint64_t line = 0;
};

class Reader {
 public:
  Reader(FoundLocale found, std::string_view file) : locale_(found.locale), guessed_(std::move(found.guessed)) {
    report_.file = file;
  }

  void header(Fields titles, std::uint64_t line) {
    layout_ = read_layout(titles);
    units_.assign(layout_.width, {});
    units_known_ = false;
    ++section_;
    last_key_.clear();
    if (layout_.shape == Shape::unusable)
      damage(line, "a header without the columns \"Kernel Name\" and \"Metric Value\"", "export all columns");
    if (layout_.shape == Shape::summary) summary_ = true;
  }

  void row(Fields fields, std::uint64_t line) {
    switch (layout_.shape) {
      case Shape::unusable:
        return damage(line, "a row below an unusable header", "export all columns");
      case Shape::wide:
        return wide(fields, line);
      case Shape::longer:
        return longer(fields, line);
      case Shape::summary:
        return summary(fields, line);
    }
  }

  void damage(std::uint64_t line, std::string what, std::string remedy) {
    ++report_.bad_rows;
    if (report_.first.size() < kMostDamage) report_.first.push_back({line, std::move(what), std::move(remedy)});
  }

  Result<NcuData> finish(const RowCounts& counts, std::string_view file);

 private:
  void bad_cell(std::uint64_t line, std::string_view metric, std::string_view text) {
    ++report_.bad_cells;
    if (report_.first.size() < kMostDamage)
      report_.first.push_back({line, fmt::format("metric '{}' holds '{}'", metric.substr(0, 80), text.substr(0, 40)),
                               "collect the metric again"});
  }

  std::size_t new_launch(Fields fields, std::uint64_t line) {
    KernelLaunch launch;
    launch.name = log_.names.intern(at(fields, layout_.kernel));
    if (!read_triple(at(fields, layout_.grid), launch.grid)) bad_cell(line, "Grid Size", at(fields, layout_.grid));
    if (!read_triple(at(fields, layout_.block), launch.block)) bad_cell(line, "Block Size", at(fields, layout_.block));
    launch.device = read_integer<std::int16_t>(at(fields, layout_.device), -1);
    launch.stream = read_integer<std::int32_t>(at(fields, layout_.stream), -1);
    launch.process = process(fields);
    log_.launches.push_back(launch);
    pending_.push_back({{}, line});
    return log_.launches.size() - 1;
  }

  std::int32_t process(Fields fields) {
    const std::string_view pid = at(fields, layout_.pid);
    if (pid.empty()) return -1;
    const auto [it, fresh] = processes_.try_emplace(std::string(pid), static_cast<std::int32_t>(log_.processes.size()));
    if (fresh)
      log_.processes.push_back({read_integer<std::int64_t>(pid, -1), std::string(at(fields, layout_.process))});
    return it->second;
  }

  /// One value of one launch; text values ("PolicySpread") are not kept.
  void metric(std::size_t launch, std::string_view name, std::string_view unit, std::string_view text,
              std::uint64_t line) {
    if (text.empty() || text == "(!) n/a" || text == "(!) nan" || text == "n/a" || is_missing_text(text)) return;
    const MetricRole role = metric_role(name);
    const auto number = parse_number(text, locale_);
    if (!number) {
      if (role.role != LaunchField::none || !unit.empty()) bad_cell(line, name, text);
      return;
    }
    UnitScale scale = unit_scale(unit);
    if (unit.empty() && role.role == LaunchField::duration) {
      scale = {"ns", 1};
      unit_assumed_ = true;
    }
    const bool share = role.role == LaunchField::sm || role.role == LaunchField::dram ||
                       role.role == LaunchField::tensor || role.role == LaunchField::tensor_of_active ||
                       role.role == LaunchField::occupancy;
    if (share && unit.empty()) scale = {"fraction", 0.01};
    if (*number < 0 && (role.role != LaunchField::none || is_count(scale.si))) return bad_cell(line, name, text);
    const double value = *number * scale.factor;
    log_.metrics.push_back(
        {static_cast<std::uint32_t>(launch), log_.names.intern(name), log_.names.intern(scale.si), value});
    // A title can stand for several metrics ("DRAM Throughput" in % and in bytes/s): the unit decides.
    if (share && scale.si != "fraction") return;
    if (role.role == LaunchField::duration && scale.si != "ns")
      return bad_cell(line, name, fmt::format("{} {}", text, unit));
    pending_[launch].filler.add(role, value);
  }

  void longer(Fields fields, std::uint64_t line) {
    if (fields.size() > layout_.width)
      return damage(line, fmt::format("the row has {} columns, the header {}", fields.size(), layout_.width),
                    "look for an unquoted comma");
    if (fields.size() <= std::max(layout_.metric, layout_.kernel))
      return damage(line, fmt::format("the row ends after {} columns", fields.size()), "look for a cut line");
    if (fields[layout_.metric].empty()) {
      ++rules_;
      return;
    }
    if (fields.size() <= layout_.value)
      return damage(line, fmt::format("the row ends after {} columns", fields.size()), "look for a cut line");
    key_.assign(std::to_string(section_))
        .append("\t")
        .append(at(fields, layout_.pid))
        .append("\t")
        .append(fields[layout_.id]);
    if (key_ != last_key_) {
      const auto it = launches_.find(key_);
      if (it != launches_.end()) {
        last_launch_ = it->second;
      } else {
        last_launch_ = new_launch(fields, line);
        launches_.emplace(key_, last_launch_);
      }
      last_key_ = key_;
    }
    metric(last_launch_, fields[layout_.metric], at(fields, layout_.unit), fields[layout_.value], line);
    ++report_.rows;
  }

  void wide(Fields fields, std::uint64_t line) {
    if (fields.size() > layout_.width)
      return damage(line, fmt::format("the row has {} columns, the header {}", fields.size(), layout_.width),
                    "look for an unquoted comma");
    if (at(fields, layout_.kernel).empty()) {
      if (units_known_) return damage(line, "the row names no kernel", "look for a cut line");
      for (std::size_t i = 0; i < fields.size(); ++i) units_[i] = fields[i];
      units_known_ = true;
      return;
    }
    if (fields.size() <= layout_.kernel) return damage(line, "the row is too short", "look for a cut line");
    units_known_ = true;
    const std::size_t launch = new_launch(fields, line);
    for (const auto& [column, title] : layout_.metrics) metric(launch, title, units_[column], at(fields, column), line);
    ++report_.rows;
  }

  void summary(Fields fields, std::uint64_t line);

  Locale locale_;
  std::string guessed_;
  Layout layout_;
  KernelLog log_;
  InputReport report_;
  std::vector<Pending> pending_;
  std::vector<std::string> units_;
  bool units_known_ = false;
  bool unit_assumed_ = false;
  bool summary_ = false;
  std::uint64_t rules_ = 0;
  std::uint64_t section_ = 0;
  std::string key_, last_key_;
  std::size_t last_launch_ = 0;
  tsl::hopscotch_map<std::string, std::size_t> launches_;
  tsl::hopscotch_map<std::string, std::int32_t> processes_;
  KernelSummary table_;
};

/// A row of the summary form: one kernel and one metric over its invocations. Columns grow by three per metric.
void Reader::summary(Fields fields, std::uint64_t line) {
  if (fields.size() <= std::max({layout_.metric, layout_.kernel, layout_.average}))
    return damage(line, fmt::format("the row ends after {} columns", fields.size()), "look for a cut line");
  if (fields[layout_.metric].empty()) {
    ++rules_;
    return;
  }
  key_.assign(std::to_string(section_));
  for (const std::size_t column : {layout_.pid, layout_.device, layout_.grid, layout_.block, layout_.kernel})
    key_.append("\t").append(at(fields, column));
  const auto [it, fresh] = launches_.try_emplace(key_, table_.rows.size());
  if (table_.columns.empty()) table_.columns.push_back({"Invocations", SummaryColumnKind::count});
  if (fresh) {
    SummaryRow row;
    row.name = fields[layout_.kernel];
    SummaryValue calls;
    calls.text = at(fields, layout_.invocations);
    if (const auto n = parse_number(calls.text, locale_); n && *n >= 0)
      calls.value = calls.low = calls.high = *n;
    else if (n)
      bad_cell(line, "Invocations", calls.text);
    row.calls = calls.value;
    row.values.push_back(std::move(calls));
    table_.rows.push_back(std::move(row));
  }
  SummaryRow& row = table_.rows[it->second];
  const std::string_view name = fields[layout_.metric];
  const UnitScale scale = unit_scale(at(fields, layout_.unit));
  SummaryColumnKind kind = SummaryColumnKind::number;
  if (scale.si == "ns") kind = SummaryColumnKind::time;
  if (scale.si == "fraction") kind = SummaryColumnKind::percent;
  if (scale.si == "byte") kind = SummaryColumnKind::bytes;
  const std::array<std::pair<std::string_view, std::size_t>, 3> parts = {
      {{" min", layout_.minimum}, {" max", layout_.maximum}, {" avg", layout_.average}}};
  for (const auto& [suffix, column] : parts) {
    const std::string title = std::string(name).append(suffix);
    auto place = std::ranges::find(table_.columns, title, &SummaryColumn::title);
    if (place == table_.columns.end()) {
      table_.columns.push_back({title, kind});
      place = table_.columns.end() - 1;
    }
    const auto index = static_cast<std::size_t>(place - table_.columns.begin());
    if (row.values.size() <= index) row.values.resize(index + 1);
    SummaryValue& value = row.values[index];
    value.text = at(fields, column);
    const auto number = parse_number(value.text, locale_);
    if (number && *number < 0 && is_count(scale.si)) {
      bad_cell(line, name, value.text);
      continue;
    }
    if (number) {
      value.value = value.low = value.high = *number * scale.factor;
    } else if (!at(fields, layout_.unit).empty() && !value.text.empty() && !is_missing_text(value.text)) {
      bad_cell(line, name, value.text);
    }
    if (number && column == layout_.average && metric_role(name).role == LaunchField::duration && scale.si == "ns") {
      row.average_device_ns = value.value;
      row.total_device_ns = row.self_device_ns = value.value * row.calls;
    }
  }
  ++report_.rows;
}

Result<NcuData> Reader::finish(const RowCounts& counts, std::string_view file) {
  NcuData data;
  std::vector<std::string> notes;
  if (counts.output_lines + counts.tool_lines != 0)
    notes.push_back(fmt::format("{} lines of program output and {} of the profiler stand around the rows",
                                counts.output_lines, counts.tool_lines));
  if (!counts.first_error.empty()) notes.push_back("the profiler reported: " + counts.first_error);
  if (rules_ != 0) notes.push_back(fmt::format("{} rows of rules (advice, no measurement) were not read", rules_));
  if (locale_ == Locale::comma) notes.emplace_back("numbers are written with a decimal comma");
  if (!guessed_.empty())
    notes.push_back(
        fmt::format("nothing in the file says whether '.' or ',' is the decimal separator: '.' was assumed, "
                    "'{}' was read as {}",
                    guessed_, parse_number(guessed_, locale_).value_or(0)));
  if (unit_assumed_) notes.emplace_back("durations without a unit were taken as nanoseconds");
  const auto where = [&] {
    return report_.first.empty() ? std::string(file) : fmt::format("{} line {}", file, report_.first.front().line);
  };
  if (report_.rows == 0)
    return input_error("is Nsight Compute CSV without a usable row", where(),
                       report_.first.empty() ? "profile again" : report_.first.front().what);
  if (summary_ && log_.launches.empty()) {
    data.is_summary = true;
    for (SummaryRow& row : table_.rows) row.values.resize(table_.columns.size());
    table_.caption = "Nsight Compute summary";
    for (const SummaryRow& row : table_.rows)
      if (row.self_device_ns == row.self_device_ns)
        table_.listed_device_ns =
            (table_.listed_device_ns == table_.listed_device_ns ? table_.listed_device_ns : 0) + row.self_device_ns;
    table_.footers = std::move(notes);
    data.summaries.tables.push_back(std::move(table_));
    data.summaries.input = std::move(report_);
    return data;
  }
  if (summary_) notes.emplace_back("summary rows (minimum, maximum, average) beside launches were not read");
  // Launches without a duration cannot be weighed: they go, and the metrics are renumbered.
  constexpr std::uint32_t kGone = std::numeric_limits<std::uint32_t>::max();
  std::vector<std::uint32_t> moved(log_.launches.size(), kGone);
  std::vector<KernelLaunch> kept;
  bool only_active = false;
  for (std::size_t i = 0; i < log_.launches.size(); ++i) {
    const bool timed = pending_[i].filler.finish(log_.launches[i]);
    only_active = only_active || pending_[i].filler.only_active();
    if (timed) {
      moved[i] = static_cast<std::uint32_t>(kept.size());
      kept.push_back(log_.launches[i]);
    } else {
      damage(pending_[i].line, "a launch without a duration", "collect gpu__time_duration.sum too");
    }
  }
  if (kept.empty())
    return input_error("holds no kernel duration", where(),
                       "profile with --metrics gpu__time_duration.sum,... or --section SpeedOfLight");
  if (only_active)
    notes.emplace_back(
        "tensor use is given relative to active cycles only (pct_of_peak_sustained_active); it is not comparable with "
        "the other columns and stays unknown");
  log_.launches = std::move(kept);
  std::erase_if(log_.metrics, [&](const KernelMetric& m) { return moved[m.launch] == kGone; });
  for (KernelMetric& m : log_.metrics) m.launch = moved[m.launch];
  std::ranges::stable_sort(log_.metrics, {}, &KernelMetric::launch);
  log_.source = KernelSource::ncu_csv;
  log_.notes = std::move(notes);
  log_.inputs.push_back(std::move(report_));
  data.log = std::move(log_);
  return data;
}

/// The locale that most numbers need; of those that could be both, what their units say; else point.
Result<FoundLocale> find_locale(std::string_view text, std::string_view file) {
  Layout layout;
  std::vector<std::string> units;
  bool units_known = false;
  std::array<std::uint64_t, 4> votes{};
  std::array<std::uint64_t, 4> unit_votes{};
  FoundLocale found;
  const auto count = [&](std::string_view cell, std::string_view unit) {
    const LocaleVote v = vote(cell);
    ++votes[static_cast<std::size_t>(v)];
    if (v != LocaleVote::either) return;
    ++unit_votes[static_cast<std::size_t>(vote_by_unit(cell, unit))];
    if (found.guessed.empty()) found.guessed = cell.substr(0, 40);
  };
  RowUse use;
  use.header = [&](Fields titles, std::uint64_t) {
    layout = read_layout(titles);
    units.assign(layout.width, {});
    units_known = false;
  };
  use.row = [&](Fields fields, std::uint64_t) {
    if (layout.shape == Shape::wide && !units_known && at(fields, layout.kernel).empty())
      for (std::size_t i = 0; i < std::min(fields.size(), units.size()); ++i) units[i] = fields[i];
    units_known = true;
    // A duration without a unit is one in nanoseconds.
    const auto unit_of = [](std::string_view unit, std::string_view metric) {
      return unit.empty() && metric_role(metric).role == LaunchField::duration ? std::string_view("ns") : unit;
    };
    for (const std::size_t column : {layout.value, layout.minimum, layout.maximum, layout.average})
      count(at(fields, column), unit_of(at(fields, layout.unit), at(fields, layout.metric)));
    if (layout.shape != Shape::wide) return;
    for (const auto& [column, title] : layout.metrics) count(at(fields, column), unit_of(units[column], title));
  };
  use.damage = [](std::uint64_t, const std::string&, const std::string&) {};
  RowCounts counts;
  if (Status status = walk_rows(text, file, use, counts); !status) return status.error();
  const auto of = [](const std::array<std::uint64_t, 4>& all, LocaleVote v) {
    return all[static_cast<std::size_t>(v)];
  };
  for (const auto& all : {votes, unit_votes}) {
    const std::uint64_t point = of(all, LocaleVote::point);
    const std::uint64_t comma = of(all, LocaleVote::comma);
    if (point == comma) continue;
    found.locale = comma > point ? Locale::comma : Locale::point;
    found.guessed.clear();
    return found;
  }
  return found;
}

}  // namespace

bool looks_like(std::string_view start) {
  if (start.find("Kernel Name") == std::string_view::npos) return false;  // cheaper than line by line
  while (!start.empty()) {
    const std::size_t end = start.find('\n');
    if (is_header(start.substr(0, end))) return true;
    if (end == std::string_view::npos) return false;
    start.remove_prefix(end + 1);
  }
  return false;
}

Result<NcuData> parse(std::string_view text, std::string_view file) {
  const auto locale = find_locale(text, file);
  if (!locale) return locale.error();
  Reader reader(*locale, file);
  RowUse use;
  use.header = [&](Fields fields, std::uint64_t line) { reader.header(fields, line); };
  use.row = [&](Fields fields, std::uint64_t line) { reader.row(fields, line); };
  use.damage = [&](std::uint64_t line, std::string what, std::string remedy) {
    reader.damage(line, std::move(what), std::move(remedy));
  };
  RowCounts counts;
  if (Status status = walk_rows(text, file, use, counts); !status) return status.error();
  if (counts.headers == 0)
    return input_error("is no Nsight Compute CSV: no header with \"Kernel Name\"", std::string(file),
                       counts.first_error.empty() ? "profile with ncu --csv" : counts.first_error);
  return reader.finish(counts, file);
}

}  // namespace culprit::formats::ncu_csv
