#include "ab/turns.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <optional>
#include <random>
#include <set>
#include <utility>

#include "ab/child.h"
#include "ab/freezer.h"
#include "ab/memory.h"
#include "ab/start_spread.h"
#include "ab/turn_length.h"
#include "core/file.h"
#include "core/units.h"
#include "faults/files.h"
#include "faults/guard.h"
#include "faults/injector.h"
#include "faults/text.h"
#include "record/collector/prompt.h"

namespace culprit::ab {

namespace {

constexpr Ns kBeat = kSecond / 2;
constexpr Ns kReadable = 2 * kSecond;       // what a recorder saw is in its file by then
constexpr Ns kSeen = 3 * kSecond;           // to learn how long steps are
constexpr Ns kRemembered = 7 * kSecond;     // to learn how the noise of their times remembers
constexpr int kNiceness = 10;               // of a look
constexpr Ns kDeviceLook = kSecond / 2000;  // between two looks at a device

/// Bytes that are the process's own, and its part of what it shares; 0: not known.
std::uint64_t memory_of(pid_t pid) {
  const auto text = read_file(fmt::format("/proc/{}/smaps_rollup", pid));
  if (!text) return 0;
  return static_cast<std::uint64_t>(faults::number_after(*text, "Pss:").value_or(0)) * 1024;
}

/// All of one side that stands still together.
struct Side {
  std::vector<Freezer> freezers;  // the side's own first, then its clients'

  Status freeze() {
    for (Freezer& freezer : freezers)
      if (Status status = freezer.freeze(); !status) return status;
    return {};
  }
  Status thaw() {
    for (Freezer& freezer : freezers)
      if (Status status = freezer.thaw(); !status) return status;
    return {};
  }
  /// Who ended: "", "the baseline", "the clients of the baseline".
  [[nodiscard]] std::string over(std::size_t number) const {
    if (freezers.empty()) return {};
    if (freezers.front().over()) return fmt::format("the {}", kSideNames[number]);
    if (std::ranges::any_of(freezers, &Freezer::over)) return fmt::format("the clients of the {}", kSideNames[number]);
    return {};
  }
};

/// A look in a process of its own, so that the turns go on meanwhile.
struct Look {
  pid_t pid = -1;
  int pipe = -1;
  double share = 0;  ///< of the budget
};

/// What a look tells: numbers alone.
struct LookResult {
  model::Outcome outcome = model::Outcome::inconclusive;
  bool any = false;
  std::size_t pairs = 0;  ///< that it saw
  model::PairedChange change;
  Between between;  ///< starts
};

class Match {
 public:
  Match(const TurnsPlan& plan, const Question& question, const Stage& stage, Looks& looks, int stop_fd)
      : plan_(plan),
        question_(question),
        stage_(stage),
        stop_fd_(stop_fd),
        random_(question.seed + stage.pairs),
        looks_(looks) {}
  Match(const Match&) = delete;
  Match& operator=(const Match&) = delete;
  ~Match() { end_look(); }

  Result<Alternated> run(const ProgressSink& progress);

 private:
  Status prepare();
  Status choose_length();
  void take_length(const std::array<StepsOf, 2>& sides, const TurnValues& known);
  Status take_side(std::size_t side);
  Status record_side(std::size_t side);
  Status play(const ProgressSink& progress);
  Status play_turn(std::uint8_t side, std::uint32_t pair);
  void see_devices();
  Drained wait_for_device(std::size_t side);
  bool wait_for(Ns until);
  /// Nothing comes behind these two; after play().
  [[nodiscard]] bool is_last() const {
    const model::AlternationEnd end = result_.found.end;
    const bool spent = stage_.length == 0 && end == model::AlternationEnd::budget;
    return stage_.last || spent || end == model::AlternationEnd::interrupted ||
           end == model::AlternationEnd::side_ended;
  }
  [[nodiscard]] std::string recording_of_side(std::size_t side) const {
    return fmt::format("{}/{}.pftrace", question_.folder, kSideNames[side]);
  }
  Result<TurnValues> values(const std::vector<Turn>& turns) const;
  void begin_look(double share);
  std::optional<LookResult> finished_look();
  void end_look();
  Status conclude();
  [[nodiscard]] Error reason_of(const Error& error) const;

