#include "cycles/answers.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <string>

#include "core/intervals.h"
#include "core/saturating.h"
#include "core/text.h"
#include "cycles/confidence.h"
#include "cycles/work_threads.h"
#include "stats/log_buckets.h"
#include "trace/span.h"

namespace culprit::cycles {

namespace {

constexpr std::string_view kAnswer = "answer";
constexpr std::string_view kCounter = "answers";  // since the begin
constexpr std::string_view kUnixCounter = "answers over Unix sockets";
constexpr std::string_view kOfSize = "answer of ";
constexpr std::uint64_t kFewestAnswers = 8;
constexpr std::uint64_t kFewestPatterns = 20;

std::uint64_t sum(const std::vector<std::uint64_t>& counts) {
  return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
}

bool is_answer(const Trace& trace, const DurationCounts& row) {
  return row.disk != 0 && trace.strings[row.name] == kAnswer;
}

bool is_unix(const Trace& trace, const DurationCounts& row) { return trace.strings[row.disk] == model::kUnixSockets; }

/// Those that count: who answers on ports is asked there, and over Unix sockets its own processes talk to one another,
/// or to what it uses.
class Asked {
 public:
  explicit Asked(const Trace& trace) : trace_(trace), on_ports_(programs_on_ports(trace)) {}
  [[nodiscard]] bool in(const DurationCounts& row) const {
    return is_answer(trace_, row) && (!is_unix(trace_, row) || !on_ports_.contains(program_name(trace_, row.process)));
  }

 private:
  const Trace& trace_;
  std::set<std::string> on_ports_;
};

/// Their sizes are counted together, whosoever they are.
bool several_use_unix(const Trace& trace) {
  std::set<std::string> programs;
  for (const DurationCounts& row : trace.durations)
    if (is_answer(trace, row) && is_unix(trace, row)) programs.insert(program_name(trace, row.process));
  return programs.size() > 1;
}

/// Only what was asked while it was recorded is timed: what seems to have taken longer came in between two events of
/// its connection that were written down in the other order.
void drop_impossible(const Trace& trace, std::vector<std::uint64_t>& buckets) {
  const Interval span = recorded_span(trace);
  const auto longest = static_cast<std::uint64_t>(std::max<Ns>(0, subtract_saturating(span.end, span.begin)));
  for (std::size_t i = stats::log_bucket_of(longest) + 1; i < buckets.size(); ++i) buckets[i] = 0;
}

}  // namespace

std::optional<Answers> answers_of(const Trace& trace, std::string_view program) {
  std::map<std::string, Answers> ports;
  const Asked asked(trace);
  for (const DurationCounts& row : trace.durations) {
    if (!asked.in(row)) continue;
    if (program_name(trace, row.process) != program) continue;
    Answers& answers = ports[std::string(trace.strings[row.disk])];
    answers.buckets.resize(std::max(answers.buckets.size(), row.buckets.size()));
    for (std::size_t i = 0; i < row.buckets.size(); ++i) answers.buckets[i] += row.buckets[i];
    answers.count += sum(row.buckets);
    answers.bytes += row.bytes;
  }
  const auto most = std::ranges::max_element(ports, {}, [](const auto& port) { return port.second.count; });
  if (most == ports.end() || most->second.count < kFewestAnswers) return std::nullopt;
  most->second.port = most->first;
  drop_impossible(trace, most->second.buckets);
  return most->second;
}

std::set<std::string> programs_on_ports(const Trace& trace) {
  struct Count {
    std::uint64_t on_ports = 0;
    std::uint64_t over_unix = 0;
  };
  std::map<std::string, Count> counts;
  for (const DurationCounts& row : trace.durations) {
    if (!is_answer(trace, row)) continue;
    Count& count = counts[program_name(trace, row.process)];
    (is_unix(trace, row) ? count.over_unix : count.on_ports) += sum(row.buckets);
  }
  std::set<std::string> programs;
  for (const auto& [program, count] : counts)
    if (count.on_ports >= kFewestAnswers && kAsksOfOne * count.on_ports >= count.over_unix) programs.insert(program);
  return programs;
}

std::vector<std::uint64_t> answers_by_process(const Trace& trace) {
  std::vector<std::uint64_t> counts(trace.processes.size());
  const Asked asked(trace);
  for (const DurationCounts& row : trace.durations)
    if (asked.in(row)) counts[row.process] += sum(row.buckets);
  return counts;
}

std::vector<double> answers_in(const Trace& trace, std::string_view program,
                               const std::vector<model::WorkWindow>& windows) {
  std::vector<double> counts;
  const bool on_ports = programs_on_ports(trace).contains(std::string(program));
  for (const CounterSeries& series : trace.counters) {
    const std::string_view name = trace.strings[series.name];
    if (name != kCounter && (on_ports || name != kUnixCounter)) continue;
    if (program_name(trace, series.process) != program) continue;
    counts.resize(windows.size());
    for (std::size_t i = 1; i < series.samples.size(); ++i) {
      // Read at other times than windows end: evenly over the time in between.
      const Ns begin = series.samples[i - 1].at;
      const Ns end = series.samples[i].at;
      const double news = std::max(0.0, series.samples[i].value - series.samples[i - 1].value);
      const auto behind = std::ranges::upper_bound(windows, begin, {}, &model::WorkWindow::begin);
      const auto first = behind == windows.begin() ? behind : behind - 1;
      for (auto window = first; window != windows.end() && window->begin < end; ++window) {
        const Ns both = std::min(end, window->end) - std::max(begin, window->begin);
        if (both > 0)
          counts[static_cast<std::size_t>(window - windows.begin())] +=
              news * static_cast<double>(both) / static_cast<double>(end - begin);
      }
    }
  }
  return counts;
}

std::optional<Pattern> pattern_of(const Trace& trace, const Answers& answers) {
  std::optional<Pattern> best;
  if (answers.port == model::kUnixSockets && several_use_unix(trace)) return best;
  for (const DurationCounts& row : trace.durations) {
    std::string_view name = trace.strings[row.name];
    if (trace.strings[row.disk] != answers.port || !name.starts_with(kOfSize)) continue;
    name.remove_prefix(kOfSize.size());
    const auto bytes = parse_number<std::uint64_t>(name.substr(0, name.find(' ')));
    const auto usual = std::ranges::max_element(row.buckets);
    const auto gap = static_cast<std::uint64_t>(usual - row.buckets.begin());
    const std::uint64_t all = sum(row.buckets);
    if (!bytes || gap < 2 || all < kFewestPatterns) continue;
    const double share = static_cast<double>(*usual) / static_cast<double>(all);
    const double held = static_cast<double>(all * gap) / static_cast<double>(answers.count);
    if (share < confidence::kRegular || std::abs(held - 1) > 1 - confidence::kRegular) continue;
    if (!best || std::pair(gap, -share) < std::pair(best->requests, -best->share)) best = Pattern{gap, *bytes, share};
  }
  return best;
}

}  // namespace culprit::cycles
