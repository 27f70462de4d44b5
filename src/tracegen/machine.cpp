#include "tracegen/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>

namespace culprit::tracegen {

namespace {

// An A100 as kernels see it: what they reach, not what the data sheet promises.
constexpr std::int64_t kKflopsPerNs = 200;  // 200 TFLOP/s
constexpr std::int64_t kBytesPerNs = 1500;  // 1.5 TB/s
constexpr std::int64_t kLinkBytesPerNs = 150;
constexpr std::int64_t kPcieBytesPerNs = 20;
constexpr std::int64_t kCpuKflopsPerNs = 2;  // what the host reaches where there is no GPU
constexpr std::int64_t kCpuBytesPerNs = 50;
constexpr Ns kKernelRamp = 1'400;  // starting and draining a grid, in clocks of the GPU
constexpr Ns kCopySetup = 1'100;
constexpr Ns kCollectiveSetup = 7'000;
constexpr Ns kLaunchCost = 3'600;  // host time of one launch call
constexpr Ns kGraphLaunchCost = 14'000;
constexpr Ns kApiCost = 700;
constexpr Ns kLaunchLatency = 3'200;  // from the call's submission to the device
constexpr Ns kGraphNodeGap = 600;
constexpr Ns kStreamGap = 500;        // between two kernels of one stream
constexpr Ns kTimeSlice = 1'000'000;  // of the CPU's scheduler
constexpr Ns kWakeUp = 4'000;
constexpr std::int64_t kGpuMHz = 1410;
constexpr std::int64_t kFirstProcess = 4000;
constexpr std::uint64_t kInputAhead = 2;
constexpr std::int64_t kKflopsOfBlock = 40'000;
constexpr std::int64_t kBytesOfBlock = 65'536;
constexpr std::int64_t kMostBlocks = 65'535;
constexpr std::uint32_t kCollectiveBlocks = 24;
constexpr std::uint64_t kKernelsOfSample = 32;
constexpr std::int64_t kFullUse = 100;

constexpr std::array<std::int32_t, kStreams> kStreamNumbers = {7, 20, 24};

}  // namespace

std::int32_t number_of(StreamId stream) { return kStreamNumbers[static_cast<std::size_t>(stream)]; }

struct Machine::Open {
  Ns begin = 0;
  std::int64_t external_id = -1;
  std::int64_t python_id = -1;
};

struct Machine::Rank {
  Rank(const Options& options, std::uint32_t number)
      : id(number),
        pid(kFirstProcess + number),
        tid(pid),
        random(options.seed * 0x9e3779b97f4a7c15U + number + 1),
        losing(options.seed * 0xd1b54a32d192ed03U + number + 1),
        queue(options.queue_depth, 0),
        writer(options, number) {
    now = options.clock_offset * number + 1'000'000;
  }

