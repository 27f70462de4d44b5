#include "record/python/agent_ring.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <limits>
#include <vector>

namespace culprit::record::python {

namespace {

constexpr std::uint64_t kAlign = 8;

}  // namespace

bool AgentRing::read_one(std::uint64_t head, const std::function<void(const AgentRecord&)>& take) {
  const std::uint64_t place = tail_ % CULPRIT_AGENT_CAPACITY;
  const std::uint64_t to_end = CULPRIT_AGENT_CAPACITY - place;
  const auto* data =
      reinterpret_cast<const std::uint8_t*>(header_) + CULPRIT_AGENT_HEADER_BYTES + CULPRIT_AGENT_CONFIG_BYTES;
  // What is left before the end may be shorter than a head: a pad, of which only size and type are there.
  std::array<std::uint8_t, CULPRIT_AGENT_MAX_RECORD> copy{};
  culprit_agent_record record{};
  std::memcpy(&record, data + place, std::min<std::uint64_t>(sizeof record, to_end));
  if (record.type == CULPRIT_AGENT_PAD) {
    if (to_end > head - tail_) return false;
    tail_ += to_end;
    return true;
  }
  const std::uint64_t size = record.size;
  if (size < sizeof record || size % kAlign != 0 || size > copy.size() || size > to_end || size > head - tail_)
    return false;
  const std::uint64_t wanted = sizeof record + std::uint64_t{record.arguments} * 8 + record.text_bytes;
  if (record.arguments > CULPRIT_AGENT_ARGUMENTS || wanted > size || record.type >= CULPRIT_AGENT_TYPES) return false;
  if (record.time > static_cast<std::uint64_t>(std::numeric_limits<Ns>::max()) || record.tid <= 0) return false;
  std::memcpy(copy.data(), data + place, size);
  AgentRecord out;
  out.type = static_cast<culprit_agent_type>(record.type);
  out.flags = record.flags;
  out.tid = record.tid;
  out.time = static_cast<Ns>(record.time);
  out.value = record.value;
  out.count = record.arguments;
  out.missing = record.missing;
  std::memcpy(out.arguments.data(), copy.data() + sizeof record, out.count * 8);
  out.text = {reinterpret_cast<const char*>(copy.data()) + sizeof record + out.count * 8, record.text_bytes};
  take(out);
  tail_ += size;
  return true;
}

std::size_t AgentRing::read(const std::function<void(const AgentRecord&)>& take) {
  if (damaged_) return 0;
  const std::uint64_t head = __atomic_load_n(&header_->head, __ATOMIC_ACQUIRE);
  if (head - tail_ > CULPRIT_AGENT_CAPACITY || head % kAlign != 0) {
    damaged_ = true;
    return 0;
  }
  std::size_t count = 0;
  while (tail_ != head) {
    if (!read_one(head, take)) {
      damaged_ = true;
      break;
    }
    ++count;
  }
  __atomic_store_n(&header_->tail, tail_, __ATOMIC_RELEASE);
  return count;
}

void AgentRing::is_alive(Ns now) {
  __atomic_store_n(&header_->alive, static_cast<std::uint64_t>(now), __ATOMIC_RELAXED);
}

void AgentRing::ask_to_stop() {
  __atomic_store_n(&header_->stop, 1U, __ATOMIC_RELEASE);
  syscall(SYS_futex, &header_->stop, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

std::int32_t AgentRing::agent_thread() const {
  return static_cast<std::int32_t>(__atomic_load_n(&header_->thread, __ATOMIC_RELAXED) & INT_MAX);
}

Ns AgentRing::running_since() const {
  const std::uint64_t since = __atomic_load_n(&header_->running_since, __ATOMIC_RELAXED);
  return static_cast<Ns>(std::min<std::uint64_t>(since, std::numeric_limits<Ns>::max()));
}

Ns AgentRing::agent_cpu() const {
  return static_cast<Ns>(
      std::min<std::uint64_t>(__atomic_load_n(&header_->cpu_ns, __ATOMIC_RELAXED), std::numeric_limits<Ns>::max()));
}

}  // namespace culprit::record::python
