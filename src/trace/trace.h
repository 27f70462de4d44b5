// The events of one run in memory, as columns.
//
// A run of 10^8 slices must fit a workstation, so a slice is 40 bytes and what only GPU work has stands in a side table
// of 48. Rows are in the order of the input (deterministic: files in the order given), with three exceptions, so that
// nothing but the order of rows depends on the order of events in a file: slices of one class, track and span are in
// the order in which they were called; processes, tracks, categories and counters are in an order of their own (by
// numbers, then by text). `SliceOrder` gives time order per track. Slices of one track may overlap: real profilers
// write such traces. Everything that could not be kept is in `losses`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/chunked_vector.h"
#include "core/string_table.h"
#include "core/units.h"
#include "trace/loss.h"

namespace culprit {

using SliceIndex = std::uint32_t;  ///< row of Trace::slices
using GpuIndex = std::uint32_t;    ///< row of Trace::gpu
using TrackId = std::uint32_t;
using ProcessId = std::uint32_t;  ///< row of Trace::processes, not the operating system's number
using CategoryId = std::uint16_t;
inline constexpr std::uint32_t kNone = 0xffffffff;

/// What a category of the input means; both generations of names map here (`Kernel` and `kernel`, `Runtime` and
/// `cuda_runtime`).
enum class SliceClass : std::uint8_t {
  other,
  kernel,
  memcpy,
  memset,
  runtime,     ///< CUDA/HIP/MTIA runtime call on the host
  driver,      ///< CUDA/HIP driver call on the host
  cpu_op,      ///< framework operator
  annotation,  ///< user annotation, NVTX range, ProfilerStep on the host
  gpu_annotation,
  python,
  gpu_sync,       ///< synchronisation record on a device track
  overhead,       ///< the profiler's own time
  counter_range,  ///< cuda_profiler_range: counters of one kernel
  os_sched,
  syscall,
};
inline constexpr std::size_t kSliceClasses = 15;
inline constexpr bool is_gpu_work(SliceClass c) {
  return c == SliceClass::kernel || c == SliceClass::memcpy || c == SliceClass::memset;
}
inline constexpr bool is_host_api(SliceClass c) { return c == SliceClass::runtime || c == SliceClass::driver; }
std::string_view to_string(SliceClass c);
/// The class of a category name, by the table in slice_class.cpp.
SliceClass classify_category(std::string_view category);

struct Category {
  std::string name;  ///< as in the input
  SliceClass slice_class = SliceClass::other;
};

/// One span of time on a track. 40 bytes.
struct Slice {
  Ns begin = 0;     ///< relative to Trace::base_ns
  Ns duration = 0;  ///< never negative
  StringId name = 0;
  TrackId track = 0;
  std::uint32_t correlation = 0;  ///< links host calls and GPU work of one rank; 0 = none
  std::uint32_t gpu = kNone;      ///< row of Trace::gpu
  std::uint32_t extra = kNone;    ///< row of Trace::extras
  CategoryId category = 0;
  std::uint16_t rank = 0;  ///< row of Trace::ranks
  [[nodiscard]] Ns end() const { return begin + duration; }
};
static_assert(sizeof(Slice) == 40);

/// What only GPU work has. 48 bytes.
struct GpuSlice {
  SliceIndex slice = 0;
  SliceIndex launcher = kNone;  ///< the host call that launched it; all nodes of one graph launch share theirs
  std::uint64_t bytes = 0;      ///< memcpy and memset
  std::int32_t stream = -1;
  std::uint32_t grid[3] = {0, 0, 0};
  std::uint16_t block[3] = {0, 0, 0};
  std::int16_t device = -1;
  std::uint32_t shared_memory = 0;
  std::uint16_t registers = 0;
  std::uint16_t context = 0;
};
static_assert(sizeof(GpuSlice) == 48);

/// What few slices have: autograd, graph and collective metadata. 32 bytes.
struct SliceExtra {
  std::int64_t sequence = -1;  ///< autograd "Sequence number"; pairs a forward operator with its backward
  std::uint64_t elements = 0;  ///< "In msg nelems"
  std::uint32_t forward_thread = 0;
  std::uint32_t graph_node = 0;
  StringId collective = 0;  ///< "Collective name"
  StringId group = 0;       ///< "Process Group Name"
};
static_assert(sizeof(SliceExtra) == 32);

/// A counter of one slice: occupancy of a kernel, the metrics of a profiler range. 16 bytes.
struct SliceMetric {
  SliceIndex slice = 0;
  StringId name = 0;  ///< as in the input
  double value = 0;   ///< as in the input: the name says the unit
};
static_assert(sizeof(SliceMetric) == 16);

/// A stream that waits for an event: what is put on it later begins when all has ended that stood on another stream as
/// the event was recorded. 24 bytes.
struct StreamWait {
  SliceIndex slice = 0;            ///< the record of the wait (gpu_sync); its correlation id is that of the call
  std::uint32_t recorded_by = 0;   ///< correlation id of the call that recorded the event
  std::int32_t device = -1;        ///< of the stream that waits
  std::int32_t stream = -1;        ///< that waits
  std::int32_t event_device = -1;  ///< of the stream on which the event was recorded; -1: not known
  std::int32_t event_stream = -1;
};
static_assert(sizeof(StreamWait) == 24);

/// A point in time.
struct Instant {
  Ns at = 0;
  StringId name = 0;
  TrackId track = 0;
};

enum class TrackKind : std::uint8_t {
  thread,
  gpu_stream,
  async,
  sched,  ///< what a thread did by the scheduler's account: on a CPU, in the run queue, blocked
};

/// Where slices lie: a thread, a GPU stream, one lane of asynchronous slices, or the scheduling of a thread.
struct Track {
  ProcessId process = 0;
  TrackKind kind = TrackKind::thread;
  std::int64_t tid = -1;     ///< number in the input, -1 when it was text
  StringId name = 0;         ///< thread name, or the text id
  std::int32_t device = -1;  ///< gpu_stream only
  std::int32_t stream = -1;
  std::uint64_t slices = 0;
};

struct Process {
  std::int64_t pid = -1;  ///< -1 when the input gave only text
  StringId text = 0;      ///< the pid as written when it was text
  StringId host = 0;
  StringId name = 0;
  StringId labels = 0;
  std::uint16_t rank = 0;  ///< row of Trace::ranks
};

struct Device {
  std::int32_t id = -1;
  std::uint16_t rank = 0;  ///< row of Trace::ranks
  std::string name;
  std::uint64_t memory_bytes = 0;
  std::uint32_t multiprocessors = 0;
  std::uint32_t warp_size = 0;
  std::string compute_capability;
};

/// A recording of the same seconds as a trace: another file of the same rank.
struct RecordingFile {
  std::string path;
  std::string format;
  std::uint64_t input_bytes = 0;
  std::uint64_t text_bytes = 0;
  std::uint64_t events = 0;
};

/// Of keys of Rank::metadata: what a profiler was asked to record besides ("profiler.with_stack").
inline constexpr std::string_view kProfilerOption = "profiler.";

/// One input file, which is one rank of the run.
struct Rank {
  std::string path;
  std::int64_t rank = -1;  ///< -1 when the file does not say
  std::int64_t world_size = -1;
  std::string backend;
  std::int64_t base_ns = 0;  ///< baseTimeNanoseconds of the file
  bool has_base = false;
  std::uint64_t input_bytes = 0;  ///< size of the file
  std::uint64_t text_bytes = 0;   ///< after decompression
  std::uint64_t events = 0;       ///< elements of traceEvents, kept or not
  std::string schema;
  std::string host;
  std::string format{};                      ///< "" for JSON; else what the file is ("Nsight Systems SQLite")
  std::vector<std::string> unread_tables{};  ///< databases: tables that were not read, by name
  /// Recordings: facts about the run by key, sorted ("env.kernel.release", "missing.sched", "cost.sched.dropped").
  std::vector<std::pair<std::string, std::string>> metadata{};
  std::vector<RecordingFile> recordings{};  ///< that were joined with this file (join.h)
};

struct CounterSample {
  Ns at = 0;
  double value = 0;
};

/// A sampled series.
struct CounterSeries {
  StringId name = 0;  ///< counter and, when it has several values, the value's key: "name.key"
  ProcessId process = 0;
  TrackId track = kNone;
  std::vector<CounterSample> samples;
  StringId unit = 0;  ///< of the values ("fraction", "bytes/s"), empty when the name has to say it
};

/// A thread that had to do with another one: woke it, or had the CPU while it waited.
struct SchedPeer {
  StringId name = 0;
  std::int64_t tid = 0;
  std::uint64_t count = 0;
  Ns time = 0;  ///< for which it had the CPU meanwhile
};

/// What the scheduler did with one thread, beside the slices of its track.
struct ThreadSched {
  TrackId track = 0;              ///< of kind sched
  std::uint64_t switches = 0;     ///< times it left a CPU
  std::uint64_t preemptions = 0;  ///< of these: while it could still run
  std::uint64_t migrations = 0;   ///< times it came to another CPU than the one before
  std::uint64_t wakeups = 0;
  std::vector<SchedPeer> woken_by;     ///< most frequent first, at most 16
  Ns behind_others = 0;                ///< for which it waited for a CPU that a thread which is not recorded had
  std::vector<SchedPeer> ran_instead;  ///< had the CPU for which this thread waited; longest first
};

/// Of whom a thread was woken by no other thread: SchedPeer::tid is 0.
inline constexpr std::string_view kNoThread = "interrupt or idle";

/// Stretches of time in which RivalTotal adds up.
inline constexpr Ns kRivalStretch = 50'000'000;

/// A thread that had the CPU for which another one waited, in the waits that ended in [at, at + kRivalStretch).
struct RivalTotal {
  Ns at = 0;
  TrackId track = 0;  ///< of kind sched: who waited
  StringId name = 0;  ///< of who ran
  std::int64_t tid = 0;
  std::uint64_t count = 0;
  Ns time = 0;
};

/// How often one thread made one system call since the total before (of the same thread and call), and how long that
/// took. Recordings hold these totals of all calls; single calls are slices when they took long.
struct CallTotal {
  Ns at = 0;  ///< end of the stretch
  StringId name = 0;
  TrackId track = 0;  ///< a track of the thread, or of the device
  std::uint64_t count = 0;
  Ns time = 0;
  Ns longest_so_far = 0;  ///< since the recording began
};

/// What one kind of request to one disk took since the total before, as CallTotal of calls.
struct DiskTotal {
  Ns at = 0;
  StringId disk = 0;
  StringId operation = 0;
  ProcessId process = 0;  ///< that issued them; one without a number: the kernel, or a program that is not recorded
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;
  Ns time = 0;
  Ns longest_so_far = 0;
};

/// How the durations of a system call of one process, of a kind of request to a disk, or of answers on a TCP port
/// ("answer" of "port 80", or of "Unix sockets") spread: counts in the buckets of stats/log_buckets.h. "answer of 17
/// bytes after others" of no process: bucket n counts the answers of that size that came as the n-th one after the last
/// of that size.
struct DurationCounts {
  StringId name = 0;  ///< of the call or the operation
  StringId disk = 0;  ///< or port; 0: a system call
  ProcessId process = 0;
  std::vector<std::uint64_t> buckets;
  std::uint64_t unended = 0;  ///< calls that were to be timed and took longer than anybody looked: in no bucket
  std::uint64_t bytes = 0;    ///< of the answers
};

/// One function in a call stack, below its caller: stacks that begin alike share their outer frames.
struct StackFrame {
  std::uint32_t caller = kNone;  ///< row of Trace::stack_frames, always before this one
  StringId function = 0;         ///< without a name: "libfoo.so+0x1a2b"
  StringId module = 0;           ///< path of the file of the code; empty when it is in none
  bool kernel = false;
  bool operator==(const StackFrame&) const = default;
};

/// What a thread was doing at one moment, or where it stood while it did not run.
struct StackSample {
  enum class Kind : std::uint8_t {
    on_cpu,   ///< taken by a clock while it ran
    off_cpu,  ///< where it stood while it was blocked
    other,    ///< taken by something else than a clock: a counter of the CPU, a tracepoint
  };
  Ns at = 0;
  Ns time = 0;  ///< it stands for; 0: unknown
  TrackId track = 0;
  std::uint32_t frame = kNone;  ///< the innermost, row of Trace::stack_frames; kNone: no stack was seen
  Kind kind = Kind::on_cpu;
  /// Of off_cpu the thread that ended it, kNoThread or "interrupt"; 0: not known, or it had not ended.
  StringId waker = 0;
};

enum class FlowKind : std::uint8_t { other, host_to_device, async, forward_backward };

/// An arrow between two slices.
struct Flow {
  SliceIndex from = kNone;
  SliceIndex to = kNone;
  FlowKind kind = FlowKind::other;
};

/// One run.
struct Trace {
  ChunkedVector<Slice> slices;
  ChunkedVector<GpuSlice> gpu;
  ChunkedVector<SliceExtra> extras;
  ChunkedVector<SliceMetric> metrics;    ///< counters of single slices, by slice
  std::vector<StreamWait> stream_waits;  ///< whose event is known; by slice
  ChunkedVector<Instant> instants;
  std::vector<CounterSeries> counters;
  std::vector<ThreadSched> sched;          ///< by track
  std::vector<RivalTotal> rivals;          ///< by time, track and number of who ran
  std::vector<CallTotal> calls;            ///< of system calls; by time, track and name
  std::vector<DiskTotal> disks;            ///< by time, disk, operation and process
  std::vector<DurationCounts> durations;   ///< by process, disk and name
  ChunkedVector<StackFrame> stack_frames;  ///< of call stacks
  ChunkedVector<StackSample> stack_samples;
  std::vector<Flow> flows;  ///< host_to_device flows that only repeat a correlation id are not kept
  StringTable strings;
  std::vector<Category> categories;
  std::vector<Track> tracks;
  std::vector<Process> processes;
  std::vector<Device> devices;
  std::vector<Rank> ranks;
  Losses losses;
  std::int64_t base_ns = 0;       ///< Unix time of `begin` 0, or 0 when the input has no absolute clock
  std::string clock = "unknown";  ///< "realtime", "monotonic" or "unknown"

  [[nodiscard]] std::string_view name(const Slice& s) const { return strings[s.name]; }
  [[nodiscard]] SliceClass slice_class(const Slice& s) const { return categories[s.category].slice_class; }
};

/// True when `a` stands before `b` on a track: it begins earlier, or it is longer and so holds `b`. Slices of one span
/// are ordered by what usually holds the other (annotations, Python, operators, runtime, driver), then by row.
bool stands_before(const Trace& trace, SliceIndex a, SliceIndex b);

/// Indices of the slices of every track ordered by stands_before().
struct SliceOrder {
  std::vector<SliceIndex> order;           ///< grouped by track
  std::vector<std::uint64_t> track_begin;  ///< track t owns order[track_begin[t], track_begin[t + 1])
};
SliceOrder order_slices(const Trace& trace);

}  // namespace culprit
