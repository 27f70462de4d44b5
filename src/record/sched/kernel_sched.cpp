#include "record/sched/kernel_sched.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <span>
#include <unordered_set>
#include <vector>

#include "record/collector/agent_name.h"
#include "record/sched/asleep.h"

namespace culprit::record::sched {

namespace {

constexpr std::size_t kMostNames = 1U << 16;
constexpr std::size_t kMostStacks = 1U << 16;
constexpr std::size_t kMostWaiting = 1U << 14;
constexpr std::size_t kMostQueued = 4096;

bool is_agent(const char (&comm)[CULPRIT_COMM]) { return bpf::comm(comm) == kAgentName; }

}  // namespace

std::int64_t reported_state(std::uint32_t kernel_state) {
  constexpr std::uint32_t kReported = 0x7f;
  constexpr std::uint32_t kDead = 0x80;
  constexpr std::uint32_t kIdle = 0x402;  // uninterruptible, but no load
  if (kernel_state == 0) return 0;
  if ((kernel_state & kDead) != 0) return 0x10;
  if ((kernel_state & kIdle) == kIdle) return 0x80;
  // Waiting for a lock on a real-time kernel, frozen: uninterruptible in all but name.
  if ((kernel_state & kReported) == 0) return 2;
  return std::bit_floor(kernel_state & kReported);
}

std::size_t KernelSched::StackHash::operator()(const StackKey& key) const {
  return std::hash<std::int64_t>{}((std::int64_t{key.tgid} << 32) ^ key.stack ^ (std::int64_t{key.python} << 16));
}

KernelSched::KernelSched(std::shared_ptr<bpf::Probes> probes, const SchedOptions& options)
    : probes_(std::move(probes)),
      options_(options),
      intervals_([this](const Blocked& blocked) { take_blocked(blocked); }) {
  probes_->want(bpf::kSched | (options_.stacks ? bpf::kStacks : 0U));
  probes_->listen(*this);
}

KernelSched::~KernelSched() { probes_->unlisten(*this); }

Status KernelSched::start(Session& session) {
  shortest_blocked_ = session.preset == Preset::deep ? options_.shortest_blocked_deep : options_.shortest_blocked_watch;
  if (Status status = probes_->open(); !status) {
    error_ = status.error().what;
    remedy_ = status.error().remedy;
    return status;
  }
  started_ = true;
  writer_ = &session.writer;
  own_pid_ = session.own_pid;
  session.writer.metadata("sched.source", "ebpf");
  session.writer.metadata("sched.shortest_blocked_ns", std::to_string(shortest_blocked_));
  session.writer.metadata("sched.knows_interrupts", probes_->knows_context() ? "yes" : "no");
  for (const Target& target : session.targets) target_joined(target);
  file_begin_ = monotonic_now();
  for (const Target& target : session.targets) {
    const auto queued = queued_threads(static_cast<std::int32_t>(target.pid), kMostQueued - queued_.size());
    queued_.insert(queued_.end(), queued.begin(), queued.end());
    const Ns before = monotonic_now();  // who goes on meanwhile did so behind it
    for (const StoppedThread& thread : stopped_threads(static_cast<std::int32_t>(target.pid)))
      enter_stopped(thread, before);
  }
  if (options_.python) options_.python->poll(monotonic_now());
  return {};
}

std::vector<Sight> KernelSched::sights() const {
  std::vector<Sight> sights = {
      {"context switches, wake-ups with the waker, the system call a thread blocks in", started_, error_, remedy_}};
  if (options_.stacks)
    sights.push_back(
        {"native stacks where threads block (of code built with frame pointers)", started_, error_, remedy_});
  if (options_.python)
    for (const std::string& version : options_.python->unknown_versions())
      sights.push_back({fmt::format("functions of Python {} in stacks", version), false,
                        "where that version keeps its frames is not known", "a newer culprit, or Python 3.9 to 3.13"});
  if (started_ && !probes_->knows_context())
    sights.push_back({"whether an interrupt, not the running thread, woke a thread", false,
                      "the kernel lacks tracepoints of timers or interrupts",
                      "a kernel with them; until then take a waker as a hint"});
  return sights;
}

void KernelSched::target_joined(const Target& target) {
  probes_->add_target(target.pid);
  if (options_.python) options_.python->target_joined(target.pid);
}

void KernelSched::target_left(const Target& target) {
  probes_->target_ended(target.pid);
  probes_->symbols().forget(target.pid);
  if (options_.python) options_.python->target_left(target.pid);
  forget_stacks(target.pid);
}

/// The kernel has room for so many stacks, and keeps them: those that only this process had are taken out.
void KernelSched::forget_stacks(std::int64_t tgid) {
  std::unordered_set<std::int32_t> own;
  std::erase_if(stacks_, [&](const auto& entry) {
    const bool is_own = entry.first.tgid == tgid;
    if (is_own && entry.first.stack >= 0) own.insert(entry.first.stack);
    return is_own;
  });
  if (own.empty()) return;
  for (const auto& [key, stack] : stacks_) own.erase(key.stack);
  for (const std::int32_t stack : own) probes_->forget_stack(stack);
}

void KernelSched::poll(Session& /*session*/, Ns now) {
  probes_->consume();
  if (options_.python) options_.python->poll(now);
  probes_->symbols().name_when_due(now);
  write_named();
  for (const UnseenRun& run : unseen_runs_.look(now)) enter_unseen(run);
}

void KernelSched::file_ends(Session& session, Ns now) {
  poll(session, now);
  if (writer_ == nullptr) return;
  write_queued();
  file_begin_ = now;
  intervals_.cut(now);
  // What waits for names of functions belongs into this file.
  probes_->symbols().name_all();
  write_named();
}

void KernelSched::enter_unseen(const UnseenRun& run) {
  const std::optional<std::uint32_t> cpu = read_last_cpu(run.tgid, run.tid);
  if (!cpu || !probes_->is_target(run.tgid)) return;
  culprit_switch record{};
  std::ranges::copy(std::string_view("swapper"), record.prev_comm);
  // Behind what was told of that CPU: the one before it leaves 1 ns earlier.
  record.head.at = static_cast<std::uint64_t>(std::max(run.at, this->cpu(*cpu).switched + 2));
  record.head.cpu = *cpu;
  record.next_tid = run.tid;
  record.next_tgid = run.tgid;
  if (const auto known = names_.find(run.tid); known != names_.end())
    std::ranges::copy(known->second, record.next_comm);
  const std::uint64_t known_before = unseen_;
  on_switch(record);
  unseen_ = known_before + 1;
}

void KernelSched::enter_stopped(const StoppedThread& thread, Ns now) {
  constexpr std::uint32_t kStopped = 4;
  culprit_switch came{};
  std::ranges::copy(std::string_view("swapper"), came.prev_comm);
  came.head.at = static_cast<std::uint64_t>(std::max(now, this->cpu(thread.cpu).switched + 2));
  came.head.cpu = thread.cpu;
  came.next_tid = thread.tid;
  came.next_tgid = thread.tgid;
  std::ranges::copy(std::string_view(thread.name).substr(0, CULPRIT_COMM - 1), came.next_comm);
  culprit_switch left{};
  left.head = came.head;
  ++left.head.at;
  left.prev_tid = thread.tid;
  left.prev_tgid = thread.tgid;
  left.prev_state = kStopped;
  left.syscall = left.stack = -1;
  std::ranges::copy(came.next_comm, left.prev_comm);
  std::ranges::copy(came.prev_comm, left.next_comm);
  on_switch(came);
  on_switch(left);
}

void KernelSched::write_queued() {
  std::erase_if(queued_, [&](const QueuedThread& thread) {
    return names_.contains(thread.tid) || !probes_->is_target(thread.tgid) || !is_still_queued(thread);
  });
  for (const QueuedThread& thread : queued_) {
    ran_ = true;  // it sleeps in nothing
    writer_->thread(thread.tgid, thread.tid, thread.name);
    writer_->sched_waking({.at = file_begin_, .tid = thread.tid, .name = thread.name});
  }
}

void KernelSched::stop(Session& session, Ns now) {
  if (!started_ || stopped_) return;
  stopped_ = true;
  probes_->detach();
  while (probes_->consume() > 0) {
  }
  for (const culprit_wake_slot& slot : probes_->waiting()) {
    if (slot.woken.at > static_cast<__u64>(now)) continue;
    char name[CULPRIT_COMM] = {};
    if (const auto known = names_.find(slot.tid); known != names_.end()) std::ranges::copy(known->second, name);
    on_waking(bpf::waking_of(slot.woken, slot.tid, slot.tgid, name));
  }
  write_queued();
  intervals_.finish(now);
  probes_->symbols().name_all();
  write_named();
  const culprit_losses losses = probes_->losses();
  session.writer.metadata("cost.sched.stacks_missed", std::to_string(losses.stacks_missed));
  session.writer.metadata("cost.sched.switches_unseen", std::to_string(unseen_));
  if (!ran_)
    if (const std::string asleep = asleep_in(session.targets); !asleep.empty())
      session.writer.metadata("sched.asleep_in", asleep);
  writer_ = nullptr;
}

CollectorStats KernelSched::stats() const {
  CollectorStats stats;
  stats.events = events_;
  stats.dropped = probes_->losses().ring_full_sched + probes_->malformed();
  stats.kernel_cpu_ns = probes_->kernel_cpu().sched_ns;
  return stats;
}

KernelSched::Cpu& KernelSched::cpu(std::uint32_t number) {
  number %= CULPRIT_CPU_LIMIT;
  if (number >= cpus_.size()) cpus_.resize(number + 1);
  return cpus_[number];
}

void KernelSched::name_thread(std::int32_t tgid, std::int32_t tid, const char (&comm)[CULPRIT_COMM]) {
  if (tid == 0 || comm[0] == '\0') return;
  std::array<char, CULPRIT_COMM> name;
  std::ranges::copy(comm, name.begin());
  NamedThread& lately = lately_named_[static_cast<std::uint32_t>(tid) % lately_named_.size()];
  if (lately.tid == tid && lately.name == name) return;
  lately = {tid, name};
  if (names_.size() >= kMostNames) {
    names_.clear();
    lately_named_ = {};
  }
  const auto [found, is_new] = names_.try_emplace(tid, name);
  if (!is_new && found->second == name) return;
  found->second = name;
  // The agent's thread inside a target is the recorder's, what it did before it had its name, too.
  writer_->thread(is_agent(comm) ? own_pid_ : tgid, tid, bpf::comm(comm));
}

void KernelSched::on_switch(const culprit_switch& record) {
  if (writer_ == nullptr) return;
  ++events_;
  name_thread(record.prev_tgid, record.prev_tid, record.prev_comm);
  name_thread(record.next_tgid, record.next_tid, record.next_comm);
  const bool from = probes_->is_target(record.prev_tgid) && !is_agent(record.prev_comm);
  const bool to = probes_->is_target(record.next_tgid) && !is_agent(record.next_comm);
  ran_ = ran_ || from || to;
  perfetto::SchedSwitch event;
  event.at = static_cast<Ns>(record.head.at);
  event.cpu = record.head.cpu;
  // What bystanders do among themselves is not recorded. A viewer must see a CPU that every thread leaves as it came:
  // the CPU is shown idle from the leaving of the one that ran instead of a target, to the one that a target replaces.
  Cpu& cpu = this->cpu(record.head.cpu);
  // Kernels were seen that do not tell every switch (nor do they tell perf): who came unseen replaces whoever was
  // there.
  if (cpu.thread.value_or(0) != 0 && cpu.thread != record.prev_tid) {
    const auto known = names_.find(*cpu.thread);
    const std::string_view name = known != names_.end() ? known->second.data() : "";  // 16 bytes, the last one 0
    writer_->sched_switch(
        {.at = event.at - 1, .cpu = event.cpu, .prev_tid = *cpu.thread, .prev_name = name, .next_name = "swapper"});
    cpu.thread = 0;
    ++unseen_;
  }
  if (cpu.thread == 0 && record.prev_tid != 0)
    writer_->sched_switch({.at = event.at,
                           .cpu = event.cpu,
                           .next_tid = record.prev_tid,
                           .next_priority = record.prev_prio,
                           .prev_name = "swapper",
                           .next_name = bpf::comm(record.prev_comm)});
  event.prev_tid = record.prev_tid;
  event.next_tid = record.next_tid;
  event.prev_priority = record.prev_prio;
  event.next_priority = record.next_prio;
  event.prev_state = reported_state(record.prev_state);
  event.prev_name = bpf::comm(record.prev_comm);
  event.next_name = bpf::comm(record.next_comm);
  if (!from && !to) {
    event.next_tid = 0;
    event.next_name = "swapper";
  }
  cpu = {event.next_tid, event.at};
  writer_->sched_switch(event);
  constexpr std::uint32_t kBlocked = 0x7f;  // states of a thread that does not want to run
  if (to) unseen_runs_.seen(record.next_tid);
  if (from && (record.prev_state & kBlocked) == 0)
    unseen_runs_.waits(record.prev_tid, record.prev_tgid, event.at);
  else if (from)
    unseen_runs_.seen(record.prev_tid);
  if (is_agent(record.prev_comm)) unseen_runs_.ended(record.prev_tid);
  intervals_.on_switch(record, from, to);
}

void KernelSched::on_waking(const culprit_waking& record) {
  if (writer_ == nullptr) return;
  ++events_;
  name_thread(record.tgid, record.tid, record.comm);
  name_thread(record.waker_tgid, record.waker_tid, record.waker_comm);
  perfetto::SchedWaking event;
  event.at = static_cast<Ns>(record.head.at);
  event.cpu = record.head.cpu;
  event.target_cpu = record.target_cpu;
  event.waker_tid = record.context == CULPRIT_HARDIRQ ? 0 : record.waker_tid;
  event.tid = record.tid;
  event.priority = record.prio;
  event.name = bpf::comm(record.comm);
  writer_->sched_waking(event);
  unseen_runs_.waits(record.tid, record.tgid, event.at);
  intervals_.on_waking(record);
}

void KernelSched::on_fork(const culprit_task& record) {
  if (writer_ == nullptr) return;
  ++events_;
  name_thread(record.tgid, record.tid, record.comm);
}

void KernelSched::on_exec(const culprit_task& record) {
  if (writer_ == nullptr) return;
  ++events_;
  probes_->symbols().forget(record.tgid);
  std::erase_if(stacks_, [&](const auto& entry) { return entry.first.tgid == record.tgid; });
  name_thread(record.tgid, record.tid, record.comm);
}

void KernelSched::on_exit(const culprit_task& record) {
  if (writer_ == nullptr) return;
  ++events_;
  if (!is_agent(record.comm)) writer_->process_exit(static_cast<Ns>(record.head.at), record.tid);
  intervals_.on_exit(record.tid);
  unseen_runs_.ended(record.tid);
  names_.erase(record.tid);
  if (record.group_dead != 0) probes_->symbols().forget(record.tgid);
  lately_named_[static_cast<std::uint32_t>(record.tid) % lately_named_.size()] = {};
}

std::shared_ptr<KernelSched::Stack> KernelSched::stack_of(const Blocked& blocked) {
  if (stacks_.size() >= kMostStacks) stacks_.clear();
  auto& stack = stacks_[{blocked.tgid, blocked.stack, blocked.python}];
  if (stack) return stack;
  stack = std::make_shared<Stack>();
  probes_->symbols().append_user(blocked.tgid, probes_->stack(blocked.stack), blocked.end, stack->code);
  if (options_.python) stack->python = options_.python->find(blocked.tgid, blocked.python);
  return stack;
}

void KernelSched::take_blocked(const Blocked& blocked) {
  if (blocked.end - blocked.begin < shortest_blocked_ || writer_ == nullptr) return;
  if (blocked.stack < 0 && blocked.python == 0) return write_blocked(blocked, {});
  auto stack = stack_of(blocked);
  if (stack->named) return write_blocked(blocked, stack->text);
  waiting_.push_back({blocked, std::move(stack)});
  if (waiting_.size() < kMostWaiting) return;
  probes_->symbols().name_all();
  write_named();
}

void KernelSched::write_named() {
  std::erase_if(waiting_, [&](const Waiting& waiting) {
    Stack& stack = *waiting.stack;
    if (!stack.named && bpf::is_named(stack.code)) {
      const bpf::CodeStack code = std::exchange(stack.code, {});
      stack.text = bpf::folded(stack.python ? interpreter::merged(code, *stack.python) : code);
      stack.named = true;
    }
    if (stack.named) write_blocked(waiting.blocked, stack.text);
    return stack.named;
  });
}

void KernelSched::write_blocked(const Blocked& blocked, std::string_view stack) {
  std::vector<perfetto::Argument> arguments;
  if (blocked.waker_tid != 0) {
    arguments.push_back({"waker_tid", std::int64_t{blocked.waker_tid}});
    arguments.push_back({"waker_pid", std::int64_t{blocked.waker_tgid}});
    arguments.push_back({"waker", std::string_view(blocked.waker)});
  }
  if (blocked.context == CULPRIT_HARDIRQ) arguments.push_back({"woken_by", std::string_view("interrupt")});
  if (blocked.context == CULPRIT_SOFTIRQ) arguments.push_back({"woken_by", std::string_view("softirq")});
  if (blocked.open) arguments.push_back({"open", std::int64_t{1}});
  if (!stack.empty()) arguments.push_back({"stack", stack});
  if (!stack.empty() && blocked.earlier_stack) arguments.push_back({"stack_is_earlier", std::int64_t{1}});
  writer_->slice(writer_->named_track("blocked", blocked.tgid, blocked.tid), blocked.begin, blocked.end,
                 blocked_name(blocked), "blocked", arguments);
}

}  // namespace culprit::record::sched
