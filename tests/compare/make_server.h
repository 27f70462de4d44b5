// A server that answers requests, as it would be recorded.
#pragma once

#include <cstdint>
#include <vector>

#include "compare/work.h"
#include "core/units.h"
#include "stats/log_buckets.h"

namespace culprit::compare {

struct Server {
  double rate = 1000;     ///< requests/s
  double on_cpu = 100e3;  ///< ns per request
  double run_queue = 20e3;
  double blocked = 0;    ///< in fdatasync
  double wobble = 0.01;  ///< relative, from window to window
  int seconds = 12;
};

/// A single thread that answers requests.
inline model::Recording recorded(const Server& s) {
  model::Recording r;
  r.files = {"x.pftrace"};
  r.events = 1000;
  model::WorkUnits& work = r.work.emplace();
  work.recorded = true;
  work.program = "server";
  work.programs = {"server"};
  work.seconds = s.seconds;
  model::WorkUnit& unit = work.units.emplace_back();
  unit.kind = model::UnitKind::request;
  unit.process = "server";
  unit.receive = "read";
  unit.send = "write";
  unit.confidence = 0.9;
  model::CountedTime sync{"fdatasync", 0, 0};
  for (int i = 0; i < s.seconds; ++i) {
    const double swing = 1 + s.wobble * ((i * 7) % 5 - 2) / 2;
    const double units = s.rate * swing;
    model::WorkWindow& window = work.windows.emplace_back();
    window.begin = i * kSecond;
    window.end = window.begin + kSecond;
    window.on_cpu = s.on_cpu * units;
    window.run_queue = s.run_queue * units;
    window.blocked = s.blocked * units;
    window.waiting = 1e9 - window.on_cpu - window.run_queue - window.blocked;
    unit.per_window.push_back(units);
    unit.count += static_cast<std::uint64_t>(units);
    sync.count += static_cast<std::uint64_t>(units);
    sync.total_ns += window.blocked;
  }
  if (s.blocked > 0) {
    work.blocked = {sync};
    work.calls = {sync};
  }
  return r;
}

inline model::WorkComparison compare(const Server& base, const Server& candidate) {
  const model::Recording a = recorded(base);
  const model::Recording b = recorded(candidate);
  return compare_work({&a, 1}, {&b, 1});
}

/// One whose requests all waited so long for their answers.
inline model::Recording answering(const Server& server, double answer_ns) {
  model::Recording r = recorded(server);
  r.work->latency_kind = model::LatencyKind::answer;
  r.work->answers.resize(stats::kLogBuckets);
  r.work->answers[stats::log_bucket_of(static_cast<std::uint64_t>(answer_ns))] = r.work->units[0].count;
  return r;
}

}  // namespace culprit::compare
