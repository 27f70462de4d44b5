#include "compare/standstill.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <string_view>
#include <utility>

#include "core/units.h"
#include "model/cycles.h"

namespace culprit::compare {

namespace {

using model::Recording;

constexpr double kFew = 0.1;   // of the other side's steps
constexpr double kMost = 0.7;  // of the time

struct Steps {
  const model::StepThread* thread = nullptr;
  double on_cpu = 0;  ///< for one, ns
  double per_second = 0;
};

/// Of a StepThread or HeldThread.
bool is_same(const auto& a, const auto& b) { return a.name == b.name && a.process == b.process && a.main == b.main; }

bool has_whole_cycles(const Recording& recording) {
  return std::ranges::any_of(model::whole_periods(recording.cycles), std::identity());
}

/// Of a side whose steps are marked. No thread: they are not, or nobody knows who runs them.
Steps marked_steps(std::span<const Recording> side) {
  Steps steps;
  double count = 0;
  for (const Recording& recording : side) {
    const model::HostEvidence& host = recording.host;
    if (recording.cycles.method != model::CycleMethod::marker || !host.step || !(host.steps_per_second > 0)) return {};
    steps.thread = &*host.step;
    for (const double time : host.step->on_cpu) steps.on_cpu += time;
    for (const std::uint64_t cycles : host.cycles) count += static_cast<double>(cycles);
    steps.per_second += host.steps_per_second / static_cast<double>(side.size());
  }
  if (!(count > 0) || !(steps.on_cpu > 0)) return {};
  steps.on_cpu /= count;
  return steps;
}

/// That no more cycles came says nothing of those that were guessed.
bool is_marked(const Recording& recording) {
  constexpr double kSure = 0.8;
  return recording.cycles.method == model::CycleMethod::marker && recording.cycles.period_confidence >= kSure;
}

/// To its end.
bool is_held(const Recording& recording) { return recording.host.long_end && recording.host.long_end->held; }

void add(const model::HeldThread& thread, model::Standstill& still) {
  still.recorded += thread.recorded;
  still.on_cpu += thread.on_cpu;
  still.runnable += thread.runnable;
  still.stopped += thread.stopped;
  still.uninterruptible += thread.uninterruptible;
}

std::optional<model::Standstill> from_the_begin(const std::array<std::span<const Recording>, 2>& sides,
                                                std::size_t side) {
  const Steps steps = marked_steps(sides.at(1 - side));
  if (steps.thread == nullptr) return std::nullopt;
  model::Standstill still{.side = side, .thread = steps.thread->name, .process = steps.thread->process};
  const auto is_it = [&](const model::HeldThread& held) { return is_same(*steps.thread, held); };
  for (const Recording& recording : sides.at(side)) {
    const auto held = std::ranges::find_if(recording.host.held, is_it);
    if (recording.facts.gpu_work || held == recording.host.held.end()) return std::nullopt;
    still.seen += recording.cycles.cycles.size();
    add(*held, still);
  }
  still.steps_per_second = steps.per_second;
  still.at_most = std::max(still.on_cpu / steps.on_cpu, static_cast<double>(still.seen)) / (still.recorded / kSecond);
  still.compared = std::ranges::any_of(sides.at(side), has_whole_cycles);
  return still.at_most <= kFew * still.steps_per_second ? std::optional(still) : std::nullopt;
}

/// Of a side that hardly ran, though a thread of it could not for most of the time, beside one that has units of work.
std::optional<model::Standstill> without_work(const std::array<std::span<const Recording>, 2>& sides,
                                              std::size_t side) {
  model::Standstill still{.side = side};
  double count = 0;
  double on_cpu = 0;
  double ran = 0;
  for (const Recording& recording : sides.at(1 - side)) {
    if (!recording.work || recording.work->idle) return std::nullopt;
    const model::WorkUnit& unit = recording.work->units.front();
    if (unit.kind == model::UnitKind::window || !(recording.work->seconds > 0)) return std::nullopt;
    still.units = model::plural(unit);
    count += static_cast<double>(unit.count);
    on_cpu += model::sum_of(*recording.work).on_cpu;
    still.steps_per_second +=
        static_cast<double>(unit.count) / recording.work->seconds / static_cast<double>(sides.at(1 - side).size());
  }
  for (const Recording& recording : sides.at(side)) {
    const auto& held = recording.host.held;
    if (!recording.work || !recording.work->idle || recording.facts.gpu_work || held.empty()) return std::nullopt;
    // Who sleeps so that no signal ends it may wait for a child.
    const auto longest =
        std::ranges::max_element(held, {}, [](const auto& thread) { return thread.runnable + thread.stopped; });
    if (longest->runnable + longest->stopped < kMost * longest->recorded) return std::nullopt;
    still.thread = longest->name;
    still.process = longest->process;
    add(*longest, still);
    ran += model::sum_of(*recording.work).on_cpu;
  }
  if (!(count > 0) || !(on_cpu > 0) || !(still.recorded > 0)) return std::nullopt;
  still.at_most = ran / (on_cpu / count) / (still.recorded / kSecond);
  return still.at_most <= kFew * still.steps_per_second ? std::optional(still) : std::nullopt;
}

std::optional<model::Standstill> at_the_end(const std::array<std::span<const Recording>, 2>& sides, std::size_t side) {
  model::Standstill still{.side = side, .at_end = true, .compared = true};
  for (const Recording& recording : sides.at(1 - side)) {
    if (!is_marked(recording) || is_held(recording)) return std::nullopt;
    still.steps_per_second += recording.host.steps_per_second / static_cast<double>(sides.at(1 - side).size());
  }
  for (const Recording& recording : sides.at(side)) {
    if (!is_marked(recording) || !is_held(recording)) return std::nullopt;
    const model::HeldThread& thread = recording.host.long_end->thread;
    still.thread = thread.name;
    still.process = thread.process;
    still.seen += recording.cycles.cycles.size();
    still.at_most += recording.host.steps_per_second / static_cast<double>(sides.at(side).size());
    add(thread, still);
  }
  return still.at_most > 0 && still.at_most < still.steps_per_second ? std::optional(still) : std::nullopt;
}

/// A sentence that says so; "": there are no such.
std::string set_aside_in(std::vector<Recording>& side, std::string_view name) {
  const auto working = std::ranges::find_if(side, has_whole_cycles);
  if (working == side.end()) return "";
  const Steps steps = marked_steps({&*working, 1});
  if (steps.thread == nullptr) return "";
  const model::StepThread thread = *steps.thread;
  const auto stands = [&](const Recording& recording) {
    return !has_whole_cycles(recording) && !recording.facts.gpu_work &&
           std::ranges::any_of(recording.host.held, [&](const auto& held) { return is_same(thread, held); });
  };
  const auto all = side.size();
  const auto still = static_cast<std::size_t>(std::ranges::count_if(side, stands));
  if (still == 0 || still + static_cast<std::size_t>(std::ranges::count_if(side, has_whole_cycles)) != all) return "";
  const bool most = 2 * still > all;
  std::string out;
  for (const Recording& recording : side)
    if (stands(recording) != most && !recording.files.empty())
      out += (out.empty() ? "" : ", ") + recording.files.front();
  std::erase_if(side, [&](const Recording& recording) { return stands(recording) != most; });
  return fmt::format(
      "{} of {} recordings of the {} did no step, or none with an end, as {}, which runs them, could not run; left "
      "out: {}",
      still, all, name, thread.name, out);
}

}  // namespace

std::optional<model::Standstill> standstill_of(std::span<const Recording> base, std::span<const Recording> candidate,
                                               const model::Comparability& comparability) {
  if (std::ranges::any_of(comparability.differences, &model::Difference::blocks)) return std::nullopt;
  const std::array sides = {base, candidate};
  const bool compared = comparability.level != model::Comparable::no;
  for (const std::size_t side : {1U, 0U}) {
    if (compared)
      if (auto still = at_the_end(sides, side)) return still;
    if (auto still = from_the_begin(sides, side); still && (compared || !still->compared)) return still;
    if (auto still = without_work(sides, side)) return still;
  }
  return std::nullopt;
}

std::vector<std::string> set_aside(std::vector<Recording>& base, std::vector<Recording>& candidate) {
  std::vector<std::string> texts;
  for (auto* side : {&base, &candidate})
    if (std::string text = set_aside_in(*side, model::kSideNames.at(side == &base ? 0 : 1)); !text.empty())
      texts.push_back(std::move(text));
  return texts;
}

std::optional<model::StuckSide> stuck_side(std::span<const Recording> base, std::span<const Recording> candidate) {
  const std::array sides = {base, candidate};
  const auto is_stuck = [](const Recording& recording) {
    return is_marked(recording) && recording.host.long_end && model::is_stuck(*recording.host.long_end);
  };
  const auto goes_on = [](const Recording& recording) { return is_marked(recording) && !recording.host.long_end; };
  for (const std::size_t side : {1U, 0U}) {
    if (!std::ranges::all_of(sides.at(side), is_stuck) || !std::ranges::all_of(sides.at(1 - side), goes_on)) continue;
    return model::StuckSide{side, *sides.at(side).front().host.long_end};
  }
  return std::nullopt;
}

std::optional<model::DeadlockedSide> deadlocked_side(std::span<const Recording> base,
                                                     std::span<const Recording> candidate) {
  const std::array sides = {base, candidate};
  const auto is_deadlocked = [](const Recording& recording) {
    return recording.host.asleep && recording.host.asleep->for_each_other;
  };
  const auto runs = [](const Recording& recording) { return !recording.host.asleep; };
  for (const std::size_t side : {1U, 0U})
    if (std::ranges::all_of(sides.at(side), is_deadlocked) && std::ranges::all_of(sides.at(1 - side), runs))
      return model::DeadlockedSide{side, *sides.at(side).front().host.asleep};
  return std::nullopt;
}

std::string stuck_text(const model::StuckSide& stuck) {
  return model::stuck_text(stuck.end, model::kSideNames.at(stuck.side));
}

bool stand_alike(const Recording& one, const Recording& other) {
  const auto is_other = [&](const model::HeldThread& held) {
    return std::ranges::any_of(other.host.held, [&](const auto& thread) { return is_same(thread, held); });
  };
  return !has_whole_cycles(one) && !has_whole_cycles(other) && std::ranges::any_of(one.host.held, is_other);
}

std::string standstill_text(const model::Standstill& still) {
  if (still.at_end)
    return fmt::format("no step began in the last {} of the {}: {}, which runs them, was on a CPU for {} of that",
                       format_duration(still.recorded), model::kSideNames.at(still.side), still.thread,
                       format_duration(still.on_cpu));
  if (!still.units.empty())
    return fmt::format("no {} were seen in the {}: its thread {} was on a CPU for {} of {}", still.units,
                       model::kSideNames.at(still.side), still.thread, format_duration(still.on_cpu),
                       format_duration(still.recorded));
  const std::string seen = still.seen == 0   ? "no step was"
                           : still.seen == 1 ? "1 step was"
                                             : fmt::format("{} steps were", still.seen);
  return fmt::format("{} seen in the {}: {}, which runs them, was on a CPU for {} of {}", seen,
                     model::kSideNames.at(still.side), still.thread, format_duration(still.on_cpu),
                     format_duration(still.recorded));
}

}  // namespace culprit::compare
