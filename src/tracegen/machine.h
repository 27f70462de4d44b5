// The machine that a simulated run executes on. Nothing here knows a workload: a host thread per rank that launches
// asynchronously and may stand in the CPU's run queue, streams that execute in order, a GPU whose kernels are bound by
// its clock or by its memory, copies over PCIe, and collectives that end for all ranks when the last has come.
//
// All ranks run the same program, one operation at a time, so the state is a few numbers per rank and a run of any
// length needs no more memory than a short one.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tracegen/random.h"
#include "tracegen/writer.h"

namespace culprit::tracegen {

enum class StreamId : std::uint8_t { compute, comm, copy, count_ };
inline constexpr std::size_t kStreams = static_cast<std::size_t>(StreamId::count_);
/// The stream's number in the trace.
std::int32_t number_of(StreamId stream);

/// What a kernel needs of the GPU.
struct Work {
  std::int64_t flops = 0;  ///< in units of 1000 floating-point operations
  std::int64_t bytes = 0;  ///< read and written
};

/// One rank's part of the truth about a step.
struct StepTruth {
  Ns begin = 0;          ///< host, on the rank's clock
  Ns device_begin = -1;  ///< first GPU operation launched inside; -1 = none
  Ns device_end = -1;
  Ns runq = 0;     ///< time the host thread waited for a CPU
  Ns blocked = 0;  ///< time the host waited for the device or for a free place in the launch queue
  Ns input = 0;    ///< time the host waited for input
  Ns busy = 0;     ///< sum of its kernels
  std::uint64_t kernels = 0;
};

class Machine {
 public:
  explicit Machine(const Options& options);
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  Status open(const std::vector<std::string>& paths, bool replace);
  Status close();

  // What the program of a workload is written with; each acts on every rank.

  /// Host work of the current thread.
  void host(Ns cost);
  /// The same of the scheduler between steps.
  void schedule(Ns cost);
  /// Opens a range (operator, annotation, Python function); end() writes it.
  void begin();
  void end(Fn fn, std::int64_t sequence = -1, std::int64_t forward_thread = -1);
  void end_named(Cat cat, std::string_view name);
  /// Python functions are only simulated when they are recorded: begin and end do nothing otherwise.
  void begin_python();
  void end_python(Fn fn);
  void launch(Fn kernel, Work work, StreamId stream = StreamId::compute);
  void copy(Fn fn, std::int64_t bytes, StreamId stream = StreamId::compute);
  void fill(std::int64_t bytes);
  /// All-reduce of `bytes` on every rank; nothing with one rank.
  void all_reduce(Fn kernel, std::int64_t bytes, StreamId stream);
  /// `waiting` does nothing before all that was launched on `awaited` is done.
  void wait_event(StreamId waiting, StreamId awaited);
  /// The host waits for the stream.
  void synchronize(StreamId stream);
  /// All launches until end_graph() are nodes of one graph launch.
  void begin_graph();
  void end_graph();
  /// Waits until the input pipeline, which needs `cost` per batch and works ahead by two, has the next batch.
  void take_input(Ns cost);
  /// The host thread that works from now on: the main thread or the one of autograd.
  void on_autograd_thread(bool yes);
  /// A forward-to-backward arrow leaves the range opened last, or arrives there.
  void forward_backward(bool begin, std::uint64_t sequence);

  void begin_step(std::uint64_t step);
  /// What happened in the step on that rank so far.
  [[nodiscard]] const StepTruth& step(std::uint32_t rank) const;
  [[nodiscard]] Ns now(std::uint32_t rank) const;
  [[nodiscard]] bool fault_active(std::uint32_t rank) const;
  [[nodiscard]] Ns clock_offset(std::uint32_t rank) const { return options_.clock_offset * rank; }
  [[nodiscard]] const TraceWriter& writer(std::uint32_t rank) const;
  [[nodiscard]] bool failed() const;

 private:
  struct Rank;
  struct Open;

  [[nodiscard]] bool has(Fault fault) const;
  [[nodiscard]] std::int64_t lost_share(const Rank& r, Fault fault) const;
  void run(Rank& r, Ns cost);
  void block_until(Rank& r, Ns at, Ns StepTruth::*account);
  Ns queue_wait(Rank& r, std::int64_t lost);
  void stand_in_run_queue(Rank& r, Ns wait);
  Ns kernel_duration(Rank& r, Fn kernel, Work work);
  /// The host call that launches something: returns when the device may begin it at the earliest.
  Ns submit(Rank& r, Fn api, StreamId stream);
  void api_call(Rank& r, Fn api, Ns cost);
  void write_gpu(Rank& r, Fn fn, StreamId stream, Ns begin, Ns duration, SliceEvent event);
  bool profiler_keeps(Rank& r);
  void sample(Rank& r, Ns at);
  SliceEvent on_thread(const Rank& r, Cat cat, std::string_view name, Ns begin) const;

  Options options_;
  std::vector<std::unique_ptr<Rank>> ranks_;
  Random link_;
  std::uint64_t step_ = 0;
  bool in_graph_ = false;
};

}  // namespace culprit::tracegen
