// Cycles from nothing but the sequence of operations: of the GPU, or of the host where there is no GPU work.
//
// Every operation gives tokens: its name, its name with its grid, and the pair with the operation before. Tokens that
// alternate with each other form a class (token_classes.h); the step is the class that holds what is not repeated
// inside a step: input copies, embedding, loss, sampling, optimizer, copies to the host. One walk over all operations
// cuts at every wrap of the class's order (wheel.h). When the cycles so found alternate between parts of a step, the
// class that holds a whole period of them is taken instead (alternation.h).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "cycles/alternation.h"
#include "cycles/confidence.h"
#include "cycles/cutting.h"
#include "cycles/operations.h"
#include "cycles/token_classes.h"
#include "cycles/tokens.h"
#include "cycles/wheel.h"
#include "stats/quantile.h"

namespace culprit::cycles {

namespace {

constexpr std::size_t kFirstLook = std::size_t{1} << 19;  // operations looked at to find the period
constexpr int kMostMerges = 3;                            // parts of parts of parts

/// Robust spread of the periods: median distance from the median over the median.
double irregularity(const std::vector<Operation>& list, const std::vector<std::uint32_t>& cuts) {
  if (cuts.size() < 3) return 1;
  std::vector<double> periods;
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i)
    periods.push_back(static_cast<double>(list[cuts[i + 1]].at - list[cuts[i]].at));
  const double middle = stats::median(periods);
  if (middle <= 0) return 1;
  for (double& p : periods) p = std::abs(p - middle);
  return stats::median(std::move(periods)) / middle;
}

struct Choice {
  std::vector<Token> tokens;
  std::vector<TokenClass> classes;
  TokenClass step;
  bool merged = false;  ///< of parts that alternate
  std::size_t updates_every = 0;
  std::vector<std::string> notes;
};

std::optional<Choice> find_step(const std::vector<Operation>& list) {
  for (std::size_t n = std::min(list.size(), kFirstLook);; n = std::min(list.size(), n * 4)) {
    Choice choice;
    choice.tokens = count_tokens(list, n);
    choice.classes = find_classes(choice.tokens, n);
    const TokenClass* step = choose(choice.classes, choice.tokens);
    if (step != nullptr) choice.step = *step;
    if (step != nullptr && (step->tells_step() || n == list.size())) return choice;
    if (n == list.size()) return std::nullopt;
  }
}

/// The class that occurs about `count` times and holds most; nullptr when there is none.
const TokenClass* class_of(const std::vector<TokenClass>& classes, double count) {
  constexpr double kNear = 0.15;  // lost events, and periods that are cut off
  const TokenClass* best = nullptr;
  const auto key = [](const TokenClass& c) { return std::tuple(c.regular, c.names, c.members.size()); };
  for (const TokenClass& c : classes)
    if (std::abs(static_cast<double>(c.count) - count) <= count * kNear + 1 && c.extent > confidence::kSpansMost &&
        (best == nullptr || key(*best) < key(c)))
      best = &c;
  return best;
}

std::string sizes_of(const Alternation& alternation) {
  std::string text;
  for (std::size_t i = 0; i < alternation.sizes.size(); ++i)
    text += fmt::format("{}{}", i == 0 ? "" : i + 1 == alternation.sizes.size() ? " and " : ", ", alternation.sizes[i]);
  return text;
}

/// Puts parts that alternate together, until what is found are no parts. What the parts hold, the step holds.
void merge_parts(const std::vector<Operation>& list, std::string_view what, Choice& choice) {
  for (int i = 0; i < kMostMerges; ++i) {
    const std::vector<std::uint32_t> cuts = walk(list, build_wheel(list, choice.tokens, choice.step));
    const Alternation found = find_alternation(list, cuts);
    if (found.period == 1) return;
    if (!found.parts) {
      choice.updates_every = found.updates_every;
      if (found.updates_every == 0)
        choice.notes.push_back(fmt::format("cycles of {} {} follow each other in this order; each was taken for a step",
                                           sizes_of(found), what));
      return;
    }
    const TokenClass* whole = class_of(choice.classes, static_cast<double>(cuts.size()) / found.period);
    if (whole == nullptr) return;
    choice.notes.push_back(fmt::format("parts of {} {} alternate and were put together", sizes_of(found), what));
    const TokenClass part = choice.step;
    choice.step = *whole;
    choice.merged = true;
    choice.step.roles = std::max(choice.step.roles, part.roles);
    choice.step.ends = choice.step.ends || part.ends;
    choice.step.embeds = choice.step.embeds || part.embeds;
    choice.step.draws = choice.step.draws || part.draws;
    choice.step.backward = choice.step.backward || part.backward;
  }
}

/// What a class of tokens is worth, and why.
struct Judgement {
  double period = 0;
  std::string_view reason;
};

Judgement judge(const Choice& choice) {
  using namespace confidence;
  const TokenClass& step = choice.step;
  const bool once = step.tells_step() && step.ends;
  // Layers may copy to and from the host and look rows up; only what no layer does makes a step of it.
  const bool known = once && (step.firm || (step.embeds && !step.enclosed));
  const bool trains = step.backward && step.regular && step.extent > kFills && !step.enclosed;
  if (known) {
    constexpr std::string_view kWhy =
        ", among them what a step does only once (input, loss, sampling, optimizer, copies to the host)";
    return {step.roles >= kManyKindsWeight   ? kManyKinds
            : step.roles >= kSomeKindsWeight ? kSomeKinds
                                             : kFewKinds,
            kWhy};
  }
  constexpr std::string_view kTrains = ", a backward pass among them, and fill the recording";
  if (trains) return {kBackwardFills, kTrains};
  if (step.decisive && step.regular && step.extent > kFills && !step.enclosed)
    return {kDecisiveFills, ", sampling or an optimizer among them, and fill the recording"};
  if (choice.merged) return {kMergedParts, ", more than one part, but nothing among them that only a step does"};
  if (once)
    return {kMayBeLayer,
            ", copies to and from the host among them, but no sampling, loss or optimizer: layers may copy, too"};
  return {step.roles >= kTellsStep || step.nested ? kNotInnermost
          : step.roles > 0                        ? kOneKind
                                                  : kRepeats,
          ", but nothing among them tells a step from a part of one, such as a layer"};
}

double phase_confidence(const Wheel& wheel) {
  using namespace confidence;
  const double phase = wheel.clear_begin                  ? kClearBegin
                       : wheel.fits_recording             ? kFitsRecording
                       : wheel.gap_ratio > kClearGapRatio ? kClearGap
                                                          : kSomeGap;
  return wheel.gap_ratio < kAmbiguousGapRatio && !wheel.fits_recording ? phase - kAmbiguousGap : phase;
}

/// The lane of one rank whose operations are cut at `cuts`.
Lane lane_of(const Trace& trace, const Operations& rank, const std::vector<std::uint32_t>& cuts) {
  Lane lane;
  lane.track = rank.track;
  for (const std::uint32_t cut : cuts) {
    const Operation& op = rank.list[cut];
    // Graph nodes and a kernel may share one launcher; a cut cannot lie inside it.
    if (!lane.cuts.empty() && op.at <= lane.cuts.back().begin) continue;
    lane.cuts.push_back({op.at, op.at, trace.slices[op.slice].name, -1});
    if (lane.track == kNone && rank.source == OperationSource::launches && op.role != Role::sync) {
      const Slice& s = trace.slices[op.slice];
      if (s.gpu != kNone && trace.gpu[s.gpu].launcher != kNone)
        lane.track = trace.slices[trace.gpu[s.gpu].launcher].track;
    }
  }
  // The last step reaches to the last launch, unless much more follows than a step.
  if (lane.cuts.size() >= 2) {
    const Operation& last = rank.list.back();
    const Ns usual = (lane.cuts.back().begin - lane.cuts.front().begin) / static_cast<Ns>(lane.cuts.size() - 1);
    if (last.host_end - lane.cuts.back().begin < usual * 2) lane.cuts.back().end = last.host_end + 1;
  }
  return lane;
}

}  // namespace

