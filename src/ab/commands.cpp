#include "ab/commands.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <random>
#include <system_error>
#include <utility>

#include "ab/child.h"
#include "ab/printed.h"
#include "ab/recorded_steps.h"
#include "core/units.h"

namespace culprit::ab {

namespace {

constexpr std::size_t kFewestSteps = 5;  // of a run, for its mean
constexpr Ns kLongestPoll = 60'000 * kMs;

bool is_readable(int fd) {
  pollfd file{fd, POLLIN, 0};
  return fd >= 0 && poll(&file, 1, 0) > 0;
}

void discard(const std::string& file) {
  std::error_code code;
  std::filesystem::remove_all(file, code);
}

/// Every second one goes when there are many: a few, spread over all runs, say where a difference is.
void thin_out(std::vector<std::string>& recordings) {
  constexpr std::size_t kMost = 32;
  if (recordings.size() < kMost) return;
  std::vector<std::string> rest;
  for (std::size_t i = 0; i < recordings.size(); ++i)
    if (i % 2 == 0)
      rest.push_back(recordings[i]);
    else
      discard(recordings[i]);
  recordings = std::move(rest);
}

struct OneRun {
  Done done;
  std::string recording;
  std::vector<Step> steps;
  std::string how;    ///< they were found, or why not
  std::string meant;  ///< counter that was taken for the name that was given
};

/// A run that was ended because it took longer than it may.
struct Endless {
  std::size_t side = 0;
  Ns after = 0;
};

class Alternator {
 public:
  Alternator(const Commands& commands, const Question& question, int stop_fd)
      : commands_(commands), question_(question), stop_fd_(stop_fd), random_(question.seed) {}

  Result<Alternated> run(const ProgressSink& progress);

 private:
  Result<std::optional<OneRun>> run_side(std::size_t side, const std::string& name);
  Result<bool> run_pair(bool counts);
  [[nodiscard]] bool needs_steps() const {
    return quantity_.kind != Quantity::Kind::run && quantity_.kind != Quantity::Kind::cpu;
  }
  void choose_quantity(const std::array<OneRun, 2>& runs);
  void go_over_to_runs(std::size_t side);
  void add(const std::array<OneRun, 2>& runs);
  void take(const std::vector<Differences>& all);
  void note_end();
  /// How long a run that begins now may take.
  [[nodiscard]] Ns longest_allowed() const {
    const Ns rest = std::max<Ns>(0, question_.budget - (record::monotonic_now() - begin_));
    return std::max(commands_.patience, rest + 2 * longest_);
  }

