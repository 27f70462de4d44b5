// How long the connections of a recorded server waited for answers, and whether several requests in a row belong
// together: the recorder counts both per TCP port, and of all Unix sockets together (bpf/answers.bpf.h).
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "model/work_units.h"
#include "trace/trace.h"

namespace culprit::cycles {

inline constexpr std::uint64_t kAsksOfOne = 100;  ///< over Unix sockets, for one answer on a port

struct Answers {
  std::string port;                    ///< "port 5432"; model::kUnixSockets
  std::vector<std::uint64_t> buckets;  ///< of stats/log_buckets.h; none longer than the recording
  std::uint64_t count = 0;             ///< of all
  std::uint64_t bytes = 0;             ///< of all; 0: not known
};

/// Of the port on which the processes of a program (as WorkThread names it) answered most often, or of its Unix sockets
/// where it answers on ports hardly ever (programs_on_ports); nullopt: on none.
std::optional<Answers> answers_of(const Trace& trace, std::string_view program);

/// Programs that are asked on TCP ports: what goes over their Unix sockets is part of answering.
std::set<std::string> programs_on_ports(const Trace& trace);

/// How many answers each process gave, on whatever port, or on Unix sockets where its program answers on
/// none to speak of; by ProcessId.
std::vector<std::uint64_t> answers_by_process(const Trace& trace);

/// How many of them the processes of a program gave in each window; empty where that was not counted.
std::vector<double> answers_in(const Trace& trace, std::string_view program,
                               const std::vector<model::WorkWindow>& windows);

/// Requests that come again and again in the same order: what they do together is a transaction.
struct Pattern {
  std::uint64_t requests = 0;  ///< in one
  std::uint64_t bytes = 0;     ///< of the answer by which it is told, the one of least variation
  double share = 0;            ///< of these answers that come so
};

/// Whether answers of one size come as each n-th one on their connections: the smallest such n, which is at least 2.
std::optional<Pattern> pattern_of(const Trace& trace, const Answers& answers);

}  // namespace culprit::cycles
