#include "cycles/call_pairs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <tuple>
#include <utility>

#include "cycles/confidence.h"
#include "cycles/waits.h"

namespace culprit::cycles {

namespace {

constexpr std::uint64_t kMostParts = 4;  // of one answer: head, body, ...

bool better(const CallPair& a, const CallPair& b) {
  return std::tie(a.confidence, a.count, b.receive, b.send) > std::tie(b.confidence, b.count, a.receive, a.send);
}

/// Whether a thread sends as many parts of an answer for each thing that it receives; how many. 0: it does not.
std::uint64_t parts_of(std::uint64_t received, std::uint64_t sent, double slack) {
  for (std::uint64_t parts = 2; parts <= kMostParts; ++parts)
    if (agree(sent, parts * received, kSameTimes + slack)) return parts;
  return 0;
}

std::optional<CallPair> pair_of(const std::string& receive, std::uint64_t received, const std::string& send,
                                std::uint64_t sent, std::uint64_t waits, double slack) {
  using confidence::kReceivesAndSends;
  using confidence::kReceivesTwice;
  if (received < kFewestUnits || sent < kFewestUnits) return std::nullopt;
  const std::uint64_t parts = parts_of(received, sent, slack);
  if (is_accept(receive)) {
    const std::string reason = fmt::format("'{}' accepts a connection for each, '{}' answers", receive, send);
    if (agree(received, sent, kSameTimes + slack))
      return CallPair{receive, send, received, kReceivesAndSends, true, reason};
    if (parts != 0) return CallPair{receive, send, received, kReceivesTwice, true, reason};
    return std::nullopt;
  }
  if (agree(received, sent, kSameTimes + slack))
    return CallPair{receive,           send,  sent,
                    kReceivesAndSends, false, fmt::format("as many calls of '{}' as of '{}'", receive, send)};
  if (agree(received, sent, kNearlySameTimes + slack))
    return CallPair{receive,        send, received,
                    kReceivesTwice, true, fmt::format("nearly as many calls of '{}' as of '{}'", receive, send)};
  if (agree(received, 2 * sent, kSameTimes + slack))
    return CallPair{receive,        send,  sent,
                    kReceivesTwice, false, fmt::format("two calls of '{}' to one of '{}'", receive, send)};
  if (received > sent && agree(received, sent + waits, kNearlySameTimes + slack))
    return CallPair{receive, send,
                    sent,    kReceivesTwice,
                    false,   fmt::format("as many calls of '{}' as of '{}' and waits together", receive, send)};
  if (parts != 0)
    return CallPair{receive,        send, received,
                    kReceivesTwice, true, fmt::format("{} calls of '{}' to one of '{}'", parts, send, receive)};
  return std::nullopt;
}

}  // namespace

bool agree(std::uint64_t a, std::uint64_t b, double share) {
  const double difference = std::abs(static_cast<double>(a) - static_cast<double>(b));
  return difference <= std::max(2.0, share * static_cast<double>(std::max(a, b)));
}

std::vector<CallPair> pairs_of(const std::map<std::string, std::uint64_t>& calls, double slack) {
  std::uint64_t waits = 0;
  for (const auto& [name, count] : calls)
    if (is_event_wait(name)) waits += count;
  std::vector<CallPair> offers;
  for (const auto& [receive, received] : calls) {
    if (!is_accept(receive) && !is_receive(receive)) continue;
    for (const auto& [send, sent] : calls) {
      if (!is_send(send)) continue;
      if (auto offer = pair_of(receive, received, send, sent, waits, slack)) offers.push_back(std::move(*offer));
    }
  }
  std::ranges::sort(offers, better);
  std::vector<CallPair> pairs;
  for (CallPair& offer : offers)
    if (std::ranges::none_of(
            pairs, [&](const CallPair& pair) { return pair.receive == offer.receive || pair.send == offer.send; }))
      pairs.push_back(std::move(offer));
  return pairs;
}

}  // namespace culprit::cycles
