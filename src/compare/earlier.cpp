#include "compare/earlier.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <set>

#include "compare/compare_runs.h"
#include "compare/series.h"

namespace culprit::compare {

std::optional<MeasuredSpread> spread_among(std::span<const double> means) {
  if (means.size() < kFewestRecordings) return std::nullopt;
  double mean = 0;
  for (const double m : means) mean += m / static_cast<double>(means.size());
  double squares = 0;
  for (const double m : means) squares += (m - mean) * (m - mean);
  return MeasuredSpread{std::sqrt(squares / static_cast<double>(means.size() - 1)), means.size()};
}

std::optional<MeasuredSpread> spread_of_steps(std::span<const WorkedTime> compared,
                                              std::span<const std::vector<WorkedTime>> earlier) {
  std::vector<double> differences;
  for (const std::vector<WorkedTime>& steps : earlier) {
    const MatchedWork matched = match_work(compared, steps);
    if (matched.times[0].empty() || matched.times[1].empty()) continue;
    std::array<double, 2> means{};
    for (std::size_t s = 0; s < 2; ++s) {
      const std::vector<CycleValue> logs = logs_of(matched.times[s]);
      means[s] = summarise(logs, logs.size()).mean;
    }
    differences.push_back(means[1] - means[0]);
  }
  return spread_among(differences);
}

EarlierRecordings choose_earlier(std::span<const model::Recording> earlier, std::span<const model::Recording> base,
                                 std::span<const model::Recording> candidate) {
  EarlierRecordings chosen;
  std::set<std::uint64_t> known;
  for (const auto& side : {base, candidate})
    for (const model::Recording& recording : side) known.insert(recording.digest);
  for (const model::Recording& recording : earlier) {
    if (recording.digest != 0 && !known.insert(recording.digest).second) {
      ++chosen.sides;
      continue;
    }
    model::Comparability comparable = comparability_of(base.first(1), {&recording, 1});
    if (comparable.level != model::Comparable::no) comparable = comparability_of({&recording, 1}, candidate.first(1));
    if (comparable.level == model::Comparable::no) {
      if (chosen.others++ == 0) chosen.why_not = comparable.reasons.front();
      continue;
    }
    chosen.of_the_same.push_back(&recording);
  }
  return chosen;
}

std::vector<std::string> notes_on(const EarlierRecordings& earlier) {
  std::vector<std::string> notes;
  if (earlier.sides > 0)
    notes.push_back(fmt::format("{} of the earlier recordings {} left out: given twice, or a side of this comparison",
                                earlier.sides, earlier.sides == 1 ? "is" : "are"));
  if (earlier.others > 0)
    notes.push_back(fmt::format("{} of the earlier recordings {} left out: {}", earlier.others,
                                earlier.others == 1 ? "is" : "are", earlier.why_not));
  if (earlier.of_the_same.size() < kFewestRecordings && earlier.of_the_same.size() + earlier.sides + earlier.others > 0)
    notes.push_back(
        fmt::format("How much two recordings of the same differ takes {} earlier ones to measure, {} can be used",
                    kFewestRecordings, earlier.of_the_same.size()));
  return notes;
}

}  // namespace culprit::compare
