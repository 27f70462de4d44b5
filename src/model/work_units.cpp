#include "model/work_units.h"

#include <fmt/format.h>

#include <tuple>

namespace culprit::model {

std::string_view to_string(LatencyKind kind) {
  switch (kind) {
    case LatencyKind::wake_to_wait:
      return "wake to wait";
    case LatencyKind::process:
      return "lifetime";
    case LatencyKind::thread:
      return "thread lifetime";
    case LatencyKind::answer:
      return "answered in";
  }
  return "";
}

std::string_view to_string(UnitKind kind) {
  switch (kind) {
    case UnitKind::request:
      return "request";
    case UnitKind::message:
      return "message";
    case UnitKind::process:
      return "process";
    case UnitKind::wakeup:
      return "wake-up";
    case UnitKind::iteration:
      return "iteration";
    case UnitKind::transaction:
      return "transaction";
    case UnitKind::cpu_time:
      return "CPU millisecond";
    case UnitKind::window:
      break;
  }
  return "window";
}

bool same_unit(const WorkUnit& a, const WorkUnit& b) {
  return std::tie(a.kind, a.process, a.thread, a.receive, a.send) ==
         std::tie(b.kind, b.process, b.thread, b.receive, b.send);
}

WorkWindow sum_of(const WorkUnits& work) {
  WorkWindow sum;
  if (work.windows.empty()) return sum;
  sum.begin = work.windows.front().begin;
  sum.end = work.windows.back().end;
  for (const WorkWindow& window : work.windows) {
    sum.on_cpu += window.on_cpu;
    sum.run_queue += window.run_queue;
    sum.blocked += window.blocked;
    sum.waiting += window.waiting;
  }
  return sum;
}

std::string plural(const WorkUnit& unit) {
  return unit.kind == UnitKind::process ? "processes" : std::string(to_string(unit.kind)) + "s";
}

std::string unit_text(const WorkUnit& unit) {
  switch (unit.kind) {
    case UnitKind::window:
      return "no unit of work";
    case UnitKind::process:
      return fmt::format("processes of {}", unit.process);
    case UnitKind::cpu_time:
      return fmt::format("{} of {}, which never waits", plural(unit), unit.process);
    case UnitKind::wakeup:
    case UnitKind::iteration:
      return fmt::format("{} of {}{}{}", plural(unit), unit.process,
                         unit.thread.empty() || unit.thread == unit.process ? "" : ", thread " + unit.thread,
                         unit.receive.empty() ? "" : " from " + unit.receive);
    case UnitKind::request:
    case UnitKind::message:
    case UnitKind::transaction:
      break;
  }
  return fmt::format("{} of {}{} ({}{}{})", plural(unit), unit.process,
                     unit.thread.empty() || unit.thread == unit.process ? "" : ", thread " + unit.thread, unit.receive,
                     unit.send.empty() ? "" : " to ", unit.send);
}

}  // namespace culprit::model
