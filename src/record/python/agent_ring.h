// The recorder's end of the ring that an agent fills. What it reads is in the hands of the recorded process.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include "core/units.h"
#include "record/agent/agent_ring.h"

namespace culprit::record::python {

/// One record, checked and copied.
struct AgentRecord {
  culprit_agent_type type = CULPRIT_AGENT_PAD;
  std::uint8_t flags = 0;
  std::int32_t tid = 0;
  Ns time = 0;
  std::uint32_t value = 0;
  std::array<std::int64_t, CULPRIT_AGENT_ARGUMENTS> arguments{};
  std::size_t count = 0;
  std::uint8_t missing = 0;
  std::string_view text;  ///< valid while it is handed over
};

class AgentRing {
 public:
  /// `memory` is CULPRIT_AGENT_BYTES that outlive this.
  explicit AgentRing(void* memory) : header_(static_cast<culprit_agent_header*>(memory)) {}

  /// Hands over what waits, in the order of writing, at most one capacity; the number of records. A damaged ring is
  /// given up for good (damaged()).
  std::size_t read(const std::function<void(const AgentRecord&)>& take);
  /// Bytes that read() would go through.
  [[nodiscard]] std::uint64_t waiting() const { return __atomic_load_n(&header_->head, __ATOMIC_ACQUIRE) - tail_; }
  void is_alive(Ns now);
  void ask_to_stop();
  [[nodiscard]] std::uint32_t state() const { return __atomic_load_n(&header_->state, __ATOMIC_ACQUIRE); }
  [[nodiscard]] std::uint64_t dropped() const { return __atomic_load_n(&header_->dropped, __ATOMIC_RELAXED); }
  [[nodiscard]] Ns agent_cpu() const;
  /// The agent's own thread, in the pid namespace of its process; 0: not known yet.
  [[nodiscard]] std::int32_t agent_thread() const;
  /// Since when the agent says that it watches, CLOCK_MONOTONIC; 0: not yet.
  [[nodiscard]] Ns running_since() const;
  [[nodiscard]] bool damaged() const { return damaged_; }

 private:
  bool read_one(std::uint64_t head, const std::function<void(const AgentRecord&)>& take);

  culprit_agent_header* header_;
  std::uint64_t tail_ = 0;  // what stands in the memory is for the agent alone
  bool damaged_ = false;
};

}  // namespace culprit::record::python
