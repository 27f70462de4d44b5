// A device that waits for its host, and what the host does meanwhile.
#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>

#include "diagnose/rules.h"
#include "diagnose/text.h"
#include "diagnose/thresholds.h"
#include "model/ledger.h"

namespace culprit::diagnose {

namespace {

using model::Verdict;
using model::VerdictState;
using model::Waterfall;
using model::WaterfallLine;

/// What is found of functions of the host of this name; nullptr: it is none, but a range or nothing.
const model::FunctionFinding* finding_of(const Evidence& evidence, StringId function) {
  const auto& functions = evidence.comparison().functions;
  const auto found = std::ranges::find_if(
      functions, [&](const model::FunctionFinding& f) { return f.function == function && !evidence.is_on_device(f); });
  return found == functions.end() ? nullptr : &*found;
}

/// A call that ends when a device, or anything else, has done something: who is late behind it was not woken in time.
bool waits(const Evidence& evidence, StringId function) {
  const model::FunctionFinding* f = finding_of(evidence, function);
  if (f == nullptr) return false;
  const model::RunComparison& all = evidence.comparison();
  const std::string_view kind = all.texts[f->kind];
  const std::string_view name = all.texts[function];
  return model::is_wait(kind) || (kind == "cuda_api" && name.find("Memcpy") != name.npos) ||
         (kind == "python" && model::is_python_wait(name));
}

/// The thread of the steps spent longer there by so much, ns, beyond what all functions of the host share.
double own_rise(const Evidence& evidence, const WaterfallLine& line) {
  const Sides host = evidence.turned(line.host_ns);
  return host.with - std::max(1.0, evidence.usual_ratio(false)) * host.without;
}

/// What stands beside it and would explain as much. Functions that are all slower, where nobody tells why, take what is
/// left.
bool is_explained(const Evidence& evidence, const Verdicts& verdicts, bool by_input) {
  return std::ranges::any_of(verdicts, [&](const Verdict& v) {
    if (is_of_all_functions(v)) return false;
    if (by_input && v.detail == "data_input") return false;
    return !std::isfinite(v.impact_ns) ? v.state == VerdictState::active
                                       : v.impact_ns >= kLeastOfGrowth * evidence.growth();
  });
}

/// A device idles for most of what a step takes longer, because its host was late, and the host was in one place then:
/// an operator, the loader, or the program's own code between them. The ledger says that exactly, step by step; of
/// hundreds of functions in a few steps a test says nothing, and of what lies between functions there is none.
void one_place(const Evidence& evidence, Verdicts& verdicts) {
  const double growth = evidence.growth();
  if (!(growth > 0) || evidence.doubts_cycles()) return;
  const model::RunComparison& all = evidence.comparison();
  const Waterfall* where = nullptr;
  const WaterfallLine* worst = nullptr;
  double most = 0;
  for (const Waterfall& waterfall : all.waterfalls)
    for (const WaterfallLine& line : waterfall.lines) {
      if (line.state != model::LedgerState::idle_host || waits(evidence, line.function)) continue;
      if (!line.apart && !evidence.is_slower()) continue;
      const double rise = evidence.turned(line.time_ns).rise();
      const double least = kLeastOfGrowth * growth / evidence.weight_of(waterfall.phase);
      if (!(rise >= least) || !(own_rise(evidence, line) >= least)) continue;
      if (rise < kLeastImpact * evidence.step_time(waterfall.phase)) continue;
      const double impact = evidence.weight_of(waterfall.phase) * rise;
      if (impact <= most) continue;
      where = &waterfall;
      worst = &line;
      most = impact;
    }
  if (worst == nullptr) return;
  const std::string_view name = all.texts[worst->function];
  const bool by_input = model::is_input(name);
  if (is_explained(evidence, verdicts, by_input)) return;
  if (!by_input && !evidence.profiled_alone().empty())
    return;  // a host that is recorded in more detail is late by that
  const model::FunctionFinding* finding = finding_of(evidence, worst->function);
  Verdict verdict;
  verdict.cause = "host_bound";
  verdict.detail = by_input                    ? "data_input"
                   : model::is_collector(name) ? "gc"
                   : worst->between            ? "between_functions"
                                               : "function";
  verdict.scope = model::VerdictScope::function;
  verdict.where = finding != nullptr && finding->short_name != 0 ? all.texts[finding->short_name] : name;
  verdict.side = evidence.side();
  verdict.confidence = 0.7;
  verdict.impact_ns = most;
  verdict.state = evidence.state_of(most, evidence.turned(worst->time_ns).rise() / evidence.step_time(where->phase));
  const std::string place = worst->between && !by_input ? (name.empty() ? "outside of functions"
                                                                        : fmt::format("in {}, between functions", name))
                                                        : fmt::format("in {}", verdict.where);
  verdict.evidence = {fmt::format("The device idled for {} per step because its host was late, and {}",
                                  instead(evidence.turned(worst->time_ns)), place),
                      fmt::format("The thread of the steps spent {} there", instead(evidence.turned(worst->host_ns)))};
  if (!evidence.step())
    verdict.against.emplace_back(
        worst->between || !by_input
            ? "Scheduling was not recorded: a thread that had no CPU, or not the interpreter's lock, would look alike"
            : "Scheduling was not recorded: workers that had no CPU would look alike");
  verdict.next_step = by_input ? "more workers that load, data nearer or smaller, or work on it moved out of the loader"
                      : worst->between ? kRecordPython
                                       : "culprit top --stacks of both sides";
  for (Verdict& v : verdicts)
    if (is_of_all_functions(v) && std::isfinite(v.impact_ns))
      v.impact_ns = std::clamp(v.impact_ns, 0.0, std::max(0.0, growth - most));
  std::erase_if(verdicts, [&](const Verdict& v) { return by_input && v.detail == "data_input"; });
  verdicts.push_back(std::move(verdict));
}

constexpr std::array kLateHostRules = {Rule{"host.one_place", one_place}};

}  // namespace

std::span<const Rule> late_host_rules() { return kLateHostRules; }

}  // namespace culprit::diagnose
