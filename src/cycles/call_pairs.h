// Calls of a thread that come as often as each other: what it receives, and what it sends for it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace culprit::cycles {

inline constexpr std::uint64_t kFewestUnits = 8;  ///< chance pairs smaller counts
inline constexpr double kNearlySameTimes = 0.05;  ///< a wake-up may be sent once for two that were received
inline constexpr double kSameTimes = 0.02;        ///< two counts of one thing: calls at the edges, errors

/// How the calls of one thread pair up.
struct CallPair {
  std::string receive;
  std::string send;
  std::uint64_t count = 0;
  double confidence = 0;
  bool by_receive = false;  ///< the receives are counted, not the sends
  std::string reason{};
};

/// Whether two counts differ by no more than a share of the larger, or by two.
bool agree(std::uint64_t a, std::uint64_t b, double share = kSameTimes);

/// By the names of calls and how often each was made. Each call is in one pair at most; the best come first. Counts of
/// one thing may differ by `slack` more, as a share of them, where they are estimates.
std::vector<CallPair> pairs_of(const std::map<std::string, std::uint64_t>& calls, double slack = 0);

}  // namespace culprit::cycles
