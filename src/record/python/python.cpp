#include "record/python/python.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "core/saturating.h"
#include "record/collector/file_end.h"
#include "record/collector/installed_library.h"
#include "record/inject/inject.h"
#include "record/inject/pending.h"
#include "record/python/python_process.h"
#include "record/python/ready_sets.h"
#include "record/python/watched.h"

namespace culprit::record::python {

namespace {

constexpr Ns kUntilStarted = 300'000'000;  // since it was seen to execute Python: its interpreter must be there
constexpr Ns kFirstLook = 50'000'000;      // at what a process executes; each further one comes after twice the time
constexpr Ns kUntilNextTry = 1'000'000'000;
constexpr Ns kUntilAgentHasEnded = 100'000'000;
constexpr int kMostTries = 5;
constexpr int kManyLooks = 9;
constexpr Ns kSeldom = 10'000'000'000;   // after these
constexpr std::size_t kMostLate = 1000;  // processes of which the file tells since when they were watched
constexpr std::size_t kMostLateTold = 3;
constexpr Ns kReadyWithin = 2'000'000'000;  // all together; the recording begins without those that are later
constexpr Ns kNextAfter = 100'000'000;      // one that takes longer does not hold up others
constexpr Ns kStopsWithin = 2'000'000'000;
constexpr std::chrono::milliseconds kAskAgain{2};
constexpr std::size_t kMostWatched = 64;
constexpr std::string_view kNotInThisVersion = "this version of the program has no such function";
constexpr std::string_view kNoPythonYet = "Python has not begun yet";  // as the agent says it

bool is_of_program(std::int64_t pid) {
  const std::string title = title_of(pid);
  return std::ranges::any_of(
      ready_sets(), [&](const ReadySet& set) { return !set.of_library && title.find(set.name) != std::string::npos; });
}

/// Only interpreters are looked into: what every process has loaded would cost too much to read again and again.
bool uses_library(std::int64_t pid) {
  std::error_code code;
  const auto program = std::filesystem::read_symlink(fmt::format("/proc/{}/exe", pid), code);
  return program.filename().string().starts_with("python") &&
         std::ranges::any_of(ready_sets(), [&](const ReadySet& set) {
           return set.of_library && has_loaded(pid, {fmt::format("lib{}_python", set.name)});
         });
}

class PythonCollector final : public Collector, public FileEnd {
 public:
  explicit PythonCollector(PythonOptions options) : options_(std::move(options)) {}

  [[nodiscard]] std::string_view name() const override { return "python"; }
  Status start(Session& session) override;
  [[nodiscard]] bool starts_first() const override { return true; }
  [[nodiscard]] std::vector<Sight> sights() const override;
  void target_joined(const Target& target) override;
  void target_left(const Target& target) override;
  void poll(Session& session, Ns now) override;
  [[nodiscard]] bool is_quiet() const override;
  void file_ends(Session& session, Ns now) override;
  void stop(Session& session, Ns now) override;
  [[nodiscard]] CollectorStats stats() const override;

 private:
  struct Candidate {
    Ns due = 0;
    int tries = 0;
    std::string refused{};      ///< why it was, at first
    bool is_asked_for = false;  ///< it executes Python, of which functions were asked for
    int looks = 0;              ///< at which it did not
    Ns begun = 0;               ///< when it was first seen to execute Python; 0: not yet
  };

  void put_into_first(Session& session);
  void put_into(std::int64_t pid, Candidate& candidate, Ns now);
  /// One after the other, unless one takes long.
  [[nodiscard]] bool may_put_in(Ns now) const;
  /// Whether it has executed Python for as long as its interpreter takes to begin. To be asked when it is due.
  bool has_begun(std::int64_t pid, Candidate& candidate, Ns now);
  void note_watched(const Watched& watched, const Session& session);
  void take_pending(Session& session);
  void take(std::int64_t pid, Result<inject::Injected> injected, Session& session);
  void read_all(Session& session);
  [[nodiscard]] bool is_wanted(std::int64_t pid) const;
  void look_at_state(Watched& watched, Ns now);
  void note_failures();
  void give_up(std::int64_t pid, perfetto::Writer& writer, Ns now);
  void note_gap(std::int64_t pid, perfetto::Writer& writer);
  void note_late(std::int64_t pid, Candidate& candidate, perfetto::Writer& writer);
  void look_for_other_programs(perfetto::Writer& writer, Ns now);
  [[nodiscard]] bool is_too_short(std::int64_t pid, const Candidate& candidate) const;
  [[nodiscard]] std::string why_missing() const;
  [[nodiscard]] bool works_somewhere() const { return attached_.size() > failed_.size(); }
  void remember(const Watched& watched, perfetto::Writer& writer);
  void write_facts(perfetto::Writer& writer);
  [[nodiscard]] Ns agents_cpu() const;

