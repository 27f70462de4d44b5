#include "compare/assumed.h"

#include <gtest/gtest.h>

#include <array>

#include "core/units.h"

namespace culprit::compare {
namespace {

constexpr Ns kEpoch = 1'700'000'000'000'000'000;

TEST(Assumed, RecordingsThatWereTakenInTurns) {
  const std::array<Ns, 2> base = {kEpoch, kEpoch + 20 * kSecond};
  const std::array<Ns, 2> between = {kEpoch + 10 * kSecond, kEpoch + 30 * kSecond};
  const std::array<Ns, 2> behind = {kEpoch + 30 * kSecond, kEpoch + 40 * kSecond};
  EXPECT_TRUE(in_turns({base, 1}, {between, 1}));
  EXPECT_FALSE(in_turns({base, 1}, {behind, 1}));
}

TEST(Assumed, HostsDifferMoreBetweenShortAndDistantRecordings) {
  const std::array<Ns, 1> now = {kEpoch};
  const std::array<Ns, 1> soon = {kEpoch + 20 * kSecond};
  const std::array<Ns, 1> later = {kEpoch + 600 * kSecond};
  EXPECT_DOUBLE_EQ(spread_on_host(0.05, {now, 10 * kSecond}, {soon, 10 * kSecond}, false), 0.05);
  EXPECT_DOUBLE_EQ(spread_on_host(0.05, {now, 10 * kSecond}, {later, 10 * kSecond}, false), 0.15);
  EXPECT_DOUBLE_EQ(spread_on_host(0.05, {now, 10 * kSecond}, {soon, 10 * kSecond}, true), 0.15);
  EXPECT_NEAR(spread_on_host(0.05, {now, 10 * kSecond}, {soon, kSecond / 100}, false), 0.12, 1e-9);
}

TEST(Assumed, DevicesDifferAsHostsDoForAsLongAsTheyWaitForThem) {
  const std::array<Ns, 1> now = {kEpoch};
  const std::array<Ns, 1> later = {kEpoch + 600 * kSecond};
  EXPECT_DOUBLE_EQ(spread_on_device(0.01, 0.05, 0, {now, kSecond}, {now, kSecond}, false), 0.01);
  EXPECT_NEAR(spread_on_device(0.01, 0.05, 0.9, {now, kSecond}, {now, kSecond}, false), 0.0461, 1e-4);
  EXPECT_NEAR(spread_on_device(0.01, 0.05, 0.9, {now, kSecond}, {later, kSecond}, false), 0.1354, 1e-4);
  EXPECT_NEAR(spread_on_device(0.01, 0.05, 0.9, {now, kSecond}, {now, kSecond}, true), 0.1354, 1e-4);
}

TEST(Assumed, TheDeviceThatIdlesLeastTellsHowMuchItWaits) {
  model::Profile profile;
  profile.cycles.resize(2);
  profile.cycles[0].phase = profile.cycles[1].phase = model::Phase::decode;
  const auto add = [&](std::uint32_t cycle, std::int32_t device, Ns works, Ns waits, Ns without_work) {
    profile.ledger.windows.push_back({cycle, device, works + waits + without_work, profile.ledger.lines.size()});
    profile.ledger.lines.push_back({model::LedgerState::function, 0, 1, works});
    profile.ledger.lines.push_back({model::LedgerState::idle_host, 0, 1, waits});
    profile.ledger.lines.push_back({model::LedgerState::no_work, 0, 1, without_work});
  };
  add(0, 0, 10, 80, 10);
  add(1, 0, 10, 60, 30);
  EXPECT_DOUBLE_EQ(waits_for_host(profile, model::Phase::decode), 0.7);
  EXPECT_DOUBLE_EQ(waits_for_host(profile, model::Phase::prefill), 0);
  add(0, 1, 60, 40, 0);
  EXPECT_DOUBLE_EQ(waits_for_host(profile, model::Phase::decode), 0.4);
}

}  // namespace
}  // namespace culprit::compare
