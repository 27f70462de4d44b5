#include "deepdive/reference_types.h"

#include "core/text.h"

#include <algorithm>
#include <array>
#include <utility>

namespace culprit::deepdive {

namespace {

using namespace std::string_view_literals;

constexpr std::array kCompute = {"process_gpu_usage"sv, "gpu_usage"sv,     "gpu_sm_util"sv,      "gpu_sm_occupancy"sv,
                                 "gpu_mem_used"sv,      "gpu_frequency"sv, "gpu_sm_frequency"sv, "gpu_mem_frequency"sv};
constexpr std::array kComm = {"process_gpu_usage"sv, "gpu_usage"sv,        "gpu_sm_util"sv,       "gpu_sm_occupancy"sv,
                              "gpu_pcie_transmit"sv, "gpu_pcie_receive"sv, "gpu_link_transmit"sv, "gpu_link_receive"sv,
                              "net_tx_rate"sv,       "net_rx_rate"sv};
constexpr std::array kHostCopy = {"gpu_pcie_transmit"sv, "gpu_pcie_receive"sv};
constexpr std::array kDeviceCopy = {"gpu_link_transmit"sv, "gpu_link_receive"sv, "net_tx_rate"sv, "net_rx_rate"sv};
constexpr std::array kOncpu = {"process_cpu_usage"sv, "host_cpu_usage"sv, "host_mem_usage"sv, "process_mem_usage"sv,
                               "cpu_frequency"sv,     "cpu_temp"sv,       "cpu_power"sv};
constexpr std::array kRunq = {"process_cpu_usage"sv, "host_cpu_usage"sv, "host_mem_usage"sv, "process_mem_usage"sv};
constexpr std::array kMemory = {"host_mem_usage"sv, "process_mem_usage"sv, "process_mem_rss"sv};
constexpr std::array kDisk = {"disk_usage"sv};

constexpr ReferenceType kTypes[] = {
    ReferenceType::gpu_compute,        ReferenceType::gpu_comm, ReferenceType::gpu_memcpy_h2d,
    ReferenceType::gpu_memcpy_d2d,     ReferenceType::oncpu,    ReferenceType::cpu_os_syscall_mem,
    ReferenceType::disk_read_and_write};

}  // namespace

std::string_view to_string(ReferenceType type) {
  switch (type) {
    case ReferenceType::gpu_compute:
      return "gpu_compute";
    case ReferenceType::gpu_comm:
      return "gpu_comm";
    case ReferenceType::gpu_memcpy_h2d:
      return "gpu_memcpy_h2d";
    case ReferenceType::gpu_memcpy_d2h:
      return "gpu_memcpy_d2h";
    case ReferenceType::gpu_memcpy_d2d:
      return "gpu_memcpy_d2d";
    case ReferenceType::cpu_os_syscall_mem:
      return "cpu_os_syscall_mem";
    case ReferenceType::cpu_sync:
      return "cpu_sync";
    case ReferenceType::disk_read_and_write:
      return "disk_read_and_write";
    case ReferenceType::oncpu:
      return "oncpu";
    case ReferenceType::runq:
      return "runq";
    case ReferenceType::unknown:
      break;
  }
  return "unknown";
}

ReferenceType reference_type(SliceClass slice_class, std::string_view category, std::string_view name,
                             std::string_view thread) {
  using enum ReferenceType;
  if (slice_class == SliceClass::kernel) return contains_ignoring_case(name, "nccl") ? gpu_comm : gpu_compute;
  if (slice_class == SliceClass::memcpy || name.starts_with("Memcpy")) {
    if (contains(name, "HtoD")) return gpu_memcpy_h2d;
    if (contains(name, "DtoH")) return gpu_memcpy_d2h;
    return contains(name, "DtoD") ? gpu_memcpy_d2d : gpu_memcpy_h2d;
  }
  if (slice_class == SliceClass::memset) return gpu_memcpy_h2d;
  if (equals_ignoring_case(name, "mmap") || equals_ignoring_case(name, "mprotect") ||
      equals_ignoring_case(name, "munmap"))
    return cpu_os_syscall_mem;
  if (slice_class == SliceClass::runtime && name == "cudaStreamSynchronize") return cpu_sync;
  if (category == "CAT_APP" && contains(thread, "user probe") && name == "cuStreamSynchronize") return cpu_sync;
  if (category == "CAT_DISK" && (name == "read" || name == "readv" || name == "write")) return disk_read_and_write;
  if (equals_ignoring_case(name.substr(0, 5), "oncpu")) return oncpu;
  return name == "runq" ? runq : unknown;
}

std::span<const std::string_view> counters_of(ReferenceType type) {
  switch (type) {
    case ReferenceType::gpu_compute:
      return kCompute;
    case ReferenceType::gpu_comm:
      return kComm;
    case ReferenceType::gpu_memcpy_h2d:
    case ReferenceType::gpu_memcpy_d2h:
      return kHostCopy;
    case ReferenceType::gpu_memcpy_d2d:
      return kDeviceCopy;
    case ReferenceType::oncpu:
      return kOncpu;
    case ReferenceType::runq:
      return kRunq;
    case ReferenceType::cpu_os_syscall_mem:
      return kMemory;
    case ReferenceType::disk_read_and_write:
      return kDisk;
    case ReferenceType::cpu_sync:
    case ReferenceType::unknown:
      break;
  }
  return {};
}

std::string_view base_counter(std::string_view name) {
  std::string_view best;
  for (const ReferenceType type : kTypes)
    for (const std::string_view counter : counters_of(type))
      if (name.starts_with(counter) && counter.size() > best.size()) best = counter;
  return best;
}

double normaliser(std::string_view base, std::int64_t cores) {
  if (base == "process_cpu_usage") return 100.0 * static_cast<double>(cores);
  const bool percent =
      contains(base, "usage") || contains(base, "rate") || contains(base, "util") || contains(base, "occupancy");
  return percent ? 100.0 : 1.0;
}

std::string reference_short_name(std::string_view name) {
  constexpr std::pair<std::string_view, std::string_view> kPrefixes[] = {
      {"void at::native::elementwise_kernel", "at::native::elementwise_kernel"},
      {"void at::native::unrolled_elementwise_kernel", "at::native::unrolled_elementwise_kernel"},
      {"void at::native::vectorized_elementwise_kernel", "at.native.vectorized_elementwise_kernel"},
      {"void pytorch_flash::flash_fwd_kernel", "pytorch_flash::flash_fwd_kernel"},
      {"ampere_bf16_s16816gemm", "ampere_bf16_gemm"},
      {"triton_", "triton_kernel"}};
  for (const auto& [prefix, simple] : kPrefixes)
    if (name.starts_with(prefix)) return std::string(simple);
  if (!contains(name, "ncclDevKernel")) return std::string(name);
  constexpr std::string_view kKernel = "ncclDevKernel_";
  const auto is_word = [](char c) {
    return (c >= '0' && c <= '9') || (to_lower(c) >= 'a' && to_lower(c) <= 'z') || c == '_';
  };
  for (std::size_t at = name.find(kKernel); at != std::string_view::npos; at = name.find(kKernel, at + 1)) {
    std::size_t end = at + kKernel.size();
    while (end < name.size() && is_word(name[end])) ++end;
    if (end > at + kKernel.size()) return std::string(name.substr(at, end - at));
  }
  return "nccl_kernel";
}

}  // namespace culprit::deepdive
