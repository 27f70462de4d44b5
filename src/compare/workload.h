// Which steps of two runs worked on the same. A step of twelve requests takes longer than one of four, and that is the
// clients' doing: only steps of like work are held against each other.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "model/cycles.h"

namespace culprit::compare {

/// What a step worked on, as coarse as its time is: requests exactly up to 8, then in quarters of a doubling; tokens of
/// prompts, and those that a decode step looks back at, in halves of a doubling. -1: not known, or of no matter in its
/// phase. `of_training`: the requests are samples of a batch.
struct WorkClass {
  std::int32_t requests = -1;
  std::int32_t tokens = -1;
  std::int32_t cached = -1;
  bool of_training = false;
  auto operator<=>(const WorkClass&) const = default;
};

/// By tokens where prompts are computed (else by requests), by requests and what they look back at where tokens are
/// generated, by requests and tokens where a step does both.
WorkClass work_class(const model::Workload& workload, model::Phase phase);

/// Prompts that a step computes, all or in part; 0: not known, or none.
double prompts_of(const model::Workload& workload, model::Phase phase);

/// "4 requests", "11 to 13 requests with 108 to 152 prompt tokens", "28 to 33 samples", of a known `batch` "32
/// samples". Empty for the class of which nothing is known.
std::string work_text(const WorkClass& work, std::int64_t batch = -1);

/// Time of one step and what it worked on.
struct WorkedTime {
  WorkClass work;
  double time = 0;
  std::uint32_t recording = 0;
  double prompts = 0;       ///< that it computes; 0: not known
  std::int64_t batch = -1;  ///< requests, or samples, exactly; -1: not known
};

/// Steps of one phase of both sides, without those whose like the other side lacks.
struct MatchedWork {
  std::array<std::vector<double>, 2> times;
  std::array<std::vector<std::uint32_t>, 2> recordings;  ///< of each time
  /// As how many each time counts, at most 1: where a class of few steps of a side weighs as its many of the other do.
  std::array<double, 2> counts_as{1, 1};
  std::array<std::size_t, 2> left_out{};
  std::set<WorkClass> classes;  ///< that both sides have
  /// work_text() of the steps, of a batch where all of that class have it; empty where a side knows of none.
  std::array<std::string, 2> most_often;
  bool mix_differs = false;  ///< shares of a class differ by more than a tenth and two standard errors
  /// Of the steps of a side that would have to work on something else to be alike, less twice what chance makes of it.
  double other_share = 0;
  std::array<double, 2> all_ns{};         ///< mean of all steps, also of those left out
  std::array<double, 2> prompt_tokens{};  ///< of these, as exact as classes are; 0: not known of all
  std::array<double, 2> prompts{};        ///< that a step computes, mean; 0: not known of all
  std::array<double, 2> requests{};       ///< of these, as exact as classes are; 0: not known of all
  std::array<double, 2> most_requests{};  ///< that a fiftieth of the steps worked for at once; the same
  /// Share of the steps that compute kHardlyAny tokens or fewer of each prompt: the rest of it was in a cache.
  std::array<double, 2> cached_prompts{};
  std::array<double, 2> looked_back{};  ///< tokens that decode steps look back at, mean; 0: not known of all
  bool knows_context = false;           ///< all steps of both sides tell what they look back at
};

/// Classes with kFewestAlike steps or more on both sides are matched. Times are then freed of what the class makes of
/// them (geometric mean of both sides' means), so that the difference of their mean logarithms is that inside of the
/// classes, each weighted by the mean of its shares. All of one class, or of unknown work on a side: times as they are.
/// Times that are not positive are left out. O(n log n).
MatchedWork match_work(std::span<const WorkedTime> base, std::span<const WorkedTime> candidate);
inline constexpr std::size_t kFewestAlike = 3;
inline constexpr double kHardlyAny = 4;

}  // namespace culprit::compare
