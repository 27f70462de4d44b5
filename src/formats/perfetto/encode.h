// Protobuf's wire format, written by hand where a message object per event would cost more than the event: what is
// encoded millions of times goes straight into the buffer of its chunk.
#pragma once

#include <google/protobuf/io/coded_stream.h>

#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace culprit::perfetto {

using Bytes = std::vector<std::uint8_t>;

/// Longest encoding of a number.
inline constexpr std::size_t kMaxVarint = 10;

enum class Wire : std::uint8_t { varint = 0, fixed64 = 1, length = 2, fixed32 = 5 };
constexpr std::uint32_t tag(std::uint32_t field, Wire wire) { return field << 3 | static_cast<std::uint32_t>(wire); }

inline std::uint8_t* put_raw(std::uint8_t* at, std::uint64_t value) {
  return google::protobuf::io::CodedOutputStream::WriteVarint64ToArray(value, at);
}
inline std::uint8_t* put(std::uint8_t* at, std::uint32_t field, std::uint64_t value) {
  return put_raw(put_raw(at, tag(field, Wire::varint)), value);
}
/// int32 and int64: negative numbers take ten bytes.
inline std::uint8_t* put_signed(std::uint8_t* at, std::uint32_t field, std::int64_t value) {
  return put(at, field, static_cast<std::uint64_t>(value));
}
inline std::uint8_t* put_fixed64(std::uint8_t* at, std::uint32_t field, std::uint64_t value) {
  static_assert(std::endian::native == std::endian::little);
  at = put_raw(at, tag(field, Wire::fixed64));
  std::memcpy(at, &value, sizeof value);
  return at + sizeof value;
}
inline std::uint8_t* put_double(std::uint8_t* at, std::uint32_t field, double value) {
  return put_fixed64(at, field, std::bit_cast<std::uint64_t>(value));
}
inline std::uint8_t* put_bytes(std::uint8_t* at, std::uint32_t field, const void* data, std::size_t size) {
  at = put_raw(put_raw(at, tag(field, Wire::length)), size);
  if (size != 0) std::memcpy(at, data, size);
  return at + size;
}
inline std::uint8_t* put_text(std::uint8_t* at, std::uint32_t field, std::string_view text) {
  return put_bytes(at, field, text.data(), text.size());
}

inline void append(Bytes& to, const std::uint8_t* begin, const std::uint8_t* end) { to.insert(to.end(), begin, end); }

}  // namespace culprit::perfetto
