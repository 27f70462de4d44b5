#include "compare/earlier.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cmath>
#include <set>
#include <string_view>
#include <utility>

#include "compare/compare_runs.h"
#include "compare/series.h"

namespace culprit::compare {

namespace {

struct MachineFact {
  std::string_view key;
  std::string_view what;
};
constexpr std::array kMachineFacts = {MachineFact{"env.cpu.model", "CPU model"},
                                      MachineFact{"env.machine.product", "machine"},
                                      MachineFact{"env.hostname", "host name"}};

/// By what the machines of two recordings differ, or nothing.
std::string other_machine(const model::Environment& earlier, const model::Environment& side) {
  for (const MachineFact& fact : kMachineFacts) {
    const auto there = earlier.find(std::string(fact.key));
    const auto here = side.find(std::string(fact.key));
    if (there != earlier.end() && here != side.end() && there->second != here->second)
      return fmt::format("{} {} instead of {}", fact.what, fmt::join(there->second, " / "),
                         fmt::join(here->second, " / "));
  }
  return {};
}

}  // namespace

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
    std::string elsewhere;
    for (const auto& side : {base, candidate})
      for (const model::Recording& of_side : side)
        if (elsewhere.empty()) elsewhere = other_machine(recording.environment, of_side.environment);
    if (!elsewhere.empty()) {
      if (chosen.elsewhere++ == 0) chosen.where = std::move(elsewhere);
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
  if (earlier.elsewhere > 0)
    notes.push_back(fmt::format("{} of the earlier recordings {} left out: of another machine ({})", earlier.elsewhere,
                                earlier.elsewhere == 1 ? "is" : "are", earlier.where));
  const std::size_t given = earlier.of_the_same.size() + earlier.sides + earlier.others + earlier.elsewhere;
  if (earlier.of_the_same.size() < kFewestRecordings && given > 0)
    notes.push_back(
        fmt::format("How much two recordings of the same differ takes {} earlier ones to measure, {} can be used",
                    kFewestRecordings, earlier.of_the_same.size()));
  return notes;
}

}  // namespace culprit::compare
