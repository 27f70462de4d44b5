#include "formats/perfetto/packets.h"

#include <isa-l.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "formats/perfetto/costs.h"
#include "formats/perfetto/reader.h"
#include "formats/perfetto/trace.pb.h"

namespace culprit::perfetto {

namespace {

constexpr std::uint32_t kCompressed = proto::TracePacket::kCompressedPacketsFieldNumber;
constexpr std::uint64_t kPacketTag = tag(proto::Trace::kPacketFieldNumber, Wire::length);
constexpr std::uint64_t kMostFieldNumber = 0x1fffffff;  ///< of any message
constexpr std::uint64_t kMostPacketField = 2000;        ///< of a TracePacket, with room for years to come
constexpr std::uint64_t kMostUsualField = 130;          ///< of one that a trace begins with
constexpr std::size_t kReadBytes = std::size_t{256} << 10;
constexpr std::size_t kMostInflated = 2 * kMostPacket;
constexpr std::size_t kInflateStep = std::size_t{1} << 20;

enum class Inflated : std::uint8_t { whole, damaged, too_much };

/// Inflates one zlib stream into the memory of `out`, `size` bytes of which are used then: also what came before
/// damage.
Inflated inflate(Packet deflated, std::vector<std::uint8_t>& out, std::size_t& size, formats::Expansion& expansion) {
  inflate_state state;
  isal_inflate_init(&state);
  state.crc_flag = ISAL_ZLIB;
  state.next_in = const_cast<std::uint8_t*>(deflated.data());  // not written to
  state.avail_in = static_cast<std::uint32_t>(deflated.size());
  size = 0;
  for (;;) {
    if (size == kMostInflated) return Inflated::damaged;
    const std::size_t room = std::min(kInflateStep, kMostInflated - size);
    if (out.size() < size + room) out.resize(std::max(2 * size, size + room));
    state.next_out = out.data() + size;
    state.avail_out = static_cast<std::uint32_t>(room);
    const int code = isal_inflate(&state);
    size += room - state.avail_out;
    expansion.spend(room - state.avail_out);
    if (expansion.exceeded()) return Inflated::too_much;
    if (code != ISAL_DECOMP_OK) return Inflated::damaged;
    if (state.block_state == ISAL_BLOCK_FINISH) return Inflated::whole;
    if (state.avail_out != 0) return Inflated::damaged;  // the input ended
  }
}

class PacketReader {
 public:
  PacketReader(formats::Input& input, formats::Expansion& expansion, Losses& losses,
               const std::function<void(Packet)>& take)
      : input_(input), expansion_(expansion), losses_(losses), take_(take) {}

  Result<PacketCounts> run(const std::function<void(std::uint64_t)>& progress) {
    for (;;) {
      Packet rest(buffer_.data() + begin_, end_ - begin_);
      const std::size_t before = rest.size();
      const Step step = top_level(rest);
      if (expansion_.exceeded()) return expansion_.error(input_.path());
      if (step == Step::taken) {
        begin_ += before - rest.size();
        offset_ += before - rest.size();
        continue;
      }
      if (step == Step::damaged) {
        lose(LossReason::event_malformed);
        losses_.add(LossReason::text_after_damage, rest.size());
        return counts_;
      }
      if (Status status = fill(); !status) return status.error();
      if (end_of_file_) break;
      if (progress) progress(input_.consumed_bytes());
    }
    if (skip_ != 0 || begin_ != end_) lose(LossReason::truncated_tail);
    if (!input_.damage().empty()) lose(LossReason::compressed_damage);
    return counts_;
  }

 private:
  enum class Step { taken, more, damaged };

  void lose(LossReason reason) {
    if (losses_[reason] == 0)
      losses_.add(reason, 1, fmt::format("{} byte {}", input_.path(), offset_));
    else
      losses_.add(reason);
  }

