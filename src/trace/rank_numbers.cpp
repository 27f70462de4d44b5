#include "trace/rank_numbers.h"

#include <cstddef>
#include <limits>
#include <set>

namespace culprit {

std::vector<std::int32_t> rank_numbers(const Trace& trace) {
  std::set<std::int64_t> said;
  for (const Rank& rank : trace.ranks)
    if (rank.rank >= 0 && rank.rank <= std::numeric_limits<std::int32_t>::max()) said.insert(rank.rank);
  const bool by_number = said.size() == trace.ranks.size();
  std::vector<std::int32_t> numbers;
  numbers.reserve(trace.ranks.size());
  for (std::size_t row = 0; row < trace.ranks.size(); ++row)
    numbers.push_back(static_cast<std::int32_t>(by_number ? trace.ranks[row].rank : static_cast<std::int64_t>(row)));
  return numbers;
}

}  // namespace culprit