  std::uint32_t id;
  std::int64_t pid;
  std::int64_t tid;
  Random random;
  Random losing;  ///< its own numbers, so that lost events do not change the run
  Ns now = 0;
  Ns first = 0;
  Ns slice_left = kTimeSlice;
  std::array<Ns, kStreams> stream_free{};
  std::vector<Ns> queue;  ///< ends of the last launches, a ring
  std::uint64_t launched = 0;
  std::uint32_t correlation = 0;
  std::int64_t external_id = 0;
  std::int64_t python_id = 0;
  std::vector<Open> open;
  std::vector<std::int64_t> python_stack;
  Ns graph_ready = 0;
  std::uint32_t graph_correlation = 0;
  std::uint32_t graph_node = 0;
  std::array<Ns, kInputAhead> taken{};  ///< when the batches the pipeline may be ahead by were taken
  std::uint64_t batches = 0;
  Ns pipeline_free = 0;
  StepTruth step;
  Ns last_end = 0;
  std::int64_t used = 0;  ///< percent of the last step in which its kernels ran
  TraceWriter writer;
};

Machine::Machine(const Options& options) : options_(options), link_(options.seed * 0xa0761d6478bd642fU + 7) {
  if (has(Fault::straggler) && options_.fault_rank < 0)
    options_.fault_rank = static_cast<std::int32_t>(options_.ranks) - 1;
  for (std::uint32_t r = 0; r < options.ranks; ++r) ranks_.push_back(std::make_unique<Rank>(options, r));
}

Machine::~Machine() = default;

Status Machine::open(const std::vector<std::string>& paths, bool replace) {
  assert(paths.size() == ranks_.size());
  for (std::size_t i = 0; i < paths.size(); ++i) {
    Rank& r = *ranks_[i];
    if (Status s = r.writer.open(paths[i], replace); !s) return s;
    r.first = r.now;
    const std::int64_t device = r.id;
    r.writer.process(r.pid, "python", "CPU");
    if (!options_.cpu) r.writer.process(device, "python", fmt::format("GPU {}", device));
    r.writer.thread(r.pid, r.pid, fmt::format("thread {} (python)", r.pid));
    if (options_.workload == Workload::train && !options_.cpu)
      r.writer.thread(r.pid, r.pid + 5000, fmt::format("thread {} (pt_autograd_0)", r.pid + 5000));
    for (std::size_t s = 0; s < (options_.cpu ? 0 : kStreams); ++s)
      r.writer.thread(device, kStreamNumbers[s], fmt::format("stream {} ", kStreamNumbers[s]));
    r.writer.instant("Iteration Start: PyTorch Profiler", r.pid, r.pid, r.now);
  }
  return {};
}

Status Machine::close() {
  Status first;
  for (auto& r : ranks_)
    if (Status s = r->writer.close(r->first, std::max(r->now, r->last_end)); !s && first.ok()) first = s;
  return first;
}

bool Machine::has(Fault fault) const { return std::ranges::find(options_.faults, fault) != options_.faults.end(); }

bool Machine::fault_active(std::uint32_t rank) const {
  return std::ranges::any_of(options_.faults, [](Fault fault) { return fault != Fault::none; }) &&
         step_ >= options_.fault_from &&
         (options_.fault_rank < 0 || static_cast<std::uint32_t>(options_.fault_rank) == rank);
}

std::int64_t Machine::lost_share(const Rank& r, Fault fault) const {
  return has(fault) && fault_active(r.id) ? options_.severity_ppm : 0;
}

namespace {
/// A duration when `lost` parts per million of the resource it needs are gone.
Ns slowed(Ns duration, std::int64_t lost) { return lost == 0 ? duration : duration * kMillion / (kMillion - lost); }
}  // namespace

namespace {

bool is_attention(Fn kernel) {
  return kernel == Fn::attention_decode || kernel == Fn::attention_prefill || kernel == Fn::attention_other;
}

}  // namespace

Ns Machine::queue_wait(Rank& r, std::int64_t lost) {
  // Others get the CPU for as long as leaves this thread its share.
  return r.random.spread(kTimeSlice * lost / (kMillion - lost), options_.jitter_ppm * 4);
}

void Machine::run(Rank& r, Ns cost) {
  cost = r.random.spread(cost, options_.jitter_ppm * 2);
  const std::int64_t lost = lost_share(r, Fault::cpu_contention);
  while (cost > 0) {
    const Ns part = std::min(cost, r.slice_left);
    r.now += part;
    r.slice_left -= part;
    cost -= part;
    if (r.slice_left > 0) continue;
    r.slice_left = kTimeSlice;
    if (lost == 0) continue;
    stand_in_run_queue(r, queue_wait(r, lost));
  }
}

void Machine::stand_in_run_queue(Rank& r, Ns wait) {
  const Ns begin = r.now;
  r.step.runq += wait;
  r.now += wait;
  if (options_.sched && profiler_keeps(r))
    r.writer.slice(on_thread(r, Cat::sched, info(Fn::runq).name, begin), Fn::runq);
}

void Machine::block_until(Rank& r, Ns at, Ns StepTruth::*account) {
  if (at <= r.now) return;
  r.step.*account += at - r.now;
  r.now = at + r.random.spread(kWakeUp, options_.jitter_ppm);
  r.slice_left = kTimeSlice;
  if (const std::int64_t lost = lost_share(r, Fault::cpu_contention); lost != 0) {
    // Whoever wakes up finds the CPU taken with the probability of the others' share.
    if (r.random.below(kMillion) < lost) stand_in_run_queue(r, r.random.below(kTimeSlice));
  }
}

SliceEvent Machine::on_thread(const Rank& r, Cat cat, std::string_view name, Ns begin) const {
  SliceEvent e;
  e.cat = cat;
  e.name = name;
  e.pid = r.pid;
  e.tid = r.tid;
  e.begin = begin;
  e.duration = r.now - begin;
  return e;
}

bool Machine::profiler_keeps(Rank& r) {
  if (options_.lost_ppm == 0 || r.losing.below(kMillion) >= options_.lost_ppm) return true;
  r.writer.lose();
  return false;
}

void Machine::host(Ns cost) {
  for (auto& r : ranks_) run(*r, cost);
}

void Machine::schedule(Ns cost) {
  for (auto& r : ranks_) run(*r, slowed(cost, lost_share(*r, Fault::slow_function)));
}

void Machine::begin() {
  for (auto& r : ranks_) r->open.push_back({r->now, ++r->external_id, -1});
}

void Machine::end(Fn fn, std::int64_t sequence, std::int64_t forward_thread) {
  for (auto& r : ranks_) {
    SliceEvent e = on_thread(*r, info(fn).cat, info(fn).name, r->open.back().begin);
    e.external_id = r->open.back().external_id;
    e.sequence = sequence;
    e.forward_thread = forward_thread;
    r->open.pop_back();
    if (profiler_keeps(*r)) r->writer.slice(e, fn);
  }
}

void Machine::end_named(Cat cat, std::string_view name) {
  for (auto& r : ranks_) {
    SliceEvent e = on_thread(*r, cat, name, r->open.back().begin);
    e.external_id = r->open.back().external_id;
    r->open.pop_back();
    if (profiler_keeps(*r)) r->writer.slice(e);
  }
}

void Machine::begin_python() {
  if (!options_.python) return;
  for (auto& r : ranks_) {
    r->open.push_back({r->now, -1, ++r->python_id});
    r->python_stack.push_back(r->python_id);
  }
}

void Machine::end_python(Fn fn) {
  if (!options_.python) return;
  for (auto& r : ranks_) {
    SliceEvent e = on_thread(*r, Cat::python, info(fn).name, r->open.back().begin);
    e.python_id = r->open.back().python_id;
    r->open.pop_back();
    r->python_stack.pop_back();
    e.python_parent = r->python_stack.empty() ? -1 : r->python_stack.back();
    if (profiler_keeps(*r)) r->writer.slice(e, fn);
  }
}

void Machine::api_call(Rank& r, Fn api, Ns cost) {
  const Ns begin = r.now;
  run(r, cost);
  SliceEvent e = on_thread(r, Cat::runtime, info(api).name, begin);
  e.correlation = ++r.correlation;
  e.external_id = r.open.empty() ? -1 : r.open.back().external_id;
  if (profiler_keeps(r)) r.writer.slice(e, api);
}

Ns Machine::submit(Rank& r, Fn api, StreamId stream) {
  const Ns begin = r.now;
  const Ns cost = api == Fn::api_graph ? kGraphLaunchCost : kLaunchCost;
  run(r, cost / 2);
  // A full launch queue blocks the call until the oldest launch is done.
  block_until(r, r.queue[r.launched % r.queue.size()], &StepTruth::blocked);
  const Ns submitted = r.now;
  run(r, cost - cost / 2);
  SliceEvent e = on_thread(r, Cat::runtime, info(api).name, begin);
  e.correlation = ++r.correlation;
  e.external_id = r.open.empty() ? -1 : r.open.back().external_id;
  if (profiler_keeps(r)) r.writer.slice(e, api);
  r.writer.flow(true, "ac2g", e.correlation, r.pid, r.tid, begin);
  const Ns arrives = submitted + r.random.spread(kLaunchLatency, options_.jitter_ppm * 3);
  return std::max(arrives, r.stream_free[static_cast<std::size_t>(stream)] + kStreamGap);
}

Ns Machine::kernel_duration(Rank& r, Fn kernel, Work work) {
  const std::int64_t clock = std::max(lost_share(r, Fault::gpu_clock_drop), lost_share(r, Fault::straggler));
  const Ns computing = slowed(kKernelRamp + work.flops / kKflopsPerNs, clock);
  const Ns memory = slowed(work.bytes / kBytesPerNs, lost_share(r, Fault::gpu_memory));
  Ns duration = std::max(computing, memory);
  if (is_attention(kernel))
    duration =
        slowed(duration, std::max(lost_share(r, Fault::kernel_regression), lost_share(r, Fault::kernel_changed)));
  duration = slowed(duration, lost_share(r, Fault::gpu_shared));
  return r.random.spread(duration, options_.jitter_ppm);
}

void Machine::write_gpu(Rank& r, Fn fn, StreamId stream, Ns begin, Ns duration, SliceEvent e) {
  const auto device = static_cast<std::int32_t>(r.id);
  e.cat = info(fn).cat;
  e.name = info(fn).name;
  e.pid = device;
  e.tid = number_of(stream);
  e.begin = begin;
  e.duration = duration;
  e.device = device;
  e.stream = number_of(stream);
  e.correlation = in_graph_ ? r.graph_correlation : r.correlation;
  e.external_id = r.open.empty() ? -1 : r.open.back().external_id;
  if (in_graph_) e.graph_node = ++r.graph_node;
  if (e.cat == Cat::kernel) {
    if (e.grid[0] == 0) e.grid = {kCollectiveBlocks, 1, 1};
    e.block = {fn == Fn::attention_decode ? 128U : 256U, 1, 1};
    e.registers = 128;
    e.shared_memory = 49'152;
    ++r.step.kernels;
    r.step.busy += duration;
    if (options_.counters && r.step.kernels % kKernelsOfSample == 1) sample(r, begin + duration / 2);
  }
  const Ns end = begin + duration;
  r.stream_free[static_cast<std::size_t>(stream)] = end;
  if (!in_graph_) r.queue[r.launched++ % r.queue.size()] = end;
  r.last_end = std::max(r.last_end, end);
  r.step.device_begin = r.step.device_begin < 0 ? begin : std::min(r.step.device_begin, begin);
  r.step.device_end = std::max(r.step.device_end, end);
  if (profiler_keeps(r)) r.writer.slice(e, fn);
  r.writer.flow(false, "ac2g", e.correlation, e.pid, e.tid, begin);
}

/// What a sampler of the device sees while it works: its clock, and who used it in the step before.
void Machine::sample(Rank& r, Ns at) {
  const std::int64_t lost = std::max(lost_share(r, Fault::gpu_clock_drop), lost_share(r, Fault::straggler));
  const std::int64_t others = lost_share(r, Fault::gpu_shared) * (kFullUse - r.used) / kMillion;
  r.writer.counter(fmt::format("GPU {} clock", r.id), "MHz", kGpuMHz - kGpuMHz * lost / kMillion, r.id, at);
  r.writer.counter(fmt::format("GPU {} usage", r.id), "%", r.used + others, r.id, at);
  r.writer.counter(fmt::format("GPU {} process usage", r.id), "%", r.used, r.id, at);
}

void Machine::launch(Fn kernel, Work work, StreamId stream) {
  for (auto& p : ranks_) {
    Rank& r = *p;
    if (options_.cpu) {
      run(r, std::max(work.flops / kCpuKflopsPerNs, work.bytes / kCpuBytesPerNs));
      continue;
    }
    const Ns begin = in_graph_
                         ? std::max(r.graph_ready, r.stream_free[static_cast<std::size_t>(stream)] + kGraphNodeGap)
                         : submit(r, Fn::api_launch, stream);
    const bool other = is_attention(kernel) && lost_share(r, Fault::kernel_changed) != 0;
    SliceEvent e;
    e.grid = {static_cast<std::uint32_t>(std::clamp<std::int64_t>(
                  std::max(work.flops / kKflopsOfBlock, work.bytes / kBytesOfBlock), 1, kMostBlocks)),
              1, 1};
    write_gpu(r, other ? Fn::attention_other : kernel, stream, begin, kernel_duration(r, kernel, work), e);
  }
}

void Machine::copy(Fn fn, std::int64_t bytes, StreamId stream) {
  for (auto& p : ranks_) {
    Rank& r = *p;
    if (options_.cpu) {
      run(r, 2 * bytes / kCpuBytesPerNs);
      continue;
    }
    const Ns begin = submit(r, Fn::api_memcpy, stream);
    const bool inside = fn == Fn::copy_device;
    const Ns moving = inside ? slowed(2 * bytes / kBytesPerNs, lost_share(r, Fault::gpu_memory))
                             : slowed(bytes / kPcieBytesPerNs, lost_share(r, Fault::pcie_contention));
    SliceEvent e;
    e.bytes = bytes;
    write_gpu(r, fn, stream, begin, r.random.spread(kCopySetup + moving, options_.jitter_ppm), e);
  }
}

void Machine::fill(std::int64_t bytes) {
  for (auto& p : ranks_) {
    Rank& r = *p;
    if (options_.cpu) {
      run(r, bytes / kCpuBytesPerNs);
      continue;
    }
    const Ns begin = submit(r, Fn::api_memset, StreamId::compute);
    const Ns writing = slowed(bytes / kBytesPerNs, lost_share(r, Fault::gpu_memory));
    SliceEvent e;
    e.bytes = bytes;
    write_gpu(r, Fn::fill, StreamId::compute, begin, r.random.spread(kCopySetup + writing, options_.jitter_ppm), e);
  }
}

void Machine::all_reduce(Fn kernel, std::int64_t bytes, StreamId stream) {
  if (ranks_.size() == 1) return;
  // When each rank's stream reaches the collective, on a clock that all share.
  std::vector<Ns> begins;
  Ns last = 0;
  for (auto& p : ranks_) {
    Rank& r = *p;
    const Ns begin = options_.cpu ? r.now
                     : in_graph_
                         ? std::max(r.graph_ready, r.stream_free[static_cast<std::size_t>(stream)] + kGraphNodeGap)
                         : submit(r, Fn::api_launch, stream);
    begins.push_back(begin);
    last = std::max(last, begin - clock_offset(r.id));
  }
  // A ring moves 2 (n - 1) / n of the data over every link; the slowest link sets the pace.
  const auto n = static_cast<std::int64_t>(ranks_.size());
  std::int64_t lost = 0;
  for (auto& r : ranks_) lost = std::max(lost, lost_share(*r, Fault::slow_link));
  const Ns moving = slowed(bytes * 2 * (n - 1) / n / kLinkBytesPerNs, lost);
  const Ns end = last + link_.spread(kCollectiveSetup + moving, options_.jitter_ppm);
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    Rank& r = *ranks_[i];
    if (options_.cpu) {
      block_until(r, end + clock_offset(r.id), &StepTruth::blocked);
      continue;
    }
    SliceEvent e;
    e.elements = bytes / 2;
    e.group_size = static_cast<std::uint32_t>(n);
    write_gpu(r, kernel, stream, begins[i], end + clock_offset(r.id) - begins[i], e);
  }
}

