#include "record/samples/sampling_rate.h"

#include <algorithm>
#include <cmath>

#include "stats/quantile.h"

namespace culprit::record::samples {

namespace {

constexpr double kSpare = 0.8;  // of the share; else it would go up and down

}  // namespace

unsigned next_every(std::span<const Round> rounds, unsigned hz) {
  if (rounds.empty()) return 1;
  const unsigned every = std::max(1U, rounds.back().every);
  if (rounds.size() < kRounds) return every;
  std::vector<double> at_every_ask;  // shares of one CPU
  for (const Round& round : rounds.last(kRounds))
    at_every_ask.push_back(static_cast<double>(round.cpu) / static_cast<double>(std::max<Ns>(1, round.wall)) *
                           std::max(1U, round.every));
  const double share = stats::median(std::move(at_every_ask));
  const double rarest = std::max(1U, hz / kLowestHz);
  const auto asks = [&](double most) {
    return static_cast<unsigned>(std::clamp(std::ceil(share / most), 1.0, rarest));
  };
  if (asks(kMostShare) >= every) return asks(kMostShare);
  return std::min(every, std::max(asks(kMostShare * kSpare), (every + 1) / 2));
}

void SamplingRate::round_ended(Ns cpu, Ns wall) {
  if (wall <= 0) return;
  wall_ += static_cast<double>(wall);
  share_ += static_cast<double>(wall) / every_;
  rarest_ = std::max(rarest_, every_);
  if (last_.size() == kRounds) last_.erase(last_.begin());
  last_.push_back({cpu, wall, every_});
  every_ = next_every(last_, hz_);
}

RatesUsed SamplingRate::used() const {
  return {wall_ > 0 ? hz_ * share_ / wall_ : hz_, static_cast<double>(hz_) / rarest_};
}

}  // namespace culprit::record::samples
