#include "summary/request_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "stats/quantile.h"
#include "trace/request_times.h"

namespace culprit::summary {

namespace {

using model::ColumnType;

double rate(std::size_t count, Ns duration) {
  return duration > 0 ? static_cast<double>(count) * 1e9 / static_cast<double>(duration) : 0;
}

double mean_time(const RequestTimes& row) {
  return std::accumulate(row.times.begin(), row.times.end(), 0.0) / static_cast<double>(row.times.size());
}

double quantile(const RequestTimes& row, double q) { return stats::quantile_of_sorted(row.times, q); }

}  // namespace

model::Table request_table(const Trace& trace, Ns duration) {
  const std::vector<RequestTimes> rows = request_times(trace);
  model::Table table = model::make_table<RequestTimes>(
      "Requests", "requests",
      {{{"Time", "time", ColumnType::name}, &RequestTimes::what},
       {{"Process", "process", ColumnType::name}, &RequestTimes::process},
       {{"Pid", "pid", ColumnType::count, 3, true}, [](const RequestTimes& row) { return model::known_cell(row.pid); }},
       {{"Count", "count", ColumnType::count}, [](const RequestTimes& row) { return row.times.size(); }},
       {{"Per s", "rate", ColumnType::number, 1},
        [=](const RequestTimes& row) { return rate(row.times.size(), duration); }},
       {{"Mean", "mean_ns", ColumnType::time}, mean_time},
       {{"p50", "p50_ns", ColumnType::time}, [](const RequestTimes& row) { return quantile(row, 0.5); }},
       {{"p99", "p99_ns", ColumnType::time}, [](const RequestTimes& row) { return quantile(row, 0.99); }},
       {{"Longest", "longest_ns", ColumnType::time, 3, true},
        [](const RequestTimes& row) { return row.times.back(); }}},
      rows, 0);
  if (rows.empty()) table.notes.emplace_back("No server told of its requests");
  return table;
}

std::optional<model::Fact> request_fact(const Trace& trace, Ns duration) {
  // A server may have several processes that answer.
  std::map<std::string, std::vector<double>> by_kind;
  for (const RequestTimes& row : request_times(trace)) {
    std::vector<double>& times = by_kind[row.what];
    times.insert(times.end(), row.times.begin(), row.times.end());
  }
  if (by_kind.empty()) return std::nullopt;
  std::size_t count = 0;
  for (auto& [what, times] : by_kind) {
    std::ranges::sort(times);
    count = std::max(count, times.size());
  }
  std::string text = fmt::format("{} finished ({:.1f} per s)", format_count(count), rate(count, duration));
  for (const auto& [what, shown] : {std::pair("time to first token", "first token"),
                                    std::pair("time per output token", "per token"), std::pair("queue wait", "queue")})
    if (const auto times = by_kind.find(what); times != by_kind.end())
      text += fmt::format(", {} {}", shown, format_duration(stats::quantile_of_sorted(times->second, 0.5)));
  return model::Fact{"requests", text + " (p50)"};
}

}  // namespace culprit::summary
