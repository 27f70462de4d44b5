#include "compare/cost_shift.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <tuple>

namespace culprit::compare {

namespace {

using model::FunctionFinding;

struct Domain {
  double gained = 0;  ///< ns per cycle
  double lost = 0;
  std::vector<FunctionFinding*> members;

  void add(FunctionFinding& finding) {
    (finding.impact_ns > 0 ? gained : lost) += std::abs(finding.impact_ns);
    members.push_back(&finding);
  }
};

/// The parents of functions on hosts that one side alone has, by where they ran.
using OneSided = std::map<std::tuple<model::Phase, std::uint32_t, StringId>, StringId>;

OneSided one_sided(const std::vector<FunctionFinding>& findings, const StringTable& texts) {
  OneSided parents;
  for (const FunctionFinding& f : findings)
    if ((f.status == model::FunctionStatus::added || f.status == model::FunctionStatus::gone) &&
        texts[f.device] == "Host")
      parents[{f.phase, f.process, f.function}] = f.parent;
  return parents;
}

/// Inside of whom its cost can have moved: what lies in a function of one side alone lies, for both, in whom that lies
/// in.
StringId common_parent(const FunctionFinding& finding, const OneSided& one_sided) {
  constexpr int kMostLevels = 32;
  StringId parent = finding.parent;
  for (int i = 0; i < kMostLevels && parent != 0; ++i) {
    const auto outer = one_sided.find({finding.phase, finding.process, parent});
    if (outer == one_sided.end()) return parent;
    parent = outer->second;
  }
  return 0;
}

}  // namespace

void mark_cost_shifts(std::vector<FunctionFinding>& findings, const StringTable& texts) {
  const auto may_move = [&](const FunctionFinding& finding) {
    return model::has_changed(finding) && !model::is_wait(texts[finding.kind]);
  };
  std::map<std::tuple<model::Phase, std::uint32_t, StringId, StringId>, Domain> domains;
  const OneSided of_one_side = one_sided(findings, texts);
  for (FunctionFinding& finding : findings)
    if (may_move(finding))
      if (const StringId parent = common_parent(finding, of_one_side); parent != 0)
        domains[{finding.phase, finding.process, finding.device, parent}].add(finding);
  for (FunctionFinding& finding : findings) {
    const auto own = domains.find({finding.phase, finding.process, finding.device, finding.function});
    if (own != domains.end() && may_move(finding)) own->second.add(finding);
  }
  for (const auto& [place, domain] : domains) {
    const double moved = std::min(domain.gained, domain.lost);
    if (moved <= 0 || std::abs(domain.gained - domain.lost) > kLeftOver * moved) continue;
    for (FunctionFinding* member : domain.members)
      if (member->moved_inside == 0) member->moved_inside = std::get<3>(place);
  }
}

}  // namespace culprit::compare