  PythonOptions options_;
  std::vector<FunctionSpec> functions_;  ///< asked for, then those of ready-made sets
  std::string config_;                   ///< without functions of libraries
  std::string config_with_libraries_;
  inject::Agent agent_;
  bool started_ = false;
  bool stopped_ = false;
  std::map<std::int64_t, Candidate> candidates_;
  std::map<std::int64_t, std::unique_ptr<Watched>> watched_;
  std::vector<std::unique_ptr<Watched>> ended_;
  std::map<std::string, std::string> refused_;  ///< reason, remedy
  CollectorStats past_;                         ///< of processes that have ended
  Ns next_look_ = 0;
  Ns longest_stop_ = 0;
  Ns agent_start_cpu_ = 0;  ///< until the recording began
  Ns agent_stop_cpu_ = 0;   ///< since it ended
  std::uint64_t requests_begun_before_ = 0;
  std::uint64_t too_short_ = 0;                  ///< processes of Python that ended before they were attached to
  std::set<std::string> found_;                  ///< functions, anywhere
  std::set<std::string> absent_;                 ///< functions, from a module that is there
  std::map<std::string, std::string> unusable_;  ///< functions, why
  std::set<std::int64_t> attached_;              ///< processes
  std::map<std::int64_t, std::string> failed_;   ///< of these, what the agent said
  std::map<std::int64_t, std::string> gaps_;     ///< of these, what happened meanwhile
  std::map<std::int64_t, Ns> watched_after_;     ///< of these, since when of the recording; not above 0: all the time
  std::map<std::int64_t, std::unique_ptr<inject::Pending>> pending_;  ///< they use agent_ and the configs
};

Status PythonCollector::start(Session& session) {
  auto path =
      options_.library.empty() ? installed_library("libculprit_agent.so") : Result<std::string>(options_.library);
  if (!path) {
    refused_.emplace(path.error().what, path.error().remedy);
    return path.error();
  }
  auto agent = inject::read_agent(*path);
  if (!agent) {
    refused_.emplace(agent.error().what, agent.error().remedy);
    return agent.error();
  }
  agent_ = std::move(*agent);
  functions_ = options_.functions;
  for (const bool of_library : {false, true}) {
    for (const ReadySet& set : ready_sets()) {
      if (set.of_library != of_library) continue;
      auto functions = parse_functions(set.text);
      if (!functions) return functions.error();
      for (FunctionSpec& function : *functions) {
        function.optional = true;
        functions_.push_back(std::move(function));
      }
    }
    (of_library ? config_with_libraries_ : config_) = agent_config(functions_, options_.collections);
  }
  if (config_with_libraries_.size() > CULPRIT_AGENT_CONFIG_BYTES) {
    const Error many = usage_error(fmt::format("{} Python functions are more than an agent takes", functions_.size()),
                                   "name fewer with --python");
    refused_.emplace(many.what, many.remedy);
    return many;
  }
  started_ = true;
  if (!session.starts_command) put_into_first(session);
  for (const Target& target : session.targets) target_joined(target);
  agent_start_cpu_ = agents_cpu();
  return {};
}

Ns PythonCollector::agents_cpu() const {
  Ns sum = 0;
  for (const auto& [pid, watched] : watched_) sum = add_saturating(sum, watched->ring().agent_cpu());
  return sum;
}

/// Into those that are there. Steps that are not seen because the agents are not ready yet would look like a slower
/// beginning.
void PythonCollector::put_into_first(Session& session) {
  Ns now = monotonic_now();
  const Ns until = now + kReadyWithin;
  std::vector<std::int64_t> wanted;
  for (const Target& target : session.targets)
    if (is_wanted(target.pid)) wanted.push_back(target.pid);
  for (const std::int64_t pid : wanted) candidates_[pid].due = candidates_[pid].begun = now;
  const auto is_under_way = [&](std::int64_t pid) {
    const auto watched = watched_.find(pid);
    return watched != watched_.end() ? watched->second->ring().state() == CULPRIT_AGENT_STARTING
                                     : pending_.contains(pid) || candidates_[pid].tries == 0;
  };
  for (auto next = wanted.begin(); std::ranges::any_of(wanted, is_under_way) && now < until; now = monotonic_now()) {
    if (next != wanted.end() && may_put_in(now)) {
      put_into(*next, candidates_[*next], now);
      ++next;
    }
    std::this_thread::sleep_for(kAskAgain);
    take_pending(session);
    read_all(session);
  }
  for (const std::int64_t pid : wanted)
    if (is_under_way(pid))
      session.writer.metadata(fmt::format("missing.python.{}", pid),
                              "its functions were not watched yet when the recording began");
  note_failures();
}

void PythonCollector::read_all(Session& session) {
  for (const auto& [pid, watched] : watched_)
    watched->read(session.writer, monotonic_now(), session.begin, session.end);
}

void PythonCollector::note_failures() {
  for (const auto& [pid, watched] : watched_)
    if (watched->ring().state() == CULPRIT_AGENT_FAILED)
      failed_.insert_or_assign(
          pid, watched->trouble().empty() ? "the agent could not begin in it" : std::string(watched->trouble()));
}

/// Who executes another program has lost its agent with the one before.
void PythonCollector::look_for_other_programs(perfetto::Writer& writer, Ns now) {
  if (now < next_look_) return;
  next_look_ = now + kUntilNextTry;
  for (auto entry = watched_.begin(); entry != watched_.end();) {
    if (!entry->second->has_executed_another()) {
      ++entry;
      continue;
    }
    entry->second->give_up(writer);
    remember(*entry->second, writer);
    candidates_[entry->first] = {now};
    watched_after_.erase(entry->first);
    entry = watched_.erase(entry);
  }
}

/// An agent that thought its recorder gone has given everything back: it is put in again.
void PythonCollector::give_up(std::int64_t pid, perfetto::Writer& writer, Ns now) {
  const auto found = watched_.find(pid);
  found->second->give_up(writer);
  remember(*found->second, writer);
  watched_.erase(found);
  candidates_[pid] = {now + kUntilAgentHasEnded};
  candidates_[pid].begun = now;
  note_gap(pid, writer);
}

void PythonCollector::note_gap(std::int64_t pid, perfetto::Writer& writer) {
  gaps_[pid] = "the recorder stood still for more than 5 s: calls in that time and shortly after are missing";
  writer.metadata(fmt::format("missing.python.{}", pid), gaps_[pid]);
}

void PythonCollector::note_late(std::int64_t pid, Candidate& candidate, perfetto::Writer& writer) {
  gaps_[pid] =
      fmt::format("calls before it could be attached to are missing: {}", std::exchange(candidate.refused, {}));
  writer.metadata(fmt::format("missing.python.{}", pid), gaps_[pid]);
}

/// Without functions that were asked for only what a ready-made set is for.
bool PythonCollector::is_wanted(std::int64_t pid) const {
  if (!options_.functions.empty() || is_of_program(pid)) return runs_python(pid);
  return uses_library(pid);
}

void PythonCollector::put_into(std::int64_t pid, Candidate& candidate, Ns now) {
  ++candidate.tries;
  candidate.due = now + kUntilNextTry;
  if (watched_.size() + pending_.size() >= kMostWatched) {
    refused_.emplace(fmt::format("more than {} processes of Python", kMostWatched), "");
    return;
  }
  // A server of a known program computes with such a library, too, and does nothing that its set is for.
  const bool with_libraries = !is_of_program(pid) && uses_library(pid);
  pending_[pid] = std::make_unique<inject::Pending>(pid, agent_, with_libraries ? config_with_libraries_ : config_);
}

bool PythonCollector::may_put_in(Ns now) const {
  return std::ranges::none_of(pending_, [&](const auto& entry) { return now - entry.second->begun() < kNextAfter; });
}

void PythonCollector::take_pending(Session& session) {
  for (auto entry = pending_.begin(); entry != pending_.end();) {
    auto injected = entry->second->take();
    if (!injected) {
      ++entry;
      continue;
    }
    const std::int64_t pid = entry->first;
    entry = pending_.erase(entry);
    take(pid, std::move(*injected), session);
  }
}

void PythonCollector::take(std::int64_t pid, Result<inject::Injected> injected, Session& session) {
  const auto candidate = candidates_.find(pid);
  if (candidate == candidates_.end()) {  // it has left meanwhile
    if (injected) AgentRing(injected->shared.data()).ask_to_stop();
    return;
  }
  std::erase_if(refused_,
                [&](const auto& refusal) { return refusal.first.starts_with(fmt::format("process {}: ", pid)); });
  if (!injected) {
    // It may pass: an agent whose recorder was killed is there for some seconds.
    candidate->second.due = monotonic_now() + candidate->second.tries * kUntilNextTry;
    refused_.emplace(fmt::format("{}: {}", injected.error().where, injected.error().what), injected.error().remedy);
    if (candidate->second.refused.empty()) candidate->second.refused = injected.error().what;
    if (session.begin != kNotBegun)
      session.writer.metadata(fmt::format("missing.python.{}", pid), injected.error().what);
    return;
  }
  if (!candidate->second.refused.empty() && session.begin != kNotBegun)
    note_late(pid, candidate->second, session.writer);
  candidate->second.refused.clear();
  watched_[pid] = std::make_unique<Watched>(pid, std::move(*injected), functions_);
  attached_.insert(pid);
  failed_.erase(pid);
  if (stopped_) watched_[pid]->ring().ask_to_stop();
}

void PythonCollector::target_joined(const Target& target) {
  if (!started_ || watched_.contains(target.pid)) return;
  const Ns now = monotonic_now();
  const auto [candidate, fresh] = candidates_.try_emplace(target.pid, Candidate{now + kFirstLook});
  if (!fresh || options_.functions.empty() || !runs_python(target.pid)) return;
  candidate->second.is_asked_for = true;
  candidate->second.begun = now;
  candidate->second.due = now + kUntilStarted;
}

void PythonCollector::target_left(const Target& target) {
  const auto candidate = candidates_.find(target.pid);
  if (candidate != candidates_.end() && is_too_short(target.pid, candidate->second)) ++too_short_;
  candidates_.erase(target.pid);
  if (const auto pending = pending_.find(target.pid); pending != pending_.end()) pending->second->give_up();
  const auto found = watched_.find(target.pid);
  if (found == watched_.end()) return;
  ended_.push_back(std::move(found->second));
  watched_.erase(found);
}

/// An agent that came before the interpreter was ready is put in again.
void PythonCollector::look_at_state(Watched& watched, Ns now) {
  if (watched.ring().state() != CULPRIT_AGENT_FAILED || watched.trouble() != kNoPythonYet) return;
  Candidate& candidate = candidates_[watched.pid()];
  // The first time it was only a little early.
  const Ns due = candidate.due - (candidate.tries == 1 ? kUntilNextTry - kUntilStarted : 0);
  if (candidate.tries >= kMostTries || now < due || pending_.contains(watched.pid())) return;
  put_into(watched.pid(), candidate, now);
}

bool PythonCollector::has_begun(std::int64_t pid, Candidate& candidate, Ns now) {
  if (!is_wanted(pid)) {  // it may still execute another program
    candidate.due =
        now + (candidate.looks < kManyLooks ? std::min(kFirstLook << candidate.looks, kUntilNextTry) : kSeldom);
    ++candidate.looks;
    candidate.begun = 0;
    candidate.is_asked_for = false;
    return false;
  }
  if (candidate.begun == 0) candidate.begun = now;
  candidate.is_asked_for = !options_.functions.empty();
  candidate.due = candidate.begun + kUntilStarted;
  return now >= candidate.due;
}

/// What was called before in a process that came later, or was late, is not in the file.
void PythonCollector::note_watched(const Watched& watched, const Session& session) {
  const Ns since = watched.ring().running_since();
  if (session.begin == kNotBegun || since == 0 || watched_after_.contains(watched.pid()) ||
      watched_after_.size() >= kMostLate)
    return;
  const Ns after = since - session.begin;
  watched_after_.emplace(watched.pid(), after);
  if (after > 0)
    session.writer.metadata(fmt::format("python.watched_after_ms.{}", watched.pid()),
                            fmt::format("{:.1f}", static_cast<double>(after) / 1e6));
}

void PythonCollector::poll(Session& session, Ns now) {
  if (!started_ || stopped_) return;
  for (const auto& ended : std::exchange(ended_, {})) {
    ended->read(session.writer, now, session.begin, session.end);
    note_watched(*ended, session);
    remember(*ended, session.writer);
  }
  take_pending(session);
  std::vector<std::int64_t> failed;
  std::vector<std::int64_t> given_up;
  for (const auto& [pid, watched] : watched_) {
    watched->read(session.writer, now, session.begin, session.end);
    session.steps += watched->new_steps();
    note_watched(*watched, session);
    const std::uint32_t state = watched->ring().state();
    if (state == CULPRIT_AGENT_FAILED) failed.push_back(pid);
    if (state == CULPRIT_AGENT_STOPPED) given_up.push_back(pid);
  }
  note_failures();
  for (const std::int64_t pid : failed) look_at_state(*watched_[pid], now);
  for (const std::int64_t pid : given_up) give_up(pid, session.writer, now);
  look_for_other_programs(session.writer, now);
  if (session.starts_command && session.begin == kNotBegun) return;  // it waits for the recording to begin
  if (!may_put_in(now)) return;
  for (auto& [pid, candidate] : candidates_) {
    if (watched_.contains(pid) || pending_.contains(pid) || candidate.tries >= kMostTries || now < candidate.due ||
        !has_begun(pid, candidate, now))
      continue;
    put_into(pid, candidate, now);
    return;
  }
}

/// Who is still to be looked at, or is put in, is not kept waiting.
bool PythonCollector::is_quiet() const {
  const Ns soon = monotonic_now() + kUntilNextTry;
  return pending_.empty() && ended_.empty() &&
         std::ranges::all_of(watched_, [](const auto& entry) { return entry.second->is_quiet(); }) &&
         std::ranges::all_of(candidates_, [&](const auto& entry) {
           const auto& [pid, candidate] = entry;
           return watched_.contains(pid) || candidate.tries >= kMostTries || candidate.due > soon;
         });
}

void PythonCollector::file_ends(Session& session, Ns now) {
  poll(session, now);
  for (const auto& [pid, watched] : watched_) watched->cut();
}

void PythonCollector::stop(Session& session, Ns now) {
  if (!started_ || stopped_) return;
  stopped_ = true;
  const Ns before = agents_cpu();
  for (const auto& [pid, pending] : pending_) pending->give_up();
  for (const auto& [pid, watched] : watched_) {
    if (watched->ring().state() == CULPRIT_AGENT_STOPPED) note_gap(pid, session.writer);
    watched->ring().ask_to_stop();
  }
  while (!pending_.empty()) {
    read_all(session);
    std::this_thread::sleep_for(kAskAgain);
    take_pending(session);
  }
  const Ns end = monotonic_now() + kStopsWithin;
  const auto is_working = [](const auto& entry) {
    const std::uint32_t state = entry.second->ring().state();
    return (state == CULPRIT_AGENT_RUNNING || state == CULPRIT_AGENT_STARTING) &&
           ::access(fmt::format("/proc/{}/exe", entry.first).c_str(), F_OK) == 0;
  };
  while (std::ranges::any_of(watched_, is_working) && monotonic_now() < end) {
    read_all(session);
    std::this_thread::sleep_for(kAskAgain);
  }
  for (const auto& [pid, watched] : watched_)
    watched->read(session.writer, std::max(now, monotonic_now()), session.begin, session.end);
  note_failures();
  agent_stop_cpu_ = std::max(agents_cpu() - before, Ns{0});
  for (const auto& ended : ended_) remember(*ended, session.writer);
  for (const auto& [pid, candidate] : candidates_)
    if (is_too_short(pid, candidate)) ++too_short_;
  write_facts(session.writer);
}

/// What will be told of a process that is read no more.
void PythonCollector::remember(const Watched& watched, perfetto::Writer& writer) {
  past_.events += watched.calls();
  past_.dropped += watched.dropped() + watched.malformed() + watched.uncounted() + (watched.ring().damaged() ? 1 : 0);
  past_.kernel_cpu_ns = add_saturating(past_.kernel_cpu_ns, watched.ring().agent_cpu());
  longest_stop_ = std::max(longest_stop_, watched.stopped());
  requests_begun_before_ += watched.requests_begun_before();
  past_.dropped += watched.requests_unwritten();
  found_.insert(watched.found().begin(), watched.found().end());
  if (!watched.trouble().empty()) writer.metadata(fmt::format("missing.python.{}", watched.pid()), watched.trouble());
  if (watched.ring().damaged())
    writer.metadata(fmt::format("missing.python.{}", watched.pid()),
                    "what its agent left is damaged; the rest of it is lost");
  for (const auto& [asked, why] : watched.unusable()) {
    writer.metadata("missing.python." + asked, why);
    unusable_.emplace(asked, why);
    found_.insert(asked);
  }
  absent_.insert(watched.absent().begin(), watched.absent().end());
}

/// It ended, or the recording did, before anybody tried.
bool PythonCollector::is_too_short(std::int64_t pid, const Candidate& candidate) const {
  return candidate.is_asked_for && candidate.tries == 0 && !attached_.contains(pid);
}

/// Of a function that was asked for.
std::string PythonCollector::why_missing() const {
  return works_somewhere() || failed_.empty() ? "no such function was imported" : failed_.begin()->second;
}

void PythonCollector::write_facts(perfetto::Writer& writer) {
  for (const auto& [pid, watched] : std::exchange(watched_, {})) remember(*watched, writer);
  for (const FunctionSpec& function : functions_)
    if (!found_.contains(function.text) && (!function.optional || absent_.contains(function.text)))
      writer.metadata("missing.python." + function.text,
                      function.optional ? std::string(kNotInThisVersion) : why_missing());
  writer.metadata("cost.python.calls", std::to_string(past_.events));
  writer.metadata("cost.python.agent_cpu_ns", std::to_string(past_.kernel_cpu_ns));
  writer.metadata("cost.python.agent_start_cpu_ns", std::to_string(agent_start_cpu_));
  writer.metadata("cost.python.agent_stop_cpu_ns", std::to_string(agent_stop_cpu_));
  writer.metadata("cost.python.stopped_ns", std::to_string(longest_stop_));
  if (requests_begun_before_ != 0)
    writer.metadata("python.requests_begun_before", std::to_string(requests_begun_before_));
  if (too_short_ != 0)
    writer.metadata("missing.python.processes",
                    fmt::format("{} ended, or the recording did, before they could be attached to", too_short_));
}

std::vector<Sight> PythonCollector::sights() const {
  std::vector<Sight> sights;
  const auto misses = [&](const std::string& what, std::string_view why, std::string_view remedy = {}) {
    sights.push_back({what, false, std::string(why), std::string(remedy)});
  };
  // Where nothing could be watched the reason for that is enough.
  if (stopped_ && works_somewhere())
    for (const FunctionSpec& function : functions_) {
      if (found_.contains(function.text)) continue;
      const std::string what = fmt::format("Python function {}:{}", function.module, function.qualified);
      if (!function.optional)
        misses(fmt::format("Python function {}", function.text), why_missing(),
               "compare with the program's module and names (docs/attach.md)");
      else if (absent_.contains(function.text))
        misses(what, kNotInThisVersion);
    }
  for (const auto& [asked, why] : unusable_) misses(fmt::format("Python function {}", asked), why);
  for (const auto& [pid, why] : failed_) misses(fmt::format("Python functions of process {}", pid), why);
  for (const auto& [pid, why] : gaps_) misses(fmt::format("Python functions of process {}", pid), why);
  std::size_t late = 0;
  for (const auto& [pid, after] : watched_after_)
    if (after > 0 && ++late <= kMostLateTold)
      sights.push_back({fmt::format("Python functions of process {}, from {:.2f} s of the recording on", pid,
                                    static_cast<double>(after) / 1e9),
                        true, "calls before are missing", ""});
  if (late > kMostLateTold)
    sights.push_back(
        {fmt::format("Python functions of {} further processes, from their attaching on", late - kMostLateTold), true,
         "calls before are missing", ""});
  if (too_short_ != 0)
    misses(fmt::format("Python functions of {} process{}", too_short_, too_short_ == 1 ? "" : "es"),
           "ended, or the recording did, within some 0.3 s, before they were attached to");
  for (const auto& [why, remedy] : refused_) misses("Python functions", why, remedy);
  if (refused_.empty() && works_somewhere())
    sights.push_back({fmt::format("Python functions ({} processes)", attached_.size() - failed_.size()), true, {}, {}});
  else if (refused_.empty() && attached_.empty() && too_short_ == 0 && stopped_ && !options_.functions.empty())
    misses("Python functions", "none of the processes executed Python");
  return sights;
}

CollectorStats PythonCollector::stats() const {
  CollectorStats stats = past_;
  for (const auto& [pid, watched] : watched_) {
    stats.events += watched->calls();
    stats.dropped += watched->dropped() + watched->malformed() + watched->uncounted();
  }
  stats.kernel_cpu_ns = add_saturating(stats.kernel_cpu_ns, agents_cpu());
  return stats;
}

}  // namespace

std::unique_ptr<Collector> make_python(PythonOptions options) {
  return std::make_unique<PythonCollector>(std::move(options));
}

}  // namespace culprit::record::python
