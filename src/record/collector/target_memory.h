// What a target has in its memory. It may change, or not be there: whoever reads it believes nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace culprit::record {

/// Copies `bytes` bytes that a process has at `address`; false when not all of them are there, or may not be read.
bool read_target(std::int64_t pid, std::uint64_t address, void* to, std::size_t bytes);

/// A plain value; false leaves it as it is.
template <class T>
bool read_target(std::int64_t pid, std::uint64_t address, T& to) {
  static_assert(std::is_trivially_copyable_v<T>);
  T value;
  if (!read_target(pid, address, &value, sizeof value)) return false;
  to = value;
  return true;
}

}  // namespace culprit::record
