// The chunk that is being filled: packets of one recording between two writes, which can be decoded without any other.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/string_table.h"
#include "core/units.h"
#include "formats/perfetto/encode.h"
#include "formats/perfetto/writer.h"

namespace google::protobuf {
class MessageLite;
}

namespace culprit::perfetto {

namespace proto {
class InternedData;
}

/// All packets of a recording are of one sequence.
inline constexpr std::uint32_t kSequence = 1;
/// Longer names and texts are cut, with "..." at their end.
inline constexpr std::size_t kMostText = std::size_t{16} << 10;

/// Texts that events name by number. Numbers are never used twice, because the format forbids it even after a reset.
class Interned {
 public:
  /// The number of `text`; `added` tells that the chunk does not hold it yet.
  std::uint64_t number(std::string_view text, bool& added);
  void clear();

 private:
  StringTable texts_;
  std::uint64_t base_ = 0;
};

/// Numbers for the parts of call stacks.
class StackInterner {
 public:
  /// The number of the stack; what the chunk does not hold yet is added to `data`.
  std::uint64_t number(std::span<const CodeFrame> frames, proto::InternedData& data);
  void clear();

 private:
  Interned functions_;
  Interned paths_;
  Interned build_ids_;
  Interned mappings_;
  Interned frames_;
  Interned stacks_;
};

class Chunk {
 public:
  /// Bytes of packets so far, upper bound.
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] std::uint64_t packets() const { return packets_; }
  /// No event since the last clear().
  [[nodiscard]] bool empty() const { return size_ == 0; }

  /// Appends a packet that is already encoded, with its head.
  void add_encoded(std::span<const std::uint8_t> packet);
  /// Appends the TracePacket `message`.
  void add(const google::protobuf::MessageLite& message);

  void event(int type, Ns at, TrackUuid track, std::string_view name, std::string_view category,
             std::span<const Argument> arguments);
  void counter(Ns at, TrackUuid track, double value);
  /// Slices are put in order before they are written: an outer slice before those inside, even when it was handed over
  /// later.
  void slice(TrackUuid track, Ns begin, Ns end, std::string_view name, std::string_view category,
             std::span<const Argument> arguments, std::span<const FlowPoint> flows = {});
  void sched_switch(const SchedSwitch& event, Ns boot_offset);
  void sched_waking(const SchedWaking& event, Ns boot_offset);
  void process_exit(Ns at_boot, std::int32_t tid);
  void stack(const StackTaken& taken, std::span<const CodeFrame> frames);

  /// Everything as packets of a Trace, in the order in which it can be decoded.
  std::span<const std::uint8_t> finish();
  /// Begins anew, keeping the memory.
  void clear();

 private:
  struct Pending {
    Ns begin;
    Ns end;
    TrackUuid track;
    std::uint32_t offset;  ///< of its begin in slice_bytes_
    std::uint32_t size;
  };

  /// Encodes a TrackEvent into a packet at the end of `to`.
  void encode_event(Bytes& to, int type, Ns at, TrackUuid track, std::string_view name, std::string_view category,
                    std::span<const Argument> arguments, std::span<const FlowPoint> flows = {});
  std::uint64_t intern(Interned& table, std::uint32_t field, std::string_view text);
  Bytes& cpu(std::uint32_t number);
  void ftrace(std::uint32_t cpu_number, std::uint64_t at, std::int32_t pid, std::uint32_t field,
              const std::uint8_t* begin, const std::uint8_t* end);

  Bytes main_;  ///< packets: descriptors, names, counters, instants, open slices; in the end all
  Bytes slice_bytes_;
  std::vector<Pending> slices_;
  std::vector<Bytes> cpus_;  ///< ftrace events of each CPU
  Bytes event_;              ///< scratch
  Interned names_;
  Interned categories_;
  Interned keys_;
  Interned texts_;  ///< of arguments
  StackInterner stacks_;
  std::size_t size_ = 0;
  std::uint64_t packets_ = 0;
};

}  // namespace culprit::perfetto
