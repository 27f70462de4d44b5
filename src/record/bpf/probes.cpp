#include "record/bpf/probes.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <linux/perf_event.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <future>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "culprit.skel.h"
#include "record/bpf/call_cost.h"
#include "record/bpf/call_links.h"
#include "record/bpf/kernel_layout.h"
#include "record/bpf/map_rows.h"
#include "record/bpf/program_info.h"
#include "record/bpf/stacks_apart.h"
#include "record/collector/collector.h"
#include "record/collector/pid_namespace.h"

namespace culprit::record::bpf {

namespace {

constexpr Ns kLongestConsume =
    50'000'000;  // when more comes than can be handled, the rest of the recorder has its turn
constexpr std::size_t kBetweenLooks = 1024;  // records between two looks at the clock
constexpr Ns kMeasured = 100'000'000;        // of the cost of the programs, then
constexpr Ns kUnmeasured = 1'900'000'000;    // of nothing
constexpr Ns kLastSwitches = 1'000'000'000;  // a process that ended may wait for a CPU to leave it

std::string text_of(int code) { return std::generic_category().message(code); }

Error no_privilege(const std::string& what, int code) {
  if (code == EPERM || code == EACCES)
    return environment_error(what + ": " + text_of(code), "eBPF",
                             "run as root, or once: sudo setcap cap_bpf,cap_perfmon+ep $(command -v culprit)");
  return environment_error(what + ": " + text_of(code), "eBPF",
                           "needs Linux 5.15 or newer with CONFIG_DEBUG_INFO_BTF, CONFIG_BPF_EVENTS");
}

/// What the kernel says of the runs of a program. It goes on measuring while anybody wants it to.
struct Runs {
  std::uint64_t ns = 0;
  std::uint64_t count = 0;
};

constexpr int kCostsMeasured = 8;  // a CPU is faster at one time than at another: the mean of so many windows

}  // namespace

struct Probes::State {
  ProbeOptions options;
  StacksApart stacks_apart;
  std::vector<Listener*> listeners = {&stacks_apart};
  culprit_bpf* skeleton = nullptr;
  ring_buffer* ring = nullptr;
  bpf_link* ask = nullptr;
  std::vector<bpf_link*> clocks;  // of the CPUs
  Status samples;
  Ns attached_at = 0;
  Ns attached_for = 0;  // known after detach()
  Ns end = kNotBegun;   // of the recording
  Ns stats_since = 0;   // opened or closed
  Ns measured = 0;
  std::vector<Runs> begun;  // of each program, when the kernel began to measure
  std::vector<Runs> ran;    // while it was asked to
  struct CountingCost {
    int measured = 0;
    double sum = 0;  // ns a call
  };
  std::array<CountingCost, 2> counting_costs;  // of windows that are not timed, and that are
  std::future<CallLinks> opening;              // a window
  std::optional<Status> opened;
  Ns detached_at = 0;
  std::uint64_t malformed = 0;
  Symbols symbols{[this](std::uint64_t address) { return kernel_function(address); }};
  std::map<std::int64_t, Ns> ended;  // targets, and when
  std::size_t taken = 0;             // in this consume()
  Ns consume_until = 0;
  unsigned parts = 0;
  int wake = -1;      // an epoll that tells each wake-up once; the ring itself is readable as long as anything is in it
  int stats_fd = -1;  // the kernel measures the programs while it is open
  bool windows = false;  // system calls are looked at in
  bool detached = false;
  bool context = false;
  bool answers = false;

  ~State() {
    if (opening.valid()) opening.get().destroy();
    stop_clocks();
    bpf_link__destroy(ask);
    ring_buffer__free(ring);
    if (wake >= 0) close(wake);
    culprit_bpf__destroy(skeleton);
    if (stats_fd >= 0) close(stats_fd);
  }

