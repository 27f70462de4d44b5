#include "deepdive/from_native.h"

#include <cmath>
#include <set>
#include <string_view>

namespace culprit::deepdive {

Profile for_suspicion(const model::Profile& profile, model::Phase phase, const std::vector<std::int64_t>& pids) {
  Profile out;
  const auto copy = [&](StringId id) { return out.texts.intern(profile.texts[id]); };
  constexpr std::uint32_t kLeftOut = 0xffffffff;
  std::vector<std::uint32_t> cycle_row(profile.cycles.size(), kLeftOut);
  for (std::size_t c = 0; c < profile.cycles.size(); ++c) {
    if (profile.cycles[c].phase != phase) continue;
    cycle_row[c] = static_cast<std::uint32_t>(out.cycles.size());
    const model::ProfileCycle& cycle = profile.cycles[c];
    // Ranks share numbers; replicates may, too. What counts is that cycles stay apart.
    out.cycles.push_back({static_cast<std::int64_t>(out.cycles.size()) + 1, copy(cycle.anchor),
                          static_cast<double>(cycle.begin) / 1e3, static_cast<double>(cycle.duration) / 1e3});
  }
  for (std::size_t p = 0; p < profile.processes.size(); ++p)
    out.processes.push_back({pids[p], copy(profile.processes[p].host)});
  // A process with one device has "its" device, whatever number that has on the machine.
  std::vector<std::set<StringId>> devices(profile.processes.size());
  for (const model::FunctionUse& use : profile.functions)
    if (profile.texts[use.device] != "Host") devices[use.process].insert(use.device);
  const StringId its_device = out.texts.intern("GPU");
  const StringId per_call = out.texts.intern("time_per_call_us");
  std::vector<std::uint32_t> use_row(profile.functions.size(), kLeftOut);
  for (std::size_t u = 0; u < profile.functions.size(); ++u) {
    const model::FunctionUse& from = profile.functions[u];
    const std::string_view kind = profile.texts[from.kind];
    if (cycle_row[from.cycle] == kLeftOut || kind == "annotation" || kind == "gpu_annotation" || from.count == 0)
      continue;
    use_row[u] = static_cast<std::uint32_t>(out.functions.size());
    FunctionUse use;
    use.cycle = cycle_row[from.cycle];
    use.process = from.process;
    use.function = copy(from.function);
    use.device =
        profile.texts[from.device] != "Host" && devices[from.process].size() == 1 ? its_device : copy(from.device);
    use.kind = copy(from.kind);
    use.short_name = copy(from.short_name);
    use.count = from.count;
    use.duration_us = static_cast<double>(from.duration) / 1e3;
    use.beta_pct = from.beta * 100;
    out.functions.push_back(use);
    out.resources.push_back({use_row[u], per_call, Provenance::measured,
                             static_cast<double>(from.duration) / static_cast<double>(from.count) / 1e3});
  }
  for (const model::ResourceUse& resource : profile.resources) {
    if (resource.metric == 0 || use_row[resource.use] == kLeftOut || !std::isfinite(resource.mu)) continue;
    const double scale = resource.unit == model::Unit::fraction ? 100 : 1;
    out.resources.push_back({use_row[resource.use], copy(resource.metric), Provenance::measured, resource.mu * scale,
                             resource.sigma * scale});
  }
  out.input.rows = out.resources.size();
  return out;
}

}  // namespace culprit::deepdive