  const TurnsPlan& plan_;
  const Question& question_;
  const Stage& stage_;
  int stop_fd_;
  std::mt19937_64 random_;
  std::array<std::optional<Child>, 2> recorders_;
  std::array<std::optional<faults::ProcessHandle>, 2> begun_;
  std::array<Side, 2> sides_;
  std::vector<DeviceSight> devices_;  // one per side
  std::optional<record::Prompt> prompt_;
  std::optional<faults::Guard> guard_;  // ends before the recorders do, which leave nobody who is frozen
  std::vector<Turn> turns_;
  Look look_;
  Looks& looks_;
  std::optional<LookResult> decided_;
  std::uint64_t memory_ = 0;
  Alternated result_;
};

Status Match::take_side(std::size_t side) {
  std::vector<pid_t> roots = {plan_.sides[side]};
  roots.insert(roots.end(), plan_.clients[side].begin(), plan_.clients[side].end());
  int number = 0;
  for (const pid_t root : roots) {
    const auto target = faults::open_target(root, plan_.any_user);
    if (!target) return target.error();
    auto freezer = Freezer::take(target->id(), fmt::format("culprit-ab-{}-{}{}", getpid(), "ab"[side], number++),
                                 *guard_, plan_.groups);
    if (!freezer) return freezer.error();
    sides_[side].freezers.push_back(std::move(*freezer));
  }
  return {};
}

Status Match::record_side(std::size_t side) {
  Work work;
  work.record.pids = {plan_.sides[side]};
  work.record.preset = question_.preset;
  work.record.prompt = question_.prompt;
  work.record.output = recording_of_side(side);
  work.record.version = question_.version;
  work.functions = question_.functions;
  auto child = Child::start(work);
  if (!child) return child.error();
  if (Status status = child->wait_until_begun(); !status) return status;
  recorders_[side].emplace(std::move(*child));
  result_.recordings[side] = {work.record.output};
  return {};
}

Status Match::prepare() {
  std::set<pid_t> first;
  for (std::size_t side = 0; side < 2; ++side)
    if (const auto facts = faults::process_facts(plan_.sides[side]))
      for (const faults::ProcessId& process : faults::process_tree(facts->id)) {
        if (side == 0) first.insert(process.pid);
        if (side == 1 && first.contains(process.pid))
          return usage_error(fmt::format("process {} would be on both sides", process.pid),
                             "name two that are not the same, and none that started the other");
      }
  const auto folder = faults::state_folder();
  if (!folder) return folder.error();
  // Of one that was killed together with its guard.
  for (const faults::Leftover& leftover : faults::leftovers(*folder))
    if (leftover.file.starts_with(*folder + "/ab-") && !leftover.in_use())
      static_cast<void>(faults::undo_leftover(leftover));
  for (std::size_t side = 0; side < 2; ++side) {
    auto target = faults::open_target(plan_.sides[side], plan_.any_user);
    if (!target) return target.error();
    if (Status status = runs(target->id()); !status) return status;
    begun_[side].emplace(std::move(*target));
  }
  if (Status status = enough_memory({plan_.sides.begin(), plan_.sides.end()}); !status) return status;
  // The recorders attach while everybody runs, and before anything can be frozen.
  for (std::size_t side = 0; side < 2; ++side)
    if (Status status = record_side(side); !status) return status;
  if (Status status = choose_length(); !status) return status;
  auto guard = faults::Guard::start(fmt::format("{}/ab-{}.undo", *folder, faults::unique_text()));
  if (!guard) return guard.error();
  guard_.emplace(std::move(*guard));
  for (std::size_t side = 0; side < 2; ++side)
    if (Status status = take_side(side); !status) return status;
  std::vector<pid_t> all;
  for (const Side& side : sides_)
    for (const Freezer& freezer : side.freezers)
      for (const faults::ProcessId& process : freezer.processes()) {
        guard_->beat();
        memory_ += memory_of(process.pid);
        all.push_back(process.pid);
      }
  see_devices();
  return enough_memory(all);
}

void Match::see_devices() {
  for (const Side& side : sides_) {
    std::vector<pid_t> processes;
    for (const Freezer& freezer : side.freezers)
      for (const faults::ProcessId& process : freezer.processes()) processes.push_back(process.pid);
    guard_->beat();
    devices_.push_back(plan_.devices(processes));
  }
  guard_->beat();
  result_.found.turns.queues_seen = are_seen(devices_);
}

/// Of a side that stands still already, so that nothing comes after what is queued.
Drained Match::wait_for_device(std::size_t side) {
  const model::Turns& turns = result_.found.turns;
  if (!turns.queues_seen) return {};
  return drain(devices_[side].view, turns.length / TurnsPlan::kQueuePart,
               [&] { return wait_for(record::monotonic_now() + kDeviceLook); });
}

/// Both run side by side for a moment, which tells whether they have steps, how long those are, and how the noise of
/// their times remembers. Error: a side has nothing that repeats for as long as that may take.
Status Match::choose_length() {
  const bool open = plan_.length == 0 && stage_.turns.length == 0;
  const Ns begin = record::monotonic_now();
  pollfd stop{stop_fd_, POLLIN, 0};
  for (Ns wait = kSeen + kReadable;; wait = kReadable) {
    if (poll(&stop, 1, static_cast<int>(wait / 1'000'000)) > 0) return cancelled_error();
    std::array<StepsOf, 2> sides;
    for (std::size_t side = 0; side < 2; ++side) {
      auto found = steps_of(recording_of_side(side), question_.quantity);
      if (!found) return found.error();
      if (begun_[side]->ended()) return environment_error("has ended", fmt::format("process {}", plan_.sides[side]));
      sides[side] = std::move(*found);
    }
    const auto known = values_of(sides, {}, question_.quantity);
    const Ns waited = record::monotonic_now() - begin;
    if (known && (!open || !known->of_steps || waited >= kRemembered + kReadable)) {
      take_length(sides, *known);
      return is_long_enough(result_.found.turns.length, known->shortest);
    }
    if (!known && waited > plan_.patience) return known.error();
  }
}

/// Chosen once: turns of a later start are as long as those of the first.
void Match::take_length(const std::array<StepsOf, 2>& sides, const TurnValues& known) {
  model::Turns& turns = result_.found.turns;
  if (plan_.length > 0 || stage_.turns.length > 0) {
    turns.length = plan_.length > 0 ? plan_.length : stage_.turns.length;
    turns.length_from = plan_.length > 0 ? model::LengthFrom::given : stage_.turns.length_from;
    return;
  }
  const std::array<std::vector<Step>, 2> steps = {sides[0].steps, sides[1].steps};
  const double step = mean_step_of(steps);
  // Alone each is faster: both share the machine now.
  turns.length = std::max(length_for(step), known.shortest + known.shortest / 8);
  turns.length_from = step > 0 ? model::LengthFrom::steps : model::LengthFrom::usual;
  if (!known.of_steps) return;
  const Ns time = stage_.length > 0 ? stage_.length : std::max<Ns>(0, question_.budget - stage_.spent);
  const auto turns_at_least = static_cast<Ns>(2 * std::max(question_.pairs, kFewestTurns));
  const auto length = length_by_memory(steps, turns.length, time / turns_at_least);
  if (!length) return;
  turns.length = *length;
  turns.length_from = model::LengthFrom::noise;
}

/// False: the user wants to stop, or the guard is gone.
bool Match::wait_for(Ns until) {
  for (Ns now = record::monotonic_now(); now < until; now = record::monotonic_now()) {
    guard_->beat();
    const Ns rest = std::min(until - now, kBeat);
    std::array<pollfd, 2> files = {pollfd{stop_fd_, POLLIN, 0}, pollfd{guard_->descriptor(), POLLIN, 0}};
    const timespec limit{rest / kSecond, rest % kSecond};
    if (ppoll(files.data(), files.size(), &limit, nullptr) > 0) return false;
  }
  return true;
}

Status Match::play_turn(std::uint8_t side, std::uint32_t pair) {
  Turn turn{{}, side, pair};
  if (Status status = sides_[side].thaw(); !status) return status;
  turn.span.begin = faults::unix_now();
  const bool whole = wait_for(record::monotonic_now() + result_.found.turns.length);
  if (prompt_) prompt_->again();
  turn.span.end = faults::unix_now();
  if (!guard_->alive()) return environment_error("has ended, so nothing is frozen any more", "guard process");
  if (Status status = sides_[side].freeze(); !status) return status;
  if (!whole) return {};
  turns_.push_back(turn);
  const Drained drained = wait_for_device(side);
  result_.found.turns.queues_waited += drained.waited;
  if (drained.late) ++result_.found.turns.queues_left;
  return {};
}

Result<TurnValues> Match::values(const std::vector<Turn>& turns) const {
  std::array<StepsOf, 2> steps;
  for (std::size_t side = 0; side < 2; ++side) {
    auto found = steps_of(recording_of_side(side), question_.quantity);
    if (!found) return found.error();
    steps[side] = std::move(*found);
  }
  return values_of(steps, turns, question_.quantity);
}

void Match::begin_look(double share) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return;
  // What the recorders have not written yet is left to the next look.
  std::vector<Turn> known = turns_;
  const Ns readable = faults::unix_now() - kReadable;
  std::erase_if(known, [&](const Turn& turn) { return turn.span.end > readable; });
  const pid_t pid = fork();
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    close(guard_->descriptor());  // which has to close with this process's parent
    [[maybe_unused]] const int niceness = nice(kNiceness);
    LookResult result;
    // Nothing may leave this branch: what this process's parent holds would be given up here.
    try {
      result.pairs = known.size() / 2;
      if (const auto found = values(known)) {
        auto differences = differences_of(found->values);
        looks_.put_first(differences);
        if (!differences.empty()) {
          result.outcome = limited(looks_.look(differences.front(), share), worst_of(found->left_out, stage_.left_out),
                                   question_.detect);
          result.change = differences.front().change;
          result.between = looks_.between();
          result.any = true;
        }
      }
    } catch (...) {
      _exit(1);
    }
    [[maybe_unused]] const auto written = write(ends[1], &result, sizeof result);
    _exit(0);
  }
  close(ends[1]);
  if (pid < 0) {
    close(ends[0]);
    return;
  }
  look_ = {pid, ends[0], share};
}