  Status load();
  Status start_clocks();
  void stop_clocks() {
    for (bpf_link* link : std::exchange(clocks, {})) bpf_link__destroy(link);
  }
  void end_telling() { std::atomic_ref<__u32>(*const_cast<__u32*>(&skeleton->bss->over)).store(1); }
  void measure_for_a_while(Ns now);
  [[nodiscard]] std::vector<Runs> runs() const;
  [[nodiscard]] std::vector<Runs> runs_measured() const;
  void end_measuring(Ns now);
  std::string kernel_function(std::uint64_t address);
};

Status Probes::State::load() {
  if (Status own = needs_first_pid_namespace(); !own) return own;
  libbpf_set_print(nullptr);
  btf* kernel = btf__load_vmlinux_btf();
  if (kernel == nullptr) return no_privilege("cannot read the kernel's BTF (/sys/kernel/btf/vmlinux)", errno);
  const bool has_state = switch_has_state(kernel);
  const auto preempt_count = preempt_count_from_run_queue(kernel);
  context = true;
  for (const char* name :
       {"btf_trace_hrtimer_expire_entry", "btf_trace_hrtimer_expire_exit", "btf_trace_irq_handler_entry",
        "btf_trace_irq_handler_exit", "btf_trace_softirq_entry", "btf_trace_softirq_exit"})
    context = context && (preempt_count || has_tracepoint(kernel, name));
  answers = (parts & kAnswers) != 0;
  for (const char* name : {"btf_trace_sk_data_ready", "btf_trace_sock_send_length", "btf_trace_inet_sock_set_state"})
    answers = answers && has_tracepoint(kernel, name);
  btf__free(kernel);

  skeleton = culprit_bpf__open();
  if (skeleton == nullptr) return no_privilege("cannot open the programs", errno);
  skeleton->rodata->has_prev_state = has_state ? 1 : 0;
  skeleton->rodata->preempt_count_at = preempt_count.value_or(0);
  skeleton->rodata->take_stacks = (parts & kStacks) != 0 ? 1 : 0;
  skeleton->rodata->take_memory = options.take_memory ? 1 : 0;
  skeleton->rodata->long_syscall_ns = static_cast<__u64>(options.long_syscall);
  skeleton->rodata->long_block_ns = static_cast<__u64>(options.long_block);
  skeleton->rodata->wake_bytes = std::min<__u64>(__u64{1} << 20, options.ring_bytes / 4);
  const auto& programs = skeleton->progs;
  const bool sched = (parts & kSched) != 0;
  bpf_program__set_autoload(programs.on_switch, sched);
  bpf_program__set_autoload(programs.on_waking, sched);
  for (bpf_program* program : {programs.on_timer_entry, programs.on_timer_exit, programs.on_irq_entry,
                               programs.on_irq_exit, programs.on_softirq_entry, programs.on_softirq_exit})
    bpf_program__set_autoload(program, sched && context && !preempt_count);
  bpf_program__set_autoload(programs.on_wakeup_new, sched);
  bpf_program__set_autoload(programs.on_sys_enter, (parts & kSyscalls) != 0);
  bpf_program__set_autoload(programs.on_sys_exit, (parts & kSyscalls) != 0);
  bpf_program__set_autoattach(programs.on_sys_enter, !windows);
  bpf_program__set_autoattach(programs.on_sys_exit, !windows);
  skeleton->bss->uncounted = windows ? 1 : 0;
  bpf_program__set_autoload(programs.on_ask, (parts & kSyscalls) != 0);
  bpf_program__set_autoattach(programs.on_ask, false);
  bpf_program__set_autoload(programs.on_block_issue, (parts & kBlock) != 0);
  bpf_program__set_autoload(programs.on_block_complete, (parts & kBlock) != 0);
  bpf_program__set_autoload(programs.on_sample, (parts & kSamples) != 0);
  bpf_program__set_autoload(programs.on_name, (parts & kSamples) != 0);
  for (bpf_program* program : {programs.on_data_ready, programs.on_sent, programs.on_connection})
    bpf_program__set_autoload(program, answers);
  for (bpf_map* map : {skeleton->maps.connections, skeleton->maps.sends}) bpf_map__set_autocreate(map, answers);
  bpf_map__set_max_entries(skeleton->maps.ring, static_cast<__u32>(options.ring_bytes));
  if ((parts & kStacks) == 0) bpf_map__set_max_entries(skeleton->maps.stacks, 1);
  if (const int code = culprit_bpf__load(skeleton); code != 0)
    return no_privilege("the kernel refuses the programs", -code);

  const auto record = [](void* self, void* data, std::size_t size) {
    auto* state = static_cast<State*>(self);
    if (!dispatch({static_cast<const std::byte*>(data), size}, state->listeners, state->end)) ++state->malformed;
    const bool look = ++state->taken % kBetweenLooks == 0;
    return look && monotonic_now() >= state->consume_until ? -EAGAIN : 0;
  };
  ring = ring_buffer__new(bpf_map__fd(skeleton->maps.ring), record, this, nullptr);
  if (ring == nullptr) return no_privilege("cannot map the ring buffer", errno);
  wake = epoll_create1(EPOLL_CLOEXEC);
  epoll_event woken{.events = EPOLLIN | EPOLLET, .data = {}};
  if (wake < 0 || epoll_ctl(wake, EPOLL_CTL_ADD, bpf_map__fd(skeleton->maps.ring), &woken) != 0)
    return no_privilege("cannot wait for the ring buffer", errno);
  if (const int code = culprit_bpf__attach(skeleton); code != 0)
    return no_privilege("cannot attach the programs", -code);
  if ((parts & kSyscalls) != 0) {
    ask = bpf_program__attach_iter(programs.on_ask, nullptr);
    if (ask == nullptr) return no_privilege("cannot attach the iterator of threads", errno);
  }
  if ((parts & kSamples) != 0) samples = start_clocks();
  attached_at = monotonic_now();
  stats_since = attached_at - kUnmeasured;
  measure_for_a_while(attached_at);
  return {};
}

Status Probes::State::start_clocks() {
  perf_event_attr clock{};
  clock.size = sizeof clock;
  clock.type = PERF_TYPE_SOFTWARE;
  clock.config = PERF_COUNT_SW_CPU_CLOCK;
  clock.freq = 1;
  clock.sample_freq = options.sample_hz;
  const int cpus = libbpf_num_possible_cpus();
  for (int cpu = 0; cpu < cpus; ++cpu) {
    const auto fd = static_cast<int>(syscall(SYS_perf_event_open, &clock, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC));
    if (fd < 0 && (errno == ENODEV || errno == EINVAL) && cpu > 0) continue;  // offline
    if (fd < 0) return no_privilege("cannot open the clock of a CPU (perf_event_open)", errno);
    bpf_link* link = bpf_program__attach_perf_event(skeleton->progs.on_sample, fd);
    if (link == nullptr) {
      const int code = errno;
      close(fd);
      return no_privilege("cannot attach to the clock of a CPU", code);
    }
    clocks.push_back(link);
  }
  return {};
}

/// Without CAP_SYS_ADMIN the cost stays unknown.
void Probes::State::measure_for_a_while(Ns now) {
  if (!options.count_cpu) return;
  if (stats_fd >= 0 && now - stats_since >= kMeasured) {
    end_measuring(now);
  } else if (stats_fd < 0 && now - stats_since >= kUnmeasured) {
    stats_fd = bpf_enable_stats(BPF_STATS_RUN_TIME);
    stats_since = now;
    begun = runs();
    options.count_cpu = stats_fd >= 0;
  }
}

void Probes::State::end_measuring(Ns now) {
  ran = runs_measured();
  close(std::exchange(stats_fd, -1));
  measured += now - std::exchange(stats_since, now);
}

std::vector<Runs> Probes::State::runs() const {
  std::vector<Runs> all;
  bpf_program* program = nullptr;
  bpf_object__for_each_program(program, skeleton->obj) {
    const bpf_prog_info info = info_of(program);
    all.push_back({info.run_time_ns, info.run_cnt});
  }
  return all;
}

/// In the order of the programs, until now.
std::vector<Runs> Probes::State::runs_measured() const {
  std::vector<Runs> all = ran;
  if (stats_fd < 0) return all;
  const std::vector<Runs> now = runs();
  all.resize(now.size());
  for (std::size_t i = 0; i < now.size() && i < begun.size(); ++i) {
    all[i].ns += now[i].ns - begun[i].ns;
    all[i].count += now[i].count - begun[i].count;
  }
  return all;
}

std::string Probes::State::kernel_function(std::uint64_t address) {
  if (skeleton == nullptr || bpf_program__fd(skeleton->progs.on_name) < 0) return {};
  culprit_function& asked = skeleton->bss->asked;
  asked.address = address;
  asked.name[0] = '\0';
  bpf_test_run_opts run{};
  run.sz = sizeof run;
  if (bpf_prog_test_run_opts(bpf_program__fd(skeleton->progs.on_name), &run) != 0) return {};
  const std::string_view text(asked.name, strnlen(asked.name, sizeof asked.name));
  const std::string_view name = text.substr(0, text.find(' '));
  return std::string(name.starts_with("0x") ? std::string_view() : name);
}

bool Probes::begin_window(bool timed) {
  if (!is_open() || state_->detached || (state_->parts & kSyscalls) == 0) return false;
  auto& shared = *state_->skeleton->bss;
  shared.untimed = timed ? 0 : 1;
  shared.call_window = shared.call_window + 1;
  const auto& programs = state_->skeleton->progs;
  state_->opening = attach_calls(programs.on_sys_enter, timed ? programs.on_sys_exit : nullptr,
                                 *const_cast<__u32*>(&shared.uncounted));
  return true;
}

std::optional<std::optional<Ns>> Probes::window_opened(bool wait) {
  std::future<CallLinks>& opening = state_->opening;
  if (!opening.valid()) return std::optional<Ns>();
  if (!wait && opening.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return std::nullopt;
  const CallLinks links = opening.get();
  if (links.enter == nullptr) {
    bpf_link__destroy(links.exit);
    return std::optional<Ns>();
  }
  state_->skeleton->links.on_sys_enter = links.enter;
  state_->skeleton->links.on_sys_exit = links.exit;
  return links.at;
}

Ns Probes::close_window() {
  if (!is_open()) return monotonic_now();
  std::atomic_ref<__u32>(*const_cast<__u32*>(&state_->skeleton->bss->uncounted)).store(1);
  const Ns at = state_->detached ? state_->detached_at : monotonic_now();
  auto& links = state_->skeleton->links;
  auto& cost = state_->counting_costs[links.on_sys_exit != nullptr ? 1 : 0];
  const bool measures = cost.measured < kCostsMeasured && links.on_sys_enter != nullptr && !state_->detached;
  const double seen = measures ? counted_call(state_->skeleton->bss->measured, cost.measured == 0) : 0;
  bpf_link__destroy(std::exchange(links.on_sys_enter, nullptr));
  bpf_link__destroy(std::exchange(links.on_sys_exit, nullptr));
  if (measures) {
    cost.sum += seen - short_call();
    ++cost.measured;
  }
  return at;
}

std::optional<double> Probes::counting_cost(bool timed) const {
  const auto& cost = state_->counting_costs[timed ? 1 : 0];
  return cost.measured > 0 ? std::optional(std::max(0.0, cost.sum / cost.measured)) : std::nullopt;
}

Probes::Probes(const ProbeOptions& options) : state_(std::make_unique<State>()) { state_->options = options; }
Probes::~Probes() = default;

void Probes::want(unsigned parts) { state_->parts |= parts; }
void Probes::set_long_syscall(Ns at_least) { state_->options.long_syscall = at_least; }
void Probes::look_at_calls_in_windows() { state_->windows = true; }
void Probes::set_sample_rate(unsigned hz) { state_->options.sample_hz = hz; }
void Probes::set_take_memory(bool wanted) { state_->options.take_memory = wanted; }
const Status& Probes::samples() const { return state_->samples; }
void Probes::listen(Listener& listener) { state_->listeners.push_back(&listener); }
void Probes::unlisten(Listener& listener) { std::erase(state_->listeners, &listener); }

Status Probes::open() {
  if (!state_->opened) {
    state_->opened = state_->load();
    if (!*state_->opened) {
      state_->stop_clocks();
      bpf_link__destroy(std::exchange(state_->ask, nullptr));
      ring_buffer__free(std::exchange(state_->ring, nullptr));
      culprit_bpf__destroy(std::exchange(state_->skeleton, nullptr));
    }
  }
  return *state_->opened;
}

void Probes::end_at(Ns end) {
  state_->end = end;
  if (is_open()) state_->end_telling();
}
bool Probes::is_open() const { return state_->skeleton != nullptr && state_->opened.has_value(); }

void Probes::detach() {
  if (!is_open() || std::exchange(state_->detached, true)) return;
  state_->end_telling();
  state_->detached_at = monotonic_now();
  state_->stop_clocks();
  culprit_bpf__detach(state_->skeleton);
  const Ns now = monotonic_now();
  state_->attached_for = now - state_->attached_at;
  if (state_->stats_fd >= 0) state_->end_measuring(now);
  state_->options.count_cpu = false;
}

namespace {

std::atomic_ref<__u64> word_of(culprit_bpf& skeleton, std::int64_t pid) {
  return std::atomic_ref<__u64>(skeleton.bss->targets[static_cast<std::size_t>(pid) / 64]);
}
__u64 bit_of(std::int64_t pid) { return __u64{1} << (static_cast<unsigned>(pid) % 64); }
bool possible(std::int64_t pid) { return pid > 0 && pid < CULPRIT_PID_LIMIT; }

}  // namespace

void Probes::add_target(std::int64_t pid) {
  if (!is_open() || !possible(pid) || pid == getpid()) return;
  state_->ended.erase(pid);
  word_of(*state_->skeleton, pid).fetch_or(bit_of(pid));
}
void Probes::target_ended(std::int64_t pid) {
  if (is_target(pid)) state_->ended.emplace(pid, monotonic_now());
}
void Probes::remove_target(std::int64_t pid) {
  if (is_open() && possible(pid)) word_of(*state_->skeleton, pid).fetch_and(~bit_of(pid));
}
bool Probes::is_target(std::int64_t pid) const {
  return is_open() && possible(pid) && (word_of(*state_->skeleton, pid).load() & bit_of(pid)) != 0;
}

std::size_t Probes::consume() {
  if (!is_open()) return 0;
  state_->taken = 0;
  const Ns now = monotonic_now();
  std::erase_if(state_->ended, [&](const auto& entry) {
    const bool over = now - entry.second >= kLastSwitches;
    if (over) remove_target(entry.first);
    return over;
  });
  if (!state_->detached) state_->measure_for_a_while(now);
  state_->consume_until = now + kLongestConsume;
  epoll_event woken{};
  epoll_wait(state_->wake, &woken, 1, 0);
  std::atomic_ref<__u32>(*const_cast<__u32*>(&state_->skeleton->bss->woken)).store(0);
  ring_buffer__consume(state_->ring);
  return state_->taken;
}

std::vector<culprit_wake_slot> Probes::waiting() const {
  std::vector<culprit_wake_slot> found;
  if (!is_open()) return found;
  for (const culprit_wake_slot& slot : state_->skeleton->bss->wakes)
    if (slot.tid > 0) found.push_back(slot);
  return found;
}

int Probes::wake_fd() const { return is_open() ? state_->wake : -1; }

culprit_losses Probes::losses() const {
  if (!is_open()) return {};
  culprit_losses all = state_->skeleton->bss->losses;
  add_left_out(all, state_->skeleton->obj);
  return all;
}
std::uint64_t Probes::malformed() const { return state_->malformed; }
Symbols& Probes::symbols() { return state_->symbols; }
bool Probes::knows_context() const { return state_->context; }

KernelCpu Probes::kernel_cpu() const {
  KernelCpu cost;
  if (!is_open()) return cost;
  const Ns now = monotonic_now();
  const Ns measured = state_->measured + (state_->stats_fd >= 0 ? now - state_->stats_since : 0);
  const Ns attached = state_->detached ? state_->attached_for : now - state_->attached_at;
  if (measured <= 0) return cost;
  cost.known = true;
  const double scale = static_cast<double>(attached) / static_cast<double>(measured);
  const std::vector<Runs> all = state_->runs_measured();
  auto runs = all.begin();
  bpf_program* program = nullptr;
  bpf_object__for_each_program(program, state_->skeleton->obj) {
    if (runs == all.end()) break;
    const auto ns = std::llround(static_cast<double>(runs->ns) * scale);
    const auto count = static_cast<std::uint64_t>(std::llround(static_cast<double>(runs->count) * scale));
    ++runs;
    const std::string_view section = bpf_program__section_name(program);
    if (section == "perf_event") {
      cost.samples_ns += ns;
      continue;
    }
    const bool sched =
        std::ranges::none_of(std::array{"/sys_", "/block_", "/sk_", "/sock_", "/inet_"},
                             [&](const char* part) { return section.find(part) != std::string_view::npos; });
    (sched ? cost.sched_ns : cost.syscalls_ns) += ns;
    (sched ? cost.sched_runs : cost.syscalls_runs) += count;
  }
  return cost;
}

std::vector<std::uint64_t> Probes::stack(std::int32_t id) const {
  std::array<std::uint64_t, CULPRIT_STACK_DEPTH> frames{};
  if (!is_open() || id < 0) return {};
  if ((id & CULPRIT_STACK_APART) != 0) return state_->stacks_apart.find(id);
  if (bpf_map_lookup_elem(bpf_map__fd(state_->skeleton->maps.stacks), &id, frames.data()) != 0) return {};
  return {frames.begin(), std::ranges::find(frames, std::uint64_t{0})};
}

void Probes::forget_stack(std::int32_t id) {
  if ((id & CULPRIT_STACK_APART) != 0) return state_->stacks_apart.forget(id);
  if (is_open()) bpf_map_delete_elem(bpf_map__fd(state_->skeleton->maps.stacks), &id);
}

void Probes::set_python(std::int64_t pid, const culprit_python& frames) {
  if (!is_open()) return;
  const auto tgid = static_cast<__u32>(pid);
  if (bpf_map_update_elem(bpf_map__fd(state_->skeleton->maps.pythons), &tgid, &frames, BPF_ANY) == 0)
    state_->skeleton->bss->any_python = 1;
}

void Probes::forget_python(std::int64_t pid) {
  const auto tgid = static_cast<__u32>(pid);
  if (is_open()) bpf_map_delete_elem(bpf_map__fd(state_->skeleton->maps.pythons), &tgid);
}

std::uint64_t Probes::python_asked() const { return is_open() ? state_->skeleton->bss->python_asked : 0; }

void Probes::take_python_of(double share) {
  if (is_open()) state_->skeleton->data->python_keep = static_cast<__u32>(std::clamp(share, 0.0, 1.0) * 4294967295.0);
}

void Probes::take_samples_of(unsigned asks) {
  if (is_open()) state_->skeleton->data->take_every = std::max(1U, asks);
}

void Probes::ask_for_calls(bool cut) {
  if (!is_open() || state_->ask == nullptr) return;
  state_->skeleton->bss->cut = cut ? 1 : 0;
  const int fd = bpf_iter_create(bpf_link__fd(state_->ask));
  if (fd < 0) return;
  char none[64];
  while (read(fd, none, sizeof none) > 0 || errno == EINTR) errno = 0;
  close(fd);
}

std::vector<SyscallTotal> Probes::syscall_totals() const {
  if (!is_open()) return {};
  auto rows = rows_of<SyscallTotal, culprit_syscall_key>(state_->skeleton->maps.syscall_totals);
  std::ranges::sort(rows, {}, [](const SyscallTotal& row) { return std::tuple(row.key.tid, row.key.nr); });
  return rows;
}

std::vector<BlockTotal> Probes::block_totals() const {
  if (!is_open()) return {};
  auto rows = rows_of<BlockTotal, culprit_block_key>(state_->skeleton->maps.block_totals);
  std::ranges::sort(rows, {},
                    [](const BlockTotal& row) { return std::tuple(row.key.device, row.key.operation, row.key.tgid); });
  return rows;
}

std::vector<Times> Probes::times() const {
  if (!is_open()) return {};
  auto rows = rows_of<Times, culprit_times_key>(state_->skeleton->maps.times);
  // The recorder's own calls, with which it measures what counting costs.
  std::erase_if(rows, [](const Times& row) { return row.key.tgid == 0 && row.key.device == 0; });
  std::ranges::sort(rows, {}, [](const Times& row) { return std::tuple(row.key.tgid, row.key.device, row.key.nr); });
  return rows;
}

std::vector<Times> Probes::answer_times() const {
  if (!is_open()) return {};
  return rows_of<Times, culprit_times_key>(state_->skeleton->maps.answer_times);
}

void Probes::look_at_requests(bool wanted) {
  if (!is_open()) return;
  auto& shared = *state_->skeleton->bss;
  if (wanted) {
    shared.request_window = shared.request_window + 1;
    std::atomic_ref<__s32>(*const_cast<__s32*>(&shared.unanswered)).store(0);
  }
  std::atomic_ref<__u32>(*const_cast<__u32*>(&shared.unlooked)).store(wanted ? 0 : 1);
}

culprit_sends Probes::sends(std::int64_t pid) const {
  culprit_sends sum{};
  if (!is_open()) return sum;
  const auto slot = static_cast<__u32>(pid) & (CULPRIT_SENDS_SLOTS - 1);
  for (const culprit_sends& cpu : of_cpus<culprit_sends>(state_->skeleton->maps.sends, slot)) {
    sum.all += cpu.all;
    sum.seen += cpu.seen;
  }
  return sum;
}

bool Probes::sees_answers() const { return is_open() && state_->answers; }

std::vector<AnswerGap> Probes::answer_gaps() const {
  if (!is_open()) return {};
  auto rows = rows_of<AnswerGap, culprit_gap_key>(state_->skeleton->maps.answer_gaps);
  std::ranges::sort(rows, {},
                    [](const AnswerGap& row) { return std::tuple(row.key.port, row.key.bytes, row.key.gap); });
  return rows;
}

void Probes::forget_times(const culprit_times_key& key) {
  if (!is_open()) return;
  const auto& maps = state_->skeleton->maps;
  bpf_map_delete_elem(bpf_map__fd(key.nr == CULPRIT_ANSWER ? maps.answer_times : maps.times), &key);
}

void Probes::forget_block(const culprit_block_key& key) {
  if (is_open()) bpf_map_delete_elem(bpf_map__fd(state_->skeleton->maps.block_totals), &key);
}

void Probes::forget_syscalls(const culprit_syscall_key& key) {
  if (is_open()) bpf_map_delete_elem(bpf_map__fd(state_->skeleton->maps.syscall_totals), &key);
}

}  // namespace culprit::record::bpf
