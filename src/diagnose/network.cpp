// The network between the program and those it talks to on other machines.
#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "core/units.h"
#include "diagnose/rules.h"
#include "diagnose/text.h"
#include "diagnose/thresholds.h"

namespace culprit::diagnose {

namespace {

using model::Verdict;

constexpr double kTwiceAsMuch = 2;        // times
constexpr double kLeastLongerTrip = 2e5;  // ns, there and back
constexpr double kLeastAgain = 1;         // segments per second
constexpr double kEarliestLate = 3e7;     // ns: acknowledgements of who has nothing to answer come about 40 ms late
constexpr double kLatestLate = 5e7;       // ns
constexpr double kMostOfUnit = 0.5;       // of what a unit takes longer

bool sends_again(const Evidence& evidence) {
  const auto again = evidence.counter("target.tcp.retransmits");
  return again && again->rise() >= kLeastAgain && again->ratio() >= kTwiceAsMuch;
}

/// Not for want of near ones, and not because nothing is answered at once.
bool is_farther(const Sides& rtt) {
  if (rtt.without < kEarliestLate && rtt.with >= kEarliestLate && rtt.with <= kLatestLate) return false;
  return rtt.rise() >= kLeastLongerTrip && rtt.ratio() >= kTwiceAsMuch;
}

/// Whether a state is a wait in a call that sends to others, or waits for them.
bool waits_for_network(std::string_view state) {
  constexpr std::array kCalls = {"recvfrom", "recvmsg",    "recvmmsg",      "sendto",       "sendmsg", "sendmmsg",
                                 "connect",  "accept",     "accept4",       "poll",         "ppoll",   "select",
                                 "pselect6", "epoll_wait", "epoll_pwait",   "epoll_pwait2", "read",    "readv",
                                 "write",    "writev",     "io_uring_enter"};
  constexpr std::string_view kBlocked = "blocked in ";
  if (!state.starts_with(kBlocked)) return false;
  state.remove_prefix(kBlocked.size());
  return std::ranges::find(kCalls, state) != kCalls.end();
}

/// By how much longer a unit of work takes to come, ns; 0: there is none.
double longer_per_unit(const Evidence& evidence) {
  const auto& work = evidence.comparison().work;
  if (!work) return 0;
  const Sides rate = evidence.turned(work->throughput.value);
  return rate.with > 0 && rate.without > 0 ? kSecond / rate.with - kSecond / rate.without : 0;
}

void network(const Evidence& evidence, Verdicts& verdicts) {
  std::vector<std::string> changed = network_evidence(evidence);
  if (changed.empty()) return;
  const Sides waits = evidence.states(waits_for_network);
  const double felt = evidence.felt(waits.rise());
  // Who waits for work waits in no unit of it: then less gets done, though each takes no longer.
  const double longer = longer_per_unit(evidence);
  const bool starved =
      evidence.slowdown() >= kMuchLess && longer > 0 && std::max(0.0, evidence.growth()) <= kMostOfUnit * longer;
  const bool waited = felt >= kLeastImpact * evidence.states_of();
  if (!waited && !starved) return;
  Verdict verdict;
  verdict.cause = "interconnect_contention";
  verdict.detail = "network";
  verdict.side = evidence.side();
  verdict.confidence = waited && sends_again(evidence) ? 0.8 : 0.6;
  verdict.impact_ns = waited ? felt : model::kNoNumber;
  if (!waited) verdict.state = model::VerdictState::latent;
  verdict.evidence = std::move(changed);
  if (waited)
    verdict.evidence.push_back(
        fmt::format("Its threads waited {} in calls that send, receive or wait for it", instead_each(evidence, waits)));
  if (!sends_again(evidence)) verdict.against.emplace_back("It may talk to others than before, farther away");
  if (starved) {
    const Sides rate = evidence.turned(evidence.comparison().work->throughput.value);
    verdict.evidence.push_back(
        fmt::format("{:.0f} % less got done, and most of that it waited for work", (1 - rate.ratio()) * 100));
    verdict.against.emplace_back("Who asks may ask for less");
  }
  verdict.next_step = "ss -ti shows each connection; see the link, its queues and who else sends over it";
  verdicts.push_back(std::move(verdict));
}

constexpr std::array kNetworkRules = {Rule{"network.connections", network}};

}  // namespace

std::vector<std::string> network_evidence(const Evidence& evidence) {
  std::vector<std::string> sentences;
  const auto rtt = evidence.counter("target.tcp.rtt");
  const auto least = evidence.counter("target.tcp.rtt_least");
  if (rtt && least && is_farther(*rtt) && is_farther(*least))
    sentences.push_back(
        fmt::format("A segment of its connections to other machines takes {} at least, there and back", instead(*rtt)));
  if (sends_again(evidence))
    sentences.push_back(
        fmt::format("It sent {} segments a second again", instead_number(*evidence.counter("target.tcp.retransmits"))));
  return sentences;
}

std::span<const Rule> network_rules() { return kNetworkRules; }

}  // namespace culprit::diagnose
