// What rules ask of a comparison, from the point of view of one side: did this number rise on the side that may have
// the cause, and by how much?
//
// A comparison tells some things per step, others per unit of work or per second. A rule should not have to know which:
// here a step is whatever the program repeats, and its own time is what it was at work for one.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/comparison.h"

namespace culprit::diagnose {

/// A number on both sides.
struct Sides {
  double without = 0;  ///< on the side that is asked against
  double with = 0;     ///< on the side that may have the cause
  [[nodiscard]] double rise() const { return with - without; }
  /// 1 where both are nothing; infinity where it was nothing.
  [[nodiscard]] double ratio() const;
};

/// Parts of the time of a step.
struct StepParts {
  Sides on_cpu;
  Sides runnable;
  Sides blocked;
  /// What it was at work for, or waited: of units of work without waits for the next one.
  [[nodiscard]] Sides all() const;
};

/// A program that was not recorded, and the CPUs it took.
struct Beside {
  std::string name;
  Sides cpus;
  bool is_share = false;  ///< of all CPUs of the machine, instead of a number of CPUs
};

/// A device of a rank, as functions and resources name both.
struct Place {
  std::int32_t rank = -1;
  std::string device;  ///< "GPU", the only one of its process, or "GPU 3"
  auto operator<=>(const Place&) const = default;
};

class Evidence {
 public:
  /// `side`: that may have the cause.
  Evidence(const model::RunComparison& comparison, std::size_t side) : comparison_(comparison), side_(side) {}

  [[nodiscard]] const model::RunComparison& comparison() const { return comparison_; }
  [[nodiscard]] std::size_t side() const { return side_; }

  /// What the program repeats, of which step() and states() tell: "step", "request", or "second" where nothing is known
  /// of it.
  [[nodiscard]] std::string_view repeats() const;
  /// A counter of the host that moved. nullopt: it did not, or is not known.
  [[nodiscard]] std::optional<Sides> counter(std::string_view name) const;
  /// By how much it rose; 0: it did not, or is not known.
  [[nodiscard]] double rise(std::string_view name) const;
  /// Of counters whose name begins and ends so, "host.cpu" and ".frequency": the mean of those that moved.
  [[nodiscard]] std::optional<Sides> counters(std::string_view begin, std::string_view end) const;
  /// Of the thread that runs the steps, or of the recorded threads per unit of work, ns. nullopt: scheduling was not
  /// recorded.
  [[nodiscard]] std::optional<StepParts> step() const;
  /// Of what waited for a CPU there, while programs that were not recorded had it, ns. nullopt: not known of both.
  [[nodiscard]] std::optional<Sides> behind_others() const;
  /// Time of all recorded threads per step, unit or second in states for which `is` holds ("blocked in fsync"), ns.
  template <class Is>
  [[nodiscard]] Sides states(const Is& is) const {
    Sides sum;
    for (const auto& [name, sides] : all_states())
      if (is(std::string_view(name))) {
        sum.without += sides.without;
        sum.with += sides.with;
      }
    return sum;
  }
  /// What such states are a share of, ns: the period, the second or the work of a unit.
  [[nodiscard]] double states_of() const;
  /// Programs that took at least twice the CPUs they took before, most more first: clients that have more to do took
  /// some before.
  [[nodiscard]] std::vector<Beside> more_beside() const;
  /// CPUs that these took more, less what programs took that are gone.
  [[nodiscard]] double more_others() const;
  /// A resource of each device that has it, by the reference's names ("gpu_sm_frequency").
  struct DeviceResource {
    Place place;
    Sides value;
    bool moved = true;
    model::Unit unit = model::Unit::plain;
  };
  [[nodiscard]] std::vector<DeviceResource> resource(std::string_view metric) const;
  /// The clock of what computes on each device, whatever the recorder calls it; also where it did not move.
  [[nodiscard]] std::vector<DeviceResource> clocks() const;
  /// Of one device; one that is recorded without a rank is that of the device of this name. nullopt: not known.
  [[nodiscard]] std::optional<DeviceResource> clock_of(const Place& place) const;
  /// A resource of one device, the first one that is known. nullopt: none is.
  [[nodiscard]] std::optional<DeviceResource> resource_of(std::span<const std::string_view> metrics,
                                                          const Place& place) const;
  /// Where a function of a device ran.
  [[nodiscard]] Place place_of(const model::FunctionFinding& finding) const;
  /// "GPU 7", "GPU of rank 3" where there are several ranks.
  [[nodiscard]] std::string name_of(const Place& place) const;
  /// Whether the run has several ranks.
  [[nodiscard]] bool has_ranks() const;
  /// Share of the steps that are of this phase: by it, what a phase tells per step of its own becomes per step of all.
  [[nodiscard]] double weight_of(model::Phase phase) const;
  /// That the sides did not lose alike, by which one seems to do more than it does; empty: they did, as far as known.
  [[nodiscard]] std::string losses_that_differ() const;
  /// Whether it is doubted that a cycle is one step, on a side: then a function may take longer because its cycles do
  /// more.
  [[nodiscard]] bool doubts_cycles() const;
  /// A fact of the environment that differs.
  [[nodiscard]] std::optional<std::array<std::string, 2>> fact(std::string_view key) const;
  [[nodiscard]] bool is_on_device(const model::FunctionFinding& finding) const;
  /// By how much a call of the middle one of all functions of the host, or of devices, that both sides have takes
  /// longer: what they share is no function's. 1: there are too few.
  [[nodiscard]] double usual_ratio(bool device) const;
  /// What its profiler recorded and that of the other side did not.
  [[nodiscard]] const std::vector<std::string>& profiled_alone() const { return comparison_.profiled_alone[side_]; }
  /// Whether the side is called slower than the other.
  [[nodiscard]] bool is_slower() const;
  /// Relative change of the time of a step, or unit of work, as the outcome judges it; 0: not known.
  [[nodiscard]] double slowdown() const;
  /// What the requests of one unit waited longer for their answers, in the mean, where the program itself waited for
  /// others meanwhile; 0: they did not. Nanoseconds.
  [[nodiscard]] double waited_longer() const;

