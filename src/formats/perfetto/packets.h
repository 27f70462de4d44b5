// The packets of a Perfetto file one after another, whether they stand there as they are or deflated.
//
// Whatever the bytes claim, memory stays bounded: a packet has at most kMostPacket bytes, and what a file becomes
// counts against its Expansion.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include "core/error.h"
#include "formats/io/expansion.h"
#include "formats/io/input.h"
#include "formats/perfetto/encode.h"
#include "trace/loss.h"

namespace culprit::perfetto {

using Packet = std::span<const std::uint8_t>;

inline constexpr std::size_t kMostPacket = std::size_t{16} << 20;

/// One field of a message. `number` is 0 when the bytes are no field.
struct Field {
  std::uint32_t number = 0;
  Wire wire = Wire::varint;
  std::uint64_t value = 0;  ///< varint, fixed32, fixed64
  Packet bytes;             ///< length-delimited
};

/// Walks the fields of a message.
class Fields {
 public:
  explicit Fields(Packet message) : rest_(message) {}
  /// The next field; false at the end and at damage.
  bool next(Field& field);
  /// The bytes ended where a field ended.
  [[nodiscard]] bool whole() const { return !bad_; }

 private:
  Packet rest_;
  bool bad_ = false;
};

/// Reads a varint at the begin of `bytes` and takes it off. False when it is none.
bool take_varint(Packet& bytes, std::uint64_t& value);

struct PacketCounts {
  std::uint64_t packets = 0;
  std::uint64_t chunks = 0;  ///< deflated packets that hold others
  std::uint64_t bytes = 0;   ///< of packets, inflated
};

/// Calls `take` for every packet that is whole, until the expansion of the file is exceeded. Damage is counted in
/// `losses`. Errors: the file cannot be read, or expands too much.
Result<PacketCounts> for_each_packet(formats::Input& input, formats::Expansion& expansion, Losses& losses,
                                     const std::function<void(Packet)>& take,
                                     const std::function<void(std::uint64_t)>& progress = {});

}  // namespace culprit::perfetto
