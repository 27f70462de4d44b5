#include "formats/nsys_sqlite/tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "core/hash.h"
#include "core/utf8.h"

namespace culprit::formats::nsys_sqlite {

namespace {

using Names = std::span<const std::string_view>;

template <class T>
T clamped(std::int64_t value) {
  return static_cast<T>(std::clamp<std::int64_t>(value, static_cast<std::int64_t>(std::numeric_limits<T>::min()),
                                                 static_cast<std::int64_t>(std::numeric_limits<T>::max())));
}

/// A count of a row, at most `most`; a negative or larger one is counted as a loss and left out.
template <class T>
T count_of(const Row& row, int column, Session& session, std::string_view table,
           std::int64_t most = std::numeric_limits<std::int64_t>::max()) {
  const std::int64_t number = row.integer(column, 0);
  if (number >= 0 && number <= most && std::in_range<T>(number)) return static_cast<T>(number);
  session.lose(LossReason::argument_invalid, table);
  return 0;
}

// ---- names and metadata

Status strings(Database& db, Session& session, const std::string& table) {
  constexpr std::array<std::string_view, 2> kNames = {"id", "value"};
  return db.each(table, kNames, [&](const Row& row) {
    if (const auto id = row.integer(0)) session.learn_string(*id, row.text(1));
  });
}

Status processes(Database& db, Session& session, const std::string& table) {
  constexpr std::array<std::string_view, 2> kNames = {"globalPid", "name"};
  return db.each(table, kNames, [&](const Row& row) {
    if (const auto id = row.integer(0)) session.learn_process_name(*id, row.text(1));
  });
}

Status thread_names(Database& db, Session& session, const std::string& table) {
  constexpr std::array<std::string_view, 2> kNames = {"globalTid", "nameId"};
  return db.each(table, kNames, [&](const Row& row) {
    if (const auto id = row.integer(0); id && row.integer(1)) session.learn_thread_name(*id, row.integer(1, 0));
  });
}

Device& device_of(Trace& trace, std::int32_t id) {
  const auto it = std::ranges::find(trace.devices, id, &Device::id);
  if (it != trace.devices.end()) return *it;
  trace.devices.push_back({});
  trace.devices.back().id = id;
  return trace.devices.back();
}

constexpr std::int64_t kMostDevices = 4096;

Status gpus(Database& db, Session& session, const std::string& table) {
  constexpr std::array<std::string_view, 7> kNames = {"id",           "name",         "totalMemory",   "smCount",
                                                      "computeMajor", "computeMinor", "threadsPerWarp"};
  return db.each(table, kNames, [&](const Row& row) {
    const std::int64_t id = row.integer(0, -1);
    if (id < 0 || id >= kMostDevices) return;
    Device& device = device_of(session.builder().trace(), static_cast<std::int32_t>(id));
    device.name = repair_utf8(row.text(1));
    device.memory_bytes = count_of<std::uint64_t>(row, 2, session, table);
    device.multiprocessors = count_of<std::uint32_t>(row, 3, session, table);
    if (row.integer(4)) device.compute_capability = fmt::format("{}.{}", row.integer(4, 0), row.integer(5, 0));
    device.warp_size = count_of<std::uint32_t>(row, 6, session, table);
  });
}

Status cuda_devices(Database& db, Session& session, const std::string& table) {
  constexpr std::array<std::string_view, 2> kNames = {"cudaId", "numMultiprocessors"};
  return db.each(table, kNames, [&](const Row& row) {
    const std::int64_t id = row.integer(0, -1);
    if (id < 0 || id >= kMostDevices) return;
    Device& device = device_of(session.builder().trace(), static_cast<std::int32_t>(id));
    if (device.multiprocessors == 0) device.multiprocessors = count_of<std::uint32_t>(row, 1, session, table);
  });
}

Status start_time(Database& db, Session& session, const std::string& table) {
  constexpr std::array<std::string_view, 1> kNames = {"utcEpochNs"};
  return db.each(table, kNames, [&](const Row& row) {
    Rank& rank = session.builder().rank();
    const std::int64_t base = row.integer(0, 0);
    if (rank.has_base || base <= 0 || base > kMaxTime) return;
    rank.has_base = true;
    rank.base_ns = base;
  });
}

Status export_info(Database& db, Session& session, const std::string& table) {
  constexpr std::array<std::string_view, 2> kNames = {"name", "value"};
  return db.each(table, kNames, [&](const Row& row) {
    if (row.text(0) == "EXPORT_SCHEMA_VERSION") session.builder().rank().schema = repair_utf8(row.text(1));
  });
}

Status system_env(Database& db, Session& session, const std::string& table) {
  constexpr std::array<std::string_view, 2> kNames = {"name", "value"};
  return db.each(table, kNames, [&](const Row& row) {
    if (row.text(0) == "Hostname") session.builder().rank().host = repair_utf8(row.text(1));
  });
}

// ---- GPU work

/// Columns that all GPU activities share, always asked for first.
enum Activity : int { kBegin, kEnd, kDevice, kContext, kStream, kCorrelation, kProcess, kOwn };
constexpr std::array<std::string_view, kOwn> kActivity = {"start",    "end",           "deviceId", "contextId",
                                                          "streamId", "correlationId", "globalPid"};

template <std::size_t N>
std::array<std::string_view, kOwn + N> activity_columns(const std::array<std::string_view, N>& own) {
  std::array<std::string_view, kOwn + N> all{};
  std::ranges::copy(kActivity, all.begin());
  std::ranges::copy(own, all.begin() + kOwn);
  return all;
}

/// The shared part of an activity. False when it cannot be kept.
bool activity(const Row& row, Session& session, std::string_view table, Slice& slice, GpuSlice& gpu) {
  if (!session.span(row.integer(kBegin), row.integer(kEnd), table, slice)) return false;
  const std::int64_t process = row.integer(kProcess, 0);
  gpu.device = clamped<std::int16_t>(row.integer(kDevice, -1));
  gpu.context = clamped<std::uint16_t>(row.integer(kContext, 0));
  gpu.stream = clamped<std::int32_t>(row.integer(kStream, -1));
  slice.track = session.stream(process, gpu.device, row.integer(kContext, 0), row.integer(kStream, -1));
  slice.correlation = session.correlation(process, row.integer(kCorrelation, 0));
  return true;
}

void graph_node(const Row& row, int column, Session& session, Slice& slice) {
  const auto node = row.integer(column);
  if (!node || *node == 0) return;
  SliceExtra extra;
  // The upper half numbers the graph, the lower the node in it.
  extra.graph_node = static_cast<std::uint32_t>(static_cast<std::uint64_t>(*node) & 0xffffffffU);
  slice.extra = session.builder().add(extra);
}

Status kernels(Database& db, Session& session, const std::string& table) {
  constexpr std::array<std::string_view, 13> kNames = {"demangledName",
                                                       "shortName",
                                                       "registersPerThread",
                                                       "gridX",
                                                       "gridY",
                                                       "gridZ",
                                                       "blockX",
                                                       "blockY",
                                                       "blockZ",
                                                       "staticSharedMemory",
                                                       "dynamicSharedMemory",
                                                       "graphNodeId",
                                                       "mangledName"};
  const CategoryId category = session.builder().category("kernel");
  return db.each(table, activity_columns(kNames), [&](const Row& row) {
    Slice slice;
    GpuSlice gpu;
    if (!activity(row, session, table, slice, gpu)) return;
    const auto name = row.integer(kOwn).has_value() ? row.integer(kOwn)
                      : row.integer(kOwn + 1)       ? row.integer(kOwn + 1)
                                                    : row.integer(kOwn + 12);
    slice.name = session.string(name.value_or(-1));
    slice.category = category;
    gpu.registers = count_of<std::uint16_t>(row, kOwn + 2, session, table);
    for (int i = 0; i < 3; ++i) {
      gpu.grid[i] = count_of<std::uint32_t>(row, kOwn + 3 + i, session, table);
      gpu.block[i] = count_of<std::uint16_t>(row, kOwn + 6 + i, session, table);
    }
    const auto shared = [&](int column) { return count_of<std::uint32_t>(row, column, session, table, 1 << 30); };
    gpu.shared_memory = shared(kOwn + 9) + shared(kOwn + 10);
    graph_node(row, kOwn + 11, session, slice);
    session.builder().add(slice, gpu);
  });
}

std::string_view memory_kind(std::int64_t kind) {
  constexpr std::array<std::string_view, 7> kKinds = {"Pageable", "Pinned",        "Device",        "Array",
                                                      "Managed",  "Device Static", "Managed Static"};
  return kind >= 0 && kind < static_cast<std::int64_t>(kKinds.size()) ? kKinds[static_cast<std::size_t>(kind)]
                                                                      : "Unknown";
}

Status memcpys(Database& db, Session& session, const std::string& table) {
  constexpr std::array<std::string_view, 5> kNames = {"bytes", "copyKind", "srcKind", "dstKind", "graphNodeId"};
  constexpr std::array<std::string_view, 14> kCopies = {"Unknown", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA", "AtoD",
                                                        "DtoA",    "DtoD", "HtoH", "PtoP", "HtoD", "DtoH", "DtoD"};
  const CategoryId category = session.builder().category("gpu_memcpy");
  return db.each(table, activity_columns(kNames), [&](const Row& row) {
    Slice slice;
    GpuSlice gpu;
    if (!activity(row, session, table, slice, gpu)) return;
    const auto kind = static_cast<std::size_t>(std::clamp<std::int64_t>(row.integer(kOwn + 1, 0), 0, 14) % 14);
    std::string name = fmt::format("Memcpy {}", kCopies[kind]);
    if (row.integer(kOwn + 2) && row.integer(kOwn + 3))
      name +=
          fmt::format(" ({} -> {})", memory_kind(row.integer(kOwn + 2, -1)), memory_kind(row.integer(kOwn + 3, -1)));
    slice.name = session.builder().intern(name);
    slice.category = category;
    gpu.bytes = count_of<std::uint64_t>(row, kOwn, session, table);
    graph_node(row, kOwn + 4, session, slice);
    session.builder().add(slice, gpu);
  });
}

Status memsets(Database& db, Session& session, const std::string& table) {
  constexpr std::array<std::string_view, 3> kNames = {"bytes", "memKind", "graphNodeId"};
  const CategoryId category = session.builder().category("gpu_memset");
  return db.each(table, activity_columns(kNames), [&](const Row& row) {
    Slice slice;
    GpuSlice gpu;
    if (!activity(row, session, table, slice, gpu)) return;
    slice.name = session.builder().intern(fmt::format("Memset ({})", memory_kind(row.integer(kOwn + 1, -1))));
    slice.category = category;
    gpu.bytes = count_of<std::uint64_t>(row, kOwn, session, table);
    graph_node(row, kOwn + 2, session, slice);
    session.builder().add(slice, gpu);
  });
}

/// Whole graph launches, recorded instead of their nodes.
Status graph_launches(Database& db, Session& session, const std::string& table) {
  constexpr std::array<std::string_view, 1> kNames = {"graphId"};
  const CategoryId category = session.builder().category("cuda_graph_launch");
  return db.each(table, activity_columns(kNames), [&](const Row& row) {
    Slice slice;
    GpuSlice gpu;
    if (!activity(row, session, table, slice, gpu)) return;
    slice.name = session.builder().intern(fmt::format("CUDA graph {}", row.integer(kOwn, 0)));
    slice.category = category;
    session.builder().add(slice, gpu);
  });
}

/// No slices: they say what streams wait for.
Status event_records(Database& db, Session& session, const std::string& table) {
  constexpr std::array<std::string_view, 5> kNames = {"deviceId", "streamId", "correlationId", "globalPid",
                                                      "eventSyncId"};
  constexpr std::int64_t kNoSync = 0xffffffff;
  return db.each(table, kNames, [&](const Row& row) {
    const std::int64_t id = row.integer(4, 0);
    const std::int64_t process = row.integer(3, 0);
    const std::uint32_t call = session.correlation(process, row.integer(2, 0));
    if (id <= 0 || id == kNoSync || call == 0) return;
    session.learn_event(process, id,
                        {call, clamped<std::int32_t>(row.integer(0, -1)), clamped<std::int32_t>(row.integer(1, -1))});
  });
}

/// Behind event_records().
Status synchronisations(Database& db, Session& session, const std::string& table) {
  constexpr std::array<std::string_view, 2> kNames = {"syncType", "eventSyncId"};
  constexpr std::int64_t kStreamWaits = 2;
  constexpr std::array<std::string_view, 5> kTypes = {"Sync", "Event Sync", "Stream Wait Event", "Stream Sync",
                                                      "Context Sync"};
  const CategoryId category = session.builder().category("cuda_sync");
  return db.each(table, activity_columns(kNames), [&](const Row& row) {
    Slice slice;
    GpuSlice gpu;
    if (!activity(row, session, table, slice, gpu)) return;
    const std::int64_t type = row.integer(kOwn, 0);
    slice.name = session.builder().intern(kTypes[type > 0 && type < 5 ? static_cast<std::size_t>(type) : 0]);
    slice.category = category;
    const SliceIndex index = session.builder().add(slice);
    if (type != kStreamWaits) return;
    if (const EventRecord* event = session.event(row.integer(kProcess, 0), row.integer(kOwn + 1, 0)))
      session.builder().trace().stream_waits.push_back(
          {index, event->correlation, gpu.device, gpu.stream, event->device, event->stream});
  });
}

// ---- the host

/// "cudaLaunchKernel_v7000" is the call cudaLaunchKernel; the number is the version of its entry point.
std::string_view without_version(std::string_view name) {
  const std::size_t at = name.rfind("_v");
  if (at == std::string_view::npos || name.size() - at < 5) return name;
  const bool digits = name.find_first_not_of("0123456789", at + 2) == std::string_view::npos;
  return digits ? name.substr(0, at) : name;
}

Status host_calls(Database& db, Session& session, const std::string& table, std::string_view category_name) {
  constexpr std::array<std::string_view, 6> kNames = {"start",  "end",           "globalTid",
                                                      "nameId", "correlationId", "eventClass"};
  constexpr std::int64_t kDriverClass = 1;
  TraceBuilder& builder = session.builder();
  const CategoryId category = builder.category(category_name);
  const bool api = category_name == "cuda_runtime";
  const CategoryId driver = api ? builder.category("cuda_driver") : category;
  return db.each(table, kNames, [&](const Row& row) {
    Slice slice;
    if (!session.span(row.integer(0), row.integer(1), table, slice)) return;
    const std::int64_t thread = row.integer(2, 0);
    slice.track = session.thread(thread);
    slice.name = session.string(row.integer(3, -1));
    slice.category = category;
    if (api) {
      slice.name = builder.intern(without_version(builder.trace().strings[slice.name]));
      if (row.integer(5, 0) == kDriverClass) slice.category = driver;
      slice.correlation = session.correlation(thread, row.integer(4, 0));
    }
    builder.add(slice);
  });
}

template <const char* Category>
Status calls(Database& db, Session& session, const std::string& table) {
  return host_calls(db, session, table, Category);
}

constexpr char kRuntime[] = "cuda_runtime";
constexpr char kOsRuntime[] = "os_runtime";
constexpr char kSyscall[] = "syscall";
constexpr char kOverhead[] = "profiler_overhead";
constexpr char kGraph[] = "cuda_graph";
constexpr char kLibrary[] = "library";

Status nvtx(Database& db, Session& session, const std::string& table) {
  constexpr std::array<std::string_view, 6> kNames = {"start", "end", "eventType", "text", "textId", "globalTid"};
  // Types of NVTX events; "NVTXT" imports have numbers of their own.
  constexpr std::int64_t kMark = 34, kPushPop = 59, kStartEnd = 60, kTextMark = 65, kTextPushPop = 70,
                         kTextStartEnd = 71;
  TraceBuilder& builder = session.builder();
  const CategoryId category = builder.category("nvtx");
  return db.each(table, kNames, [&](const Row& row) {
    const std::int64_t type = row.integer(2, 0);
    const bool mark = type == kMark || type == kTextMark;
    const bool nested = type == kPushPop || type == kTextPushPop;
    const bool free = type == kStartEnd || type == kTextStartEnd;
    if (!mark && !nested && !free) return;  // categories, domains and names: no time of their own
    StringId name = 0;
    if (!row.null(3))
      name = builder.intern(repair_utf8(row.text(3)));
    else if (row.integer(4))
      name = session.string(row.integer(4, 0));
    else
      name = builder.intern("(no name)");
    const std::int64_t thread = row.integer(5, 0);
    const TrackId track = free ? session.thread(thread, "NVTX ranges") : session.thread(thread);
    if (mark) {
      if (session.moment(row.integer(0), table)) builder.add(Instant{row.integer(0, 0), name, track});
      return;
    }
    if (row.null(1) && session.moment(row.integer(0), table)) {
      OpenEvent open;
      open.at = row.integer(0, 0);
      open.name = name;
      open.track = track;
      open.category = category;
      builder.add(open);
      return;
    }
    Slice slice;
    if (row.null(1) || !session.span(row.integer(0), row.integer(1), table, slice)) return;
    slice.track = track;
    slice.name = name;
    slice.category = category;
    builder.add(slice);
  });
}

Status scheduling(Database& db, Session& session, const std::string& table) {
  constexpr std::array<std::string_view, 3> kNames = {"start", "isSchedIn", "globalTid"};
  TraceBuilder& builder = session.builder();
  const CategoryId category = builder.category("sched");
  const StringId name = builder.intern("oncpu");
  tsl::hopscotch_map<std::int64_t, TrackId, Hash> lanes;
  return db.each(table, kNames, [&](const Row& row) {
    if (!session.moment(row.integer(0), table)) return;
    const std::int64_t thread = row.integer(2, 0);
    auto lane = lanes.find(thread);
    if (lane == lanes.end()) lane = lanes.emplace(thread, session.thread(thread, "scheduling")).first;
    OpenEvent event;
    event.at = row.integer(0, 0);
    event.name = name;
    event.track = lane->second;
    event.category = category;
    event.phase = row.integer(1, 0) != 0 ? 'B' : 'E';
    builder.add(event);
  });
}

// ---- GPU metrics

/// Series by (type, metric): the type's lowest byte is the device.
Status gpu_metrics(Database& db, Session& session, const std::string& table) {
  TraceBuilder& builder = session.builder();
  tsl::hopscotch_map<std::int64_t, StringId, Hash> names;
  std::array<ProcessId, 256> devices{};
  devices.fill(kNone);
  constexpr std::int64_t kMetricBits = 16;
  const auto key = [](std::int64_t type, std::int64_t metric) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(type) << kMetricBits) ^ metric;
  };
  std::vector<std::string> ignored;
  auto tables = db.tables(ignored);
  if (!tables) return tables.error();
  if (std::ranges::find(*tables, "TARGET_INFO_GPU_METRICS") != tables->end()) {
    constexpr std::array<std::string_view, 3> kTitles = {"typeId", "metricId", "metricName"};
    Status status = db.each("TARGET_INFO_GPU_METRICS", kTitles, [&](const Row& row) {
      names[key(row.integer(0, 0), row.integer(1, 0))] = builder.intern(repair_utf8(row.text(2)));
    });
    if (!status) return status;
  }
  constexpr std::array<std::string_view, 4> kNames = {"timestamp", "typeId", "metricId", "value"};
  return db.each(table, kNames, [&](const Row& row) {
    if (!session.moment(row.integer(0), table)) return;
    const auto value = row.number(3);
    if (!value || !std::isfinite(*value)) return session.lose(LossReason::counter_value_invalid, table);
    const std::int64_t type = row.integer(1, 0);
    const std::int64_t metric = row.integer(2, 0);
    auto name = names.find(key(type, metric));
    if (name == names.end())
      name = names.emplace(key(type, metric), builder.intern(fmt::format("GPU metric {}", metric))).first;
    ProcessId& device = devices[static_cast<std::size_t>(type & 0xff)];
    if (device == kNone) device = builder.process(-1, builder.intern(fmt::format("GPU {}", type & 0xff)));
    builder.add_counter(name->second, device, kNone, {row.integer(0, 0), *value});
  });
}

