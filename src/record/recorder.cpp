#include "record/recorder.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <ctime>
#include <limits>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "formats/perfetto/writer.h"
#include "record/collector/file_end.h"
#include "record/collector/process_name.h"
#include "record/collector/prompt.h"
#include "record/command.h"
#include "record/ends.h"
#include "record/output_ring.h"
#include "record/own_use.h"
#include "record/signals.h"
#include "record/spawned.h"
#include "record/targets.h"

namespace culprit::record {

namespace {

/// Some files are held open for every target. A command that is started has been forked before: its limit is its own.
void open_as_many_files_as_allowed() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  static_cast<void>(setrlimit(RLIMIT_NOFILE, &limit));
}

constexpr Ns kMillisecond = 1'000'000;
constexpr Ns kRound = 50 * kMillisecond;
constexpr Ns kShortestRound = 10 * kMillisecond;  // lets records gather even when the kernel has much to tell
constexpr Ns kFlush = kSecond;
constexpr Ns kClock = 5 * kSecond;
constexpr Ns kFullLook = 10 * kSecond;  // at all processes, where the kernel tells of forks: for records that were lost
constexpr Ns kUnasked = 5 * kSecond;    // without a sign that anybody came
constexpr std::size_t kManyTargets = 8;

Ns boottime_of(std::int64_t ticks) {
  const long per_second = sysconf(_SC_CLK_TCK);
  return per_second > 0 ? ticks * (kSecond / per_second) : 0;
}

/// Waits for descriptors; -1 ones are left out by poll(2) itself. Whether the first has something to read.
bool wait_for(Ns at_most, std::array<int, 3> descriptors) {
  std::array<pollfd, 3> files{};
  for (std::size_t i = 0; i < files.size(); ++i) files[i] = {descriptors[i], POLLIN, 0};
  const timespec limit{at_most / kSecond, at_most % kSecond};
  return ppoll(files.data(), files.size(), &limit, nullptr) > 0 && (files[0].revents & POLLIN) != 0;
}

bool readable(int fd) { return fd >= 0 && wait_for(0, {fd, -1, -1}); }

/// What the facts of earlier files told already.
struct Told {
  Ns begin = 0;  ///< of the file
  std::uint64_t steps = 0;
  Ns own_cpu = 0;
  Ns kernel_cpu = 0;
  std::vector<CollectorStats> collectors;
};

}  // namespace

std::string_view to_string(Ending ending) {
  switch (ending) {
    case Ending::none:
      return "none";
    case Ending::duration:
      return "duration";
    case Ending::steps:
      return "steps";
    case Ending::target_ended:
      return "target_ended";
    case Ending::interrupted:
      return "interrupted";
    case Ending::failed:
      return "failed";
    case Ending::switched:
      return "switched";
  }
  return "none";
}

struct Recorder::State final : private bpf::Listener {
  RecordOptions options;
  CollectorSet set;
  std::optional<perfetto::Writer> writer;
  Targets targets;
  Ends ends;  // of few
  Spawned spawned;
  std::vector<Target> current;  // what Session::targets refers to
  std::optional<Session> session;
  std::optional<Command> command;
  std::optional<Prompt> prompt;
  std::vector<bool> collects;  // beside set.collectors
  std::vector<std::int64_t> forked;
  std::vector<std::pair<std::int64_t, std::string>> executed;  // and the new name
  std::vector<Target> leaving;  // told to the collectors one round later, when the last records are in
  std::unordered_map<std::int64_t, ProcessNames> names;  // as written last
  std::vector<std::int64_t> dying;                       // processes whose last thread exits
  bool finished = false;
  bool terminated_command = false;
  bool command_gone = false;  ///< the collectors were told
  Ns begin = 0;
  Ns end = 0;
  Ns cpu_before = 0;
  Told told;
  std::size_t file_number = 1;
  OutputRing ring;
  Ns last_round = 0;
  Ns next_flush = 0;
  Ns next_clock = 0;
  Ns next_look = 0;
  Ns looked_at = 0;
  Ns look_every = kSecond / 5;  ///< where the kernel does not follow children
  Ns next_check = 0;
  Ns interrupted_at = 0;
  Ending ending = Ending::none;
  std::optional<Error> error;
  std::optional<int> command_status;

