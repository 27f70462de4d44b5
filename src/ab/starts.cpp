#include "ab/starts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <optional>
#include <system_error>
#include <utility>

#include "ab/start_spread.h"
#include "record/collector/collector.h"

namespace culprit::ab {

namespace {

constexpr Ns kShortest = 20'000'000'000;  // turns that tell something

/// Both as one; what was counted is added, the change is that of all starts already.
model::PairedChange added(const model::PairedChange& before, const model::PairedChange& now) {
  model::PairedChange all = now;
  all.pairs += before.pairs;
  for (std::size_t side = 0; side < 2; ++side) {
    all.other_work[side] += before.other_work[side];
    all.values[side] += before.values[side];
    if (before.values[side] == 0) continue;
    const auto weight = static_cast<double>(before.values[side]) / static_cast<double>(all.values[side]);
    all.total_mean[side] = now.values[side] == 0
                               ? before.total_mean[side]
                               : weight * before.total_mean[side] + (1 - weight) * now.total_mean[side];
    all.mean[side] = now.values[side] == 0
                         ? before.mean[side]
                         : std::exp(weight * std::log(before.mean[side]) + (1 - weight) * std::log(now.mean[side]));
  }
  if (!std::isfinite(now.change)) {
    all.change = before.change;
    all.low = before.low;
    all.high = before.high;
  }
  if (!std::isfinite(now.total)) {
    all.total = before.total;
    all.total_low = before.total_low;
    all.total_high = before.total_high;
  }
  if (!std::isfinite(now.spread) || before.spread > now.spread) all.spread = before.spread;
  all.memory = std::max(before.memory, now.memory);
  return all;
}

void add(Alternated& all, Alternated&& now) {
  all.left_out = now.left_out;  // the worst so far
  if (now.failed) all.failed = std::move(now.failed);
  for (std::size_t side = 0; side < 2; ++side) {
    std::ranges::move(now.recordings[side], std::back_inserter(all.recordings[side]));
    std::ranges::move(now.turns[side], std::back_inserter(all.turns[side]));
  }
  model::Alternation before = std::exchange(all.found, std::move(now.found));
  model::Alternation& found = all.found;
  for (const model::PairedChange& change : before.changes) {
    const auto same = std::ranges::find(found.changes, change.phase, &model::PairedChange::phase);
    if (same != found.changes.end())
      *same = added(change, *same);
    else
      found.changes.push_back(change);
  }
  found.turns.turns += before.turns.turns;
  found.turns.memory = std::max(found.turns.memory, before.turns.memory);
  found.turns.queues_seen = found.turns.queues_seen && before.turns.queues_seen;
  found.turns.queues_left += before.turns.queues_left;
  found.turns.queues_waited += before.turns.queues_waited;
  found.turns.settling = std::max(found.turns.settling, before.turns.settling);
  for (std::size_t side = 0; side < 2; ++side) found.turns.spanning[side] += before.turns.spanning[side];
  found.pairs_left_out += before.pairs_left_out;
  found.notes.insert(found.notes.begin(), before.notes.begin(), before.notes.end());
}

bool is_over(const model::Alternation& found) {
  using model::AlternationEnd;
  return found.outcome != model::Outcome::inconclusive || found.end == AlternationEnd::interrupted ||
         found.end == AlternationEnd::side_ended;
}

/// No further start came about: what the earlier ones say is all.
void conclude_early(Alternated& all, Looks& looks, const Question& question, model::AlternationEnd end) {
  all.found.end = end;
  if (all.found.changes.empty()) return;
  Differences first;
  first.change = all.found.changes.front();
  const model::Outcome last = looks.look(first, 1);
  all.found.outcome = limited(last, all.left_out, question.detect);
  if (std::string why = why_limited(last, all.left_out, question.detect); !why.empty())
    all.found.notes.push_back(std::move(why));
  all.found.changes.front() = first.change;
  all.found.between_starts = between_starts(looks.between(), question.quantity, all.found.of_steps);
  all.found.looks = looks.looks();
}

/// The folder of one start.
Result<std::string> folder_of(const std::string& folder, std::size_t start) {
  std::string own = fmt::format("{}/start-{}", folder, start);
  std::error_code code;
  std::filesystem::create_directories(own, code);
  if (code) return environment_error(code.message(), own, "choose another folder with --keep");
  return own;
}

}  // namespace

Ns length_of_start(Ns starting, Ns left) {
  // What starts differ by costs more than short turns do: rather more starts than longer turns.
  const Ns turns = std::max(starting / 2, kShortest);
  return left < 2 * turns + starting ? left : turns;
}

Result<Alternated> alternate(const StartsPlan& plan, const Question& question, int stop_fd,
                             const ProgressSink& progress) {
  std::optional<Alternated> all;
  Looks looks(question.detect, question.allowed, assumed_of(question.quantity), kFewestTurns);
  constexpr std::size_t kFewest = 6;  // pairs of a start, for an error of their own
  if (plan.most > 0 && question.pairs > 0 && question.pairs < kFewest * plan.most)
    return usage_error(fmt::format("{} pairs are too few for {} starts", question.pairs, plan.most),
                       fmt::format("ask for {} pairs or more (-n)", kFewest * plan.most));
  const std::size_t most = plan.most > 0 ? plan.most : question.pairs > 0 ? 1 : 0;
  Stage stage;
  Ns ready = 0;  // when the first two were
  for (std::size_t start = 1;; ++start) {
    if (plan.starting) plan.starting(start);
    const Ns begin = record::monotonic_now();
    Servers servers = plan.servers;
    Question of_start = question;
    auto now = [&]() -> Result<Alternated> {
      auto folder = folder_of(question.folder, start);
      if (!folder) return folder.error();
      servers.folder = of_start.folder = *folder;
      const auto running = RunningServers::start(servers, stop_fd);
      if (!running) return running.error();
      const Ns up = record::monotonic_now();
      if (start == 1) ready = up;
      stage.spent = up - ready;
      stage.last = start == most;
      stage.length = 0;
      const Ns left = std::max<Ns>(0, question.budget - stage.spent);
      if (question.pairs > 0) {
        const std::size_t rest = question.pairs - std::min(stage.pairs, question.pairs);
        if (!stage.last) of_start.pairs = stage.pairs + rest / (most - start + 1);
      } else if (most > 0) {
        // So many were asked for.
        stage.length = std::max(left / static_cast<Ns>(most - start + 1), kShortest / 4);
      } else {
        stage.length = length_of_start(up - begin, left);
        stage.last = stage.length >= left;
      }
      TurnsPlan turns = plan.turns;
      for (std::size_t side = 0; side < 2; ++side) {
        turns.sides[side] = running->server(side);
        turns.clients[side] = running->clients(side);
      }
      turns.failure = [&] { return running->failure(servers); };
      return alternate(turns, of_start, stage, looks, stop_fd, progress);
    }();
    if (!now) {
      if (!all) return now.error();
      const bool cancelled = now.error().kind == ErrorKind::cancelled;
      conclude_early(*all, looks, question,
                     cancelled ? model::AlternationEnd::interrupted : model::AlternationEnd::side_ended);
      if (!cancelled) {
        all->failed = now.error();
        all->found.notes.push_back(fmt::format("Start {} failed: {}", start, to_string(now.error())));
      }
      break;
    }
    stage.pairs += now->found.turns.turns / 2;
    stage.left_out = now->left_out;  // the worst so far
    stage.turns = now->found.turns;
    stage.quantity = now->found.quantity;
    now->found.seconds = static_cast<double>(record::monotonic_now() - ready) / 1e9;
    if (!all)
      all = std::move(*now);
    else
      add(*all, std::move(*now));
    all->found.starts = start;
    // So many pairs end with the budget, however many starts were asked for.
    const bool concluded = question.pairs > 0 && all->found.end == model::AlternationEnd::budget;
    if (stage.last || concluded || is_over(all->found)) break;
    if (question.pairs > 0 && record::monotonic_now() - ready >= question.budget) {
      conclude_early(*all, looks, question, model::AlternationEnd::budget);
      break;
    }
  }
  return std::move(*all);
}

}  // namespace culprit::ab