std::optional<LookResult> Match::finished_look() {
  pollfd file{look_.pipe, POLLIN, 0};
  if (look_.pid < 0 || poll(&file, 1, 0) <= 0) return std::nullopt;
  LookResult result;
  const bool whole = read(look_.pipe, &result, sizeof result) == static_cast<ssize_t>(sizeof result);
  end_look();
  if (!whole) return LookResult{};
  return result;
}

void Match::end_look() {
  if (look_.pid < 0) return;
  kill(look_.pid, SIGKILL);
  while (waitpid(look_.pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  close(look_.pipe);
  look_ = {};
}

Status Match::play(const ProgressSink& progress) {
  if (question_.prompt) prompt_.emplace();  // a turn ends when it should
  model::Alternation& found = result_.found;
  for (Side& side : sides_)
    if (Status status = side.freeze(); !status) return status;
  for (std::size_t side = 0; side < 2; ++side) static_cast<void>(wait_for_device(side));
  const Ns begin = record::monotonic_now();
  Progress state;
  for (std::uint32_t pair = 0;; ++pair) {
    const auto first = static_cast<std::uint8_t>(random_() & 1U);
    for (const auto side : {first, static_cast<std::uint8_t>(1 - first)})
      if (Status status = play_turn(side, pair); !status) {
        if (turns_.size() < 2) return status;
        // What is known is worth as much as if it had been interrupted.
        result_.failed = reason_of(status.error());
        found.end = model::AlternationEnd::interrupted;
        found.notes.push_back(fmt::format("It ended early: {}", to_string(*result_.failed)));
        return {};
      }
    const Ns own = record::monotonic_now() - begin;
    const Ns elapsed = stage_.spent + own;
    const double share =
        question_.pairs > 0 ? 0 : std::min(1.0, static_cast<double>(elapsed) / static_cast<double>(question_.budget));
    state.pairs = stage_.pairs + pair + 1;
    state.elapsed = elapsed;
    state.share = question_.pairs > 0 ? static_cast<double>(state.pairs) / static_cast<double>(question_.pairs) : share;
    const double looked = look_.share;
    if (const auto look = finished_look()) {
      // The child's look is this process's as well.
      Differences none;
      static_cast<void>(looks_.look(none, looked));
      if (look->any) state.last = look->change;
      if (look->outcome != model::Outcome::inconclusive) {
        decided_ = *look;
        found.outcome = look->outcome;
        found.end =
            look->outcome == model::Outcome::no_change ? model::AlternationEnd::excluded : model::AlternationEnd::found;
      }
    }
    if (progress) progress(state);
    found.seconds = static_cast<double>(elapsed) / 1e9;
    if (found.outcome != model::Outcome::inconclusive) return {};
    for (std::size_t side = 0; side < 2; ++side) {
      const std::string who = sides_[side].over(side);
      if (who.empty()) continue;
      if (plan_.failure)
        if (Status status = plan_.failure(); !status) return status;
      found.end = model::AlternationEnd::side_ended;
      found.notes.push_back(fmt::format("It was {} that ended", who));
      return {};
    }
    pollfd stop{stop_fd_, POLLIN, 0};
    if (stop_fd_ >= 0 && poll(&stop, 1, 0) > 0) {
      found.end = model::AlternationEnd::interrupted;
      return {};
    }
    for (std::size_t side = 0; side < 2; ++side) {
      pollfd recorder{recorders_[side]->descriptor(), POLLIN, 0};  // it says nothing until its end
      if (poll(&recorder, 1, 0) <= 0) continue;
      found.end = model::AlternationEnd::interrupted;
      found.notes.push_back(fmt::format("The recording of the {} ended before the turns did", kSideNames[side]));
      return {};
    }
    const bool all_pairs = question_.pairs > 0 && state.pairs >= question_.pairs;
    if (all_pairs || (stage_.length > 0 ? own >= stage_.length : elapsed >= question_.budget)) {
      found.end = all_pairs ? model::AlternationEnd::pairs : model::AlternationEnd::budget;
      return {};
    }
    if (look_.pid < 0 && looks_.is_due(share, turns_.size() / 2)) begin_look(share);
  }
}

/// Everybody runs on, the recordings are completed, and all of them counts.
Status Match::conclude() {
  prompt_.reset();
  end_look();
  result_.found.turns.freezer = sides_[0].freezers.front().how();
  for (Side& side : sides_) static_cast<void>(side.thaw());
  // A side that ended may have taken its group with it.
  for (const std::string& trouble : guard_->undo())
    result_.found.notes.push_back(fmt::format("Not restored: {}", trouble));
  for (auto& recorder : recorders_) {
    recorder->interrupt();
    const auto done = recorder->wait();
    if (!done && !result_.failed) result_.failed = reason_of(done.error());  // its file is readable up to there
  }
  auto all = values(turns_);
  if (!all) return all.error();
  model::Alternation& found = result_.found;
  auto differences = differences_of(all->values);
  if (is_last()) looks_.put_first(differences);
  result_.left_out = worst_of(all->left_out, stage_.left_out);
  std::size_t pairs = turns_.size() / 2;
  if (decided_ && !differences.empty()) {
    // What that look saw is the answer.
    const auto first =
        std::ranges::find(differences, decided_->change.phase, [](const Differences& one) { return one.change.phase; });
    if (first != differences.end()) std::rotate(differences.begin(), first, std::next(first));
    differences.front().change = decided_->change;
    pairs = decided_->pairs;
    found.between_starts = between_starts(decided_->between, question_.quantity, all->of_steps);
  } else if (!differences.empty() && is_last()) {
    const model::Outcome last = looks_.look(differences.front(), 1);
    found.between_starts = between_starts(looks_.between(), question_.quantity, all->of_steps);
    found.outcome = limited(last, result_.left_out, question_.detect);
    if (std::string why = why_limited(last, result_.left_out, question_.detect); !why.empty())
      found.notes.push_back(std::move(why));
    if (found.outcome != model::Outcome::inconclusive && found.end == model::AlternationEnd::budget)
      found.end =
          found.outcome == model::Outcome::no_change ? model::AlternationEnd::excluded : model::AlternationEnd::found;
  }
  for (std::size_t i = 1; i < differences.size(); ++i) looks_.fill(differences[i]);
  looks_.end_start(differences);
  if (is_last() && !differences.empty() && differences.front().logs.size() < kFewestTurns &&
      !std::isfinite(differences.front().change.low))
    found.notes.push_back(
        fmt::format("Fewer than {} pairs of turns do not tell how alike neighbours are", kFewestTurns));
  if (is_last() && differences.empty() && question_.quantity.kind == Quantity::Kind::counter)
    found.notes.emplace_back(
        "The counter is 0, or no turn holds the whole time between two of its samples: longer ones (--turns) tell");
  found.looks = looks_.looks();
  if (!all->note.empty() && stage_.quantity != all->quantity) found.notes.push_back(all->note);
  found.quantity = all->quantity;
  found.unit = all->unit;
  found.of_steps = all->of_steps;
  found.sides = question_.sides;
  found.in_turns = true;
  found.turns.turns = turns_.size();
  found.turns.memory = memory_;
  found.turns.settling = all->settling;
  found.turns.spanning = all->spanning;
  found.pairs_left_out = pairs - std::min(pairs, differences.empty() ? 0 : differences.front().change.pairs);
  for (Differences& one : differences) found.changes.push_back(one.change);
  for (std::uint8_t side = 0; side < 2; ++side) result_.turns[side] = spans_of(turns_, side, all->settling);
  return {};
}

/// That a side ended explains whatever else went wrong.
Error Match::reason_of(const Error& error) const {
  if (error.kind == ErrorKind::cancelled) return error;
  if (plan_.failure)
    if (Status status = plan_.failure(); !status) return status.error();
  for (std::size_t side = 0; side < 2; ++side)
    if (begun_[side] && begun_[side]->ended())
      return environment_error(fmt::format("the {} ended before enough was seen of it", kSideNames[side]),
                               fmt::format("process {}", plan_.sides[side]));
  return error;
}

Result<Alternated> Match::run(const ProgressSink& progress) {
  result_.found.detect = question_.detect;
  Status status = prepare();
  if (status) status = play(progress);
  if (status) status = conclude();
  if (!status) return reason_of(status.error());
  return std::move(result_);
}

}  // namespace

Result<Alternated> alternate(const TurnsPlan& plan, const Question& question, int stop_fd,
                             const ProgressSink& progress) {
  Looks looks(question.detect, question.allowed, {}, kFewestTurns);
  return alternate(plan, question, {}, looks, stop_fd, progress);
}

Result<Alternated> alternate(const TurnsPlan& plan, const Question& question, const Stage& stage, Looks& looks,
                             int stop_fd, const ProgressSink& progress) {
  Match match(plan, question, stage, looks, stop_fd);
  return match.run(progress);
}

}  // namespace culprit::ab