  State(RecordOptions given, CollectorSet collectors)
      : options(std::move(given)), set(std::move(collectors)), ring(options.keep) {
    if (set.probes) set.probes->listen(*this);
  }
  ~State() override {
    if (set.probes) set.probes->unlisten(*this);
  }

  void on_fork(const culprit_task& record) override {
    if (record.tgid != record.parent_tgid) forked.push_back(record.tgid);
  }
  void on_exec(const culprit_task& record) override { executed.emplace_back(record.tgid, record.comm); }
  void on_exit(const culprit_task& record) override {
    if (record.group_dead != 0) dying.push_back(record.tgid);
  }

  Status open();
  Status start();
  Status start_collectors();
  void introduce(const Target& target);
  void rename(const Target& target);
  void follow(Ns now);
  /// Tells the collectors of a command that has ended, once.
  void look_at_command();
  /// `asked`: to stop, by that descriptor.
  void check_end(Ns now, bool asked, int stop_fd);
  std::string path() const;
  void switch_file(Ns now);
  void write_facts(Ns until, Ending why);
  RecordProgress progress(Ns now) const;
  RecordSummary finish(int stop_fd);
};

void Recorder::State::introduce(const Target& target) {
  const auto stat = targets.stat(target.pid);
  if (!stat) return;
  ProcessNames found = read_process_names("/proc", target.pid);
  const std::string shown = shown_name(found);
  perfetto::ProcessInfo info;
  info.pid = target.pid;
  info.parent = stat->parent;
  info.name = shown;
  info.start_ns = boottime_of(target.start_ticks);
  writer->process(info);
  for (const auto& [tid, thread] : targets.threads(target.pid)) writer->thread(target.pid, tid, thread);
  names.insert_or_assign(target.pid, std::move(found));
}

/// Writes the name of a process again when it has changed.
void Recorder::State::rename(const Target& target) {
  const auto stat = targets.stat(target.pid);
  if (!stat || stat->start_ticks != target.start_ticks) return;
  const auto known = names.find(target.pid);
  if (known == names.end()) return introduce(target);
  const ProcessNames found = read_process_names("/proc", target.pid);
  // A zombie has no title any more.
  if (found.title.empty() && found.comm == known->second.comm) return;
  if (shown_name(found) != shown_name(known->second)) introduce(target);
}

