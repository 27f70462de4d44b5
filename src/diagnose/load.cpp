// The program was given other work: more requests at once, longer prompts, larger batches. That is nobody's fault.
#include <array>
#include <cmath>
#include <string>
#include <utility>

#include "core/units.h"
#include "diagnose/kernels.h"
#include "diagnose/rules.h"
#include "diagnose/text.h"

namespace culprit::diagnose {

namespace {

using model::Verdict;

constexpr double kLeastOther = 0.5;    // of the steps
constexpr double kLeastLonger = 1.03;  // of the kernels' time
constexpr double kMostOfBoth = 0.5;    // of the time of more calls
constexpr double kMostInstead = 0.25;  // of it, by functions called less often
constexpr double kOtherSpeed = 0.05;
constexpr double kLittleBetween = 0.01;   // of a step
constexpr std::size_t kFewestCalled = 3;  // functions

Verdict verdict_of(const Evidence& evidence, double impact, double confidence) {
  Verdict verdict;
  verdict.cause = "workload_changed";
  verdict.scope = model::VerdictScope::process;
  verdict.side = evidence.side();
  verdict.impact_ns = impact;
  verdict.confidence = confidence;
  verdict.next_step = "compare runs under the same load, or look at the steps of like work below";
  return verdict;
}

/// That steps of like work take longer as well, which other work is no reason for; empty: they do not, or there are
/// none.
std::string like_steps_too(const Evidence& evidence, const model::CycleTimeOutcome& outcome) {
  if (!model::is_judged(outcome)) return "";
  const Sides time = evidence.turned(outcome.time_ns);
  if (!(time.rise() >= kLeastImpact * time.without)) return "";
  return fmt::format("Steps of like work ({}) take {}, too: that is not by this", model::phase_name(outcome.phase),
                     instead(time));
}

std::string what_differs(const Evidence& evidence, const model::CycleTimeOutcome& outcome) {
  const auto& work = outcome.usual_work;
  const std::string_view phase = model::phase_name(outcome.phase);
  if (work[0] != work[1])
    return fmt::format("Steps ({}) are most often of {} instead of {}", phase, work[evidence.side()],
                       work[1 - evidence.side()]);
  const Sides requests = evidence.turned(outcome.requests);
  if (requests.with > 0 && requests.without > 0 && short_number(requests.with) != short_number(requests.without))
    return fmt::format("Steps ({}) work for {} requests in the mean", phase, instead_number(requests));
  return fmt::format("Steps ({}) are most often of {} on both sides, and otherwise of other work", phase, work[0]);
}

/// Steps tell what they work on. Like ones are compared; that there are others is told here.
void marked(const Evidence& evidence, Verdicts& verdicts) {
  double impact = 0;
  double share = 0;
  std::string text;
  std::string against;
  model::Phase phase = model::Phase::other;
  Sides all_steps;
  for (const model::CycleTimeOutcome& outcome : evidence.comparison().cycle_times) {
    if (outcome.other_share < kLeastOther || outcome.usual_work[0].empty() || outcome.usual_work[1].empty()) continue;
    // Less work is no reason for longer steps.
    if (!model::tells_usual_work(outcome) || model::has_less_work(outcome, evidence.side())) continue;
    // How many a server batches changes from second to second under the same load.
    if (!evidence.is_slower() && model::may_be_batched(outcome, evidence.side())) continue;
    // Fewer requests behind shorter prompts look back at less, too, where steps do not tell at how much.
    const Sides requests = evidence.turned(outcome.requests);
    if (requests.with > 0 && requests.with < requests.without &&
        model::has_longer_prompts(evidence.comparison().cycle_times, 1 - evidence.side()))
      continue;
    const Sides all = evidence.turned(outcome.all_ns);
    const double alike = model::is_judged(outcome) ? evidence.turned(outcome.time_ns).rise() : 0;
    // Few like ones are few of all.
    const double rise = all.rise() - (std::isfinite(alike) ? (1 - outcome.other_share) * alike : 0);
    if (rise < kLeastImpact * all.without || evidence.weight_of(outcome.phase) * rise <= impact) continue;
    impact = evidence.weight_of(outcome.phase) * rise;
    share = outcome.other_share;
    phase = outcome.phase;
    all_steps = all;
    against = like_steps_too(evidence, outcome);
    text = what_differs(evidence, outcome);
  }
  if (text.empty()) return;
  Verdict verdict = verdict_of(evidence, impact, 0.9);
  verdict.state = model::VerdictState::active;
  verdict.evidence = {
      std::move(text), fmt::format("{:.0f} % of the steps work on something that the other side's do not", share * 100),
      fmt::format("Steps of any work ({}) take {} in the mean", model::phase_name(phase), instead(all_steps))};
  if (!against.empty()) verdict.against.push_back(std::move(against));
  verdicts.push_back(std::move(verdict));
}

/// Each unit of work ends in another answer, and takes longer.
void other_answers(const Evidence& evidence, Verdicts& verdicts) {
  const auto& work = evidence.comparison().work;
  if (!work || !work->other_answers) return;
  const Sides bytes = evidence.turned(work->answer_bytes);
  if (!(evidence.growth() > 0)) return;
  Verdict verdict = verdict_of(evidence, evidence.growth(), 0.8);
  verdict.evidence = {fmt::format("An answer of {} is of {} instead of {}", work->unit.process,
                                  format_bytes(bytes.with), format_bytes(bytes.without))};
  verdict.against.emplace_back("Another version of it, or one that fails, may give other answers to the same requests");
  verdict.next_step = "compare runs that are asked for the same";
  verdicts.push_back(std::move(verdict));
}

/// Prompts are longer: a few steps, often without their like on the other side, but the longest, and the contexts of
/// all others grow by them.
void longer_prompts(const Evidence& evidence, Verdicts& verdicts) {
  constexpr double kLeastOfAll = 0.02;   // of the mean step, whatever it works on
  constexpr double kOftenCached = 0.25;  // of the steps that compute prompts
  for (const Verdict& v : verdicts)
    if (v.cause == "workload_changed") return;
  double mean = 0;
  for (const model::CycleTimeOutcome& outcome : evidence.comparison().cycle_times)
    mean += evidence.weight_of(outcome.phase) * evidence.turned(outcome.all_ns).without;
  for (const model::CycleTimeOutcome& outcome : evidence.comparison().cycle_times) {
    const Sides tokens = evidence.turned(outcome.prompt_tokens);
    const Sides all = evidence.turned(outcome.all_ns);
    if (!model::has_longer_prompts(outcome, evidence.side())) continue;
    const double alike = model::is_judged(outcome) ? evidence.turned(outcome.time_ns).rise() : 0;
    const double impact = evidence.weight_of(outcome.phase) * (all.rise() - (std::isfinite(alike) ? alike : 0));
    if (impact < kLeastOfAll * mean) continue;
    // What a server has in its cache changes from minute to minute under the same load: where steps are not called
    // slower it is no cause.
    const Sides cached = evidence.turned(outcome.cached_prompts);
    const bool by_cache = cached.without >= kOftenCached && cached.without > cached.with;
    if (by_cache && (!evidence.is_slower() || impact < kLeastImpact * mean)) continue;
    Verdict verdict = verdict_of(evidence, impact, 0.8);
    verdict.state = impact >= kLeastImpact * mean ? model::VerdictState::active : model::VerdictState::latent;
    verdict.evidence = {fmt::format("Steps ({}) compute {:.0f} instead of {:.0f} tokens of prompts",
                                    model::phase_name(outcome.phase), tokens.with, tokens.without),
                        fmt::format("They take {} in the mean", instead(all))};
    if (!model::is_judged(outcome)) verdict.evidence.back() += "; none of like work is on both sides";
    if (by_cache)
      verdict.evidence.push_back(fmt::format("{} of them compute hardly a token of a prompt: the rest was in a cache",
                                             instead_percent(cached)));
    if (evidence.has_longer_contexts(model::Phase::decode))
      verdict.evidence.emplace_back("Steps (decode) do not tell how much they look back at, which is more then");
    if (std::string against = like_steps_too(evidence, outcome); !against.empty())
      verdict.against.push_back(std::move(against));
    verdicts.push_back(std::move(verdict));
    return;
  }
}

/// Nothing tells what steps work on, but most kernels, of all or of those that tell, are launched with more threads.
void larger_kernels(const Evidence& evidence, Verdicts& verdicts) {
  for (const Verdict& v : verdicts)
    if (v.cause == "workload_changed") return;
  for (const model::CycleTimeOutcome& outcome : evidence.comparison().cycle_times)
    if (!outcome.usual_work[0].empty() || !outcome.usual_work[1].empty()) return;
  for (const DeviceKernels& kernels : kernels_of(evidence)) {
    if (!does_more(kernels) || kernels.ratio < kLeastLonger) continue;
    const LargerKernels larger = larger_kernels_of(kernels);
    Verdict verdict = verdict_of(evidence, kernels.rise, 0.7);
    verdict.work_ratio = larger.slower ? kernels.slower_ratio : kernels.ratio;
    const bool longer = evidence.is_slower() || evidence.growth() >= kLeastImpact * evidence.mean_step();
    verdict.state =
        longer && kernels.largest_rise >= kLeastImpact ? model::VerdictState::active : model::VerdictState::latent;
    verdict.evidence = {
        fmt::format("Kernels that take {:.0f} % of the time of {}{} are launched with x{:.2f} the threads",
                    larger.share * 100, evidence.name_of(kernels.place), larger.of, kernels.size_ratio),
        fmt::format("They took x{:.2f}", verdict.work_ratio)};
    verdict.against.emplace_back("A larger model would look alike");
    verdicts.push_back(std::move(verdict));
    return;
  }
}

/// Steps of like work call what both sides have more often: layers more, rounds more of a loop. That does not move with
/// the machine, whatever the times of the steps do. Where other functions went for it, the program does its work in
/// another way, and it is no more work.
void more_calls(const Evidence& evidence, Verdicts& verdicts) {
  const model::RunComparison& all = evidence.comparison();
  const model::CallsChange* most = nullptr;
  double impact = 0;
  double share = 0;
  for (const model::CallsChange& change : all.calls) {
    const double rise = evidence.side() == 1 ? change.change : 1 / (1 + change.change) - 1;
    const Sides moved = evidence.turned(change.moved_ns);
    const bool by_new_ones = evidence.turned(change.of_both_ns).with < kMostOfBoth * moved.with;
    const bool instead_of_others = moved.without > kMostInstead * moved.with;
    if (!(rise >= kLeastImpact) || by_new_ones || instead_of_others) continue;
    if ((evidence.side() == 1 ? change.more : change.fewer) < kFewestCalled) continue;
    const double time = evidence.weight_of(change.phase) * rise * evidence.step_time(change.phase);
    if (time <= impact) continue;
    most = &change;
    impact = time;
    share = rise;
  }
  if (most == nullptr) return;
  const model::FunctionFinding& example = all.functions[most->example[evidence.side()]];
  Verdict verdict = verdict_of(evidence, impact, 0.9);
  verdict.detail = "calls";
  verdict.work_ratio = 1 + share;
  verdict.state = evidence.state_of(impact, share);
  verdict.evidence = {fmt::format("{} of {} functions are called more often in steps of like work, {} {} times",
                                  evidence.side() == 1 ? most->more : most->fewer, most->functions,
                                  all.texts[example.short_name], instead_number(evidence.turned(example.steady_calls))),
                      fmt::format("At the same speed that makes {:+.1f} % of a step ({})", share * kPercent,
                                  model::phase_name(most->phase))};
  if (const double with_between =
          evidence.side() == 1 ? most->change_with_between : 1 / (1 + most->change_with_between) - 1;
      with_between - share > kLittleBetween)
    verdict.evidence.back() +=
        fmt::format(", {:+.1f} % if what lies between functions goes with them", with_between * kPercent);
  if (const double speed = evidence.side() == 1 ? most->speed : 1 / most->speed; std::abs(speed - 1) > kOtherSpeed)
    verdict.against.push_back(
        fmt::format("A call of the middle one of these functions takes x{:.2f}: that is not by this", speed));
  verdict.next_step = "compare the model, its layers, and what a step loops over";
  verdicts.push_back(std::move(verdict));
}

constexpr std::array kLoadRules = {Rule{"load.marked", marked}, Rule{"load.longer_prompts", longer_prompts},
                                   Rule{"load.larger_kernels", larger_kernels}, Rule{"load.more_calls", more_calls},
                                   Rule{"load.other_answers", other_answers}};

}  // namespace

std::span<const Rule> load_rules() { return kLoadRules; }

}  // namespace culprit::diagnose