  /// Takes one field of the file off `rest`.
  Step top_level(Packet& rest) {
    if (skip_ != 0) {
      const std::size_t n = std::min<std::uint64_t>(skip_, rest.size());
      rest = rest.subspan(n);
      skip_ -= n;
      return skip_ == 0 ? Step::taken : (n == 0 ? Step::more : Step::taken);
    }
    Packet at = rest;
    std::uint64_t key = 0;
    if (!take_varint(at, key)) return at.size() >= 10 ? Step::damaged : Step::more;
    const auto wire = static_cast<Wire>(key & 7U);
    std::uint64_t size = 0;
    if (wire == Wire::varint) {
      if (!take_varint(at, size)) return at.size() >= 10 ? Step::damaged : Step::more;
      rest = at;
      return Step::taken;
    }
    if (wire == Wire::fixed64 || wire == Wire::fixed32) {
      size = wire == Wire::fixed64 ? 8 : 4;
      if (at.size() < size) return Step::more;
      rest = at.subspan(size);
      return Step::taken;
    }
    if (wire != Wire::length || key >> 3 == 0 || key >> 3 > kMostFieldNumber) return Step::damaged;
    if (!take_varint(at, size)) return at.size() >= 10 ? Step::damaged : Step::more;
    if (key != kPacketTag || size > kMostPacket) {
      if (key == kPacketTag) lose(LossReason::event_too_large);
      skip_ = size;
      rest = at;
      return Step::taken;
    }
    if (at.size() < size) return Step::more;
    packet(at.first(size), true);
    rest = at.subspan(size);
    return Step::taken;
  }

  void packet(Packet bytes, bool may_be_deflated) {
    expansion_.spend(kPacketCost);
    Fields fields(bytes);
    Field field;
    Packet deflated;
    bool is_deflated = false;
    while (fields.next(field))
      if (field.number == kCompressed && field.wire == Wire::length) {
        deflated = field.bytes;
        is_deflated = true;
      }
    if (!fields.whole()) return lose(LossReason::event_malformed);
    if (!is_deflated) {
      ++counts_.packets;
      counts_.bytes += bytes.size();
      return take_(bytes);
    }
    if (!may_be_deflated) return lose(LossReason::event_malformed);
    std::size_t size = 0;
    const Inflated result = inflate(deflated, inflated_, size, expansion_);
    if (result == Inflated::too_much) return;
    if (result == Inflated::damaged) lose(LossReason::compressed_damage);
    ++counts_.chunks;
    inflated_packets(Packet(inflated_).first(size), result == Inflated::whole);
  }

  /// The packets inside; of a damaged stream those before the damage.
  void inflated_packets(Packet rest, bool whole) {
    while (!rest.empty() && !expansion_.exceeded()) {
      const std::size_t left = rest.size();
      std::uint64_t key = 0;
      std::uint64_t size = 0;
      if (!take_varint(rest, key) || key != kPacketTag || !take_varint(rest, size) || size > rest.size()) {
        if (!whole) return;
        lose(LossReason::event_malformed);
        return losses_.add(LossReason::text_after_damage, left);
      }
      packet(rest.first(size), false);
      rest = rest.subspan(size);
    }
  }

  Status fill() {
    if (begin_ != 0) {
      std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
      end_ -= begin_;
      begin_ = 0;
    }
    if (buffer_.size() < end_ + kReadBytes) buffer_.resize(std::max(end_ + kReadBytes, 2 * end_));
    const auto got = input_.read(reinterpret_cast<char*>(buffer_.data()) + end_, buffer_.size() - end_);
    if (!got) return got.error();
    end_ += *got;
    expansion_.spend(*got);
    expansion_.allow(input_.consumed_bytes());
    end_of_file_ = *got == 0;
    return {};
  }