  const Commands& commands_;
  const Question& question_;
  int stop_fd_;
  Ns begin_ = 0;
  Ns longest_ = 0;  // of the runs
  std::optional<Endless> endless_;
  std::mt19937_64 random_;
  std::array<std::size_t, 2> numbers_{};
  std::size_t pairs_ = 0;
  std::vector<Value> values_;
  std::vector<std::array<Ns, 2>> times_;  // of runs, one per pair
  Quantity quantity_;
  Alternated result_;
};

/// nullopt: interrupted, or endless_.
Result<std::optional<OneRun>> Alternator::run_side(std::size_t side, const std::string& name) {
  const std::string stem = fmt::format("{}/{}", question_.folder, name);
  Work work;
  work.record.command = commands_.commands[side];
  work.record.preset = question_.preset;
  work.record.prompt = question_.prompt;
  work.record.output = stem + ".pftrace";
  work.record.version = question_.version;
  work.functions = question_.functions;
  work.recorded = question_.recorded;
  work.text = stem + ".txt";
  if (commands_.own_directories) {
    work.directory = stem + ".dir";
    work.temporary = std::filesystem::absolute(stem + ".tmp").string();
    for (const std::string& own : {work.directory, work.temporary})
      if (mkdir(own.c_str(), 0700) != 0) return environment_error(errno_text(errno), own);
    std::string& program = work.record.command.front();
    if (program.find('/') != std::string::npos) program = std::filesystem::absolute(program).string();
  }
  const Ns allowed = longest_allowed();
  const Ns begin = record::monotonic_now();
  auto child = Child::start(work);
  if (!child) return child.error();
  // It has a message when it ends.
  bool interrupted = false;
  if (Status status = child->wait_until_begun(); !status) {
    // A command that waits to be started is ended by Ctrl-C, too.
    if (is_readable(stop_fd_)) return std::optional<OneRun>();
    return status.error();
  }
  while (true) {
    const bool ending = interrupted || endless_;
    std::array<pollfd, 2> files = {pollfd{child->descriptor(), POLLIN, 0},
                                   pollfd{interrupted ? -1 : stop_fd_, POLLIN, 0}};
    const Ns rest = allowed - (record::monotonic_now() - begin);
    poll(files.data(), files.size(), ending ? -1 : static_cast<int>(std::clamp<Ns>(rest, 0, kLongestPoll) / kMs) + 1);
    if (!ending && files[0].revents == 0 && record::monotonic_now() - begin > allowed) {
      endless_ = Endless{side, record::monotonic_now() - begin};
      child->interrupt();
    }
    if ((files[1].revents & POLLIN) != 0) {
      interrupted = true;
      child->interrupt();
      continue;
    }
    if (files[0].revents != 0) break;
  }
  auto done = child->wait();
  if (interrupted || endless_ || is_readable(stop_fd_)) return std::optional<OneRun>();
  if (!done) return done.error();
  if (done->exit_code.value_or(0) != 0) {
    if (question_.printed) question_.printed(last_lines(work.text));
    return environment_error(fmt::format("the {} failed with exit code {}", kSideNames[side], *done->exit_code),
                             commands_.commands[side].front(),
                             fmt::format("run it alone: {}", fmt::join(commands_.commands[side], " ")));
  }
  if (!question_.kept) {
    discard(work.text);
    for (const std::string& own : {work.directory, work.temporary})
      if (!own.empty()) discard(own);
  }
  longest_ = std::max(longest_, record::monotonic_now() - begin);
  OneRun run;
  run.done = *done;
  if (done->recorded) {
    run.recording = work.record.output;
    if (needs_steps()) {
      auto steps = steps_of(run.recording, quantity_);
      if (!steps) return steps.error();
      run.steps = std::move(steps->steps);
      run.how = std::move(steps->how);
      run.meant = std::move(steps->meant);
    }
  }
  return std::optional(std::move(run));
}

void Alternator::choose_quantity(const std::array<OneRun, 2>& runs) {
  for (const OneRun& run : runs)
    if (!run.meant.empty()) quantity_.pattern = run.meant;
  if (quantity_.kind != Quantity::Kind::automatic) return;
  const bool steps = std::ranges::all_of(runs, [](const OneRun& run) { return run.steps.size() >= kFewestSteps; });
  quantity_.kind = steps ? Quantity::Kind::step : Quantity::Kind::run;
}

/// Nobody asked for steps, and a run of this side has none: what all pairs have is compared.
void Alternator::go_over_to_runs(std::size_t side) {
  quantity_.kind = Quantity::Kind::run;
  values_.clear();
  for (std::uint32_t pair = 0; pair < times_.size(); ++pair)
    for (std::uint8_t i = 0; i < 2; ++i)
      values_.push_back({pair, i, model::Phase::other, {}, static_cast<double>(times_[pair][i])});
  result_.found.notes.push_back(fmt::format(
      "Times of runs are compared, because run {} of the {} has no steps that are surely such, unlike those before it",
      numbers_[side], kSideNames[side]));
}

void Alternator::add(const std::array<OneRun, 2>& runs) {
  const auto pair = static_cast<std::uint32_t>(pairs_);
  for (std::uint8_t side = 0; side < 2; ++side) {
    const OneRun& run = runs[side];
    if (quantity_.kind == Quantity::Kind::counter) {
      values_.push_back({pair, side, model::Phase::other, {}, mean_value(run.steps)});
    } else if (needs_steps()) {
      for (const Step& step : run.steps) values_.push_back({pair, side, step.phase, step.work, step.value});
    } else {
      const Ns value = quantity_.kind == Quantity::Kind::cpu ? run.done.use.cpu : run.done.use.run;
      values_.push_back({pair, side, model::Phase::other, {}, static_cast<double>(value)});
    }
    if (!run.recording.empty()) result_.recordings[side].push_back(run.recording);
    if (!question_.kept) thin_out(result_.recordings[side]);
  }
  times_.push_back({runs[0].done.use.run, runs[1].done.use.run});
  ++pairs_;
}

/// False: interrupted, or endless_.
Result<bool> Alternator::run_pair(bool counts) {
  std::array<OneRun, 2> runs;
  const std::size_t first = random_() & 1U;
  for (const std::size_t side : {first, 1 - first}) {
    const std::string name = counts ? fmt::format("{}-{}", kSideNames[side], ++numbers_[side])
                                    : fmt::format("{}-warm-up-{}", kSideNames[side], ++numbers_[side]);
    auto run = run_side(side, name);
    if (!run) return run.error();
    if (!*run) return false;
    runs[side] = std::move(**run);
  }
  if (!counts) {
    if (!question_.kept)
      for (const OneRun& run : runs) discard(run.recording);
    return true;
  }
  choose_quantity(runs);
  for (std::size_t side = 0; side < 2 && needs_steps(); ++side) {
    if (!runs[side].steps.empty()) continue;
    if (question_.quantity.kind == Quantity::Kind::automatic) {
      go_over_to_runs(side);
      break;
    }
    if (quantity_.kind == Quantity::Kind::counter)
      return environment_error(fmt::format("a run of the {}: {}", kSideNames[side], runs[side].how),
                               commands_.commands[side].front());
    return environment_error(
        fmt::format("a run of the {} has no steps that are surely such{} ({})", kSideNames[side],
                    quantity_.pattern.empty() ? "" : fmt::format(", or nothing called {} in them", quantity_.pattern),
                    runs[side].how),
        commands_.commands[side].front(), "compare the time of the whole run: --on run");
  }
  add(runs);
  return true;
}

void Alternator::take(const std::vector<Differences>& all) {
  result_.found.changes.clear();
  for (const Differences& one : all) result_.found.changes.push_back(one.change);
}

/// Why there is no further pair.
void Alternator::note_end() {
  result_.found.end = endless_ ? model::AlternationEnd::budget : model::AlternationEnd::interrupted;
  if (endless_)
    result_.found.notes.push_back(
        fmt::format("A run of the {} had not ended after {}: the budget is spent, so it was ended and does not count{}",
                    kSideNames[endless_->side], format_duration(endless_->after),
                    longest_ == 0 ? "; if it does not hang, give a larger --budget" : ""));
}

Result<Alternated> Alternator::run(const ProgressSink& progress) {
  model::Alternation& found = result_.found;
  found.detect = question_.detect;
  found.sides = question_.sides;
  quantity_ = question_.quantity;
  if (!question_.recorded && quantity_.kind == Quantity::Kind::automatic) quantity_.kind = Quantity::Kind::run;
  begin_ = record::monotonic_now();
  const Ns begin = begin_;
  Ns usual = 0;  // of a pair
  for (std::size_t i = 0; i < commands_.warm_up; ++i) {
    const auto went_on = run_pair(false);
    if (!went_on) return went_on.error();
    if (!*went_on) {
      note_end();
      return std::move(result_);
    }
  }
  if (commands_.warm_up > 0) usual = (record::monotonic_now() - begin) / static_cast<Ns>(commands_.warm_up);
  numbers_ = {};
  Looks looks(question_.detect, question_.allowed);
  std::vector<Differences> differences;
  const auto look = [&](double share) {
    differences = differences_of(values_);
    if (differences.empty()) return;
    found.outcome = looks.look(differences.front(), share);
    for (std::size_t i = 1; i < differences.size(); ++i) looks.fill(differences[i]);
  };
  Progress state;
  bool over = question_.pairs == 0 && record::monotonic_now() - begin + usual > question_.budget;
  if (over) {
    found.end = model::AlternationEnd::budget;
    found.notes.push_back(fmt::format(
        "A pair takes {}: {} of them, the fewest that decide, and those before them take {}",
        format_duration(static_cast<double>(usual)), kFewestPairs,
        format_duration(static_cast<double>(usual) * static_cast<double>(kFewestPairs + commands_.warm_up))));
  }
  while (!over) {
    const auto went_on = run_pair(true);
    if (!went_on) return went_on.error();
    const Ns elapsed = record::monotonic_now() - begin;
    const auto budget = static_cast<double>(question_.budget);
    // Another pair takes as long as those before it.
    const double next = static_cast<double>(elapsed) * (1 + 1 / static_cast<double>(pairs_ + commands_.warm_up));
    double share = question_.pairs > 0 ? 0 : std::min(1.0, static_cast<double>(elapsed) / budget);
    if (!*went_on) {
      note_end();
      over = true;
    } else if (question_.pairs > 0 && pairs_ >= question_.pairs) {
      found.end = model::AlternationEnd::pairs;
      over = true;
    } else if (next > budget) {
      found.end = model::AlternationEnd::budget;
      over = true;
    }
    if (over) share = 1;
    if (over || looks.is_due(share, pairs_)) {
      look(share);
      const bool decided = found.outcome != model::Outcome::inconclusive;
      if (decided && !endless_ && (!over || found.end == model::AlternationEnd::budget))
        found.end =
            found.outcome == model::Outcome::no_change ? model::AlternationEnd::excluded : model::AlternationEnd::found;
      over |= decided;
      if (!differences.empty()) state.last = differences.front().change;
    }
    state.pairs = pairs_;
    state.elapsed = elapsed;
    state.share = question_.pairs > 0 ? static_cast<double>(pairs_) / static_cast<double>(question_.pairs) : share;
    if (progress) progress(state);
  }
  found.seconds = static_cast<double>(record::monotonic_now() - begin) / 1e9;
  found.looks = looks.looks();
  found.quantity = name_of(quantity_);
  found.unit = unit_of(quantity_);
  found.of_steps = needs_steps() && quantity_.kind != Quantity::Kind::counter;
  found.pairs_left_out = pairs_ - (differences.empty() ? 0 : differences.front().change.pairs);
  take(differences);
  return std::move(result_);
}

}  // namespace

std::vector<std::string> relative_files(const Commands& commands) {
  std::vector<std::string> found;
  std::error_code ignored;
  for (const auto& command : commands.commands)
    for (std::size_t i = 1; i < command.size(); ++i)
      if (const std::filesystem::path path = command[i]; path.is_relative() && std::filesystem::exists(path, ignored) &&
                                                         std::ranges::find(found, command[i]) == found.end())
        found.push_back(command[i]);
  return found;
}

Result<Alternated> alternate(const Commands& commands, const Question& question, int stop_fd,
                             const ProgressSink& progress) {
  return Alternator(commands, question, stop_fd).run(progress);
}

}  // namespace culprit::ab
