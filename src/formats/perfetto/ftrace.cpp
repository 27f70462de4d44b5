#include "formats/perfetto/ftrace.h"

#include <algorithm>
#include <vector>

#include "core/utf8.h"
#include "formats/perfetto/costs.h"

namespace culprit::perfetto {

namespace {

constexpr std::uint64_t kMostFtraceCpus = 1 << 20;
// Clocks of ftrace that have no number in the format: outside of what files use. No snapshot ever names the second.
constexpr std::uint32_t kFtraceGlobal = 0xffff'ff00;
constexpr std::uint32_t kUnrelatedClock = 0xffff'ff01;

std::uint32_t clock_of_ftrace(std::uint64_t number) {
  switch (number) {
    case proto::FTRACE_CLOCK_UNSPECIFIED:
      return proto::BUILTIN_CLOCK_BOOTTIME;
    case proto::FTRACE_CLOCK_MONO_RAW:
      return proto::BUILTIN_CLOCK_MONOTONIC_RAW;
    case proto::FTRACE_CLOCK_GLOBAL:
      return kFtraceGlobal;
    default:
      return kUnrelatedClock;
  }
}

/// What stands beside the events of a bundle, before or behind them.
struct Head {
  std::int32_t cpu = 0;
  std::uint32_t clock = proto::BUILTIN_CLOCK_BOOTTIME;
  std::optional<std::uint64_t> on_ftrace_clock;
  std::optional<std::uint64_t> on_boottime;
  bool lost_events = false;
  Packet compact;
};

Head read_head(Packet bundle) {
  using Bundle = proto::FtraceEventBundle;
  Head head;
  Fields fields(bundle);
  Field field;
  while (fields.next(field)) {
    switch (field.number) {
      case Bundle::kCpuFieldNumber:
        head.cpu = static_cast<std::int32_t>(std::min<std::uint64_t>(field.value, kMostFtraceCpus));
        break;
      case Bundle::kLostEventsFieldNumber:
        head.lost_events = field.value != 0;
        break;
      case Bundle::kCompactSchedFieldNumber:
        if (field.wire == Wire::length) head.compact = field.bytes;
        break;
      case Bundle::kFtraceClockFieldNumber:
        head.clock = clock_of_ftrace(field.value);
        break;
      case Bundle::kFtraceTimestampFieldNumber:
        head.on_ftrace_clock = field.value;
        break;
      case Bundle::kBootTimestampFieldNumber:
        head.on_boottime = field.value;
        break;
      default:
        break;
    }
  }
  return head;
}

bool is_scheduling(std::uint32_t number) {
  using Event = proto::FtraceEvent;
  return number == Event::kSchedSwitchFieldNumber || number == Event::kSchedWakeupFieldNumber ||
         number == Event::kSchedWakingFieldNumber || number == Event::kSchedWakeupNewFieldNumber ||
         number == Event::kSchedProcessExitFieldNumber;
}

}  // namespace

void Ftrace::bundle(Packet bytes) {
  const Head head = read_head(bytes);
  if (head.lost_events) builder_.losses().add(LossReason::packets_lost);
  if (head.clock == kFtraceGlobal && head.on_ftrace_clock && head.on_boottime) {
    expansion_.spend(2 * kClockCost);
    clocks_.snapshot(0, {{proto::BUILTIN_CLOCK_BOOTTIME, *head.on_boottime}, {kFtraceGlobal, *head.on_ftrace_clock}},
                     {});
  }
  Fields fields(bytes);
  Field field;
  while (fields.next(field) && !expansion_.exceeded())
    if (field.number == proto::FtraceEventBundle::kEventFieldNumber && field.wire == Wire::length)
      event(field.bytes, head.cpu, head.clock);
  if (head.compact.empty()) return;
  proto::FtraceEventBundle::CompactSched sched;
  if (sched.ParseFromArray(head.compact.data(), static_cast<int>(head.compact.size())))
    compact(sched, head.cpu, head.clock);
  else
    builder_.losses().add(LossReason::event_malformed);
}

StringId Ftrace::comm(std::string_view name) {
  // Events refer to one name by the million; the kernel's has 15 characters.
  constexpr std::size_t kMostComm = 64;
  return name.empty() ? 0 : builder_.intern(repair_utf8(name.substr(0, kMostComm)));
}

std::optional<Ns> Ftrace::time(std::uint64_t at, std::uint32_t clock) {
  const auto converted = clocks_.convert(0, clock, at);
  if (!converted) builder_.losses().add(LossReason::time_invalid);
  return converted;
}

void Ftrace::keep(const SchedEvent& event) {
  expansion_.spend(kSchedCost);
  events_.push_back(event);
}

void Ftrace::event(Packet bytes, std::int32_t cpu, std::uint32_t clock) {
  // Most events of other people's traces are none of scheduling: looked at before they are parsed.
  Fields fields(bytes);
  Field field;
  bool wanted = false;
  while (fields.next(field)) wanted = wanted || is_scheduling(field.number);
  if (!fields.whole()) return builder_.losses().add(LossReason::event_malformed);
  if (!wanted) return;
  if (!event_.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    return builder_.losses().add(LossReason::event_malformed);
  const auto at = time(event_.timestamp(), clock);
  if (!at) return;
  SchedEvent row;
  row.at = *at;
  row.cpu = cpu;
  if (event_.has_sched_switch()) {
    const proto::SchedSwitchFtraceEvent& change = event_.sched_switch();
    row.prev = change.prev_pid();
    row.next = change.next_pid();
    row.prev_name = comm(change.prev_comm());
    row.next_name = comm(change.next_comm());
    row.prev_state = static_cast<std::uint16_t>(change.prev_state() & 0xffff);
  } else if (event_.has_sched_process_exit()) {
    row.kind = SchedEvent::Kind::exited;
    row.next = event_.sched_process_exit().pid();
  } else {
    const proto::SchedWakingFtraceEvent& woken = event_.has_sched_waking()   ? event_.sched_waking()
                                                 : event_.has_sched_wakeup() ? event_.sched_wakeup()
                                                                             : event_.sched_wakeup_new();
    row.kind = SchedEvent::Kind::woken;
    row.prev = static_cast<std::int32_t>(event_.pid());
    row.next = woken.pid();
    row.next_name = comm(woken.comm());
  }
  keep(row);
}

void Ftrace::compact(const proto::FtraceEventBundle::CompactSched& sched, std::int32_t cpu, std::uint32_t clock) {
  std::vector<StringId> names;
  for (const std::string& name : sched.intern_table()) names.push_back(comm(name));
  const auto name_of = [&](const auto& indexes, int i) -> StringId {
    return i < indexes.size() && indexes[i] < names.size() ? names[indexes[i]] : 0;
  };
  // Who leaves is who came by the switch before; of the first one it is not known.
  std::uint64_t at = 0;
  auto before = compact_last_.find(cpu);
  const int switches =
      std::min({sched.switch_timestamp_size(), sched.switch_next_pid_size(), sched.switch_prev_state_size()});
  for (int i = 0; i < switches; ++i) {
    at += sched.switch_timestamp(i);
    SchedEvent row;
    row.cpu = cpu;
    row.next = sched.switch_next_pid(i);
    row.next_name = name_of(sched.switch_next_comm_index(), i);
    row.prev_state = static_cast<std::uint16_t>(sched.switch_prev_state(i) & 0xffff);
    if (before == compact_last_.end()) {
      before = compact_last_.emplace(cpu, std::pair<std::int32_t, StringId>{}).first;
      expansion_.spend(kNamedCost);
    } else {
      row.prev = before->second.first;
      row.prev_name = before->second.second;
    }
    before->second = {row.next, row.next_name};
    if (const auto moment = time(at, clock)) {
      row.at = *moment;
      keep(row);
    }
  }
  at = 0;
  const int wakes = std::min(sched.waking_timestamp_size(), sched.waking_pid_size());
  for (int i = 0; i < wakes; ++i) {
    at += sched.waking_timestamp(i);
    SchedEvent row;
    row.kind = SchedEvent::Kind::woken;
    row.cpu = cpu;
    row.next = sched.waking_pid(i);
    row.next_name = name_of(sched.waking_comm_index(), i);
    if (const auto moment = time(at, clock)) {
      row.at = *moment;
      keep(row);
    }
  }
}

}  // namespace culprit::perfetto