void Machine::wait_event(StreamId waiting, StreamId awaited) {
  if (options_.cpu) return;
  for (auto& p : ranks_) {
    Rank& r = *p;
    api_call(r, Fn::api_record, kApiCost);
    api_call(r, Fn::api_wait, kApiCost);
    Ns& free = r.stream_free[static_cast<std::size_t>(waiting)];
    free = std::max(free, r.stream_free[static_cast<std::size_t>(awaited)]);
  }
}

void Machine::synchronize(StreamId stream) {
  if (options_.cpu) return;
  for (auto& p : ranks_) {
    Rank& r = *p;
    const Ns begin = r.now;
    run(r, kApiCost);
    block_until(r, r.stream_free[static_cast<std::size_t>(stream)], &StepTruth::blocked);
    SliceEvent e = on_thread(r, Cat::runtime, info(Fn::api_sync).name, begin);
    e.correlation = ++r.correlation;
    e.external_id = r.open.empty() ? -1 : r.open.back().external_id;
    if (profiler_keeps(r)) r.writer.slice(e, Fn::api_sync);
  }
}

void Machine::begin_graph() {
  for (auto& p : ranks_) {
    Rank& r = *p;
    r.graph_ready = submit(r, Fn::api_graph, StreamId::compute);
    r.graph_correlation = r.correlation;
    r.graph_node = 0;
  }
  in_graph_ = true;
}

