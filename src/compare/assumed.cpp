#include "compare/assumed.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <utility>
#include <vector>

namespace culprit::compare {

namespace {

constexpr Ns kSomeDay = 1'000'000'000'000'000'000;  // of 2001; before it a clock is none of days

}  // namespace

bool in_turns(const Taken& base, const Taken& candidate) {
  constexpr int kFewestTurns = 3;
  std::vector<std::pair<Ns, int>> all;
  all.reserve(base.begins.size() + candidate.begins.size());
  for (const Ns begin : base.begins) all.emplace_back(begin, 0);
  for (const Ns begin : candidate.begins) all.emplace_back(begin, 1);
  std::ranges::sort(all);
  int turns = 0;
  for (std::size_t i = 1; i < all.size(); ++i) turns += all[i].second != all[i - 1].second ? 1 : 0;
  return turns >= kFewestTurns && all.front().first > kSomeDay;
}

bool far_apart(const Taken& base, const Taken& candidate) {
  constexpr Ns kNear = 300'000'000'000;
  Ns nearest = std::numeric_limits<Ns>::max();
  for (const Ns a : base.begins)
    for (const Ns b : candidate.begins)
      if (a > kSomeDay && b > kSomeDay) nearest = std::min(nearest, std::abs(a - b));
  return nearest != std::numeric_limits<Ns>::max() && nearest > kNear;
}

double when_apart(const Taken& base, const Taken& candidate, bool machine_moved) {
  constexpr double kApart = 3;
  return machine_moved || far_apart(base, candidate) ? kApart : 1;
}

double spread_on_host(double of_long_ones, const Taken& base, const Taken& candidate, bool machine_moved) {
  constexpr double kLong = 4e9;
  constexpr double kMost = 2.4;
  const auto lasting = static_cast<double>(std::max<Ns>(1, std::min(base.lasting, candidate.lasting)));
  return of_long_ones *
         std::max(std::clamp(std::pow(kLong / lasting, 0.4), 1.0, kMost), when_apart(base, candidate, machine_moved));
}

double spread_on_device(double of_devices, double of_hosts, double waits, const Taken& base, const Taken& candidate,
                        bool machine_moved) {
  return std::hypot(of_devices, waits * of_hosts * when_apart(base, candidate, machine_moved));
}

double waits_for_host(const model::Profile& profile, model::Phase phase) {
  std::map<std::int32_t, std::array<double, 2>> devices;  // waiting, all
  const model::Ledger& ledger = profile.ledger;
  for (std::size_t w = 0; w < ledger.windows.size(); ++w) {
    const model::LedgerWindow& window = ledger.windows[w];
    if (window.device < 0 || profile.cycles[window.cycle].phase != phase) continue;
    auto& [waiting, all] = devices[window.device];
    all += static_cast<double>(window.length);
    for (const model::LedgerLine& line : model::lines_of(ledger, w))
      if (line.state != model::LedgerState::function && line.state != model::LedgerState::no_work)
        waiting += static_cast<double>(line.time);
  }
  double least = devices.empty() ? 0 : 1;
  for (const auto& [device, time] : devices)
    if (time[1] > 0) least = std::min(least, time[0] / time[1]);
  return least;
}

}  // namespace culprit::compare