  formats::Input& input_;
  formats::Expansion& expansion_;
  Losses& losses_;
  const std::function<void(Packet)>& take_;
  std::vector<std::uint8_t> buffer_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::uint64_t offset_ = 0;  ///< of begin_ in the text
  std::uint64_t skip_ = 0;    ///< bytes of a field that is not kept
  bool end_of_file_ = false;
  std::vector<std::uint8_t> inflated_;
  PacketCounts counts_;
};

}  // namespace

bool take_varint(Packet& bytes, std::uint64_t& value) {
  value = 0;
  const std::size_t most = std::min<std::size_t>(bytes.size(), 10);
  for (std::size_t i = 0; i < most; ++i) {
    value |= static_cast<std::uint64_t>(bytes[i] & 0x7fU) << (7 * i);
    if (bytes[i] < 0x80) {
      bytes = bytes.subspan(i + 1);
      return true;
    }
  }
  return false;
}

bool Fields::next(Field& field) {
  if (rest_.empty() || bad_) return false;
  std::uint64_t key = 0;
  bad_ = true;
  if (!take_varint(rest_, key) || key >> 3 == 0 || key >> 3 > kMostFieldNumber) return false;
  field.number = static_cast<std::uint32_t>(key >> 3);
  field.wire = static_cast<Wire>(key & 7U);
  field.bytes = {};
  std::uint64_t size = 0;
  switch (field.wire) {
    case Wire::varint:
      if (!take_varint(rest_, field.value)) return false;
      break;
    case Wire::fixed64:
    case Wire::fixed32:
      size = field.wire == Wire::fixed64 ? 8 : 4;
      if (rest_.size() < size) return false;
      field.value = 0;
      static_assert(std::endian::native == std::endian::little);
      std::memcpy(&field.value, rest_.data(), size);
      rest_ = rest_.subspan(size);
      break;
    case Wire::length:
      if (!take_varint(rest_, size) || size > rest_.size()) return false;
      field.bytes = rest_.first(size);
      rest_ = rest_.subspan(size);
      break;
    default:
      return false;
  }
  bad_ = false;
  return true;
}

Result<PacketCounts> for_each_packet(formats::Input& input, formats::Expansion& expansion, Losses& losses,
                                     const std::function<void(Packet)>& take,
                                     const std::function<void(std::uint64_t)>& progress) {
  return PacketReader(input, expansion, losses, take).run(progress);
}

bool looks_like(std::string_view start) {
  Packet rest(reinterpret_cast<const std::uint8_t*>(start.data()), start.size());
  // Text that begins with a line break is no trace, whatever its next characters would mean.
  const auto head = start.substr(0, 4096);
  const bool text = std::ranges::all_of(head, [](char c) {
    const auto u = static_cast<unsigned char>(c);
    return u == '\t' || u == '\n' || u == '\r' || u >= 0x20;
  });
  if (text) return false;
  int packets = 0;
  bool known = false;
  while (!rest.empty() && packets < 8) {
    std::uint64_t key = 0;
    std::uint64_t size = 0;
    if (!take_varint(rest, key) || key != kPacketTag) return false;
    if (!take_varint(rest, size)) break;
    if (size > kMostPacket) return false;
    const bool cut = size > rest.size();
    Fields fields(cut ? rest : rest.first(size));
    Field field;
    while (fields.next(field)) {
      if (field.number > kMostPacketField) return false;
      known = true;
    }
    if (cut) {
      // The last field of what can be seen may be cut, but its number must be one of a packet.
      std::uint64_t first = 0;
      Packet at = rest;
      if (!take_varint(at, first) || first >> 3 == 0 || first >> 3 > kMostPacketField) return false;
      const auto wire = static_cast<Wire>(first & 7U);
      if (wire != Wire::varint && wire != Wire::fixed64 && wire != Wire::length && wire != Wire::fixed32) return false;
      return known || packets > 0 || first >> 3 <= kMostUsualField;
    }
    if (!fields.whole()) return false;
    rest = rest.subspan(size);
    ++packets;
  }
  return known;
}

}  // namespace culprit::perfetto
