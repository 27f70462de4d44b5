#include "compare/cost_shift.h"

#include <algorithm>
#include <cmath>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "compare/function_names.h"

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

  /// How many lie around it; of functions that call each other, each once.
  [[nodiscard]] std::size_t depth(Place place) const {
    std::set<StringId> around;
    for (auto outer = of_.find(place); outer != of_.end() && outer->second.parent != 0; outer = of_.find(place)) {
      if (!around.insert(outer->second.parent).second) break;
      place.function = outer->second.parent;
    }
    return around.size();
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
  std::size_t depth = 0;
  std::vector<FunctionFinding*> members;
};

bool is_called_more(const FunctionFinding& f, std::size_t side, const Domain& domain, std::string_view kind) {
  if (f.function == domain.place.function || kind == "between") return true;
  return f.calls[side] > f.calls[1 - side] * (1 + kMoreCalls);
}

/// What remains of it, ns per cycle; nothing where its members changed apart from each other.
std::optional<double> rest_of_shift(const Domain& domain, const StringTable& texts) {
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
  const bool told_by_calls = 2 * taken > gained && 2 * given > lost;
  if (moved <= 0 || !told_by_calls || std::abs(gained - lost) > kLeftOver * moved) return std::nullopt;
  return gained - lost;
}

}  // namespace

void mark_cost_shifts(std::vector<FunctionFinding>& findings, const std::map<model::Phase, double>& may_remain,
                      StringTable& texts) {
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
  for (FunctionFinding& f : findings) {
    if (!may_move(f)) continue;
    if (const StringId parent = parents.common(f); parent != 0 && parent != f.function)
      add_to(f, parent);
    else if (f.parent == 0 && texts[f.device] != "Host")
      if (const std::string key = match_key(texts[f.function]); key != texts[f.function]) add_to(f, texts.intern(key));
  }
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
    return std::tuple(std::numeric_limits<std::size_t>::max() - d.depth, d.place.phase, d.place.process,
                      texts[d.place.function], texts[d.device]);
  });
  std::map<std::tuple<model::Phase, std::uint32_t, StringId>, double> remains;  // by phase, process and device
  for (Domain& domain : domains) {
    std::erase_if(domain.members, [](const FunctionFinding* f) { return f->moved_inside != 0; });
    const std::optional<double> rest = rest_of_shift(domain, texts);
    const auto most = may_remain.find(domain.place.phase);
    double& so_far = remains[{domain.place.phase, domain.place.process, domain.device}];
    if (!rest || most == may_remain.end() || std::abs(so_far + *rest) > most->second) continue;
    so_far += *rest;
    for (FunctionFinding* member : domain.members) member->moved_inside = domain.place.function;
  }
}

}  // namespace culprit::compare
