#include "ab/recorded_steps.h"

#include <culprit/load.h>

#include <algorithm>
#include <utility>

#include "compare/cycle_time.h"
#include "cycles/find.h"
#include "library/run_data.h"
#include "profile/recording.h"

namespace culprit::ab {

Result<StepsOf> steps_of(const std::string& file) {
  const auto run = load_run({file});
  if (!run) return run.error();
  const Trace& trace = run->data().trace;
  const auto found = cycles::find_cycles(trace, order_slices(trace), {});
  if (!found) return found.error();
  StepsOf result;
  result.how = found->cycles.reason;
  const bool sure = found->cycles.period_confidence >= kLeastConfidence;
  if (!model::are_steps(found->cycles.method) || !sure) {
    // Where a unit is so much time, its number says nothing of how fast it is.
    using enum model::UnitKind;
    if (found->work && !found->work->units.empty() &&
        (found->work->units.front().kind == wakeup || found->work->units.front().kind == iteration))
      for (const Ns start : found->work->starts) result.units.push_back(start + trace.base_ns);
    return result;
  }
  for (const compare::StepTime& step : compare::step_times(found->cycles))
    result.steps.push_back({step.begin + trace.base_ns, step.begin + static_cast<Ns>(step.period) + trace.base_ns,
                            step.phase, step.work, step.time});
  std::ranges::sort(result.steps, {}, &Step::begin);
  return result;
}

Result<model::Recording> recording_of(const std::string& file, const std::vector<Span>& turns) {
  const auto run = load_run({file});
  if (!run) return run.error();
  const Trace& trace = run->data().trace;
  profile::RecordingOptions options;
  for (const Span& turn : turns) options.within.push_back({turn.begin - trace.base_ns, turn.end - trace.base_ns});
  auto recording = profile::recording_of(trace, {file}, options);
  if (!recording) return recording.error();
  recording->facts.programs.clear();
  if (!turns.empty()) recording->host.requests.clear();  // they wait while their server stands still
  return recording;
}

}  // namespace culprit::ab
