#include "ab/start_spread.h"

namespace culprit::ab {

Assumed assumed_of(const Quantity& quantity) {
  using enum Quantity::Kind;
  const bool counts = quantity.kind == calls || quantity.kind == bytes;
  return {kServerStarts, counts ? kSameCounts : StartSpread{}};
}

model::BetweenStarts between_starts(const Between& between, const Quantity& quantity, bool of_steps) {
  using enum Quantity::Kind;
  model::BetweenStarts result{model::SpreadFrom::none, between.spread, between.assumed.spread, between.told};
  const bool is_step_time = of_steps && (quantity.kind == automatic || quantity.kind == step);
  if (between.same)
    result.from = model::SpreadFrom::same;
  else if (between.assumed.starts > 0)
    result.from = is_step_time ? model::SpreadFrom::starts : model::SpreadFrom::step_time;
  return result;
}

}  // namespace culprit::ab
