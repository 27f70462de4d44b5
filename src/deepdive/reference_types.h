// The classes of functions and counters that the reference tool distinguishes, and which counters it attaches to which
// function. Only its own tables (`--compat deepdive`) are made with them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "trace/trace.h"

namespace culprit::deepdive {

enum class ReferenceType : std::uint8_t {
  unknown,
  gpu_compute,
  gpu_comm,
  gpu_memcpy_h2d,
  gpu_memcpy_d2h,
  gpu_memcpy_d2d,
  cpu_os_syscall_mem,
  cpu_sync,
  disk_read_and_write,
  oncpu,
  runq,
};
std::string_view to_string(ReferenceType type);

/// The type of a slice by the first rule that applies: class and name of its category, its own name, its thread's name.
ReferenceType reference_type(SliceClass slice_class, std::string_view category, std::string_view name,
                             std::string_view thread);

/// Counters attached to functions of a type, in the reference's order.
std::span<const std::string_view> counters_of(ReferenceType type);

/// The known counter that `name` begins with (the longest), or an empty text.
std::string_view base_counter(std::string_view name);

/// What raw samples of a known counter are divided by.
double normaliser(std::string_view base, std::int64_t cores);

/// The reference's short names of well-known kernels; any other name unchanged.
std::string reference_short_name(std::string_view name);

}  // namespace culprit::deepdive
