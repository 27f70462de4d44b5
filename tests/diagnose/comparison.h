// Comparisons made by hand, for rules.
#pragma once

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "diagnose/diagnose.h"
#include "model/comparison.h"

namespace culprit::diagnose {

inline constexpr const char* kOthers = "cpu_contention/other_processes";

inline model::RunComparison comparison(model::Outcome outcome = model::Outcome::regression) {
  model::RunComparison result;
  result.outcome = outcome;
  result.host.emplace();
  result.texts.intern("");
  return result;
}

/// Time of a step on CPUs, in the run queue and blocked, on both sides, ms.
inline void set_step(model::RunComparison& c, std::array<double, 2> on_cpu, std::array<double, 2> runnable,
                     std::array<double, 2> blocked) {
  const auto ms = [](std::array<double, 2> v) { return std::array<std::optional<double>, 2>{v[0] * 1e6, v[1] * 1e6}; };
  c.host->step_thread = "worker";
  c.host->step = {{"on CPU", "ns per step", ms(on_cpu)},
                  {"runnable, in the run queue", "ns per step", ms(runnable)},
                  {"blocked", "ns per step", ms(blocked)}};
  model::HostChange period{"period", "ns per step", {}};
  for (std::size_t s = 0; s < 2; ++s) period.value[s] = (on_cpu[s] + runnable[s] + blocked[s]) * 1e6;
  c.host->states.insert(c.host->states.begin(), period);
  model::CycleTimeOutcome time;
  time.outcome = c.outcome;
  for (std::size_t s = 0; s < 2; ++s) time.time_ns[s] = *period.value[s];
  time.change = time.time_ns[1] / time.time_ns[0] - 1;
  time.cycles = {100, 100};
  c.cycle_times = {time};
}

/// A program without steps, and what one of its units took.
inline void set_work(model::RunComparison& c, model::UnitKind kind, std::array<double, 2> on_cpu,
                     std::array<double, 2> runnable, const std::string& call = "", std::array<double, 2> blocked = {}) {
  model::WorkComparison& work = c.work.emplace();
  work.unit.kind = kind;
  const auto add = [&](std::string what, const std::array<double, 2>& ms) {
    work.parts.push_back({std::move(what), "ns", {ms[0] * 1e6, ms[1] * 1e6}});
  };
  add("on CPU", on_cpu);
  add("runnable, in the run queue", runnable);
  if (!call.empty()) add("blocked in " + call, blocked);
}

inline void add_state(model::RunComparison& c, const std::string& what, std::array<double, 2> ms) {
  c.host->states.push_back({what, "ns per step", {ms[0] * 1e6, ms[1] * 1e6}});
}

inline void add_counter(model::RunComparison& c, const std::string& name, std::array<double, 2> value) {
  c.host->counters.push_back({name, "", {value[0], value[1]}});
}

/// Instead of the one that is there.
inline void set_counter(model::RunComparison& c, const std::string& name, std::array<double, 2> value) {
  std::erase_if(c.host->counters, [&](const model::HostChange& change) { return change.what == name; });
  add_counter(c, name, value);
}

inline void add_beside(model::RunComparison& c, const std::string& name, std::array<double, 2> cpus) {
  c.host->beside.push_back({name, "count", {cpus[0], cpus[1]}});
}

inline void add_function(model::RunComparison& c, const std::string& name, const std::string& kind,
                         const std::string& device, std::array<double, 2> ms, std::array<double, 2> calls,
                         model::FunctionStatus status = model::FunctionStatus::unknown) {
  model::FunctionFinding f;
  f.function = f.short_name = c.texts.intern(name);
  f.kind = c.texts.intern(kind);
  f.device = c.texts.intern(device);
  f.status = status;
  f.time_ns = {ms[0] * 1e6, ms[1] * 1e6};
  f.impact_ns = f.time_ns[1] - f.time_ns[0];
  f.calls = calls;
  for (std::size_t s = 0; s < 2; ++s)
    if (calls[s] > 0) f.per_call_ns[s] = f.time_ns[s] / calls[s];
  if (status == model::FunctionStatus::changed) f.q_of_calls = 0;
  if (calls[0] > 0 && calls[1] > 0) f.work_ratio = f.per_call_ns[1] / f.per_call_ns[0];
  c.functions.push_back(f);
}

/// Of one rank, ms per step.
inline void add_collectives(model::RunComparison& c, std::int32_t rank, std::array<double, 2> wait,
                            std::array<double, 2> transfer, std::array<double, 2> held_up) {
  const auto ns = [](std::array<double, 2> ms) { return std::array<double, 2>{ms[0] * 1e6, ms[1] * 1e6}; };
  c.collectives.push_back({rank, ns(wait), ns(transfer), ns(held_up), {10, 10}});
}

inline void add_resource(model::RunComparison& c, const std::string& metric, const std::string& device,
                         std::array<double, 2> value) {
  c.resources.push_back({metric, device, -1, model::Unit::plain, {value[0], value[1]}});
}

/// Baseline and candidate the other way round, as far as the rules look at it.
inline model::RunComparison swapped(model::RunComparison c) {
  using model::Outcome;
  const auto turn = [](auto& pair) { std::swap(pair[0], pair[1]); };
  if (c.outcome == Outcome::regression)
    c.outcome = Outcome::improvement;
  else if (c.outcome == Outcome::improvement)
    c.outcome = Outcome::regression;
  for (auto* list : {&c.host->step, &c.host->states, &c.host->counters, &c.host->beside})
    for (model::HostChange& change : *list) turn(change.value);
  turn(c.host->behind_others);
  for (model::FunctionFinding& f : c.functions) {
    turn(f.time_ns);
    turn(f.calls);
    turn(f.per_call_ns);
    turn(f.size);
    f.work_ratio = 1 / f.work_ratio;
    f.impact_ns = -f.impact_ns;
    if (f.status == model::FunctionStatus::added)
      f.status = model::FunctionStatus::gone;
    else if (f.status == model::FunctionStatus::gone)
      f.status = model::FunctionStatus::added;
  }
  for (model::Waterfall& waterfall : c.waterfalls)
    for (model::WaterfallLine& line : waterfall.lines) {
      turn(line.time_ns);
      turn(line.calls);
      turn(line.host_ns);
    }
  for (model::ResourceChange& r : c.resources) turn(r.value);
  for (model::EnvironmentChange& e : c.environment) turn(e.value);
  for (model::DiskChange& d : c.disks) {
    turn(d.mean_ns);
    turn(d.bytes_per_second);
  }
  for (auto* shares : {&c.on_cpu, &c.python})
    for (model::ShareChange& share : *shares) turn(share.share);
  for (model::CollectiveChange& rank : c.collectives) {
    turn(rank.wait_ns);
    turn(rank.transfer_ns);
    turn(rank.held_up_ns);
    turn(rank.calls);
    turn(rank.elements);
  }
  if (c.work) {
    turn(c.work->throughput.value);
    turn(c.work->worked.value);
    c.work->throughput.change = 1 / (1 + c.work->throughput.change) - 1;
    for (model::WorkChange& part : c.work->parts) turn(part.value);
  }
  for (model::CycleTimeOutcome& t : c.cycle_times) {
    turn(t.usual_work);
    turn(t.all_ns);
    turn(t.prompt_tokens);
    turn(t.requests);
    turn(t.looked_back);
    turn(t.time_ns);
    turn(t.cycles);
    t.change = 1 / (1 + t.change) - 1;
  }
  return c;
}

/// "cause/detail in where" of all, in their order; of the side without the slowdown with a minus.
inline std::vector<std::string> causes(const model::RunComparison& c) {
  std::vector<std::string> names;
  for (const model::Verdict& v : diagnose(c))
    names.push_back(std::string(v.side == 1 ? "" : "-") + v.cause + (v.detail.empty() ? "" : "/" + v.detail) +
                    (v.where.empty() ? "" : " in " + v.where));
  return names;
}

/// Three functions of a host that take as long as before.
inline model::RunComparison with_functions() {
  model::RunComparison c = comparison();
  set_step(c, {10, 14}, {0.1, 0.1}, {1, 1});
  for (const char* name : {"a", "b", "c"}) add_function(c, name, "python", "Host", {2, 2}, {1, 1});
  return c;
}

/// Kernels bound by arithmetic and by memory that take so many times longer; `counter`: the clock was recorded.
inline model::RunComparison kernels(double arithmetic, double memory) {
  model::RunComparison c = comparison();
  set_step(c, {10, 14}, {0.1, 0.1}, {1, 1});
  c.host->step.clear();  // a profiler's trace
  const auto add = [&](const char* name, double times) {
    add_function(c, name, "gpu_compute", "GPU", {1, times}, {4, 4},
                 times > 1.1 ? model::FunctionStatus::changed : model::FunctionStatus::same);
  };
  for (const char* name : {"sgemm_a", "sgemm_b", "cutlass_c"}) add(name, arithmetic);
  for (const char* name : {"elementwise_a", "softmax_b", "layer_norm_c"}) add(name, memory);
  return c;
}

}  // namespace culprit::diagnose