void Machine::end_graph() {
  in_graph_ = false;
  // A graph takes one place in the launch queue.
  for (auto& r : ranks_)
    r->queue[r->launched++ % r->queue.size()] = *std::max_element(r->stream_free.begin(), r->stream_free.end());
}

void Machine::take_input(Ns cost) {
  for (auto& p : ranks_) {
    Rank& r = *p;
    // The pipeline begins a batch when it is free and the batch before the last has been taken.
    const Ns begin = std::max(r.pipeline_free, r.taken[r.batches % kInputAhead]);
    const Ns needs = slowed(r.random.spread(cost, options_.jitter_ppm * 2), lost_share(r, Fault::slow_input));
    r.pipeline_free = begin + needs;
    block_until(r, r.pipeline_free, &StepTruth::input);
    r.taken[r.batches++ % kInputAhead] = r.now;
  }
}

void Machine::on_autograd_thread(bool yes) {
  if (options_.cpu) return;  // without a GPU the calling thread computes gradients itself
  for (auto& r : ranks_) r->tid = yes ? r->pid + 5000 : r->pid;
}

void Machine::forward_backward(bool begin, std::uint64_t sequence) {
  for (auto& r : ranks_) r->writer.flow(begin, "fwdbwd", sequence + 1, r->pid, r->tid, r->open.back().begin);
}

