// What the program itself does differently: a function that takes longer, input that is late, other kernels.
#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <optional>
#include <ranges>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "diagnose/kernels.h"
#include "diagnose/rules.h"
#include "diagnose/text.h"
#include "diagnose/thresholds.h"

namespace culprit::diagnose {

namespace {

using model::FunctionFinding;
using model::FunctionStatus;
using model::Verdict;

constexpr double kNearlyAll = 0.8;       // of the step
constexpr double kLeastOfKernel = 0.01;  // of the step
constexpr double kLeastOwn = 0.15;       // of what a function takes longer, where all of them do
constexpr double kAlike = 1.05;          // other functions, per call

/// What a step of its phase takes longer by it, ns.
double felt(const Evidence& evidence, const FunctionFinding& f) {
  const double rise = evidence.turned(f.time_ns).rise();
  const auto idle = evidence.is_on_device(f) ? std::nullopt : evidence.idle_rise(f.phase);
  return idle ? std::min(rise, *idle) : rise;
}

Verdict verdict_of(const Evidence& evidence, const FunctionFinding& f, std::string cause, std::string detail,
                   double confidence) {
  const model::RunComparison& all = evidence.comparison();
  Verdict verdict;
  verdict.cause = std::move(cause);
  verdict.detail = std::move(detail);
  verdict.scope = model::VerdictScope::function;
  verdict.where = all.texts[f.short_name != 0 ? f.short_name : f.function];
  verdict.side = evidence.side();
  verdict.confidence = confidence;
  verdict.impact_ns = evidence.weight_of(f.phase) * felt(evidence, f);
  if (f.work_ratio > 0 && std::isfinite(f.work_ratio))
    verdict.work_ratio = evidence.side() == 1 ? f.work_ratio : 1 / f.work_ratio;
  return verdict;
}

/// Of several ranks that one on which the function takes longer by itself; -1: another one does by half as much, or
/// there is only one.
std::int32_t only_rank(const Evidence& evidence, const FunctionFinding& f) {
  constexpr double kMostElsewhere = 0.5;
  if (!evidence.has_ranks()) return -1;
  const double most = kMostElsewhere * evidence.turned(f.time_ns).rise();
  const bool elsewhere = std::ranges::any_of(evidence.comparison().functions, [&](const FunctionFinding& other) {
    return other.function == f.function && other.kind == f.kind && other.phase == f.phase &&
           other.process != f.process && evidence.turned(other.time_ns).rise() > most;
  });
  return elsewhere ? -1 : evidence.place_of(f).rank;
}

/// The side has it and the other does not, in no process.
bool is_new(const Evidence& evidence, const FunctionFinding& f) {
  const bool added = evidence.side() == 1;
  if (f.status != (added ? FunctionStatus::added : FunctionStatus::gone)) return false;
  return std::ranges::none_of(evidence.comparison().functions, [&](const FunctionFinding& other) {
    return other.function == f.function && other.status == (added ? FunctionStatus::gone : FunctionStatus::added);
  });
}

/// It is there instead of in another process: nobody's time but theirs.
bool has_moved(const Evidence& evidence, const FunctionFinding& f) {
  return (f.status == FunctionStatus::added || f.status == FunctionStatus::gone) && !is_new(evidence, f);
}

/// Others lie in it, or nobody tells what lies in what.
bool may_call_others(const Evidence& evidence, const FunctionFinding& f) {
  if (evidence.is_on_device(f)) return false;
  bool known = false;
  for (const FunctionFinding& other : evidence.comparison().functions) {
    if (evidence.is_on_device(other) || other.parent == 0) continue;
    if (other.parent == f.function && other.process == f.process) return true;
    known = true;
  }
  return !known;
}

/// A call of it takes longer than what all functions share makes it, and than as many more threads or bytes do.
bool takes_longer(const Evidence& evidence, const FunctionFinding& f, double usual) {
  const double ratio = evidence.side() == 1 ? f.work_ratio : 1 / f.work_ratio;
  const Sides size = evidence.turned(f.size);
  const double larger = size.without > 0 ? size.ratio() : 1;
  return std::isfinite(ratio) && ratio > kAlike * std::max({1.0, usual, larger});
}

/// The loop of an engine waits for the processes that run the model. Where its own does, it does not.
bool waits_for_model(const Evidence& evidence, const FunctionFinding& f) {
  const model::RunComparison& all = evidence.comparison();
  return all.texts[f.kind] == "python" && model::is_engine_step(all.texts[f.function]) &&
         std::ranges::none_of(all.functions, [&](const FunctionFinding& other) {
           return other.process == f.process &&
                  all.texts[other.function].find("ModelRunner.") != std::string_view::npos;
         });
}

/// What a function of the host takes longer beyond what all of them do, ns per step.
double beyond_usual(const Evidence& evidence, const FunctionFinding& f, double usual) {
  const Sides time = evidence.turned(f.time_ns);
  return time.with - std::max(1.0, usual) * time.without;
}

/// It loads what steps work on in a process that does none: these wait for it elsewhere, or not at all.
bool loads_beside(const Evidence& evidence, const FunctionFinding& f) {
  const model::RunComparison& all = evidence.comparison();
  return f.process < all.processes.size() && !all.processes[f.process].has_steps &&
         model::is_input(all.texts[f.function]);
}

/// Of a function that changed, or seems to: it takes longer on this side, by a part of the step that matters, and not
/// because everything does.
bool would_be_slower_alone(const Evidence& evidence, const FunctionFinding& f, double usual) {
  const model::RunComparison& all = evidence.comparison();
  if (f.moved_inside != 0 || has_moved(evidence, f) || evidence.doubts_cycles()) return false;
  if (!is_new(evidence, f) && evidence.has_longer_contexts(f.phase)) return false;
  if (model::is_wait(all.texts[f.kind])) return false;
  if (all.texts[f.kind] == "python" && model::is_python_wait(all.texts[f.function])) return false;
  if (waits_for_model(evidence, f) || loads_beside(evidence, f)) return false;
  // Where a step is another thing on each side nothing is a part of it.
  if (!(evidence.step_time(f.phase) > 0)) return false;
  const double rise = felt(evidence, f);
  // Kernels are steadier than what shares its CPUs with others.
  const double least = evidence.is_on_device(f) ? kLeastOfKernel : kLeastImpact;
  if (rise <= 0 || rise < least * evidence.step_time(f.phase)) return false;
  // What is nearly all of a step, and calls others, is no place in it.
  if (evidence.turned(f.time_ns).without > kNearlyAll * evidence.step_time(f.phase) && may_call_others(evidence, f))
    return false;
  if (is_new(evidence, f)) return true;
  const Sides calls = evidence.turned(f.calls);
  if (calls.ratio() > kAlike) return true;  // more of them
  if (!takes_longer(evidence, f, usual)) return false;
  // Functions of a host that are slower as one differ; what is beyond them has to matter by itself.
  if (evidence.is_on_device(f) || !(usual > kAlike)) return true;
  const double own = beyond_usual(evidence, f, usual);
  return own >= least * evidence.step_time(f.phase) && own >= kLeastOwn * evidence.turned(f.time_ns).rise();
}

bool is_slower_alone(const Evidence& evidence, const FunctionFinding& f, double usual) {
  return model::has_changed(f) && would_be_slower_alone(evidence, f, usual);
}

/// By how much longer the function itself ran in a step of its phase, ns: a function in which a thread waits, for a CPU
/// or for anything else, is not slow itself. The waterfall of the thread of the steps says it exactly; nullopt: that
/// has no such function.
std::optional<double> ran_longer(const Evidence& evidence, const FunctionFinding& f) {
  for (const model::Waterfall& waterfall : evidence.comparison().waterfalls) {
    if (waterfall.phase != f.phase || waterfall.device >= 0) continue;
    for (const model::WaterfallLine& line : waterfall.lines)
      if (line.function == f.function && line.state == model::LedgerState::function)
        return evidence.turned(line.time_ns).rise();
  }
  return std::nullopt;
}

/// What a step takes longer by the function itself, ns; 0: its thread was not on a CPU for what it took longer. Of
/// threads whose waits are not known function by function nothing is believed while the run queue grows.
double felt_of_itself(const Evidence& evidence, const FunctionFinding& f) {
  const double rise = felt(evidence, f);
  const auto step = evidence.step();
  if (!step || evidence.is_on_device(f)) return rise;
  if (const auto ran = ran_longer(evidence, f))
    return *ran >= kLeastImpact * evidence.step_time(f.phase) ? std::min(rise, *ran) : 0;
  const double all = evidence.turned(f.time_ns).rise();
  return step->on_cpu.rise() > kLeastOfGrowth * all && step->runnable.rise() < kLeastOfGrowth * all ? rise : 0;
}

/// Of that what not all functions share. Of one that is new or called more often nothing is shared.
double own_part(const Evidence& evidence, const FunctionFinding& f, double usual) {
  const double all = felt_of_itself(evidence, f);
  const bool is_shared =
      !evidence.is_on_device(f) && usual > kAlike && !is_new(evidence, f) && evidence.turned(f.calls).ratio() <= kAlike;
  return is_shared ? std::min(all, beyond_usual(evidence, f, usual)) : all;
}

/// Not a function, but what a thread did.
bool is_state(std::string_view kind) { return kind == "oncpu" || kind == "runq" || kind == "blocked"; }

bool is_between(const Evidence& evidence, const FunctionFinding& f) {
  return evidence.comparison().texts[f.kind] == "between";
}

/// Detail of a host that is late in it.
const char* of_one_function(const Evidence& evidence, const FunctionFinding& f) {
  if (model::is_collector(evidence.comparison().texts[f.function])) return "gc";
  return is_between(evidence, f) ? "between_functions" : "function";
}

/// What lies between functions, of a process of which no function was recorded: a step is all of that, and it is no
/// place in it.
bool is_all_there_is(const Evidence& evidence, const FunctionFinding& f) {
  if (!is_between(evidence, f)) return false;
  const model::RunComparison& all = evidence.comparison();
  return std::ranges::none_of(all.functions, [&](const FunctionFinding& other) {
    return other.process == f.process && other.phase == f.phase && !evidence.is_on_device(other) &&
           all.texts[other.kind] != "between" && !is_state(all.texts[other.kind]);
  });
}

/// It is called more often as others are, which is told of all of them, and a call takes no longer.
bool is_called_as_others(const Evidence& evidence, const FunctionFinding& f, const Verdicts& verdicts, double usual) {
  const Sides calls = evidence.turned(f.steady_calls);
  if (!(calls.without > 0) || !(calls.rise() > 0) || takes_longer(evidence, f, usual)) return false;
  const auto told = [](const Verdict& v) { return v.cause == "workload_changed" && v.detail == "calls"; };
  const auto of_its_phase = [&](const model::CallsChange& change) {
    return change.phase == f.phase && (change.device >= 0) == evidence.is_on_device(f);
  };
  return std::ranges::any_of(verdicts, told) && std::ranges::any_of(evidence.comparison().calls, of_its_phase);
}

/// What a kernel that this side alone has does, other kernels of the other side alone do there and take no less: it was
/// replaced, which is told of them.
bool was_replaced(const Evidence& evidence, const FunctionFinding& f) {
  if (!is_new(evidence, f) || f.was != 0) return false;
  Sides time;
  for (const FunctionFinding& other : evidence.comparison().functions) {
    if (other.kind != f.kind || other.phase != f.phase || evidence.place_of(other) != evidence.place_of(f)) continue;
    if (other.was != 0 || (other.status != FunctionStatus::added && other.status != FunctionStatus::gone)) continue;
    const Sides of_other = evidence.turned(other.time_ns);
    time.without += of_other.without;
    time.with += of_other.with;
  }
  return time.without > 0 && time.rise() <= 0;
}

/// A kernel that is only launched more often: more work, or the same in smaller pieces, and no slower kernel.
bool is_only_called_more(const Evidence& evidence, const FunctionFinding& f, double usual) {
  return f.was == 0 && !is_new(evidence, f) && !takes_longer(evidence, f, usual);
}

/// The kernel that takes most more by being launched more often, where nothing else tells that the work changed.
void more_launches(const Evidence& evidence, Verdicts& verdicts) {
  if (std::ranges::any_of(verdicts, [](const Verdict& v) { return v.cause == "workload_changed"; })) return;
  const model::RunComparison& all = evidence.comparison();
  const double usual = evidence.usual_ratio(true);
  const FunctionFinding* worst = nullptr;
  double most = 0;
  for (const FunctionFinding& f : all.functions) {
    if (all.texts[f.kind] != "gpu_compute" || !is_slower_alone(evidence, f, usual)) continue;
    if (!is_only_called_more(evidence, f, usual)) continue;
    const double impact = evidence.weight_of(f.phase) * felt(evidence, f);
    if (worst == nullptr || impact > most) worst = &f;
    most = std::max(most, impact);
  }
  if (worst == nullptr) return;
  Verdict verdict = verdict_of(evidence, *worst, "workload_changed", "calls", 0.7);
  verdict.state = evidence.state_of(verdict.impact_ns, felt(evidence, *worst) / evidence.step_time(worst->phase));
  verdict.evidence = {
      fmt::format("{} is launched {} times per step, {}", verdict.where, instead_number(evidence.turned(worst->calls)),
                  instead(evidence.turned(worst->time_ns))),
      fmt::format("A call takes x{:.2f}", verdict.work_ratio)};
  verdict.against.emplace_back(
      verdict.work_ratio * kAlike < 1
          ? "A call takes less than before: the same work in smaller pieces would look alike"
          : "Only its launches are counted, not what they work on: doing the same twice would look alike");
  verdict.next_step = "compare the model, its layers, and what a step loops over";
  verdicts.push_back(std::move(verdict));
}

/// The one that took most more; the others of a program follow from it as often as not.
void functions(const Evidence& evidence, Verdicts& verdicts) {
  const model::RunComparison& all = evidence.comparison();
  for (const bool device : {true, false}) {
    const double usual = evidence.usual_ratio(device);
    const FunctionFinding* worst = nullptr;
    double most = 0;
    for (const FunctionFinding& f : all.functions) {
      if (evidence.is_on_device(f) != device || !is_slower_alone(evidence, f, usual)) continue;
      if (is_called_as_others(evidence, f, verdicts, usual)) continue;
      if (device && (is_only_called_more(evidence, f, usual) || was_replaced(evidence, f))) continue;
      if (device && f.was == 0 && !is_new(evidence, f) && is_one_of_many(evidence, f)) continue;
      if (device ? all.texts[f.kind] != "gpu_compute"
                 : is_state(all.texts[f.kind]) || is_all_there_is(evidence, f) || felt_of_itself(evidence, f) == 0)
        continue;
      const double impact = evidence.weight_of(f.phase) * own_part(evidence, f, usual);
      if (worst == nullptr || impact > most) worst = &f;
      most = std::max(most, impact);
    }
    if (worst == nullptr) continue;
    const Sides calls = evidence.turned(worst->calls);
    const bool fresh = is_new(evidence, *worst) || worst->was != 0;
    Verdict verdict = device ? verdict_of(evidence, *worst, fresh ? "kernel_changed" : "kernel_regression", "", 0.8)
                             : verdict_of(evidence, *worst, "host_bound", of_one_function(evidence, *worst), 0.8);
    verdict.rank = only_rank(evidence, *worst);
    verdict.impact_ns = most;
    verdict.state = evidence.state_of(most, own_part(evidence, *worst, usual) / evidence.step_time(worst->phase));
    verdict.evidence = {fmt::format("{} takes {} per step; a step of the other side takes {}", verdict.where,
                                    instead(evidence.turned(worst->time_ns)),
                                    format_duration(evidence.step_time(worst->phase)))};
    if (const double waited = felt(evidence, *worst) - felt_of_itself(evidence, *worst); waited > 0)
      verdict.against.push_back(
          fmt::format("It takes {} more of that because its thread waited in it", format_duration(waited)));
    if (worst->was != 0)
      verdict.evidence.push_back(
          fmt::format("{} in the baseline is {} in the candidate", all.texts[worst->was], all.texts[worst->function]));
    else if (fresh)
      verdict.evidence.emplace_back("The other side does not have it");
    else if (calls.ratio() > kAlike)
      verdict.evidence.push_back(fmt::format("It is called {} times per step", instead_number(calls)));
    else
      verdict.evidence.push_back(fmt::format("A call takes x{:.2f}, the middle one of all functions there x{:.2f}",
                                             verdict.work_ratio, usual));
    if (device && !fresh && !evidence.clock_of(evidence.place_of(*worst)))
      verdict.against.emplace_back("The clock of its device was not recorded");
    verdict.next_step = device                         ? "culprit kernels of both sides, launch by launch"
                        : is_between(evidence, *worst) ? kRecordPython
                                                       : "culprit top --stacks of both sides";
    verdicts.push_back(std::move(verdict));
  }
}

/// The functions of this name lie in one that waits for input or makes it, as far as it is known who called whom.
bool lies_in_input(const Evidence& evidence, std::string_view where) {
  const model::RunComparison& all = evidence.comparison();
  const auto called_by = [&](const FunctionFinding& f) {
    return std::ranges::find_if(all.functions, [&](const FunctionFinding& outer) {
      return f.parent != 0 && outer.function == f.parent && outer.process == f.process && outer.phase == f.phase &&
             !evidence.is_on_device(outer);
    });
  };
  constexpr int kDeepest = 64;
  bool any = false;
  for (const FunctionFinding& f : all.functions) {
    if (evidence.is_on_device(f) || all.texts[f.short_name] != where || evidence.turned(f.time_ns).rise() <= 0)
      continue;
    bool inside = false;
    const FunctionFinding* at = &f;
    for (int i = 0; i < kDeepest && !inside; ++i) {
      inside = model::is_input(all.texts[at->function]) || model::is_input(all.texts[at->parent]);
      const auto outer = called_by(*at);
      if (outer == all.functions.end() || &*outer == at) break;
      at = &*outer;
    }
    if (!inside) return false;
    any = true;
  }
  return any;
}

/// A step that waits for what it works on: loading it is the cause, whoever of the program does it.
void input_functions(const Evidence& evidence, Verdicts& verdicts) {
  if (evidence.doubts_cycles()) return;
  const model::RunComparison& all = evidence.comparison();
  const FunctionFinding* worst = nullptr;
  double most = 0;
  for (const FunctionFinding& f : all.functions) {
    if (evidence.is_on_device(f) || !model::has_changed(f) || !model::is_input(all.texts[f.function])) continue;
    if (loads_beside(evidence, f)) continue;
    if (felt(evidence, f) < kLeastImpact * evidence.step_time(f.phase)) continue;
    const double impact = evidence.weight_of(f.phase) * felt(evidence, f);
    if (worst == nullptr || impact > most) worst = &f;
    most = std::max(most, impact);
  }
  if (worst == nullptr) return;
  Verdict verdict = verdict_of(evidence, *worst, "host_bound", "data_input", 0.9);
  verdict.rank = only_rank(evidence, *worst);
  verdict.state = evidence.is_slower() ? model::VerdictState::active : model::VerdictState::latent;
  verdict.evidence = {fmt::format("The step waited {} for its input", instead(evidence.turned(worst->time_ns)))};
  for (const FunctionFinding& f : all.functions)
    if (loads_beside(evidence, f) && f.work_ratio > 0 && takes_longer(evidence, f, 1))
      verdict.evidence.push_back(fmt::format("A call of {} takes {} in what loads it", all.texts[f.short_name],
                                             instead(evidence.turned(f.per_call_ns))));
  if (const auto step = evidence.step(); !step)
    verdict.against.emplace_back("Scheduling was not recorded: workers that had no CPU would look alike");
  else if (step->runnable.rise() >= kLeastImpact * step->all().without)
    verdict.against.push_back(
        fmt::format("Its threads waited {} for a CPU, too", instead_each(evidence, step->runnable)));
  verdict.next_step = "more workers that load, data nearer or smaller, or work on it moved out of the loader";
  std::erase_if(verdicts, [&](const Verdict& v) {
    return is_of_one_function(v) && (v.where == verdict.where || lies_in_input(evidence, v.where));
  });
  verdicts.push_back(std::move(verdict));
}

/// By the recorder's fixed work.
bool machine_was_slower(const Evidence& evidence) {
  const auto& host = evidence.comparison().host;
  return host && host->machine && (host->machine->change > 0) == (evidence.side() == 1);
}

/// Code that takes more of the CPU, by samples.
struct HotCode {
  std::string name;
  std::string detail;
  Sides share;      ///< of the samples
  double rise = 0;  ///< of a step, ns
};

/// What collects garbage together: none of its functions may be much by itself.
HotCode collectors_of(const Evidence& evidence) {
  HotCode all{"", "gc", {}};
  double most = 0;
  for (const model::ShareChange& change : evidence.comparison().on_cpu) {
    if (!model::is_collector(change.function)) continue;
    const Sides share = evidence.turned(change.share);
    all.share.without += share.without;
    all.share.with += share.with;
    if (!all.name.empty() && share.rise() <= most) continue;
    all.name = change.function;
    most = share.rise();
  }
  return all;
}

/// It was on threads that run steps less than half as often as all that ran was.
bool runs_elsewhere(const Evidence& evidence, const model::ShareChange& change) {
  constexpr double kHalf = 0.5;
  return evidence.turned(change.in_steps).with < kHalf;
}

/// Runtimes of OpenMP, in which threads spin until the others have come; code of the program is not in them.
bool waits_on_a_cpu(std::string_view function) {
  constexpr std::array<std::string_view, 6> kBegins = {"[libgomp", "[libiomp", "[libomp", "gomp_", "GOMP_", "__kmp"};
  return std::ranges::any_of(kBegins, [&](std::string_view begin) { return function.starts_with(begin); });
}

/// Code that takes more of the CPU than before, seen by samples alone: of programs whose functions are not traced.
void hot_code(const Evidence& evidence, Verdicts& verdicts) {
  const auto step = evidence.step();
  if (!evidence.is_slower() || !step || step->on_cpu.rise() < kLeastImpact * step->all().without) return;
  const model::RunComparison& all = evidence.comparison();
  if (machine_was_slower(evidence)) return;
  const bool lacks_cpus = std::ranges::any_of(
      verdicts, [](const Verdict& v) { return v.cause == "cpu_contention" && v.state == model::VerdictState::active; });
  std::vector<HotCode> candidates = {collectors_of(evidence)};
  // A function of Python stands for what it calls of the interpreter, each of which may be little.
  // Who runs beside the steps may hold the interpreter's lock, which is told of it.
  for (const model::ShareChange& change : all.python)
    if (!model::is_collector(change.function) && !runs_elsewhere(evidence, change) &&
        (all.work || std::isfinite(evidence.turned(change.in_steps).with)))
      candidates.push_back({change.function, "function", evidence.turned(change.share)});
  for (const model::ShareChange& change : all.on_cpu)
    if (!model::is_collector(change.function) && !runs_elsewhere(evidence, change) &&
        !(lacks_cpus && waits_on_a_cpu(change.function)))
      candidates.push_back({change.function, "function", evidence.turned(change.share)});
  for (HotCode& code : candidates) {
    // Its time per step: of a share of what ran.
    code.rise = code.share.with * step->on_cpu.with - code.share.without * step->on_cpu.without;
    if (code.share.rise() < kLeastShareRise / 2 || code.rise < kLeastOfGrowth * step->on_cpu.rise()) continue;
    Verdict verdict;
    verdict.cause = "host_bound";
    verdict.detail = code.detail;
    verdict.scope = model::VerdictScope::function;
    verdict.where = code.name;
    verdict.side = evidence.side();
    verdict.confidence = 0.6;
    verdict.impact_ns = code.rise;
    verdict.evidence = {
        fmt::format("{} ran in {} of the samples", code.detail == "gc" ? "Collecting garbage" : code.name,
                    instead_percent(code.share)),
        fmt::format("Its threads took {} on CPUs", instead_each(evidence, step->on_cpu))};
    verdict.against.emplace_back("Only samples tell it: how often it is called, and by whom, is not known");
    verdict.next_step = "culprit top --stacks of both sides";
    verdicts.push_back(std::move(verdict));
    return;
  }
}

/// Of few steps nothing of one function is shown beyond chance among hundreds. Where the steps are called slower and
/// nothing else says why, the one that makes most of it is likely, if every step takes longer in it than all of the
/// other side.
void likely(const Evidence& evidence, Verdicts& verdicts) {
  const auto is_active = [](const Verdict& v) { return v.state == model::VerdictState::active; };
  if (!evidence.is_slower() || !(evidence.growth() > 0) || std::ranges::any_of(verdicts, is_active)) return;
  const model::RunComparison& all = evidence.comparison();
  const std::array usual = {evidence.usual_ratio(false), evidence.usual_ratio(true)};
  const auto is_input = [&](const FunctionFinding& f) {
    return !evidence.is_on_device(f) && model::is_input(all.texts[f.function]);
  };
  const FunctionFinding* worst = nullptr;
  double most = 0;
  for (const FunctionFinding& f : all.functions) {
    const bool device = evidence.is_on_device(f);
    if (!f.apart || model::has_changed(f)) continue;
    if (device ? all.texts[f.kind] != "gpu_compute" : is_state(all.texts[f.kind]) || is_all_there_is(evidence, f))
      continue;
    if (!is_input(f) &&
        (!would_be_slower_alone(evidence, f, usual.at(device)) || (!device && felt_of_itself(evidence, f) == 0)))
      continue;
    const double impact = evidence.weight_of(f.phase) * (is_input(f) ? felt(evidence, f) : felt_of_itself(evidence, f));
    if (impact < kLeastOfGrowth * evidence.growth()) continue;
    // A call that waits for the device may take longer by as much as the device idled elsewhere.
    if (!device && !is_input(f) &&
        evidence.weight_of(f.phase) * evidence.idle_rise(f.phase, f.function).value_or(impact) <
            kLeastOfGrowth * evidence.growth())
      continue;
    // What makes the input lies inside of what waits for it.
    if (worst != nullptr && (is_input(*worst) != is_input(f) ? is_input(*worst) : impact <= most)) continue;
    worst = &f;
    most = impact;
  }
  if (worst == nullptr) return;
  const FunctionFinding& f = *worst;
  const bool device = evidence.is_on_device(f);
  std::string cause = "host_bound";
  std::string detail = is_input(f) ? "data_input" : of_one_function(evidence, f);
  if (device) {
    const bool more = is_only_called_more(evidence, f, usual[1]);
    cause = is_new(evidence, f) || f.was != 0 ? "kernel_changed" : more ? "workload_changed" : "kernel_regression";
    detail = more ? "calls" : "";
  }
  Verdict verdict = verdict_of(evidence, f, std::move(cause), std::move(detail), 0.6);
  verdict.impact_ns = most;
  verdict.state = model::VerdictState::active;
  verdict.rank = only_rank(evidence, f);
  verdict.evidence = {fmt::format("{} takes {} per step", verdict.where, instead(evidence.turned(f.time_ns))),
                      "Each step takes longer in it than every step of the other side"};
  verdict.against.push_back(
      fmt::format("So few steps do not show it beyond chance among {} functions", all.functions.size()));
  verdict.next_step = "record more steps, and compare again";
  verdicts.push_back(std::move(verdict));
}

/// Each unit of work computes more, and no code by itself makes most of that: a slower plan, more data, another
/// version. Asked for what nothing else explains. Units that compute more keep each other from the CPUs, too.
void more_work(const Evidence& evidence, Verdicts& verdicts) {
  constexpr double kMuchMore = 1.25;
  constexpr std::size_t kMostCode = 3;
  const model::RunComparison& all = evidence.comparison();
  const auto step = evidence.step();
  if (!all.work || all.work->unit.kind == model::UnitKind::window || !step || !evidence.is_slower()) return;
  if (std::ranges::any_of(verdicts, [](const Verdict& v) { return v.state == model::VerdictState::active; })) return;
  if (machine_was_slower(evidence)) return;
  if (step->on_cpu.ratio() < kMuchMore) return;
  const auto behind = evidence.behind_others();
  const double among_them = behind ? std::max(0.0, step->runnable.rise() - std::max(0.0, behind->rise())) : 0;
  if (step->on_cpu.rise() + among_them < kLeastOfGrowth * evidence.growth()) return;
  Verdict verdict = verdict_of(evidence, "host_bound", "more_work", 0.6);
  verdict.scope = model::VerdictScope::process;
  verdict.where = all.work->unit.process;
  verdict.impact_ns = step->on_cpu.rise() + among_them;
  verdict.work_ratio = step->on_cpu.ratio();
  verdict.evidence = {fmt::format("Its threads took {} on CPUs", instead_each(evidence, step->on_cpu))};
  if (among_them >= kLeastImpact * step->all().without)
    verdict.evidence.push_back(
        fmt::format("It waited {} for a CPU, of which programs that were not recorded had one for {}",
                    instead(step->runnable), instead(*behind)));
  std::vector<std::pair<double, std::string>> code;
  for (const model::ShareChange& change : all.on_cpu) {
    const Sides share = evidence.turned(change.share);
    const double rise = share.with * step->on_cpu.with - share.without * step->on_cpu.without;
    if (rise > 0)
      code.emplace_back(rise, fmt::format("{} ran in {} of the samples", change.function, instead_percent(share)));
  }
  std::ranges::stable_sort(code, std::ranges::greater(), &std::pair<double, std::string>::first);
  for (auto& [rise, text] : code | std::views::take(kMostCode)) verdict.evidence.push_back(std::move(text));
  verdict.against.emplace_back(
      "Whether other work came, or the same takes more (a plan, data, a version), is not known");
  verdict.next_step = "culprit top --stacks on-cpu of both sides; of a database, EXPLAIN what it is asked";
  verdicts.push_back(std::move(verdict));
}

constexpr std::array kLastProgramRules = {Rule{"program.more_work", more_work}};
constexpr std::array kFewStepsRules = {Rule{"program.likely", likely}};
constexpr std::array kProgramRules = {Rule{"program.more_launches", more_launches},
                                      Rule{"program.functions", functions}, Rule{"program.input", input_functions},
                                      Rule{"program.hot_code", hot_code}};

}  // namespace

std::span<const Rule> program_rules() { return kProgramRules; }
std::span<const Rule> few_steps_rules() { return kFewStepsRules; }
std::span<const Rule> last_program_rules() { return kLastProgramRules; }

}  // namespace culprit::diagnose
