// The network between the program and those it talks to on other machines.
#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "diagnose/rules.h"
#include "diagnose/text.h"

namespace culprit::diagnose {

namespace {

using model::Verdict;

constexpr double kFarMore = 2;        // times
constexpr double kLeastLonger = 2e5;  // ns, there and back
constexpr double kLeastAgain = 1;     // segments per second
constexpr double kMuchLess = 0.1;     // got done
constexpr double kMostly = 0.5;       // of what a unit takes longer

constexpr std::string_view kOwnAgain = "target.tcp.retransmits";
constexpr std::string_view kAllAgain = "host.tcp.retransmits";

bool is_much_more(const Sides& segments) { return segments.rise() >= kLeastAgain && segments.ratio() >= kFarMore; }

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
  constexpr double kSecond = 1e9;
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
      evidence.slowdown() >= kMuchLess && longer > 0 && std::max(0.0, evidence.growth()) <= kMostly * longer;
  const bool waited = felt >= kLeastImpact * evidence.states_of();
  if (!waited && !starved) return;
  Verdict verdict;
  verdict.cause = "interconnect_contention";
  verdict.detail = "network";
  verdict.side = evidence.side();
  verdict.confidence = waited ? 0.8 : 0.6;
  verdict.impact_ns = waited ? felt : model::kNoNumber;
  if (!waited) verdict.state = model::VerdictState::latent;
  verdict.evidence = std::move(changed);
  if (const auto all = evidence.counter(kAllAgain); all && is_much_more(*all) && !evidence.counter(kOwnAgain))
    verdict.against.emplace_back("Whose segments were sent again is not known: its connections end too soon");
  if (waited)
    verdict.evidence.push_back(
        fmt::format("Its threads waited {} per step in calls that send, receive or wait for it", instead(waits)));
  if (starved) {
    const Sides rate = evidence.turned(evidence.comparison().work->throughput.value);
    verdict.evidence.push_back(
        fmt::format("{:.0f} % less got done, and most of that it waited for work", (1 - rate.ratio()) * 100));
    verdict.against.emplace_back("Who asks may ask for less, from farther away");
  }
  verdict.next_step = "ss -ti shows each connection; see the link, its queues and who else sends over it";
  verdicts.push_back(std::move(verdict));
}

constexpr std::array kRules = {Rule{"network.connections", network}};

}  // namespace

std::vector<std::string> network_evidence(const Evidence& evidence) {
  std::vector<std::string> sentences;
  const auto rtt = evidence.counter("target.tcp.rtt");
  if (rtt && rtt->rise() >= kLeastLonger && rtt->ratio() >= kFarMore)
    sentences.push_back(
        fmt::format("A segment of its connections to other machines takes {} at least, there and back", instead(*rtt)));
  // What was sent again on connections that ended between two looks only the machine as a whole tells.
  const auto again = evidence.counter(kOwnAgain);
  const auto of_all = evidence.counter(kAllAgain);
  if (again && is_much_more(*again))
    sentences.push_back(fmt::format("It sent {} segments a second again", instead_number(*again)));
  else if (of_all && is_much_more(*of_all))
    sentences.push_back(fmt::format("The machine sent {} TCP segments a second again", instead_number(*of_all)));
  return sentences;
}

std::span<const Rule> network_rules() { return kRules; }

}  // namespace culprit::diagnose
