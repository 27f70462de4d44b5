#include "cycles/work_cycles.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "core/units.h"
#include "cycles/confidence.h"

namespace culprit::cycles {

namespace {

using model::UnitKind;
using model::WorkUnit;

constexpr std::size_t kFewest = 3;
constexpr double kNearlyOne = 1.5;  // units per cycle

Cut cut_at(Ns begin, Ns end) {
  Cut cut;
  cut.begin = begin;
  cut.end = end;
  return cut;
}

Lane by_wakeups(const model::WorkUnits& work, std::size_t together) {
  Lane lane;
  for (std::size_t i = 0; i < work.starts.size(); i += together)
    lane.cuts.push_back(cut_at(work.starts[i], work.starts[i]));
  return lane;
}

/// Three digits, or the whole number.
std::string mean_text(double mean) { return mean < 1000 ? fmt::format("{:.3g}", mean) : fmt::format("{:.0f}", mean); }

Lane by_windows(const model::WorkUnits& work) {
  Lane lane;
  for (const model::WorkWindow& window : work.windows) lane.cuts.push_back(cut_at(window.begin, window.end));
  return lane;
}

}  // namespace

std::optional<Cutting> cut_by_work(const model::WorkUnits& work) {
  if (!work.recorded || work.idle || work.windows.empty()) return std::nullopt;
  const WorkUnit& unit = work.units.front();
  Cutting cutting;
  cutting.method = model::CycleMethod::work_unit;
  cutting.period_confidence = unit.confidence;
  cutting.anchor = unit_text(unit);
  cutting.reason = unit.reason;
  const auto units = static_cast<double>(unit.count);
  if (unit.kind != UnitKind::window && work.starts.size() >= kFewest) {
    const std::size_t together = (work.starts.size() + kMostWorkCycles - 1) / kMostWorkCycles;
    cutting.lanes.push_back(by_wakeups(work, together));
    cutting.phase_confidence = confidence::kClearBegin;
    const double each = units / static_cast<double>(cutting.lanes.back().cuts.size());
    cutting.notes.push_back(
        fmt::format("a cycle begins when the thread is woken from its wait for work{}; on average it holds {} {}",
                    together > 1 ? fmt::format(", once in {} times", together) : "", mean_text(each), plural(unit)));
    if (each > kNearlyOne || each < 1 / kNearlyOne)
      cutting.period_confidence = std::min(cutting.period_confidence, confidence::kWakeups);
  } else {
    cutting.lanes.push_back(by_windows(work));
    const double each = units / static_cast<double>(work.windows.size());
    cutting.notes.push_back(
        unit.kind == UnitKind::window
            ? std::string("cycles are windows of equal length")
            : fmt::format("the work is done side by side: cycles are windows, with {} {} each on average",
                          mean_text(each), plural(unit)));
    cutting.period_confidence = std::min(cutting.period_confidence, confidence::kWakeups);
  }
  return cutting;
}

}  // namespace culprit::cycles
