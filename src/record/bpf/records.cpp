#include "record/bpf/records.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <limits>

namespace culprit::record::bpf {

namespace {

constexpr auto kLatest = static_cast<__u64>(std::numeric_limits<std::int64_t>::max());

bool times_fit(const culprit_head& head) { return head.at <= kLatest; }
template <class T>
bool times_fit(const T& record) {
  return record.begin <= record.head.at && times_fit(record.head);
}
bool times_fit(const culprit_switch& record) { return times_fit(record.head); }
bool times_fit(const culprit_waking& record) { return times_fit(record.head); }
bool times_fit(const culprit_woken_switch& record) { return times_fit(record.to.head) && record.woken.at <= kLatest; }
bool times_fit(const culprit_task& record) { return times_fit(record.head); }
bool times_fit(const culprit_sample& record) { return times_fit(record.head); }
bool times_fit(const culprit_stack& record) { return times_fit(record.head); }
bool times_fit(const culprit_calls& record) { return times_fit(record.head); }
bool times_fit(const culprit_memory& record) { return times_fit(record.head); }

template <class T>
bool hand_over(std::span<const std::byte> bytes, std::span<Listener* const> listeners,
               void (Listener::*member)(const T&)) {
  if (bytes.size() < sizeof(T)) return false;
  T record;
  std::memcpy(&record, bytes.data(), sizeof record);
  if (!times_fit(record)) return false;
  for (Listener* listener : listeners) (listener->*member)(record);
  return true;
}

/// As the two records that it stands for.
bool hand_over_woken(std::span<const std::byte> bytes, std::span<Listener* const> listeners) {
  culprit_woken_switch record;
  if (bytes.size() < sizeof record) return false;
  std::memcpy(&record, bytes.data(), sizeof record);
  if (!times_fit(record)) return false;
  const culprit_waking waking = waking_of(record.woken, record.to.next_tid, record.to.next_tgid, record.to.next_comm);
  for (Listener* listener : listeners) {
    listener->on_waking(waking);
    listener->on_switch(record.to);
  }
  return true;
}

/// Its frames are as many as it says.
bool hand_over_sample(std::span<const std::byte> bytes, std::span<Listener* const> listeners) {
  constexpr std::size_t kHead = offsetof(culprit_sample, frames);
  culprit_sample record{};
  if (bytes.size() < kHead) return false;
  std::memcpy(&record, bytes.data(), std::min(bytes.size(), sizeof record));
  if (record.kernel_frames > CULPRIT_KERNEL_FRAMES || record.user_frames > CULPRIT_USER_FRAMES) return false;
  const std::size_t frames = std::size_t{record.kernel_frames} + record.user_frames;
  if (bytes.size() < kHead + frames * sizeof(__u64) || !times_fit(record)) return false;
  for (Listener* listener : listeners) listener->on_sample(record);
  return true;
}

bool hand_over_python_stack(std::span<const std::byte> bytes, std::span<Listener* const> listeners) {
  constexpr std::size_t kHead = offsetof(culprit_python_stack, frames);
  culprit_python_stack record{};
  if (bytes.size() < kHead) return false;
  std::memcpy(&record, bytes.data(), std::min(bytes.size(), sizeof record));
  if (record.count > CULPRIT_PYTHON_FRAMES || bytes.size() < kHead + record.count * sizeof(__u64) ||
      !times_fit(record.head))
    return false;
  for (Listener* listener : listeners) listener->on_python_stack(record);
  return true;
}

/// Asked for after the end, when nothing is counted any more, they are those of the end.
bool hand_over_calls(std::span<const std::byte> bytes, std::span<Listener* const> listeners, Ns end) {
  culprit_calls record;
  if (bytes.size() < sizeof record) return false;
  std::memcpy(&record, bytes.data(), sizeof record);
  if (!times_fit(record)) return false;
  record.head.at = std::min(record.head.at, static_cast<__u64>(end));
  for (Listener* listener : listeners) listener->on_calls(record);
  return true;
}

bool hand_over_memory(std::span<const std::byte> bytes, std::span<Listener* const> listeners) {
  constexpr std::size_t kHead = offsetof(culprit_memory, bytes);
  if (bytes.size() < kHead) return false;
  culprit_memory record;
  std::memcpy(&record, bytes.data(), kHead);
  if (record.size > sizeof record.bytes || bytes.size() < kHead + record.size || !times_fit(record)) return false;
  std::memcpy(record.bytes, bytes.data() + kHead, record.size);
  for (Listener* listener : listeners) listener->on_memory(record);
  return true;
}

}  // namespace

culprit_waking waking_of(const culprit_woken& woken, std::int32_t tid, std::int32_t tgid,
                         const char (&name)[CULPRIT_COMM]) {
  culprit_waking waking{};
  waking.head = {.kind = CULPRIT_WAKING, .cpu = woken.cpu, .at = woken.at};
  waking.tid = tid;
  waking.tgid = tgid;
  waking.waker_tid = woken.waker_tid;
  waking.waker_tgid = woken.waker_tgid;
  waking.prio = woken.prio;
  waking.target_cpu = woken.target_cpu;
  waking.context = woken.context;
  std::ranges::copy(name, waking.comm);
  std::ranges::copy(woken.waker_comm, waking.waker_comm);
  return waking;
}

bool dispatch(std::span<const std::byte> bytes, std::span<Listener* const> listeners, Ns end) {
  culprit_head head;
  if (bytes.size() < sizeof head) return false;
  std::memcpy(&head, bytes.data(), sizeof head);
  if (head.at > static_cast<__u64>(end) && head.kind != CULPRIT_CALLS) listeners = {};
  switch (head.kind) {
    case CULPRIT_SWITCH:
      return hand_over(bytes, listeners, &Listener::on_switch);
    case CULPRIT_WOKEN_SWITCH:
      return hand_over_woken(bytes, listeners);
    case CULPRIT_WAKING:
      return hand_over(bytes, listeners, &Listener::on_waking);
    case CULPRIT_FORK:
      return hand_over(bytes, listeners, &Listener::on_fork);
    case CULPRIT_EXEC:
      return hand_over(bytes, listeners, &Listener::on_exec);
    case CULPRIT_EXIT:
      return hand_over(bytes, listeners, &Listener::on_exit);
    case CULPRIT_SYSCALL:
      return hand_over(bytes, listeners, &Listener::on_syscall);
    case CULPRIT_BLOCK:
      return hand_over(bytes, listeners, &Listener::on_block);
    case CULPRIT_SAMPLE:
      return hand_over_sample(bytes, listeners);
    case CULPRIT_MEMORY:
      return hand_over_memory(bytes, listeners);
    case CULPRIT_PYTHON_STACK:
      return hand_over_python_stack(bytes, listeners);
    case CULPRIT_STACK:
      return hand_over(bytes, listeners, &Listener::on_stack);
    case CULPRIT_CALLS:
      return hand_over_calls(bytes, listeners, end);
    default:
      return false;
  }
}

std::string_view comm(const char (&field)[CULPRIT_COMM]) {
  const char* end = std::find(field, field + CULPRIT_COMM, '\0');
  return {field, static_cast<std::size_t>(end - field)};
}

}  // namespace culprit::record::bpf
