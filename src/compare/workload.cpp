#include "compare/workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numbers>
#include <optional>

namespace culprit::compare {

namespace {

constexpr std::int32_t kExact = 8;   // requests
constexpr double kRequestSteps = 4;  // classes in a doubling
constexpr double kTokenSteps = 2;
constexpr double kOtherMix = 0.1;

std::int32_t requests_class(std::int64_t requests) {
  if (requests <= kExact) return static_cast<std::int32_t>(std::max<std::int64_t>(requests, -1));
  return kExact +
         static_cast<std::int32_t>(std::lround(kRequestSteps * std::log2(static_cast<double>(requests) / kExact)));
}

std::int32_t tokens_class(std::int64_t tokens) {
  return tokens < 1 ? -1 : static_cast<std::int32_t>(std::lround(kTokenSteps * std::log2(static_cast<double>(tokens))));
}

using Classes = std::map<WorkClass, std::vector<double>>;  // logarithms of times

bool is_known(const WorkClass& work) { return work != WorkClass(); }

double mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double v : values) sum += v;
  return sum / static_cast<double>(values.size());
}

/// The batch of all steps of the class on the sides that have some; -1: they differ, or one is not known.
std::int64_t batch_of_all(const std::array<std::span<const WorkedTime>, 2>& sides, const WorkClass& work) {
  std::optional<std::int64_t> batch;
  for (const std::span<const WorkedTime>& side : sides)
    for (const WorkedTime& step : side)
      if (step.work == work && batch.value_or(step.batch) != step.batch)
        return -1;
      else if (step.work == work)
        batch = step.batch;
  return batch.value_or(-1);
}

std::string most_often(const Classes& classes, const std::array<std::span<const WorkedTime>, 2>& sides) {
  const auto most = std::ranges::max_element(classes, {}, [](const auto& c) { return c.second.size(); });
  return most == classes.end() ? std::string() : work_text(most->first, batch_of_all(sides, most->first));
}

double number_of(std::int32_t requests) {
  return requests <= kExact ? requests : kExact * std::exp2((requests - kExact) / kRequestSteps);
}

/// Of a step, in the mean; 0: not known of every step.
double requests(const Classes& classes) {
  double sum = 0;
  double steps = 0;
  for (const auto& [work, times] : classes) {
    if (work.requests < 0) return 0;
    sum += static_cast<double>(times.size()) * number_of(work.requests);
    steps += static_cast<double>(times.size());
  }
  return steps > 0 ? sum / steps : 0;
}

/// Of the largest number that is no rarity; 0: not known of every step.
double most_requests(const Classes& classes) {
  constexpr double kRare = 0.02;
  std::map<std::int32_t, double, std::greater<>> steps;
  double all = 0;
  for (const auto& [work, times] : classes) {
    if (work.requests < 0) return 0;
    steps[work.requests] += static_cast<double>(times.size());
    all += static_cast<double>(times.size());
  }
  double largest = 0;
  for (const auto& [number, count] : steps) {
    largest += count;
    if (largest >= kRare * all) return number_of(number);
  }
  return 0;
}

/// The same.
double mean_prompts(std::span<const WorkedTime> steps) {
  double sum = 0;
  for (const WorkedTime& step : steps) {
    if (!(step.prompts > 0)) return 0;
    sum += step.prompts;
  }
  return steps.empty() ? 0 : sum / static_cast<double>(steps.size());
}

/// The same of tokens of either kind.
double tokens(const Classes& classes, std::int32_t WorkClass::*kind) {
  double sum = 0;
  double steps = 0;
  for (const auto& [work, times] : classes) {
    if (work.*kind < 0) return 0;
    sum += static_cast<double>(times.size()) * std::exp2(work.*kind / kTokenSteps);
    steps += static_cast<double>(times.size());
  }
  return steps > 0 ? sum / steps : 0;
}

