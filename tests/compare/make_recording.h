// Recordings by hand: steps of one process whose functions take given times.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "model/recording.h"

namespace culprit::compare {

/// ns per cycle of each function; 0: the cycle does not have it. Names that begin with '.' run on the host.
using Times = std::map<std::string, std::vector<double>>;

/// Cycles of `periods` ns, marked and sure.
inline model::Recording make_recording(const std::vector<Ns>& periods, const Times& times = {},
                                       model::Phase phase = model::Phase::decode, std::int64_t pid = 7) {
  model::Recording r;
  r.files = {"run.json"};
  r.cycles.method = model::CycleMethod::marker;
  r.cycles.anchor = "ProfilerStep#N";
  r.cycles.reason = "markers";
  r.cycles.period_confidence = 0.99;
  r.events = 1000;
  model::Profile& p = r.profile;
  p.processes.push_back({pid, 0, 0});
  Ns at = 1000;
  for (std::size_t i = 0; i < periods.size(); ++i) {
    model::Cycle& cycle = r.cycles.cycles.emplace_back();
    cycle.number = static_cast<std::uint32_t>(i + 1);
    cycle.process = 0;
    cycle.phase = phase;
    cycle.begin = at;
    cycle.period = periods[i];
    model::ProfileCycle& row = p.cycles.emplace_back();
    row.number = static_cast<std::int64_t>(i + 1);
    row.begin = at;
    row.duration = periods[i];
    row.phase = phase;
    row.rank = 0;
    row.pid = pid;
    at += periods[i];
    for (const auto& [name, per_cycle] : times) {
      if (i >= per_cycle.size() || per_cycle[i] <= 0) continue;
      const bool host = name.starts_with('.');
      model::FunctionUse use;
      use.cycle = static_cast<std::uint32_t>(i);
      use.function = use.short_name = p.texts.intern(name);
      use.device = p.texts.intern(host ? "Host" : "GPU 0");
      use.kind = p.texts.intern(host ? "cpu_op" : "gpu_compute");
      use.count = 2;
      use.duration = static_cast<Ns>(per_cycle[i]);
      (host ? use.own : use.exposed) = use.duration;
      p.functions.push_back(use);
    }
  }
  return r;
}

}  // namespace culprit::compare
