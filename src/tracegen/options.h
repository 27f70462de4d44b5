// What a simulated run is made of. Shares and factors are integers in parts per million, because the same seed must
// give the same bytes on every machine and floating point does not promise that.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "core/units.h"

namespace culprit::tracegen {

inline constexpr std::int64_t kMillion = 1'000'000;

enum class Workload : std::uint8_t { serve, train };

/// What disturbs the run. Severity is always the share of the named resource that is lost, so 0.5 halves it.
enum class Fault : std::uint8_t {
  none,
  gpu_clock_drop,     ///< GPU clock: slows what is bound by computing
  gpu_memory,         ///< GPU memory bandwidth, taken by another process
  cpu_contention,     ///< time on the CPU, taken by others in the run queue
  slow_link,          ///< bandwidth of the link between the ranks
  pcie_contention,    ///< bandwidth of copies between host and device
  straggler,          ///< GPU clock of one rank only; the others wait for it
  slow_input,         ///< throughput of the input pipeline
  kernel_regression,  ///< speed of the attention kernels
  gc_pause,           ///< the host stops for a share of 20 ms in every fourth step
  gpu_shared,         ///< time of the whole GPU, taken by another process
  kernel_changed,     ///< speed of the attention kernels, which are others than before
  slow_function,      ///< speed of the host's scheduler between steps
};

enum class Style : std::uint8_t {
  kineto,        ///< an object with traceEvents, relative fractional times and baseTimeNanoseconds
  kineto_old,    ///< capital categories, text process and thread ids, absolute whole microseconds
  legacy_array,  ///< a bare list of events with absolute times
};

struct Options {         // NOLINT(clang-analyzer-optin.performance.Padding): one of a run
  std::string output;    ///< a path, `-` for standard output; several ranks insert ".rankN"
  bool replace = false;  ///< files that exist
  std::string truth;     ///< path of the truth; empty = beside the output, none for standard output
  Workload workload = Workload::serve;
  std::uint64_t steps = 20;
  std::uint64_t slices = 0;  ///< when not 0: steps go on until rank 0 has at least so many slices
  std::uint32_t ranks = 1;
  std::uint32_t layers = 8;
  std::uint32_t batch = 16;
  std::uint64_t seed = 1;
  std::uint64_t work_seed = 0;  ///< of which requests come; 0: seed
  std::vector<Fault> faults{};  ///< all of the same severity
  std::int64_t severity_ppm = 500'000;
  std::uint64_t fault_from = 0;      ///< first disturbed step
  std::int32_t fault_rank = -1;      ///< -1: every rank (straggler: the last one)
  std::int64_t jitter_ppm = 20'000;  ///< spread of every duration
  std::int64_t lost_ppm = 0;         ///< share of slices that the profiler loses
  std::uint32_t queue_depth = 1024;  ///< launches that may wait for the device before the host blocks
  std::uint32_t prefill_every = 8;   ///< serve: every so manyth step is a prefill; 0 = never
  std::uint32_t sync_every = 0;      ///< steps between waits for the device; 0 = 1 for serve, 4 for train
  Ns clock_offset = 250'000;         ///< rank r's clock is r times this ahead
  std::uint32_t inputs = 1;      ///< train: copies of input; several are waited for one by one, as pageable memory is
  std::int64_t input_bytes = 0;  ///< train: of each of these copies; 0: as many as the tokens need
  std::uint32_t accumulate = 1;  ///< train: steps whose gradients are accumulated before the optimizer runs
  bool cpu = false;              ///< no GPU: operators compute on the host, in the thread that calls them
  bool graph = false;            ///< decode steps, or the optimiser, run as one graph launch
  bool markers = true;           ///< step annotations
  bool python = false;
  bool sched = false;     ///< time in the run queue as slices
  bool counters = false;  ///< clock of the GPU, its use and that of this process as counters, every 32 kernels
  Style style = Style::kineto;
  bool compact = false;
};

std::string_view to_string(Workload workload);
std::string_view to_string(Fault fault);
std::string_view to_string(Style style);
Result<Workload> parse_workload(std::string_view text);
Result<Fault> parse_fault(std::string_view text);
Result<Style> parse_style(std::string_view text);

/// What cannot be simulated is a usage error.
Status check(const Options& options);

}  // namespace culprit::tracegen
