#include "compare/cost_shift.h"

#include <algorithm>
#include <cmath>
#include <compare>
#include <cstdint>
#include <string_view>
#include <tuple>
#include <utility>

namespace culprit::compare {

namespace {

using model::FunctionFinding;
using model::FunctionStatus;

constexpr int kMostLevels = 32;

/// A function or range of a process in a phase.
struct Place {
  model::Phase phase;
  std::uint32_t process = 0;
  StringId function = 0;
  auto operator<=>(const Place&) const = default;
};

bool is_one_sided(const FunctionFinding& f) {
  return f.status == FunctionStatus::added || f.status == FunctionStatus::gone;
}

/// Who lies in whom on the hosts.
class Parents {
 public:
  Parents(const std::vector<FunctionFinding>& findings, const StringTable& texts) {
    for (const FunctionFinding& f : findings) {
      if (texts[f.device] != "Host" || f.function == f.parent) continue;
      const auto [known, is_new] =
          of_.try_emplace(Place{f.phase, f.process, f.function}, Outer{f.parent, is_one_sided(f)});
      if (is_new) continue;
      // Of two kinds under one name: on both sides if either is, and inside of whom both are.
      known->second.one_sided = known->second.one_sided && is_one_sided(f);
      if (known->second.parent != f.parent) known->second.parent = 0;
    }
  }

  /// Inside of whom its cost can have moved: what lies in a function of one side alone lies, for both, in whom that
  /// lies in.
  [[nodiscard]] StringId common(const FunctionFinding& finding) const {
    StringId parent = finding.parent;
    for (int i = 0; i < kMostLevels && parent != 0; ++i) {
      const auto outer = of_.find({finding.phase, finding.process, parent});
      if (outer == of_.end() || !outer->second.one_sided) return parent;
      parent = outer->second.parent;
    }
    return 0;
  }

  /// How many lie around it.
  [[nodiscard]] int depth(Place place) const {
    int levels = 0;
    for (auto outer = of_.find(place); outer != of_.end() && outer->second.parent != 0 && levels < kMostLevels;
         outer = of_.find(place)) {
      ++levels;
      place.function = outer->second.parent;
    }
    return levels;
  }

 private:
  struct Outer {
    StringId parent = 0;
    bool one_sided = false;
  };
  std::map<Place, Outer> of_;
};

/// The functions inside of one parent that changed, on one device.
struct Domain {
  Place place;
  StringId device = 0;
  int depth = 0;
  std::vector<FunctionFinding*> members;
};

bool is_called_more(const FunctionFinding& f, std::size_t side, const Domain& domain, std::string_view kind) {
  if (f.function == domain.place.function || kind == "between") return true;
  return f.calls[side] > f.calls[1 - side] * (1 + kMoreCalls);
}

bool is_shift(const Domain& domain, double cycle_ns, const StringTable& texts) {
  double gained = 0;
  double lost = 0;
  double taken = 0;  // of what was gained and lost, by those whose calls tell so
  double given = 0;
  for (const FunctionFinding* f : domain.members) {
    const bool gains = f->impact_ns > 0;
    (gains ? gained : lost) += std::abs(f->impact_ns);
    if (is_called_more(*f, gains ? 1 : 0, domain, texts[f->kind])) (gains ? taken : given) += std::abs(f->impact_ns);
  }
  const double moved = std::min(gained, lost);
  const double remains = std::abs(gained - lost);
  return moved > 0 && 2 * taken > gained && 2 * given > lost && remains <= kLeftOver * moved &&
         remains <= kLeftOverOfCycle * cycle_ns;
}

}  // namespace

void mark_cost_shifts(std::vector<FunctionFinding>& findings, const std::map<model::Phase, double>& cycle_ns,
                      const StringTable& texts) {
  const Parents parents(findings, texts);
  std::map<std::pair<Place, StringId>, Domain> by_place;
  const auto add_to = [&](FunctionFinding& f, StringId parent) {
    const Place place{f.phase, f.process, parent};
    Domain& domain = by_place[{place, f.device}];
    domain.place = place;
    domain.device = f.device;
    domain.members.push_back(&f);
  };
  const auto may_move = [&](const FunctionFinding& f) {
    return model::has_changed(f) && !model::is_wait(texts[f.kind]);
  };
  for (FunctionFinding& f : findings)
    if (const StringId parent = may_move(f) ? parents.common(f) : 0; parent != 0 && parent != f.function)
      add_to(f, parent);
  for (FunctionFinding& f : findings)
    if (may_move(f) && texts[f.device] == "Host" &&
        by_place.contains({Place{f.phase, f.process, f.function}, f.device}))
      add_to(f, f.function);

  std::vector<Domain> domains;
  for (auto& [place, domain] : by_place) {
    domain.depth = parents.depth(domain.place);
    domains.push_back(std::move(domain));
  }
  std::ranges::sort(domains, {}, [&](const Domain& d) {
    return std::tuple(-d.depth, d.place.phase, d.place.process, texts[d.place.function], texts[d.device]);
  });
  for (Domain& domain : domains) {
    std::erase_if(domain.members, [](const FunctionFinding* f) { return f->moved_inside != 0; });
    const auto cycle = cycle_ns.find(domain.place.phase);
    if (cycle == cycle_ns.end() || !is_shift(domain, cycle->second, texts)) continue;
    for (FunctionFinding* member : domain.members) member->moved_inside = domain.place.function;
  }
}

}  // namespace culprit::compare
