#include "ab/turn_length.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>

#include "ab/turns.h"

namespace culprit::ab {

namespace {

constexpr std::array<Ns, 5> kLengths = {200'000'000, 400'000'000, 800'000'000, 1'600'000'000, 3'200'000'000};
constexpr std::size_t kFewestDifferences = 13;  // half over each other: of eight stretches
constexpr std::size_t kFewestOfKind = 5;
constexpr double kWorth = 0.5;     // of the squared error, for longer turns
constexpr double kMostLost = 0.9;  // of a turn

/// A step without what its kind of work takes.
struct Rest {
  Ns at = 0;
  double sum = 0;  ///< of the logarithms until here, this one included
};

model::Phase longest_phase(const std::array<std::vector<Step>, 2>& steps) {
  std::map<model::Phase, double> times;
  for (const auto& side : steps)
    for (const Step& step : side) times[step.phase] += static_cast<double>(step.end - step.begin);
  const auto most = std::ranges::max_element(times, {}, [](const auto& time) { return time.second; });
  return most == times.end() ? model::Phase::other : most->first;
}

/// By time, with sums so that the mean of a stretch takes two of them.
std::vector<Rest> rests_of(const std::vector<Step>& steps, model::Phase phase) {
  struct Kind {
    double sum = 0;
    std::size_t count = 0;
  };
  const auto counts = [&](const Step& step) { return step.phase == phase && step.value > 0; };
  std::map<compare::WorkClass, Kind> kinds;
  for (const Step& step : steps) {
    if (!counts(step)) continue;
    Kind& kind = kinds[step.work];
    kind.sum += std::log(step.value);
    ++kind.count;
  }
  std::vector<Rest> rests;
  double sum = 0;
  for (const Step& step : steps) {
    if (!counts(step)) continue;
    const Kind& kind = kinds[step.work];
    if (kind.count < kFewestOfKind) continue;
    sum += std::log(step.value) - kind.sum / static_cast<double>(kind.count);
    rests.push_back({step.begin, sum});
  }
  return rests;
}

/// Of the difference between neighbouring stretches of this length, each of which overlaps the next by half.
std::optional<double> variance_at(const std::vector<Rest>& rests, Ns length) {
  if (rests.empty()) return std::nullopt;
  const auto place = [&](Ns at) {
    return static_cast<std::size_t>(std::ranges::lower_bound(rests, at, {}, &Rest::at) - rests.begin());
  };
  const auto sum_before = [&](std::size_t i) { return i == 0 ? 0 : rests[i - 1].sum; };
  const auto mean = [&](std::size_t from, std::size_t to) {
    return (sum_before(to) - sum_before(from)) / static_cast<double>(to - from);
  };
  double squares = 0;
  std::size_t count = 0;
  for (Ns begin = rests.front().at; begin + 2 * length <= rests.back().at; begin += length / 2) {
    const std::size_t first = place(begin);
    const std::size_t middle = place(begin + length);
    const std::size_t last = place(begin + 2 * length);
    if (first == middle || middle == last) continue;
    const double difference = mean(middle, last) - mean(first, middle);
    squares += difference * difference;
    ++count;
  }
  if (count < kFewestDifferences) return std::nullopt;
  return squares / static_cast<double>(count);
}

}  // namespace

double mean_step_of(const std::array<std::vector<Step>, 2>& steps) {
  double sum = 0;
  std::size_t count = 0;
  for (const auto& side : steps) {
    for (const Step& step : side) sum += static_cast<double>(step.end - step.begin);
    count += side.size();
  }
  return count == 0 ? 0 : sum / static_cast<double>(count);
}

Ns length_for(double mean_step) {
  constexpr double kParts = 6;
  constexpr double kShortest = 200e6;
  constexpr double kLongest = 5e9;
  if (!(mean_step > 0)) return kUsualLength;
  return static_cast<Ns>(std::clamp(kParts * (static_cast<double>(kLeastSettling) + mean_step), kShortest, kLongest));
}

std::optional<Ns> length_by_memory(const std::array<std::vector<Step>, 2>& steps, Ns shortest, Ns longest) {
  const model::Phase phase = longest_phase(steps);
  const std::array<std::vector<Rest>, 2> rests = {rests_of(steps[0], phase), rests_of(steps[1], phase)};
  const double lost = static_cast<double>(kLeastSettling) + mean_step_of(steps);
  const auto error_with = [&](Ns length) -> std::optional<double> {
    double variance = 0;
    for (const auto& side : rests) {
      const auto own = variance_at(side, length);
      if (!own) return std::nullopt;
      variance += *own;
    }
    const auto time = static_cast<double>(length);
    return variance * 2 * time / (1 - std::min(lost / time, kMostLost));
  };
  auto least = error_with(shortest);
  if (!least) return std::nullopt;
  std::optional<Ns> best;
  for (const Ns length : kLengths) {
    if (length <= shortest || length > longest) continue;
    const auto error = error_with(length);
    if (!error) break;
    if (!best) best = shortest;
    if (*error >= kWorth * *least) continue;
    best = length;
    least = error;
  }
  return best;
}

}  // namespace culprit::ab
