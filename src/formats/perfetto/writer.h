// Writes a run as a Perfetto trace (protobuf). The recorder's collectors hand over what they saw, in the words of this
// header; nobody else knows the wire format.
//
// All times that come in are CLOCK_MONOTONIC nanoseconds. Packets are gathered into a chunk that is deflated into one
// `compressed_packets` field of less than 512 KiB and handed to the kernel at once, so that a file whose writer was
// killed, or whose disk became full, loses at most the chunk that was being filled. The file is an OutputFile
// (core/output_file.h) with mode 0600.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "core/error.h"
#include "core/units.h"

namespace culprit::perfetto {

/// Label of processes that are only named (ProcessInfo::recorded is false).
inline constexpr std::string_view kStrangerLabel = "not recorded";

/// The fact by which a reader knows whether a file was ended, and its values at the begin and at the end.
inline constexpr std::string_view kFileState = "culprit.file", kFileOpen = "open", kFileComplete = "complete";

/// Category of instants with the totals of a system call: arguments `count`, `total_ns`, `longest_so_far_ns`.
inline constexpr std::string_view kCallTotals = "syscall_total";

/// The same of requests to a disk, with `bytes`; and of instants with how long calls or requests took: argument
/// `buckets`, "bucket:count" of stats/log_buckets.h between blanks, `unended`, of calls that had not ended when nobody
/// looked any more, and `bytes` of answers.
inline constexpr std::string_view kDiskTotals = "block_total";
inline constexpr std::string_view kDurations = "durations";

/// The names of tracks of a disk, of a TCP port, and of all Unix sockets, begin so.
inline constexpr std::string_view kDiskTrack = "disk ", kPortTrack = "port ", kUnixTrack = "Unix sockets";
/// Of the answers on a TCP port; 0: on Unix sockets.
std::string answers_track(std::uint32_t port);

/// Of durations of a port: how long answers took; with a text behind it after how many others one came (see
/// DurationCounts).
inline constexpr std::string_view kAnswer = "answer";

/// Category of slices in which a thread was blocked; their argument `stack` tells where.
inline constexpr std::string_view kBlocked = "blocked";

/// A track of slices, or of one counter.
using TrackUuid = std::uint64_t;

/// One argument of a slice.
struct Argument {
  std::string_view key;
  std::variant<std::int64_t, double, std::string_view> value;
};

/// An arrow begins or goes on at a slice, or ends there.
struct FlowPoint {
  std::uint64_t id = 0;  ///< of the arrow, unique in the file
  bool ends = false;
};
/// The argument of a slice that says what kind of arrows begin or end there, as Kineto calls it: "fwdbwd".
inline constexpr std::string_view kFlowArgument = "flow";

/// One context switch as the kernel saw it: `prev` left the CPU, `next` got it.
struct SchedSwitch {
  Ns at = 0;
  std::uint32_t cpu = 0;
  std::int32_t prev_tid = 0;
  std::int32_t next_tid = 0;
  std::int32_t prev_priority = 120;
  std::int32_t next_priority = 120;
  std::int64_t prev_state = 0;   ///< as in the kernel's tracepoint: 0 = still runnable (preempted), 1 = S, 2 = D, ...
  std::string_view prev_name{};  ///< the kernel's 15 characters
  std::string_view next_name{};
};

/// `waker_tid`, running on `cpu`, made `tid` runnable.
struct SchedWaking {
  Ns at = 0;
  std::uint32_t cpu = 0;
  std::uint32_t target_cpu = 0;
  std::int32_t waker_tid = 0;
  std::int32_t tid = 0;
  std::int32_t priority = 120;
  std::string_view name{};  ///< of `tid`
};

/// One function of a call stack.
struct CodeFrame {
  std::string_view function{};  ///< empty: unknown
  std::string_view module{};    ///< path of the file of the code, "[kernel]", or empty
  std::string_view build_id{};  ///< of the file, bytes; may be empty
  std::uint64_t address = 0;    ///< in the file
  enum class Kind : std::uint8_t { native, kernel, jit, interpreted } kind = Kind::native;
};

/// What a thread was doing when a clock asked.
struct StackTaken {
  Ns at = 0;
  std::uint32_t cpu = 0;
  std::int32_t pid = 0;
  std::int32_t tid = 0;
  bool in_kernel = false;
  std::uint32_t asks = 1;  ///< of the clock of its CPU for which it stands
};

struct ProcessInfo {
  std::int64_t pid = 0;
  std::int64_t parent = 0;
  std::string_view name{};    ///< program name only, never its arguments
  std::int64_t rank = -1;     ///< -1: unknown
  std::int64_t start_ns = 0;  ///< CLOCK_BOOTTIME at which it started, 0: unknown; tells a reused pid
  bool recorded = true;       ///< false: only named, because counters tell of it; its threads are nobody's business
};

struct WriterOptions {
  std::size_t chunk_bytes = std::size_t{256} << 10;  ///< of packets before deflating
  int level = 1;                                     ///< of deflate, 0..9
  bool replace = false;                              ///< an existing file is an error unless set
  /// The events are of another machine or time (export): nothing of this machine is written, and time 0 of the events
  /// is this Unix time in ns (0: unknown).
  std::optional<std::int64_t> realtime_of_zero{};
};

struct WriterStats {
  std::uint64_t packets = 0;
  std::uint64_t raw_bytes = 0;   ///< before deflating
  std::uint64_t file_bytes = 0;  ///< handed to the kernel
};

/// An open recording. After the first failure to write (disk full, say) everything is accepted and dropped, and
/// flush() and close() return that error. Not thread-safe.
class Writer {
 public:
  /// Makes the file and writes the first clock snapshot. The file has no name yet, and is removed with the writer
  /// unless publish() or close() gave it one. Errors: the file exists, the folder cannot be written.
  static Result<Writer> create(const std::string& path, const WriterOptions& options = {});
  Writer(Writer&&) noexcept;
  Writer& operator=(Writer&&) noexcept;
  ~Writer();

