// The one set of programs that a recording has in the kernel. Collectors say before they start which parts they want,
// and listen; the first that starts loads and attaches everything.
//
// Needs Linux 5.15 with BTF, CAP_BPF and CAP_PERFMON (or root), and the initial pid namespace. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "bpf/records.h"
#include "core/error.h"
#include "core/units.h"
#include "record/bpf/records.h"
#include "record/bpf/symbols.h"

namespace culprit::record::bpf {

/// What to load.
enum Part : unsigned {
  kSched = 1,     ///< switches, wake-ups
  kStacks = 2,    ///< user stacks where a thread blocks
  kSyscalls = 4,  ///< every system call of the targets
  kBlock = 8,     ///< requests of block devices
  kSamples = 16,  ///< stacks of what runs, by the clock of each CPU
  kAnswers = 32,  ///< how long the connections of the targets waited for answers; where the kernel can tell (Linux 6.3)
};

struct ProbeOptions {
  Ns long_syscall = 1'000'000;                     ///< from here on a system call is recorded by itself
  Ns long_block = 1'000'000;                       ///< from here on a request of somebody else is
  std::size_t ring_bytes = std::size_t{16} << 20;  ///< a power of two
  unsigned sample_hz = 99;                         ///< how often the clock of a CPU asks
  bool take_memory = false;                        ///< of samples
  /// Let the kernel measure its programs for a tenth of a second in every two (it costs some 40 ns each time a program
  /// runs; needs CAP_SYS_ADMIN).
  bool count_cpu = true;
};

/// One row of the totals of system calls, since the begin.
struct SyscallTotal {
  culprit_syscall_key key;
  culprit_total total;
};
struct BlockTotal {
  culprit_block_key key;
  culprit_total total;
};

/// How durations spread, since the begin.
struct Times {
  culprit_times_key key;
  culprit_times total;
};

/// After how many others an answer of as many bytes came again on its connection, since the begin.
struct AnswerGap {
  culprit_gap_key key;
  __u64 total;
};

/// CPU time of the programs since they were attached, from the times in which the kernel measured it.
struct KernelCpu {
  bool known = false;
  Ns sched_ns = 0;
  Ns syscalls_ns = 0;
  Ns samples_ns = 0;
  std::uint64_t sched_runs = 0;
  std::uint64_t syscalls_runs = 0;
};

class Probes {
 public:
  explicit Probes(const ProbeOptions& options = {});
  ~Probes();
  Probes(const Probes&) = delete;
  Probes& operator=(const Probes&) = delete;

  /// Before open().
  void want(unsigned parts);
  void set_long_syscall(Ns at_least);
  /// System calls are not looked at but in windows. Before open().
  void look_at_calls_in_windows();
  void set_sample_rate(unsigned hz);
  /// Samples come with registers and stack, as finding callers without frame pointers takes. Before open().
  void set_take_memory(bool wanted);
  /// Hears everything until it is removed; must outlive that.
  void listen(Listener& listener);
  void unlisten(Listener& listener);

  /// Loads and attaches. Idempotent: the result of the first call counts. The error names the missing privilege or
  /// kernel feature.
  Status open();
  [[nodiscard]] bool is_open() const;
  /// Why no stack is taken, where nothing else is missing.
  [[nodiscard]] const Status& samples() const;
  /// What happens later is neither counted nor handed to the listeners: detaching takes its time.
  void end_at(Ns end);
  /// Detaches everything; what is in the ring and the maps can still be read.
  void detach();

  /// A process and, from now on, its descendants. Never this process itself.
  void add_target(std::int64_t pid);
  void remove_target(std::int64_t pid);
  /// A process that has ended: its last switches are still to come, or wait in the ring. It is removed a second later.
  void target_ended(std::int64_t pid);
  [[nodiscard]] bool is_target(std::int64_t pid) const;

  /// A target executes Python: its functions stand in stacks (Listener::on_python_stack) until it is taken out.
  void set_python(std::int64_t pid, const culprit_python& frames);
  void forget_python(std::int64_t pid);
  /// At how many switches of Python programs their stack could have been taken, since the begin.
  [[nodiscard]] std::uint64_t python_asked() const;
  /// Of those switches from now on: this share of them, whichever they are.
  void take_python_of(double share);

  /// Of so many times at which the clock of a CPU asks a stack is taken once from now on, which tells how many times it
  /// stands for (culprit_sample::asks). At first: always.
  void take_samples_of(unsigned asks);

  /// Hands what waits in the ring to the listeners; the number of records. Returns after 50 ms though more wait.
  std::size_t consume();
  /// Threads that were woken and have not got a CPU yet; their wake-ups come with the switch to them, if it comes.
  [[nodiscard]] std::vector<culprit_wake_slot> waiting() const;
  /// Readable once when more waits than can wait until the next look, until consume(); -1 when not open.
  [[nodiscard]] int wake_fd() const;

  /// What found no room, and what the kernel left out.
  [[nodiscard]] culprit_losses losses() const;
  [[nodiscard]] std::uint64_t malformed() const;
  [[nodiscard]] KernelCpu kernel_cpu() const;
  /// Whether wake-ups know their context (task or interrupt).
  [[nodiscard]] bool knows_context() const;
  /// Names of code, one for all collectors: of the kernel where samples are taken.
  [[nodiscard]] Symbols& symbols();
  /// Addresses of a user stack, innermost first; empty when the id is unknown.
  [[nodiscard]] std::vector<std::uint64_t> stack(std::int32_t id) const;
  /// Makes room for others.
  void forget_stack(std::int32_t id);
  /// Begins to attach what counts system calls, and times them when they also end before the window, in a thread of its
  /// own: the kernel waits until all CPUs have passed a quiet moment, for seconds where they are busy, and nobody would
  /// empty the ring meanwhile. False: it cannot be.
  bool begin_window(bool timed);
  /// Behind begin_window(): from when on calls are counted, or nothing when the kernel refuses. nullopt: it still
  /// attaches, and `wait` is false.
  std::optional<std::optional<Ns>> window_opened(bool wait = false);
  /// Nothing more is counted since the time that it gives.
  Ns close_window();
  /// By how much being counted makes a call longer, in ns: measured when the first windows of its kind were
  /// closed.
  [[nodiscard]] std::optional<double> counting_cost(bool timed) const;
  /// Lets every thread of the targets put its system calls into the ring; also after detach(). `cut`: a window in which
  /// calls were timed is over, and those that have not ended count as such (culprit_times::unended).
  void ask_for_calls(bool cut = false);
  /// Of calls that found no place with their thread, in the order of the keys.
  [[nodiscard]] std::vector<SyscallTotal> syscall_totals() const;
  [[nodiscard]] std::vector<BlockTotal> block_totals() const;
  /// Of system calls and block I/O.
  [[nodiscard]] std::vector<Times> times() const;
  /// Of answers.
  [[nodiscard]] std::vector<Times> answer_times() const;
  /// Requests that come are looked at from now on, or not any more; at first they are.
  void look_at_requests(bool wanted);
  /// How often a target sent something over sockets, which is counted always; with those whose place it shares.
  [[nodiscard]] culprit_sends sends(std::int64_t pid) const;
  /// Whether answers are seen.
  [[nodiscard]] bool sees_answers() const;
  [[nodiscard]] std::vector<AnswerGap> answer_gaps() const;
  /// Makes room: a process that is gone.
  void forget_times(const culprit_times_key& key);
  /// Makes room: a process that is gone.
  void forget_block(const culprit_block_key& key);
  /// Makes room: a thread that is gone.
  void forget_syscalls(const culprit_syscall_key& key);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace culprit::record::bpf