  /// Of what all threads waited more the part that the thread of the steps can have felt: no more than it was blocked.
  [[nodiscard]] double felt(double all_threads_ns) const;
  /// Where a device works in the steps of the phase: by how much longer it idled in one, ns. That is all that the host
  /// can have cost: a call that waits for the device takes as much longer as the device does. Of several ranks the most
  /// that one of them can have waited. What had been launched and had not begun waited for a device. nullopt: no
  /// device works there.
  [[nodiscard]] std::optional<double> idle_rise(model::Phase phase) const;
  /// The same while the host was in this function itself.
  [[nodiscard]] std::optional<double> idle_rise(model::Phase phase, StringId function) const;
  /// How long a device idled in a step of the phase though its next work had been launched, ns. `apart`: in each step
  /// for longer than in all of the other side.
  struct LaunchedIdle {
    Sides time;
    bool apart = false;
  };
  [[nodiscard]] LaunchedIdle launched_idle(model::Phase phase, std::int32_t device) const;
  /// By how much a step took longer on this side, ns; below 0: it took less.
  [[nodiscard]] double growth() const;
  /// The same of the mean of all steps, whatever they work on, ns.
  [[nodiscard]] double growth_of_all() const;
  /// Whether steps of some phase tell on both sides what they work on.
  [[nodiscard]] bool tells_work() const;
  /// Whether steps of the phase, which do not tell what they look back at, do so at more: prompts are longer.
  [[nodiscard]] bool has_longer_contexts(model::Phase phase) const;
  /// Active where the side is called slower and the impact, ns per step, is a part of the step or of its growth that
  /// matters. `of_phase`: the largest that it is of a step of a phase.
  [[nodiscard]] model::VerdictState state_of(double impact, double of_phase = 0) const;
  /// Of a step of any phase, on the other side, ns; 0: not known.
  [[nodiscard]] double mean_step() const;
  /// Of a step of the phase on the other side, else of any, ns; 0: not known.
  [[nodiscard]] double step_time(model::Phase phase) const;

  [[nodiscard]] Sides turned(const std::array<double, 2>& values) const { return {values[1 - side_], values[side_]}; }

 private:
  template <class Counts>
  [[nodiscard]] std::optional<double> idle_rise_where(model::Phase phase, const Counts& counts) const;
  [[nodiscard]] std::vector<std::pair<std::string, Sides>> all_states() const;
  [[nodiscard]] Sides turned(const std::array<std::optional<double>, 2>& values) const {
    return {values[1 - side_].value_or(0), values[side_].value_or(0)};
  }

  const model::RunComparison& comparison_;
  std::size_t side_;
};

}  // namespace culprit::diagnose
