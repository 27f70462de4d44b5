#include "model/profile.h"

#include <array>
#include <set>

namespace culprit::model {

std::string_view unit_name(Unit unit) {
  constexpr std::array<std::string_view, 7> kNames = {"", "fraction", "Hz", "bytes", "bytes/s", "degC", "W"};
  return kNames[static_cast<std::size_t>(unit)];
}

std::vector<bool> have_cycles(const Profile& profile) {
  std::set<std::int64_t> pids;
  for (const ProfileCycle& cycle : profile.cycles)
    if (cycle.pid >= 0) pids.insert(cycle.pid);
  std::vector<bool> have;
  have.reserve(profile.processes.size());
  for (const ProfileProcess& process : profile.processes) have.push_back(pids.empty() || pids.contains(process.pid));
  return have;
}

}  // namespace culprit::model
