// What is in a trace, in numbers: the answer of `culprit info`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/units.h"
#include "model/cycles.h"
#include "model/loss_count.h"
#include "model/table_rows.h"
#include "model/work_units.h"

namespace culprit::model {

/// Number of slices and the sum of their durations.
struct CountAndSum {
  std::uint64_t count = 0;
  Ns sum = 0;  ///< stops at the largest Ns instead of overflowing
};

/// A recording of the same seconds as the trace of a rank.
struct JoinedFile {
  std::string path;
  std::string format;
  std::uint64_t input_bytes = 0;
  std::uint64_t text_bytes = 0;
  std::uint64_t events = 0;
};

struct RankInfo {
  std::string path;
  std::string host;
  std::string backend;
  std::string schema;
  std::int64_t rank = -1;  ///< -1: the file does not say
  std::int64_t world_size = -1;
  std::uint64_t input_bytes = 0;
  std::uint64_t text_bytes = 0;
  std::uint64_t events = 0;
  std::string format{};                                         ///< "" for JSON
  std::vector<std::string> unread_tables{};                     ///< databases: tables that were not read
  std::vector<std::pair<std::string, std::string>> metadata{};  ///< recordings: facts by key, sorted
  std::vector<JoinedFile> recordings{};                         ///< of the same seconds
};

/// One other thread and how much it had to do with this one.
struct PeerInfo {
  std::string name;
  std::int64_t tid = 0;
  std::uint64_t count = 0;
  Ns time = 0;
};

/// What the scheduler did with one thread. Times are sums over the recording.
struct ThreadSchedInfo {
  std::int64_t rank = -1;
  std::int64_t pid = -1;
  std::string process;
  std::int64_t tid = -1;
  std::string thread;
  Ns on_cpu = 0;
  Ns run_queue = 0;  ///< ready to run, no CPU
  Ns blocked = 0;    ///< asleep, uninterruptible sleep and stopped included
  Ns uninterruptible = 0;
  Ns stopped = 0;
  std::uint64_t switches = 0;
  std::uint64_t preemptions = 0;
  std::uint64_t migrations = 0;
  std::uint64_t wakeups = 0;
  std::vector<std::pair<std::string, CountAndSum>> blocked_in;  ///< by reason, longest first; known for long ones only
  std::vector<PeerInfo> woken_by;
  std::vector<PeerInfo> ran_instead;
};

struct DeviceInfo {
  std::int64_t rank = -1;  ///< rank of the file, or its position when the file does not say
  std::int32_t device = -1;
  std::string name;
  std::uint64_t memory_bytes = 0;
  std::uint32_t multiprocessors = 0;
  std::uint64_t streams = 0;  ///< streams that did GPU work
  CountAndSum gpu_work;
  Ns busy_union = 0;  ///< time with at least one kernel, memcpy or memset on this device
};

struct CategoryInfo {
  std::string name;
  std::string slice_class;
  CountAndSum slices;
};

struct CounterInfo {
  std::string name;
  std::uint64_t samples = 0;
  double min = 0;
  double max = 0;
  double mean = 0;     ///< of the samples
  std::string unit{};  ///< empty: the name has to say it
  std::string of{};    ///< process, or empty
};

/// An annotation that repeats and could delimit cycles; digits of its name are shown as N.
struct MarkerInfo {
  std::string pattern;
  CountAndSum slices;
};

/// The cycles of one phase, on all ranks together.
struct PhaseInfo {
  Phase phase = Phase::other;
  std::uint64_t cycles = 0;
  std::uint64_t whole_periods = 0;  ///< cycles that the two periods are of, see whole_periods()
  double mean_period = 0;           ///< ns
  double median_period = 0;         ///< ns
  Ns device_window = 0;             ///< sum over all device windows of all cycles
  Ns device_busy = 0;               ///< part of it with GPU work
};

/// What a step waited for: mean times of the thread that runs it, over the whole cycles, ns.
struct StepTimes {
  std::string thread;
  std::uint64_t cycles = 0;
  double period = 0;
  double on_cpu = 0;
  double run_queue = 0;
  double blocked = 0;
  std::vector<Bystander> beside;  ///< mean CPUs of processes that are not recorded, most first
};

/// How the steps of the run were found, and what they are like.
struct CyclesInfo {
  CycleMethod method = CycleMethod::none;
  std::string anchor;
  double period_confidence = 0;
  double phase_confidence = 0;
  std::string reason;
  std::vector<std::string> notes;
  std::uint64_t count = 0;          ///< numbers of cycles: the same number is the same step on every rank
  std::vector<PhaseInfo> phases;    ///< in order of Phase, those that occur
  std::optional<StepTimes> step{};  ///< where scheduling was recorded
};

struct TraceInfo {
  std::string clock;
  std::int64_t base_ns = 0;
  Ns begin = 0;     ///< of the first slice, relative to base_ns
  Ns duration = 0;  ///< first begin to last end of all slices; of a recording as long as it took
  std::uint64_t slices = 0;
  std::uint64_t instants = 0;
  std::uint64_t processes = 0;
  std::uint64_t threads = 0;
  std::uint64_t streams = 0;
  std::uint64_t async_tracks = 0;
  std::uint64_t names = 0;
  std::vector<RankInfo> ranks;
  std::vector<DeviceInfo> devices;
  std::vector<CategoryInfo> categories;
  std::vector<CounterInfo> counters;
  std::vector<ThreadSchedInfo> sched;  ///< longest on a CPU first
  std::vector<MarkerInfo> markers;
  std::vector<LossCount> losses;
  std::uint64_t flows_host_to_device = 0;
  std::uint64_t flows_async = 0;
  std::uint64_t flows_forward_backward = 0;
  std::uint64_t flows_other = 0;
  std::uint64_t launched = 0;  ///< GPU slices whose launching host call is known
  CountAndSum kernels;
  std::uint64_t unique_kernels = 0;
  CountAndSum memcpy;
  CountAndSum memset;
  Ns busy_union = 0;     ///< the same over all devices and streams together
  std::string top_name;  ///< kernel with the largest sum
  CountAndSum top;
  std::optional<CyclesInfo> cycles;    ///< empty: not looked for
  std::optional<WorkUnits> work;       ///< recordings in which no cycles were found
  std::vector<Table> recorded{};       ///< recordings: system calls, disks, page faults, who woke whom; none is empty
  std::vector<Fact> recorded_facts{};  ///< the same in a line each
};

}  // namespace culprit::model
