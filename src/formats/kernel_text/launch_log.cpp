#include "formats/kernel_text/launch_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <vector>

#include "core/display_width.h"
#include "core/escape.h"
#include "core/text.h"
#include "formats/io/missing_text.h"
#include "formats/kernel_text/lines.h"
#include "model/profile.h"

namespace culprit::formats::kernel_text {

namespace {

using namespace model;

enum class LogColumn : std::uint8_t { latency, tensor, dram, sm };

constexpr std::size_t kNameWidth = 50;
// A rounded fraction may end a little above 1; a number beyond this is a percentage or no utilisation at all.
constexpr double kMostFraction = 1.5;

std::vector<std::string_view> words(std::string_view text) {
  std::vector<std::string_view> result;
  for (std::size_t at = text.find_first_not_of(" \t"); at != std::string_view::npos;) {
    const std::size_t end = text.find_first_of(" \t", at);
    result.push_back(text.substr(at, end - at));
    at = end == std::string_view::npos ? end : text.find_first_not_of(" \t", end);
  }
  return result;
}

/// The columns behind "Kernel", or empty when the line is no header.
std::vector<LogColumn> header_columns(std::string_view line) {
  std::vector<std::string_view> titles = words(line);
  std::erase(titles, "|");
  std::vector<LogColumn> columns;
  if (titles.size() < 2 || titles.size() > 5 || titles[0] != "Kernel") return {};
  for (std::size_t i = 1; i < titles.size(); ++i) {
    LogColumn column{};
    if (titles[i] == "Latency")
      column = LogColumn::latency;
    else if (titles[i] == "Tensor")
      column = LogColumn::tensor;
    else if (titles[i] == "DRAM")
      column = LogColumn::dram;
    else if (titles[i] == "SM")
      column = LogColumn::sm;
    else
      return {};
    if (std::ranges::find(columns, column) != columns.end()) return {};
    columns.push_back(column);
  }
  return std::ranges::find(columns, LogColumn::latency) != columns.end() ? columns : std::vector<LogColumn>{};
}

std::optional<double> number(std::string_view text) {
  const auto value = parse_number<double>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

class LaunchReader {
 public:
  explicit LaunchReader(InputReport& report) : report_(report) {}

  void line(std::string_view line, std::uint64_t number) {
    if (trim(line).empty()) return;
    if (auto columns = header_columns(line); !columns.empty()) {
      columns_ = std::move(columns);
      return;
    }
    if (columns_.empty()) {
      ++before_;
      return;
    }
    row(line, number);
  }

  KernelLog log;
  std::uint64_t before_ = 0;
  [[nodiscard]] bool has_header() const { return !columns_.empty(); }

 private:
  void row(std::string_view line, std::uint64_t at) {
    const std::size_t bar = line.rfind('|');
    if (bar == std::string_view::npos)
      return bad_row(report_, at, "the line has no '|' behind the name", "remove lines that are no kernel launch");
    const auto cells = words(line.substr(bar + 1));
    if (cells.size() != columns_.size())
      return bad_row(report_, at, fmt::format("the row has {} values instead of {}", cells.size(), columns_.size()),
                     "look for a cut line");
    KernelLaunch launch;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (columns_[i] != LogColumn::latency) continue;
      const auto ns = parse_scaled_decimal(cells[i], 0);
      if (!ns || *ns < 0)
        return bad_row(report_, at,
                       fmt::format("the latency is '{}', which is no number of nanoseconds", cells[i].substr(0, 40)),
                       "correct the value or remove the row");
      launch.latency = *ns;
    }
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (columns_[i] == LogColumn::latency || cells[i] == "-" || is_missing_text(cells[i])) continue;
      const auto value = number(cells[i]);
      if (!value || *value < 0 || *value > kMostFraction) {
        bad_cell(report_, at, fmt::format("'{}' is no fraction of a peak", cells[i].substr(0, 40)),
                 "give utilisation as a number between 0 and 1");
        continue;
      }
      (columns_[i] == LogColumn::tensor ? launch.tensor
       : columns_[i] == LogColumn::dram ? launch.dram
                                        : launch.sm) = static_cast<float>(*value);
    }
    const std::string_view name = trim(line.substr(0, bar));
    if (name.ends_with("...")) log.names_cut = true;
    launch.name = log.names.intern(name);
    log.launches.push_back(launch);
  }

  InputReport& report_;
  std::vector<LogColumn> columns_;
};

}  // namespace

bool looks_like_launch_log(std::string_view start) {
  if (start.find("Latency") == std::string_view::npos) return false;  // cheaper than line by line
  bool found = false;
  each_line(start, [&](std::string_view line, std::uint64_t) { found = found || !header_columns(line).empty(); });
  return found;
}

Result<KernelLog> parse_launch_log(std::string_view text, std::string_view file) {
  InputReport report;
  report.file = file;
  LaunchReader reader(report);
  each_line(text, [&](std::string_view line, std::uint64_t number) { reader.line(line, number); });
  if (!reader.has_header())
    return input_error("is no kernel launch log: no line \"Kernel ... Latency\"", std::string(file),
                       "keep the header line");
  if (reader.log.launches.empty())
    return input_error(
        "holds no kernel launch",
        report.first.empty() ? std::string(file) : fmt::format("{} line {}", file, report.first.front().line),
        report.first.empty() ? "record again" : report.first.front().what);
  KernelLog log = std::move(reader.log);
  report.rows = log.launches.size();
  if (reader.before_ != 0) log.notes.push_back(fmt::format("{} lines before the table were not read", reader.before_));
  log.source = KernelSource::text_log;
  log.inputs.push_back(std::move(report));
  return log;
}

std::string write_launch_log(const KernelLog& log) {
  const bool sm = std::ranges::any_of(log.launches, [](const KernelLaunch& l) { return !std::isnan(l.sm); });
  std::string out = fmt::format("{:<{}}{:>12}{:>7}{:>7}", "Kernel", kNameWidth, "Latency", "Tensor", "DRAM");
  if (sm) out += fmt::format("{:>7}", "SM");
  out += '\n';
  std::vector<std::string> shown(log.names.size());  // per name, padded
  const auto fraction = [&](float value) {
    if (std::isnan(value))
      fmt::format_to(std::back_inserter(out), "{:>7}", "-");
    else
      fmt::format_to(std::back_inserter(out), "{:>7.2f}", value);
  };
  for (const KernelLaunch& launch : log.launches) {
    const StringId id = launch.short_name != 0 ? launch.short_name : launch.name;
    std::string& name = shown[id];
    if (name.empty()) {
      name = shorten(escape_terminal(log.names[id]), kNameWidth);
      name.append(kNameWidth - std::min(kNameWidth, display_width(name)), ' ');
    }
    out += name;
    fmt::format_to(std::back_inserter(out), "|{:>11}", launch.latency);
    fraction(launch.tensor);
    fraction(launch.dram);
    if (sm) fraction(launch.sm);
    out += '\n';
  }
  return out;
}

}  // namespace culprit::formats::kernel_text
