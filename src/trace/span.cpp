#include "trace/span.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <string_view>

#include "core/saturating.h"

namespace culprit {

namespace {

constexpr std::string_view kDuration = "record.duration_ns";

/// 0: not said, or of several files.
Ns said_duration(const Trace& trace) {
  const std::string_view text = trace.ranks.size() == 1 ? fact_of(trace, kDuration) : std::string_view();
  Ns duration = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), duration);
  return error == std::errc() && end == text.data() + text.size() ? duration : 0;
}

}  // namespace

std::string_view fact_of(const Trace& trace, std::string_view key) {
  for (const Rank& rank : trace.ranks)
    for (const auto& [name, value] : rank.metadata)
      if (name == key) return value;
  return {};
}

bool records_scheduling(const Trace& trace) { return fact_of(trace, "sched.source") == "ebpf"; }

Interval recorded_span(const Trace& trace) {
  Interval span{std::numeric_limits<Ns>::max(), std::numeric_limits<Ns>::min()};
  const auto include = [&span](Ns begin, Ns end) {
    span.begin = std::min(span.begin, begin);
    span.end = std::max(span.end, end);
  };
  for (std::size_t i = 0; i < trace.slices.size(); ++i) include(trace.slices[i].begin, trace.slices[i].end());
  for (const CallTotal& total : trace.calls) include(total.at, total.at);
  for (std::size_t i = 0; i < trace.stack_samples.size(); ++i)
    include(trace.stack_samples[i].at, trace.stack_samples[i].at);
  for (const CounterSeries& series : trace.counters)
    if (!series.samples.empty()) include(series.samples.front().at, series.samples.back().at);
  if (span.begin > span.end) return {};
  // The last totals and counters are taken at the end; before the first event nothing may have happened.
  const Ns seen = subtract_saturating(span.end, span.begin);
  if (const Ns said = said_duration(trace); said > seen) span.begin = add_saturating(span.begin, seen - said);
  return span;
}

}  // namespace culprit