  /// Relates MONOTONIC, BOOTTIME and REALTIME; written at the begin, every few seconds, and at the end.
  void clock_snapshot();

  /// Names a process or thread; again when the name changed (exec, prctl).
  void process(const ProcessInfo& info);
  void thread(std::int64_t pid, std::int64_t tid, std::string_view name);

  void sched_switch(const SchedSwitch& event);
  void sched_waking(const SchedWaking& event);
  void process_exit(Ns at, std::int32_t tid);
  /// Nothing more is told of this process: what is kept of its tracks goes some flushes later.
  void process_ended(std::int64_t pid);

  /// How often a second a CPU is asked what it does: before the first stack.
  void sampling_rate(std::uint64_t hz);
  /// A stack that was taken at one or more asks at that rate, outermost frame first.
  void stack(const StackTaken& taken, std::span<const CodeFrame> frames);

  /// The track of a thread for slices. Slices of one track nest; what may overlap gets its own lanes by named_track.
  TrackUuid thread_track(std::int64_t pid, std::int64_t tid);
  /// A track of its own below a thread (tid > 0), a process (pid > 0) or the host; the same arguments give the same
  /// track. `lane` tells tracks of one name apart.
  TrackUuid named_track(std::string_view name, std::int64_t pid = 0, std::int64_t tid = 0, std::uint32_t lane = 0);
  /// Lies below groups named by what stands before the first and the second dot of its name. `unit` is that of the
  /// values in SI ("ns", "bytes", "Hz", "fraction", "count", "celsius", "W", or with "/s").
  TrackUuid counter_track(std::string_view name, std::string_view unit, std::int64_t pid = 0);

  void slice(TrackUuid track, Ns begin, Ns end, std::string_view name, std::string_view category,
             std::span<const Argument> arguments = {}, std::span<const FlowPoint> flows = {});
  /// Open-ended slices: a killed recorder leaves the begin in the file.
  void slice_begin(TrackUuid track, Ns at, std::string_view name, std::string_view category,
                   std::span<const Argument> arguments = {});
  void slice_end(TrackUuid track, Ns at);
  void instant(TrackUuid track, Ns at, std::string_view name, std::string_view category,
               std::span<const Argument> arguments = {});
  void counter(TrackUuid track, Ns at, double value);

  /// A fact about the run: environment ("env.kernel.release"), options ("record.preset"), what a collector could not
  /// see and why ("missing.sched"), its losses and cost ("cost.sched.dropped"). The last value of a key counts.
  void metadata(std::string_view key, std::string_view value);

  /// Hands everything so far to the kernel.
  Status flush();
  /// flush(), and gives the file its name: from now on it stays, however the writer ends.
  Status publish();
  /// Completes the file as close() does and goes on in a new one, which has no name before publish(). Tracks stay
  /// valid, facts are written again but those whose key begins with one of `outdated`; processes and threads have to be
  /// named again. Errors: those of close() and create(); then nothing more is written.
  Status next_file(const std::string& path, std::span<const std::string_view> outdated);
  /// Last clock snapshot, flush, close. A file that could not be written whole gets no name. Idempotent.
  Status close();

  [[nodiscard]] const WriterStats& stats() const;

 private:
  struct State;
  explicit Writer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace culprit::perfetto