/// Nobody asks with so little.
double cached_prompts(std::span<const WorkedTime> steps) {
  const auto computes_hardly_any = [](const WorkedTime& step) {
    return step.work.tokens >= 0 &&
           std::exp2(step.work.tokens / kTokenSteps) <= (kHardlyAny + 0.5) * std::max(step.prompts, 1.0);
  };
  return steps.empty() ? 0
                       : static_cast<double>(std::ranges::count_if(steps, computes_hardly_any)) /
                             static_cast<double>(steps.size());
}

bool knows_context(const Classes& classes) {
  return !classes.empty() && std::ranges::all_of(classes, [](const auto& c) { return c.first.cached >= 0; });
}

}  // namespace

WorkClass work_class(const model::Workload& workload, model::Phase phase) {
  const std::int32_t requests = requests_class(workload.batch);
  switch (phase) {
    case model::Phase::prefill: {
      const std::int32_t tokens =
          tokens_class(workload.context_tokens >= 0 ? workload.context_tokens : workload.tokens);
      return tokens >= 0 ? WorkClass{-1, tokens} : WorkClass{requests, -1};
    }
    case model::Phase::mixed:
      return {requests, tokens_class(workload.context_tokens)};
    case model::Phase::decode:
      return {requests, -1, tokens_class(workload.cached_tokens)};
    case model::Phase::train_step:
      return {requests, -1, -1, requests >= 0};
    case model::Phase::other:
      return {requests, -1};
  }
  return {};
}

std::string work_text(const WorkClass& work, std::int64_t batch) {
  // Whole numbers of a class whose middle is `at` steps behind `from`.
  const auto span = [](double from, double at, double steps, std::string_view what) {
    const double least = std::ceil(from * std::exp2((at - 0.5) / steps));
    const double most = std::max(least, std::ceil(from * std::exp2((at + 0.5) / steps)) - 1);
    if (least == most) return fmt::format("{:.0f} {}{}", least, what, least == 1 ? "" : "s");
    return fmt::format("{:.0f} to {:.0f} {}s", least, most, what);
  };
  std::string text;
  const std::string_view one = work.of_training ? "sample" : "request";
  if (work.requests > kExact && batch > 0)
    text = fmt::format("{} {}s", batch, one);
  else if (work.requests > kExact)
    text = span(kExact, work.requests - kExact, kRequestSteps, one);
  else if (work.requests >= 0)
    text = fmt::format("{} {}{}", work.requests, one, work.requests == 1 ? "" : "s");
  if (work.tokens >= 0)
    text += fmt::format("{}{}", text.empty() ? "" : " with ", span(1, work.tokens, kTokenSteps, "prompt token"));
  if (work.cached >= 0)
    text += fmt::format("{}{}", text.empty() ? "behind " : " behind ", span(1, work.cached, kTokenSteps, "token"));
  return text;
}

double prompts_of(const model::Workload& workload, model::Phase phase) {
  std::int64_t prompts = 0;
  if (phase == model::Phase::prefill) prompts = workload.batch;
  if (phase == model::Phase::mixed && workload.decode_tokens >= 0) prompts = workload.batch - workload.decode_tokens;
  return static_cast<double>(std::max<std::int64_t>(prompts, 0));
}