Status Recorder::State::start_collectors() {
  std::string reasons;
  std::string remedy;
  bool any = false;
  std::vector<std::size_t> order(set.collectors.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_partition(order, [&](std::size_t i) { return set.collectors[i]->starts_first(); });
  collects.assign(set.collectors.size(), false);
  for (const std::size_t i : order) {
    const auto& collector = set.collectors[i];
    const Status status = collector->start(*session);
    collects[i] = status.ok();
    for (const std::size_t early : order)
      if (collects[early] && set.collectors[early]->starts_first())
        set.collectors[early]->poll(*session, monotonic_now());
    any |= status.ok();
    int number = 1;
    for (const Sight& sight : collector->sights()) {
      if (sight.available) continue;
      const std::string key = fmt::format("missing.{}", collector->name());
      writer->metadata(number == 1 ? key : fmt::format("{}.{}", key, number),
                       fmt::format("{}: {}", sight.what, sight.why));
      ++number;
    }
    if (status) continue;
    reasons += fmt::format("{}{}: {}", reasons.empty() ? "" : "; ", collector->name(), status.error().what);
    if (remedy.empty()) remedy = status.error().remedy;
  }
  if (any) return {};
  return environment_error(fmt::format("nothing can be collected ({})", reasons), "record", remedy);
}

Status Recorder::State::open() {
  // Who does not exist needs no file.
  for (const std::int64_t pid : options.pids)
    if (Status status = targets.add(pid); !status) return status;
  if (options.whole_machine) targets.add_all();
  if (!options.group.empty()) targets.add_group(options.group);

  perfetto::WriterOptions writer_options;
  writer_options.replace = options.replace;
  if (options.switch_every > 0 && !options.replace)
    if (Status status = refuse_numbered(options.output); !status) return status;
  auto made = perfetto::Writer::create(path(), writer_options);
  if (!made) return made.error();
  writer.emplace(std::move(*made));
  return {};
}

Status Recorder::State::start() {
  cpu_before = own_cpu();
  if (!writer)
    if (Status status = open(); !status) return status;
  if (!options.command.empty()) {
    std::vector<std::string> environment;
    for (const auto& collector : set.collectors)
      for (std::string& variable : collector->environment()) environment.push_back(std::move(variable));
    auto prepared = Command::prepare(options.command, environment, options.command_stderr);
    if (!prepared) return prepared.error();
    command.emplace(std::move(*prepared));
    if (Status status = targets.add(command->pid()); !status) return status;
  }
  open_as_many_files_as_allowed();
  if (options.prompt) prompt.emplace();
  current = targets.list();
  session.emplace(Session{*writer, options.preset, current, getpid()});
  session->starts_command = command.has_value();
  writer->metadata("record.version", options.version);
  writer->metadata("record.preset", options.preset == Preset::deep ? "deep" : "watch");
  if (options.whole_machine) writer->metadata("record.whole_machine", "yes");
  writer->metadata("record.scheduling", to_string(prompt ? prompt->promptness() : Promptness::ordinary));
  for (const Target& target : targets.take_joined()) introduce(target);
  begin = told.begin = monotonic_now();
  if (Status status = start_collectors(); !status) return status;
  begin = told.begin = session->begin = monotonic_now();  // what was being put in place saw nothing yet
  const Ns started = own_cpu();
  writer->metadata("cost.own.start_cpu_ns", std::to_string(started - cpu_before));
  cpu_before = started;
  if (command)
    if (Status status = command->go(); !status) return status;
  const Ns now = monotonic_now();
  next_flush = now + kFlush;
  next_clock = now + kClock;
  Status status = writer->publish();
  if (!status && command) command->signal(SIGTERM);
  return status;
}

void Recorder::State::follow(Ns now) {
  for (const std::int64_t pid : std::exchange(forked, {}))
    // The kernel follows children by itself.
    if (!targets.add_child(pid) && !targets.contains(pid) && targets.left_out() > 0) set.probes->remove_target(pid);
  const bool kernel_follows = set.probes && set.probes->is_open();
  // The kernel tells who ends. What it could not tell is seen a little later.
  const bool few = targets.list().size() <= kManyTargets;
  bool look = now >= next_look;
  if (look && few && !kernel_follows && options.group.empty()) {
    // A number that does not move is no proof: /proc may be another namespace's. Names change without anybody coming.
    look = spawned.any() || now - looked_at >= kUnasked;
    if (!look) next_look = now + kSecond / 5;
  }
  if (look) looked_at = now;
  const bool check = few && (now >= next_check || ends.any());
  if (look || check) {
    targets.refresh(look);
    dying.clear();
    if (few) ends.follow(targets.list());
    next_check = now + (ends.follows_all() ? kSecond : kernel_follows ? kSecond / 5 : kRound / 2);
  } else {
    std::erase_if(dying, [&](std::int64_t pid) { return targets.drop_if_ended(pid); });
  }

  const auto left = targets.take_left();
  // What they called themselves in the end, as long as nobody has waited for them.
  for (const Target& target : left) rename(target);
  const auto tell_left = std::exchange(leaving, left);
  const auto joined = targets.take_joined();
  current = targets.list();
  for (const Target& target : joined) {
    introduce(target);
    for (std::size_t i = 0; i < set.collectors.size(); ++i)
      if (collects[i]) set.collectors[i]->target_joined(target);
  }
  for (const Target& target : tell_left) {
    if (targets.contains(target.pid)) continue;  // its number is somebody else's by now, who is recorded, too
    names.erase(target.pid);
    for (std::size_t i = 0; i < set.collectors.size(); ++i)
      if (collects[i]) set.collectors[i]->target_left(target);
    writer->process_ended(target.pid);
  }
  for (const auto& [pid, comm] : std::exchange(executed, {}))
    if (const auto target = std::ranges::find(current, pid, &Target::pid); target != current.end() && targets.stat(pid))
      rename(*target);
    else
      writer->process({.pid = pid, .name = comm});  // it has ended
  if (!look) return;
  for (const Target& target : current) rename(target);
  // Nobody tells when a process is moved into a group. Where the kernel does not follow children, looks become rarer
  // while none come and go. Where there are many processes they do, too: they may take a twentieth of the time.
  look_every = joined.empty() && left.empty() ? std::min(look_every + look_every / 2, kSecond) : kSecond / 5;
  const Ns usual = !kernel_follows ? look_every : options.group.empty() ? kFullLook : kSecond;
  const Ns after = monotonic_now();
  next_look = after + std::max(usual, 20 * (after - now));
}

void Recorder::State::look_at_command() {
  if (!command || command_gone || !readable(command->descriptor())) return;
  command_gone = true;
  const Ns now = monotonic_now();
  command->note_end(now);
  for (std::size_t i = 0; i < set.collectors.size(); ++i)
    if (collects[i]) set.collectors[i]->command_ended(command->pid(), now);
}

void Recorder::State::check_end(Ns now, bool asked, int stop_fd) {
  look_at_command();
  // Its status is taken when its numbers have been read: afterwards there are none.
  if (command && (command_gone || command->descriptor() < 0)) command_status = command->ended();
  if (ending != Ending::none) return;
  if (asked) {
    const StopSignal signal = take_signal(stop_fd);
    const bool again = interrupted_at != 0;
    if (!again) interrupted_at = now;
    if (!command || command_status || again) {
      ending = Ending::interrupted;
    } else if (!signal.from_terminal) {
      command->signal(signal.number != 0 ? signal.number : SIGTERM);
    }
  }
  if (interrupted_at != 0 && (command_status || now - interrupted_at > kPatience)) ending = Ending::interrupted;
  if (ending != Ending::none) return;
  if (options.duration > 0 && now - begin >= options.duration)
    ending = Ending::duration;
  else if (options.steps > 0 && session->steps >= options.steps)
    ending = Ending::steps;
  // A command's first thread may have ended before the last, which is when its status is there.
  else if (command ? command_status.has_value() : targets.over() && leaving.empty())
    ending = Ending::target_ended;
}

RecordProgress Recorder::State::progress(Ns now) const {
  RecordProgress progress;
  progress.elapsed = (end != 0 ? end : now) - begin;
  for (const auto& collector : set.collectors) {
    const CollectorStats stats = collector->stats();
    progress.events += stats.events;
    progress.dropped += stats.dropped;
    progress.uncounted += stats.uncounted;
  }
  progress.steps = session ? session->steps : 0;
  progress.file_bytes = writer ? writer->stats().file_bytes : 0;
  progress.own_cpu = own_cpu() - cpu_before;
  progress.targets = current.size();
  return progress;
}

std::string Recorder::State::path() const {
  return options.switch_every > 0 ? numbered_output(options.output, file_number) : options.output;
}

/// Completes the file, goes on in the next one, and removes the oldest when there are too many.
void Recorder::State::switch_file(Ns now) {
  for (const Target& target : current) rename(target);
  for (std::size_t i = 0; i < set.collectors.size(); ++i)
    if (collects[i]) end_file(*set.collectors[i], *session, now);
  static_cast<void>(writer->flush());  // its error comes again
  write_facts(now, Ending::switched);
  const std::string written = path();
  ++file_number;
  constexpr std::array<std::string_view, 4> kOfOneFile = {"cost.", "record.end", "record.duration_ns", "record.steps"};
  Status status = writer->next_file(path(), kOfOneFile);
  for (const Target& target : current) introduce(target);
  if (status) status = writer->publish();
  if (status) return ring.add(written);
  error = status.error();
  ending = Ending::failed;
}

/// Of this file: what was told in earlier ones is not told again.
void Recorder::State::write_facts(Ns until, Ending why) {
  const auto fact = [&](std::string_view key, auto value) { writer->metadata(key, std::to_string(value)); };
  writer->metadata("record.end", to_string(why));
  fact("record.duration_ns", until - told.begin);
  fact("record.steps", session->steps - std::exchange(told.steps, session->steps));
  told.begin = until;
  if (targets.left_out() > 0) {
    fact("record.processes_left_out", targets.left_out());
    writer->metadata("missing.record", fmt::format("{} processes: more than {} at once are not recorded",
                                                   targets.left_out(), Targets::kMost));
  }
  const Ns cpu = own_cpu() - cpu_before;
  fact("cost.own.cpu_ns", cpu - std::exchange(told.own_cpu, cpu));
  fact("cost.own.peak_memory_bytes", peak_memory());
  fact("cost.own.file_bytes", writer->stats().file_bytes);
  told.collectors.resize(set.collectors.size());
  CollectorStats sum;
  for (std::size_t i = 0; i < set.collectors.size(); ++i) {
    CollectorStats all = set.collectors[i]->stats();
    all.kernel_cpu_ns = std::max(all.kernel_cpu_ns, told.collectors[i].kernel_cpu_ns);
    const CollectorStats before = std::exchange(told.collectors[i], all);
    const std::string prefix = fmt::format("cost.{}.", set.collectors[i]->name());
    fact(prefix + "events", all.events - before.events);
    fact(prefix + "dropped", all.dropped - before.dropped);
    if (all.kernel_cpu_ns > 0) fact(prefix + "kernel_cpu_ns", all.kernel_cpu_ns - before.kernel_cpu_ns);
    sum.events += all.events - before.events;
    sum.dropped += all.dropped - before.dropped;
  }
  fact("cost.events", sum.events);
  fact("cost.dropped", sum.dropped);
  if (!set.probes) return;
  if (const bpf::KernelCpu kernel = set.probes->kernel_cpu(); kernel.known) {
    // It is an estimate, which may become less.
    const Ns spent = std::max(told.kernel_cpu, kernel.sched_ns + kernel.syscalls_ns + kernel.samples_ns);
    fact("cost.kernel.cpu_ns", spent - std::exchange(told.kernel_cpu, spent));
  }
}

RecordSummary Recorder::State::finish(int stop_fd) {
  const Ns now = monotonic_now();
  if (!std::exchange(finished, true) && writer) {
    end = begin != 0 ? now : 0;
    if (session) {
      const Ns before = own_cpu();
      session->end = now;
      if (set.probes) set.probes->end_at(now);
      for (const Target& target : current) rename(target);
      for (std::size_t i = 0; i < collects.size(); ++i)
        if (collects[i]) set.collectors[i]->stop(*session, now);
      if (begin != 0) {
        // What is still in the writer counts among the bytes; its error comes again from close().
        static_cast<void>(writer->flush());
        writer->metadata("cost.own.stop_cpu_ns", std::to_string(own_cpu() - before));
        write_facts(end, ending);
      }
    }
    if (Status status = writer->close(); !status && !error) {
      error = status.error();
      ending = Ending::failed;
    }
    if (set.probes) set.probes->detach();
  }
  prompt.reset();
  // A command is there to be recorded: when the recording ends first it is asked to end, never forced.
  const bool over = ending == Ending::duration || ending == Ending::steps;
  if (command && over && !command->ended() && !std::exchange(terminated_command, true)) {
    command->signal(SIGTERM);
    for (const Ns limit = now + kPatience; !command->ended() && monotonic_now() < limit && !readable(stop_fd);)
      wait_for(kShortestRound, {stop_fd, -1, -1});
  }

  RecordSummary summary;
  summary.path = path();
  summary.files = file_number;
  summary.ending = ending;
  summary.left_out = targets.left_out();
  summary.total = progress(now);
  if (writer) summary.raw_bytes = writer->stats().raw_bytes;
  summary.peak_memory = peak_memory();
  if (set.probes) {
    const bpf::KernelCpu cpu = set.probes->kernel_cpu();
    summary.kernel_cpu = cpu.sched_ns + cpu.syscalls_ns + cpu.samples_ns;
  }
  if (command && !terminated_command && interrupted_at == 0) summary.command_status = command->ended();
  if (command && command->ended()) summary.command_use = command->use();
  summary.error = error;
  return summary;
}

Recorder::Recorder(RecordOptions options, CollectorSet collectors)
    : state_(std::make_unique<State>(std::move(options), std::move(collectors))) {}

Recorder::~Recorder() {
  if (state_->begin != 0) static_cast<void>(state_->finish(-1));
}

Status Recorder::open() { return state_->open(); }

Status Recorder::start() {
  Status status = state_->start();
  if (status) return status;
  for (std::size_t i = 0; i < state_->collects.size(); ++i)
    if (state_->collects[i]) state_->set.collectors[i]->stop(*state_->session, monotonic_now());
  state_->begin = 0;
  state_->command.reset();
  state_->writer.reset();  // a file of a recording that never was is of no use to anybody
  return status;
}

std::vector<CollectorSummary> Recorder::collectors() const {
  std::vector<CollectorSummary> all;
  for (std::size_t i = 0; i < state_->collects.size(); ++i) {
    const Collector& collector = *state_->set.collectors[i];
    all.push_back({std::string(collector.name()), state_->collects[i], collector.stats(), collector.sights()});
  }
  return all;
}

bool Recorder::poll(int stop_fd) {
  State& state = *state_;
  if (state.ending != Ending::none) return false;
  const int end = state.command ? state.command->descriptor() : -1;
  Ns now = monotonic_now();
  const int wake = state.set.probes ? state.set.probes->wake_fd() : -1;
  if (const Ns since = now - state.last_round; wake >= 0 && since < kShortestRound) {
    wait_for(kShortestRound - since, {stop_fd, -1, end});
    now = monotonic_now();
  }
  Ns until = std::numeric_limits<Ns>::max();
  bool quiet = wake < 0;
  for (std::size_t i = 0; i < state.set.collectors.size(); ++i) {
    if (!state.collects[i]) continue;
    until = std::min(until, state.set.collectors[i]->next_poll());
    quiet = quiet && state.set.collectors[i]->is_quiet();
  }
  until = std::min(until, state.last_round + (quiet ? 2 * kRound : kRound));
  if (state.options.duration > 0) until = std::min(until, state.begin + state.options.duration);
  const bool asked = wait_for(std::max(Ns{0}, until - now), {stop_fd, wake, end});
  if (state.prompt) state.prompt->again();
  state.look_at_command();  // here, not when all was asked
  now = monotonic_now();
  state.last_round = now;
  for (std::size_t i = 0; i < state.set.collectors.size(); ++i)
    if (state.collects[i]) state.set.collectors[i]->poll(*state.session, now);
  state.follow(now);
  if (now >= state.next_clock) {
    state.writer->clock_snapshot();
    state.next_clock = now + kClock;
  }
  if (now >= state.next_flush) {
    state.next_flush = now + kFlush;
    if (Status status = state.writer->flush(); !status) {
      state.error = status.error();
      state.ending = Ending::failed;
    }
  }
  state.check_end(now, asked, stop_fd);
  if (state.options.switch_every > 0 && state.ending == Ending::none &&
      now - state.told.begin >= state.options.switch_every)
    state.switch_file(now);
  return state.ending == Ending::none;
}

RecordSummary Recorder::finish(int stop_fd) {
  RecordSummary summary = state_->finish(stop_fd);
  summary.collectors = collectors();
  return summary;
}

RecordSummary Recorder::run(int stop_fd, const std::function<void(const RecordProgress&)>& progress) {
  Ns next = 0;
  while (poll(stop_fd)) {
    const Ns now = monotonic_now();
    if (!progress || now < next) continue;
    next = now + kSecond / 4;
    progress(state_->progress(now));
  }
  return finish(stop_fd);
}

void Recorder::stop(Ending why) {
  if (state_->ending == Ending::none) state_->ending = why;
}
Ending Recorder::ending() const { return state_->ending; }
RecordProgress Recorder::progress() const { return state_->progress(monotonic_now()); }

}  // namespace culprit::record