std::optional<Cutting> cut_by_sequence(const Trace& trace, const SliceOrder& order) {
  const std::vector<Operations> ranks = list_operations(trace, order);
  // One rank decides what a step is, all are cut by it: with the same operations, each on its own clock.
  std::size_t decides = 0;
  for (std::size_t r = 1; r < ranks.size(); ++r)
    if (ranks[r].list.size() > ranks[decides].list.size()) decides = r;
  if (ranks.empty() || ranks[decides].list.size() < kMinRepetitions) return std::nullopt;
  const std::vector<Operation>& list = ranks[decides].list;
  const OperationSource source = ranks[decides].source;
  const std::string_view what = source == OperationSource::host_thread ? "operators" : "GPU operations";
  std::optional<Choice> choice = find_step(list);
  if (!choice) return std::nullopt;
  merge_parts(list, what, *choice);
  mark_nested(choice->classes, choice->tokens, choice->step);
  const TokenClass& step = choice->step;
  const Wheel wheel = build_wheel(list, choice->tokens, step);

  Cutting cutting;
  cutting.method = source == OperationSource::host_thread ? model::CycleMethod::operator_sequence
                                                          : model::CycleMethod::launch_sequence;
  cutting.device_time = source == OperationSource::device;
  cutting.updates_every = std::max(choice->updates_every, step.updates_every);
  cutting.notes = std::move(choice->notes);
  double spread = 0;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    if (ranks[r].source != source) {
      cutting.notes.push_back(fmt::format(
          "rank {} was left out: its GPU work {} host calls", r,
          source == OperationSource::launches ? "has no links to" : "is, unlike that of others, linked to"));
      continue;
    }
    const std::vector<std::uint32_t> cuts = walk(ranks[r].list, wheel);
    if (cuts.size() < kMinRepetitions) continue;
    Lane lane = lane_of(trace, ranks[r], cuts);
    lane.rank = static_cast<std::uint16_t>(r);
    spread = std::max(spread, irregularity(ranks[r].list, cuts));
    if (cuts.front() > wheel.median_length * 0.2)
      cutting.notes.push_back(
          fmt::format("rank {}: {} {} before the first whole cycle belong to none", r, cuts.front(), what));
    if (ranks[r].unlinked > 0)
      cutting.notes.push_back(
          fmt::format("rank {}: {} GPU operations without a known launch were not looked at", r, ranks[r].unlinked));
    if (cutting.anchor.empty() || r == decides)
      cutting.anchor = fmt::format("{} from \"{}\"", source == OperationSource::host_thread ? "operators" : "launches",
                                   trace.name(trace.slices[ranks[r].list[cuts.front()].slice]));
    cutting.lanes.push_back(std::move(lane));
  }
  if (cutting.lanes.empty()) return std::nullopt;
  const Judgement judgement = judge(*choice);
  if (source == OperationSource::host_thread &&
      (step.names < 2 || (judgement.period < confidence::kNoMereRepetition && spread > confidence::kIrregularSpread)))
    return std::nullopt;
  double period = judgement.period;
  if (step.count < confidence::kFewRepetitions) period -= confidence::kFew;
  if (spread > confidence::kIrregularSpread) period *= confidence::kIrregular;
  period *= std::min(1.0, 0.5 + step.alternation * 0.5);
  cutting.period_confidence = std::clamp(period, confidence::kSequenceLeast, confidence::kSequenceMost);
  cutting.phase_confidence =
      std::max(confidence::kSequenceLeast, std::min(phase_confidence(wheel), cutting.period_confidence));
  cutting.reason = fmt::format(
      "{} things repeat together {} times, about {:.0f} {} apart{}{}; a cycle begins where the {} is largest{}",
      step.members.size(), step.count, wheel.median_length, what, judgement.reason,
      step.enclosed && !step.firm ? "; a longer repetition holds them a fixed number of times" : "",
      source == OperationSource::host_thread ? "gap between them" : "launch gap",
      wheel.clear_begin ? ", where input begins or output ends" : "; a sequence alone has no natural beginning");
  return cutting;
}

}  // namespace culprit::cycles
