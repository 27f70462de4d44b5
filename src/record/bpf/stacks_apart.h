// User stacks that have no place in the kernel's map of stacks, where each has one by its hash alone.
#pragma once

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "record/bpf/records.h"

namespace culprit::record::bpf {

/// Keeps the latest of them, some megabytes at most.
class StacksApart : public Listener {
 public:
  void on_stack(const culprit_stack& record) override {
    constexpr std::size_t kMost = 8192;
    if (stacks_.size() >= kMost) stacks_.clear();
    const auto count = std::min<std::uint32_t>(record.count, CULPRIT_STACK_DEPTH);
    stacks_.insert_or_assign(record.id, std::vector<std::uint64_t>(record.frames, record.frames + count));
  }

  /// Addresses, innermost first; empty when the id is unknown.
  [[nodiscard]] std::vector<std::uint64_t> find(std::int32_t id) const {
    const auto found = stacks_.find(id);
    return found == stacks_.end() ? std::vector<std::uint64_t>() : found->second;
  }
  void forget(std::int32_t id) { stacks_.erase(id); }

 private:
  std::unordered_map<std::int32_t, std::vector<std::uint64_t>> stacks_;
};

}  // namespace culprit::record::bpf