void Machine::begin_step(std::uint64_t step) {
  step_ = step;
  for (auto& p : ranks_) {
    Rank& r = *p;
    if (const Ns period = r.now - r.step.begin; period > 0)
      r.used = std::min<std::int64_t>(kFullUse, r.step.busy * kFullUse / period);
    r.step = {};
    r.step.begin = r.now;
    if (lost_share(r, Fault::gc_pause) != 0 && step % 4 == 3) {
      const Ns begin = r.now;
      run(r, 20'000'000 * options_.severity_ppm / kMillion);
      if (options_.python) {
        SliceEvent e = on_thread(r, Cat::python, info(Fn::py_gc).name, begin);
        e.python_id = ++r.python_id;
        if (profiler_keeps(r)) r.writer.slice(e, Fn::py_gc);
      }
    }
  }
}

const StepTruth& Machine::step(std::uint32_t rank) const { return ranks_[rank]->step; }
Ns Machine::now(std::uint32_t rank) const { return ranks_[rank]->now; }
const TraceWriter& Machine::writer(std::uint32_t rank) const { return ranks_[rank]->writer; }
bool Machine::failed() const {
  return std::ranges::any_of(ranks_, [](const auto& r) { return r->writer.failed(); });
}

}  // namespace culprit::tracegen