/// Read together with another table.
Status with_other(Database&, Session&, const std::string&) { return {}; }

constexpr auto kReaders = std::to_array<TableReader>({
    {"StringIds", strings},
    {"PROCESSES", processes},
    {"ThreadNames", thread_names},
    {"META_DATA_EXPORT", export_info},
    {"TARGET_INFO_SESSION_START_TIME", start_time},
    {"TARGET_INFO_SYSTEM_ENV", system_env},
    {"TARGET_INFO_GPU", gpus},
    {"TARGET_INFO_CUDA_DEVICE", cuda_devices},
    {"TARGET_INFO_GPU_METRICS", with_other},
    {"CUPTI_ACTIVITY_KIND_RUNTIME", calls<kRuntime>},
    {"CUPTI_ACTIVITY_KIND_KERNEL", kernels},
    {"CUPTI_ACTIVITY_KIND_MEMCPY", memcpys},
    {"CUPTI_ACTIVITY_KIND_MEMSET", memsets},
    {"CUPTI_ACTIVITY_KIND_GRAPH_TRACE", graph_launches},
    {"CUPTI_ACTIVITY_KIND_CUDA_EVENT", event_records},
    {"CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", synchronisations},
    {"CUDA_GRAPH_EVENTS", calls<kGraph>},
    {"CUDA_GRAPH_NODE_EVENTS", calls<kGraph>},
    {"NVTX_EVENTS", nvtx},
    {"OSRT_API", calls<kOsRuntime>},
    {"SYSCALL", calls<kSyscall>},
    {"SCHED_EVENTS", scheduling},
    {"GPU_METRICS", gpu_metrics},
    {"PROFILER_OVERHEAD", calls<kOverhead>},
    {"CUPTI_ACTIVITY_KIND_OVERHEAD", calls<kOverhead>},
    {"CUBLAS_EVENTS", calls<kLibrary>},
    {"CUDNN_EVENTS", calls<kLibrary>},
});

}  // namespace

std::span<const TableReader> table_readers() { return kReaders; }

}  // namespace culprit::formats::nsys_sqlite
