#include "compare/work_outcome.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "compare/bystanders.h"
#include "compare/host_changes.h"
#include "compare/work.h"
#include "core/units.h"

namespace culprit::compare {

namespace {

using model::Outcome;
using model::WorkChange;

constexpr std::string_view kCallsUncounted = "calls_uncounted";  // of LossReason

/// Whether others took CPUs of the side that the program, or who asks it, wanted: its run queue got longer, or no CPU
/// was left.
bool competed(const model::WorkComparison& result, std::size_t side, double busy) {
  double more = 0;
  for (const WorkChange& other : result.others) more += other.value[side] - other.value[1 - side];
  const auto queue = std::ranges::find(result.parts, kInRunQueue, &WorkChange::what);
  const bool longer = queue != result.parts.end() && queue->value[side] > (1 + kLongerQueue) * queue->value[1 - side];
  return was_held_back(more, 0) && (longer || busy > kNoneLeft);
}

/// The program that took more CPUs on this side than any other, and whether it was alone.
std::string who_took(const model::WorkComparison& result, std::size_t side) {
  const auto more = [&](const WorkChange& other) { return other.value[side] - other.value[1 - side]; };
  const auto most = std::ranges::max_element(result.others, {}, more);
  if (most == result.others.end() || !(more(*most) > 0)) return "others";
  const bool alone = std::ranges::count_if(result.others, [&](const WorkChange& o) { return more(o) > 0; }) == 1;
  return alone ? most->what : most->what + " and others";
}

/// Where the throughput spreads too much: the side that others held back is slower by what its units waited for a CPU,
/// if it was so most of the time.
std::optional<Outcome> by_waits(model::WorkComparison& result, const Stretches& stretches, double time_change) {
  constexpr double kEnough = 0.1;
  const auto queue = std::ranges::find(result.parts, kInRunQueue, &WorkChange::what);
  if (queue == result.parts.end() || stretches.fewest < kFewestStretches) return std::nullopt;
  const double count_error = std::sqrt(2.0) * result.unit.count_error.value_or(0);
  for (const std::size_t side : {std::size_t{1}, std::size_t{0}}) {
    const auto longer = [&](double change) { return side == 1 ? change : 1 / (1 + change) - 1; };
    if (!stretches.held_back[side] || !(longer(time_change) >= kEnough) || !(longer(stretches.typical) >= kEnough))
      continue;
    const Waited slower{result.worked.value[side] / (1 + count_error), queue->value[side] / (1 + count_error)};
    if (surely_longer(slower, {result.worked.value[1 - side], queue->value[1 - side]}) == 0) continue;
    result.reading = fmt::format("each unit waited {} instead of {} for a CPU, more than recordings of the same do",
                                 format_duration(queue->value[side]), format_duration(queue->value[1 - side]));
    return side == 1 ? Outcome::regression : Outcome::improvement;
  }
  return std::nullopt;
}

/// Where neither decides: in most stretches the side that others held back did far fewer units than the other in hardly
/// any, and its threads were awake for most of what one took longer. As of steps (held_back.cpp).
std::optional<Outcome> by_stretches(model::WorkComparison& result, const Stretches& stretches, double time_change) {
  constexpr std::size_t kFewest = 8;
  constexpr double kFew = 0.7;
  constexpr double kMostly = 0.5;
  if (stretches.fewest < kFewest) return std::nullopt;
  const double count_error = std::sqrt(2.0) * result.unit.count_error.value_or(0);
  for (const std::size_t side : {std::size_t{1}, std::size_t{0}}) {
    const auto rate = [&](double change) { return side == 1 ? 1 / (1 + change) : 1 + change; };
    if (!stretches.held_back[side] || stretches.slower[side] <= kMostly || rate(stretches.typical) > kFew ||
        rate(time_change) * (1 + count_error) > kFew)
      continue;
    double awake = 0;
    for (const WorkChange& part : result.parts)
      if (part.what == kOnCpuOfStep || part.what == kInRunQueue) awake += part.value[side] - part.value[1 - side];
    const auto& per_second = result.throughput.value;
    if (awake < kMostly * (kSecond / per_second[side] - kSecond / per_second[1 - side])) continue;
    result.reading = fmt::format(
        "in {:.0f} % of its stretches the {} did fewer than the {} in nine of ten, while others took its CPUs; by how "
        "much is not decided",
        100 * stretches.slower[side], model::kSideNames.at(side), model::kSideNames.at(1 - side));
    return side == 1 ? Outcome::regression : Outcome::improvement;
  }
  return std::nullopt;
}

/// The share of a change of the time per unit that a change by this ratio makes, as logarithms.
double share_of(double ratio, double time_change) {
  return time_change != 0 && ratio > 0 ? std::log(ratio) / std::log1p(time_change) : 0;
}

/// What waiting for answers says of a changed throughput: nothing is known; it is no part of it at all; it hardly
/// changed; it did a little; it explains it.
enum class Waiting : std::uint8_t { unknown, none, hardly, partly, explains };

constexpr double kHardly = 0.1;  // of a wait, whatever it makes of the change

Waiting waiting_of(const std::optional<Answered>& answered, double time_change) {
  if (!answered) return Waiting::unknown;
  const std::array ratios = {answered->median[1] / answered->median[0], answered->mean[1] / answered->mean[0]};
  const auto all = [&](const auto& holds) { return std::ranges::all_of(ratios, holds); };
  if (all([&](double ratio) {
        return share_of(ratio, time_change) >= kExplains && std::abs(std::log(ratio)) >= std::log1p(kWorkAlone);
      }))
    return Waiting::explains;
  // Some wait much longer and most do not: as many wait at a time, where nobody asks for less.
  const double share = share_of(ratios[1], time_change);
  if (share >= kExplains && share <= 1 / kExplains && std::abs(std::log(ratios[1])) >= std::log1p(kHardly))
    return Waiting::explains;
  if (answered->whole && share < kDoesNotExplain) return Waiting::none;
  const bool hardly = all([&](double ratio) {
    return share_of(ratio, time_change) < kDoesNotExplain || std::abs(std::log(ratio)) < std::log1p(kHardly);
  });
  return hardly ? Waiting::hardly : Waiting::partly;
}

/// Whether what the work of a request grew by is what waiting for its answer grew by, or could be: requests that are
/// answered at the same time may wait for the work of each other. Those that come together do so for longer than their
/// mean number tells; but work that fills most of the time by which one comes later leaves nothing else to wait for.
bool work_is_waited_for(const model::WorkComparison& result, const Answered& answered, std::size_t slower) {
  const auto& rate = result.throughput.value;
  const double at_a_time = answered.mean[slower] * rate[slower] / kSecond;
  const double worked = result.worked.value[slower] - result.worked.value[1 - slower];
  if (worked * std::max(1.0, at_a_time) >= kExplains * (answered.mean[slower] - answered.mean[1 - slower])) return true;
  const double later = kSecond / rate[slower] - kSecond / rate[1 - slower];
  const double at_once = result.worked.value[slower] * rate[slower] / kSecond;  // threads that work
  return worked >= kExplains * later * std::max(1.0, at_once);
}

/// The call that took most of what requests wait longer; empty: none took much of it.
std::string waits_in(const model::WorkComparison& result, std::size_t slower) {
  const model::CallChange* most = nullptr;
  const auto more = [&](const model::CallChange& call) {
    return call.per_unit[slower] * call.per_call_ns[slower] - call.per_unit[1 - slower] * call.per_call_ns[1 - slower];
  };
  for (const model::CallChange& call : result.calls)
    if (!call.waits && more(call) > 0 && (most == nullptr || more(call) > more(*most))) most = &call;
  const double waited = result.waited.at(slower) - result.waited.at(1 - slower);
  return most != nullptr && more(*most) >= kDoesNotExplain * waited ? most->name : std::string();
}

/// Whether answers are so much larger, or smaller, that something else was asked for.
bool are_others(const std::array<double, 2>& bytes) {
  constexpr double kOther = 1.25;
  constexpr double kLeast = 16;  // bytes
  const auto [less, more] = std::minmax(bytes[0], bytes[1]);
  return more >= kOther * less && more - less >= kLeast;
}

/// That less or more was asked of it, and how many requests were being answered at a time.
std::string demand_text(const model::WorkComparison& result, const Answered& answered, bool slower) {
  std::string text = slower ? "less work arrived: each answer took hardly longer, and the threads waited for work"
                            : "more work arrived: each answer took hardly less time";
  if (!answered.whole) return text;
  std::array<double, 2> at_a_time{};
  for (std::size_t s = 0; s < 2; ++s)
    at_a_time.at(s) = answered.mean.at(s) / kSecond * result.throughput.value.at(s) * answered.per_unit.at(s);
  return text + fmt::format("; {:.2g} instead of {:.2g} were being answered at a time", at_a_time[1], at_a_time[0]);
}

/// "requests waited 2 ms instead of 1 ms for their answers": most of them, or only some, which the mean tells.
std::string waited_text(const Answered& answered, std::size_t side) {
  const auto& median = answered.median;
  const auto& mean = answered.mean;
  const auto instead = [&](const std::array<double, 2>& of) {
    return fmt::format("{} instead of {}", format_duration(of[side]), format_duration(of[1 - side]));
  };
  const bool is_tail = median[side] < (1 + kHardly) * median[1 - side];
  return fmt::format("requests waited {} for their answers{}", instead(is_tail ? mean : median),
                     is_tail ? " in the mean" : "");
}

/// Whether answers took another time by a factor of two.
bool took_otherwise(const Answered& answered) {
  const double median = std::log2(answered.median[1] / answered.median[0]);
  const double mean = std::log2(answered.mean[1] / answered.mean[0]);
  return median * mean > 0 && std::min(std::abs(median), std::abs(mean)) >= 1;
}

/// The throughput changed.
void decide_changed(model::WorkComparison& result, const WorkJudged& judged) {
  const bool slower = judged.time == Outcome::regression;
  const std::size_t side = slower ? 1 : 0;
  const double explains = share_of(1 + result.worked.change, judged.time_change);
  const Waiting waiting = waiting_of(judged.answered, judged.time_change);
  // Who is asked by fewer at once works longer for each: it wakes up for each, and idles more.
  const bool by_work = explains >= kExplains && waiting != Waiting::none &&
                       (waiting != Waiting::explains || work_is_waited_for(result, *judged.answered, side));
  // Where CPUs are left, who took some made nobody wait longer than its own threads did in their queue.
  const bool by_others =
      competed(result, side, judged.busy[side]) && (waiting != Waiting::explains || judged.busy[side] > kNoneLeft ||
                                                    work_is_waited_for(result, *judged.answered, side));
  result.other_answers = (by_work || waiting == Waiting::explains) && !by_others && are_others(result.answer_bytes);
  if (result.other_answers) {
    result.why =
        fmt::format("an answer is of {} instead of {}: other requests, or another answer to the same ones",
                    format_bytes(result.answer_bytes.at(side)), format_bytes(result.answer_bytes.at(1 - side)));
  } else if (by_work || by_others) {
    result.outcome = judged.time;
    if (!by_work)
      result.reading = fmt::format("{} took CPUs that the program, or who asks it, wanted", who_took(result, side));
  } else if (waiting == Waiting::explains) {
    result.outcome = judged.time;
    for (std::size_t s = 0; s < 2; ++s)
      result.waited.at(s) = judged.answered->mean.at(s) * judged.answered->per_unit.at(s);
    result.waits_in = waits_in(result, side);
    result.reading = fmt::format("{}, and the program waited itself{}", waited_text(*judged.answered, side),
                                 result.waits_in.empty() ? "" : ", most in " + result.waits_in);
  } else if (waiting == Waiting::hardly || waiting == Waiting::none) {
    result.outcome = Outcome::no_change;
    result.asked_more = 1 - side;
    result.reading = demand_text(result, *judged.answered, slower);
  } else if (waiting == Waiting::unknown && explains < kDoesNotExplain) {
    result.why = fmt::format(
        "each unit took hardly {}, and how long answers took was not measured: perhaps {} work arrived, perhaps the "
        "program waited {} for something outside of it",
        slower ? "longer" : "less time", slower ? "less" : "more", slower ? "longer" : "less");
  } else if (waiting == Waiting::partly) {
    result.why = "throughput changed, but neither the work itself nor how long requests waited explains it";
  } else {
    result.why =
        fmt::format("throughput changed, but only {:.0f} % of that is explained by the work itself", explains * 100);
  }
}

/// Where the throughput spreads too much.
std::optional<Outcome> held_back_by_others(model::WorkComparison& result, const WorkJudged& judged) {
  const auto by_waiting = by_waits(result, judged.stretches, judged.time_change);
  return by_waiting ? by_waiting : by_stretches(result, judged.stretches, judged.time_change);
}

/// The throughput is not shown to have changed.
void decide_alike(model::WorkComparison& result, const WorkJudged& judged) {
  const double worked_change = result.worked.change;
  const bool against = judged.work == Outcome::regression ? judged.time_change < -judged.tolerance
                                                          : judged.time_change > judged.tolerance;
  if (std::abs(worked_change) > kWorkAlone && std::abs(judged.time_change) < kSameThroughput && !against &&
      (judged.work == Outcome::regression || judged.work == Outcome::improvement)) {
    result.outcome = judged.work;
    result.reading = "as much work was done, and each unit took another time";
  } else if (const auto slower =
                 judged.time == Outcome::inconclusive ? held_back_by_others(result, judged) : std::nullopt) {
    result.outcome = *slower;
  } else if (judged.time == Outcome::no_change && judged.answered && took_otherwise(*judged.answered)) {
    result.why = fmt::format("as much work was done, but answers took {} instead of {}",
                             format_duration(judged.answered->median[1]), format_duration(judged.answered->median[0]));
  } else {
    result.outcome = judged.time;
    if (!std::isfinite(result.throughput.low))
      result.why =
          judged.stretches.fewest < kFewestStretches
              ? "too few units for an interval; record longer or repeat"
              : "its rate drifts inside the recordings, so that they give no interval; record longer or repeat";
  }
}

}  // namespace

void decide_work(model::WorkComparison& result, const WorkJudged& judged) {
  result.outcome = Outcome::inconclusive;
  if (judged.time == Outcome::regression || judged.time == Outcome::improvement)
    decide_changed(result, judged);
  else if (judged.time != Outcome::not_comparable)
    decide_alike(result, judged);
}

void limit_by_uncounted(model::WorkComparison& result, std::span<const model::Recording> base,
                        std::span<const model::Recording> candidate, double most_lost) {
  using enum model::UnitKind;
  if (result.unit.kind != request && result.unit.kind != transaction && result.unit.kind != message) return;
  for (const auto& [side, name] : {std::pair(base, "baseline"), std::pair(candidate, "candidate")}) {
    std::uint64_t missed = 0;
    std::uint64_t counted = 0;
    for (const model::Recording& recording : side) {
      for (const model::LossCount& loss : recording.losses)
        if (loss.reason == kCallsUncounted) missed += loss.count;
      for (const auto& [call, all] : recording.collected.calls) counted += all.count;
    }
    const std::uint64_t all = missed + counted;
    if (counted == 0 || static_cast<double>(missed) <= most_lost * static_cast<double>(all)) continue;
    result.outcome = Outcome::inconclusive;
    result.reading.clear();
    result.why = fmt::format("{} of {} system calls of the {} stand in no total", missed, all, name);
  }
}

}  // namespace culprit::compare