MatchedWork match_work(std::span<const WorkedTime> base, std::span<const WorkedTime> candidate) {
  const std::array<std::span<const WorkedTime>, 2> sides = {base, candidate};
  std::array<Classes, 2> classes;
  std::array<std::size_t, 2> all{};
  MatchedWork result;
  for (std::size_t s = 0; s < 2; ++s)
    for (const WorkedTime& step : sides[s]) {
      if (!(step.time > 0) || !std::isfinite(step.time)) continue;
      classes[s][step.work].push_back(std::log(step.time));
      result.all_ns[s] += step.time;
      ++all[s];
    }
  for (std::size_t s = 0; s < 2; ++s)
    if (all[s] > 0) result.all_ns[s] /= static_cast<double>(all[s]);
  for (std::size_t s = 0; s < 2; ++s) result.most_often[s] = most_often(classes[s], sides);
  for (std::size_t s = 0; s < 2; ++s) result.prompt_tokens[s] = tokens(classes[s], &WorkClass::tokens);
  for (std::size_t s = 0; s < 2; ++s) result.looked_back[s] = tokens(classes[s], &WorkClass::cached);
  for (std::size_t s = 0; s < 2; ++s) result.requests[s] = requests(classes[s]);
  for (std::size_t s = 0; s < 2; ++s) result.most_requests[s] = most_requests(classes[s]);
  for (std::size_t s = 0; s < 2; ++s) result.prompts[s] = mean_prompts(sides[s]);
  for (std::size_t s = 0; s < 2; ++s) result.cached_prompts[s] = cached_prompts(sides[s]);
  result.knows_context = knows_context(classes[0]) && knows_context(classes[1]);
  const auto knows = [](const Classes& side) {
    return std::ranges::any_of(side, [](const auto& c) { return is_known(c.first); });
  };
  const bool of_one =
      classes[0].size() == 1 && classes[1].size() == 1 && classes[0].begin()->first == classes[1].begin()->first;
  if (of_one || !knows(classes[0]) || !knows(classes[1])) {
    for (std::size_t s = 0; s < 2; ++s)
      for (const WorkedTime& step : sides[s]) {
        result.times[s].push_back(step.time);
        result.recordings[s].push_back(step.recording);
        result.classes.insert(step.work);
      }
    return result;
  }
  for (std::string& text : result.most_often)
    if (text.empty()) text = "unknown work";
  std::array<std::size_t, 2> matched{};
  for (const auto& [work, values] : classes[0]) {
    const auto other = classes[1].find(work);
    if (other == classes[1].end() || std::min(values.size(), other->second.size()) < kFewestAlike) continue;
    result.classes.insert(work);
    matched[0] += values.size();
    matched[1] += other->second.size();
  }
  std::map<WorkClass, double> usual;  // of both sides
  double overall = 0;
  std::array<double, 2> variance{};  // of a side's mean, where each step has 1
  for (const WorkClass& work : result.classes) {
    const std::array<const std::vector<double>*, 2> values = {&classes[0][work], &classes[1][work]};
    usual[work] = (mean_of(*values[0]) + mean_of(*values[1])) / 2;
    double share = 0;
    for (std::size_t s = 0; s < 2; ++s)
      share += static_cast<double>(values[s]->size()) / static_cast<double>(matched[s]) / 2;
    overall += share * usual[work];
    for (std::size_t s = 0; s < 2; ++s) variance[s] += share * share / static_cast<double>(values[s]->size());
  }
  for (std::size_t s = 0; s < 2; ++s)
    if (matched[s] > 0) result.counts_as[s] = std::min(1.0, 1 / (variance[s] * static_cast<double>(matched[s])));
  for (std::size_t s = 0; s < 2; ++s) {
    result.left_out[s] = all[s] - matched[s];
    for (const WorkedTime& step : sides[s])
      if (step.time > 0 && std::isfinite(step.time) && result.classes.contains(step.work)) {
        result.times[s].push_back(step.time * std::exp(overall - usual[step.work]));
        result.recordings[s].push_back(step.recording);
      }
    for (const auto& [work, values] : classes[s]) {
      const auto other = classes[1 - s].find(work);
      const double mine = static_cast<double>(values.size()) / static_cast<double>(all[s]);
      const double theirs = other == classes[1 - s].end()
                                ? 0
                                : static_cast<double>(other->second.size()) / static_cast<double>(all[1 - s]);
      // A class of both sides is seen from each of them.
      result.other_share += std::abs(mine - theirs) / (other == classes[1 - s].end() ? 2 : 4);
      const double usual_share = (mine + theirs) / 2;
      const double error = std::sqrt(usual_share * (1 - usual_share) *
                                     (1 / static_cast<double>(all[0]) + 1 / static_cast<double>(all[1])));
      // What chance makes of it is no other work.
      result.other_share -= error * std::sqrt(2 / std::numbers::pi) / (other == classes[1 - s].end() ? 1 : 2);
      result.mix_differs = result.mix_differs || std::abs(mine - theirs) > std::max(kOtherMix, 2 * error);
    }
  }
  result.other_share = std::max(0.0, result.other_share);
  return result;
}

}  // namespace culprit::compare
