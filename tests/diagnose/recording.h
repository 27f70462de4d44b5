// Recordings made by hand, for what one run says of itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/units.h"
#include "diagnose/one_run.h"
#include "model/recording.h"

namespace culprit::diagnose {

inline constexpr auto kDecode = static_cast<std::size_t>(model::Phase::decode);

/// "cause/detail in where" of all, in their order.
inline std::vector<std::string> causes(const model::Recording& run) {
  std::vector<std::string> names;
  for (const model::Verdict& v : diagnose_run(run))
    names.push_back(v.cause + (v.detail.empty() ? "" : "/" + v.detail) + (v.where.empty() ? "" : " in " + v.where));
  return names;
}

/// A hundred steps of 10 ms; its thread's time on CPUs, in the run queue and blocked, ms per step.
inline model::Recording run(double on_cpu, double runnable, double blocked) {
  model::Recording made;
  made.profile.texts.intern("");
  made.host.scheduling = true;
  made.host.cycles[kDecode] = 100;
  made.host.period_ns[kDecode] = 100 * 10 * kMs;
  made.host.step.emplace();
  made.host.step->name = "worker";
  made.host.step->on_cpu[kDecode] = 100 * on_cpu * kMs;
  made.host.step->runnable[kDecode] = 100 * runnable * kMs;
  made.host.step->blocked[kDecode] = 100 * blocked * kMs;
  return made;
}

inline void add_state(model::Recording& made, const std::string& what, double ms) {
  made.host.states.push_back({what, {}});
  made.host.states.back().total_ns[kDecode] = 100 * ms * kMs;
}

inline void add_counter(model::Recording& made, const std::string& name, double mean) {
  model::HostCounter counter;
  counter.name = name;
  counter.mean = mean;
  counter.samples = 10;
  made.host.counters.push_back(counter);
}

/// One rank: cycles, and a process.
inline void add_rank(model::Recording& made, std::int32_t rank) {
  made.profile.processes.push_back({100 + rank, 0, rank});
  model::ProfileCycle cycle;
  cycle.rank = rank;
  cycle.phase = model::Phase::decode;
  made.profile.cycles.push_back(cycle);
}

inline void add_use(model::Recording& made, std::int32_t rank, const char* name, const char* kind, const char* device,
                    double ms, double size = 100) {
  model::FunctionUse use;
  use.cycle = use.process = static_cast<std::uint32_t>(rank);
  use.function = made.profile.texts.intern(name);
  use.kind = made.profile.texts.intern(kind);
  use.device = made.profile.texts.intern(device);
  use.count = 1;
  use.duration = static_cast<Ns>(ms * kMs);
  if (std::string_view(device) != "Host") use.exposed = use.duration;
  use.size = size;
  made.profile.functions.push_back(use);
}

}  // namespace culprit::diagnose
