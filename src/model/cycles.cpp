#include "model/cycles.h"

#include <algorithm>
#include <map>
#include <utility>

namespace culprit::model {

std::string_view phase_name(Phase phase) {
  switch (phase) {
    case Phase::prefill:
      return "prefill";
    case Phase::decode:
      return "decode";
    case Phase::mixed:
      return "mixed";
    case Phase::train_step:
      return "train_step";
    case Phase::other:
      break;
  }
  return "other";
}

std::vector<bool> whole_periods(const Cycles& cycles) {
  std::map<std::pair<std::uint16_t, std::uint32_t>, std::uint32_t> last;
  for (const Cycle& c : cycles.cycles) {
    std::uint32_t& number = last[{c.rank, c.process}];
    number = std::max(number, c.number);
  }
  std::vector<bool> whole;
  whole.reserve(cycles.cycles.size());
  for (const Cycle& c : cycles.cycles) {
    const bool is_last = c.number == last[{c.rank, c.process}];
    const bool open = c.ends == CycleEnd::open || (c.ends == CycleEnd::unknown && is_last);
    whole.push_back(!c.partial && !c.warm_up && (c.stands_still || !open));
  }
  return whole;
}

}  // namespace culprit::model
