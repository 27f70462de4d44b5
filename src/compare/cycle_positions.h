// In which cycles of a run a process can have done something, and their order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "compare/workload.h"
#include "model/profile.h"

namespace culprit::compare {

/// Cycles of one phase in which a process can have done something: those of the processes that own the cycles it was
/// seen in.
class CyclePositions {
 public:
  using Owner = std::pair<std::int32_t, std::int64_t>;  // rank and pid of a cycle

  explicit CyclePositions(const model::Profile& profile) : profile_(profile) {
    place_.reserve(profile.cycles.size());
    for (const model::ProfileCycle& cycle : profile.cycles)
      place_.push_back(cycle.other_work ? kOtherWork : count_[{cycle.phase, owner(cycle)}]++);
    for (const model::ProfileCycle& cycle : profile.cycles)
      if (!cycle.other_work) ++of_recordings_[{cycle.phase, owner(cycle)}][cycle.recording];
  }

  void see(std::uint32_t process, std::uint32_t cycle) {
    const model::ProfileCycle& c = profile_.cycles[cycle];
    owners_[{c.phase, process}].try_emplace(owner(c), 0);
  }

  /// To be called when all is seen.
  void number() {
    for (auto& [key, owners] : owners_) {
      std::uint32_t from = 0;
      for (auto& [owner, offset] : owners) {
        offset = from;
        from += count_[{key.first, owner}];
      }
      total_[key] = from;
    }
  }

  [[nodiscard]] std::uint32_t position(std::uint32_t process, std::uint32_t cycle) const {
    const model::ProfileCycle& c = profile_.cycles[cycle];
    return owners_.at({c.phase, process}).at(owner(c)) + place_[cycle];
  }
  [[nodiscard]] std::size_t total(model::Phase phase, std::uint32_t process) const {
    const auto it = total_.find({phase, process});
    return it == total_.end() ? 0 : it->second;
  }
  /// What each of them worked on, by position.
  [[nodiscard]] std::vector<WorkClass> work(model::Phase phase, std::uint32_t process) const {
    std::vector<WorkClass> all(total(phase, process));
    const auto owners = owners_.find({phase, process});
    if (owners == owners_.end()) return all;
    for (std::size_t c = 0; c < place_.size(); ++c) {
      const model::ProfileCycle& cycle = profile_.cycles[c];
      if (cycle.phase != phase || place_[c] == kOtherWork) continue;
      const auto offset = owners->second.find(owner(cycle));
      if (offset != owners->second.end()) all[offset->second + place_[c]] = work_class(cycle.workload, phase);
    }
    return all;
  }
  /// The same number by recording.
  [[nodiscard]] std::map<std::uint32_t, std::size_t> by_recording(model::Phase phase, std::uint32_t process) const {
    std::map<std::uint32_t, std::size_t> all;
    const auto owners = owners_.find({phase, process});
    if (owners == owners_.end()) return all;
    for (const auto& [owner, offset] : owners->second)
      if (const auto counted = of_recordings_.find({phase, owner}); counted != of_recordings_.end())
        for (const auto& [recording, count] : counted->second) all[recording] += count;
    return all;
  }

 private:
  static Owner owner(const model::ProfileCycle& cycle) { return {cycle.rank, cycle.pid}; }

  const model::Profile& profile_;
  std::vector<std::uint32_t> place_;  ///< of a cycle among those of its phase and owner
  std::map<std::pair<model::Phase, Owner>, std::uint32_t> count_;
  std::map<std::pair<model::Phase, Owner>, std::map<std::uint32_t, std::size_t>> of_recordings_;
  std::map<std::pair<model::Phase, std::uint32_t>, std::map<Owner, std::uint32_t>> owners_;
  std::map<std::pair<model::Phase, std::uint32_t>, std::size_t> total_;
  static constexpr std::uint32_t kOtherWork = 0xffffffff;
};

}  // namespace culprit::compare
