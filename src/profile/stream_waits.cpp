#include "profile/stream_waits.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <tuple>
#include <utility>

namespace culprit::profile {

namespace {

/// The outermost host calls of certain correlation ids.
class RecordedCalls {
 public:
  explicit RecordedCalls(const Trace& trace) {
    for (const StreamWait& wait : trace.stream_waits) {
      const Slice& record = trace.slices[wait.slice];
      for (const std::uint32_t id : {wait.recorded_by, record.correlation})
        if (id != 0) calls_[{record.rank, id}] = kNone;
    }
    if (calls_.empty()) return;
    for (std::size_t i = 0; i < trace.slices.size(); ++i) {
      const Slice& slice = trace.slices[i];
      if (slice.correlation == 0 || slice.gpu != kNone || !is_host_api(trace.slice_class(slice))) continue;
      const auto call = calls_.find({slice.rank, slice.correlation});
      if (call == calls_.end()) continue;
      if (call->second == kNone || slice.begin < trace.slices[call->second].begin)
        call->second = static_cast<SliceIndex>(i);
    }
  }

  /// kNone: there is none.
  [[nodiscard]] SliceIndex of(std::uint16_t rank, std::uint32_t id) const {
    const auto call = calls_.find({rank, id});
    return call == calls_.end() ? kNone : call->second;
  }

 private:
  std::map<std::pair<std::uint16_t, std::uint32_t>, SliceIndex> calls_;
};

/// What has been put on a stream so far.
struct Queue {
  GpuIndex last = kNone;   ///< of its operations the one that ends last
  GpuIndex other = kNone;  ///< of those on other devices that it waits for
};

/// Puts everything on its stream in the order of the host's calls.
class Replay {
 public:
  explicit Replay(const Trace& trace) : trace_(trace) {
    const RecordedCalls calls(trace);
    add_operations();
    for (std::size_t w = 0; w < trace.stream_waits.size(); ++w) add_wait(static_cast<std::uint32_t>(w), calls);
    for (const auto& [call, recorded] : record_of_call_)
      if (Record& record = records_[recorded]; record.device < 0) {
        const auto device = device_of_.find({process_of(call), record.stream});
        if (device != device_of_.end()) record.device = device->second;
      }
  }

  std::vector<GpuIndex> run() {
    std::vector<GpuIndex> waits_for(trace_.gpu.size(), kNone);
    std::ranges::sort(steps_, {}, [](const Step& step) { return std::tuple(step.at, step.kind, step.row); });
    for (const Step& step : steps_) {
      switch (step.kind) {
        case Kind::record: {
          Record& record = records_[step.row];
          if (record.device >= 0) record.queue = queues_[{record.process, record.device, record.stream}];
          break;
        }
        case Kind::operation: {
          const GpuSlice& gpu = trace_.gpu[step.row];
          Queue& queue = queues_[{process_of(gpu.launcher), gpu.device, gpu.stream}];
          waits_for[step.row] = queue.other;
          queue.last = later(queue.last, step.row);
          break;
        }
        case Kind::wait: {
          const Wait& wait = waits_[step.row];
          const StreamWait& of = trace_.stream_waits[wait.row];
          const Record& record = records_[wait.record];
          Queue& queue = queues_[{record.process, of.device, of.stream}];
          for (const GpuIndex awaited : {record.queue.last, record.queue.other})
            if (awaited != kNone && trace_.gpu[awaited].device != of.device) queue.other = later(queue.other, awaited);
          break;
        }
      }
    }
    return waits_for;
  }

 private:
  /// Of calls that began at one moment, what makes fewer operations wait comes first.
  enum class Kind : std::uint8_t { record, operation, wait };
  struct Step {
    Ns at = 0;
    std::uint32_t row = 0;  ///< of records_, Trace::gpu or waits_
    Kind kind = Kind::operation;
  };
  struct Record {
    ProcessId process = 0;
    std::int32_t device = -1;  ///< kUnclear: several have the stream
    std::int32_t stream = -1;
    Queue queue{};  ///< of the stream, when the event was recorded
  };
  struct Wait {
    std::uint32_t row = 0;     ///< of Trace::stream_waits
    std::uint32_t record = 0;  ///< row of records_
  };
  static constexpr std::int32_t kUnclear = -2;

  [[nodiscard]] ProcessId process_of(SliceIndex call) const { return trace_.tracks[trace_.slices[call].track].process; }

  [[nodiscard]] GpuIndex later(GpuIndex a, GpuIndex b) const {
    if (a == kNone || b == kNone) return a == kNone ? b : a;
    return trace_.slices[trace_.gpu[a].slice].end() < trace_.slices[trace_.gpu[b].slice].end() ? b : a;
  }

  void learn_device(ProcessId process, std::int32_t device, std::int32_t stream) {
    const auto [known, is_new] = device_of_.try_emplace({process, stream}, device);
    if (!is_new && known->second != device) known->second = kUnclear;
  }

  void add_operations() {
    steps_.reserve(trace_.gpu.size());
    for (std::size_t g = 0; g < trace_.gpu.size(); ++g) {
      const GpuSlice& gpu = trace_.gpu[g];
      if (gpu.launcher == kNone) continue;
      steps_.push_back({trace_.slices[gpu.launcher].begin, static_cast<std::uint32_t>(g), Kind::operation});
      learn_device(process_of(gpu.launcher), gpu.device, gpu.stream);
    }
  }

  /// A wait and, once, the call that recorded its event. Without that call nobody knows what the event stands behind.
  void add_wait(std::uint32_t row, const RecordedCalls& calls) {
    const StreamWait& wait = trace_.stream_waits[row];
    const Slice& slice = trace_.slices[wait.slice];
    const SliceIndex recorded_by = calls.of(slice.rank, wait.recorded_by);
    if (recorded_by == kNone) return;
    const ProcessId process = process_of(recorded_by);
    const auto [record, is_new] = record_of_call_.try_emplace(recorded_by, static_cast<std::uint32_t>(records_.size()));
    if (is_new) {
      records_.push_back({process, wait.event_device, wait.event_stream, {}});
      steps_.push_back({trace_.slices[recorded_by].begin, record->second, Kind::record});
    }
    const SliceIndex call = calls.of(slice.rank, slice.correlation);
    steps_.push_back({trace_.slices[call == kNone ? wait.slice : call].begin, static_cast<std::uint32_t>(waits_.size()),
                      Kind::wait});
    waits_.push_back({row, record->second});
    learn_device(process, wait.device, wait.stream);
  }

  const Trace& trace_;
  std::vector<Step> steps_;
  std::vector<Record> records_;
  std::vector<Wait> waits_;
  std::map<SliceIndex, std::uint32_t> record_of_call_;
  std::map<std::pair<ProcessId, std::int32_t>, std::int32_t> device_of_;  ///< by stream
  std::map<std::tuple<ProcessId, std::int32_t, std::int32_t>, Queue> queues_;
};

}  // namespace

std::vector<GpuIndex> waits_for_devices(const Trace& trace) {
  if (trace.stream_waits.empty()) return {};
  return Replay(trace).run();
}

}  // namespace culprit::profile
