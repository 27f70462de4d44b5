#include "report/standstill_report.h"

#include <fmt/format.h>

#include "report/run_comparison_tables.h"

namespace culprit::report {

namespace {

std::string per_second_text(double per_second) { return fmt::format("{:.{}f}/s", per_second, per_second < 10 ? 1 : 0); }

}  // namespace

std::string standstill_line(const model::RunComparison& comparison) {
  const model::Standstill& still = *comparison.standstill;
  const std::string some = per_second_text(still.steps_per_second);
  const std::string none = "at most " + per_second_text(still.at_most);
  return fmt::format("Outcome: {}; {} {} -> {}: {}", to_string(comparison.outcome),
                     still.units.empty() ? "steps" : still.units, still.side == 1 ? some : none,
                     still.side == 1 ? none : some, comparison.comparability.reasons.front());
}

void write_standstill(JsonWriter& json, const model::Standstill& still) {
  json.begin_object("standstill");
  json.member("side", still.side == 1 ? "candidate" : "baseline");
  json.member("at_end", still.at_end);
  json.member("steps_seen", still.seen);
  json.member("thread", still.thread);
  json.member("process", still.process);
  if (!still.units.empty()) json.member("units", still.units);
  json.member("recorded_ns", still.recorded);
  json.member("on_cpu_ns", still.on_cpu);
  json.member("runnable_ns", still.runnable);
  json.member("stopped_ns", still.stopped);
  json.member("uninterruptible_ns", still.uninterruptible);
  json.member("steps_per_second_of_the_other", still.steps_per_second);
  json.member("steps_per_second_at_most", still.at_most);
  json.end_object();
}

}  // namespace culprit::report
