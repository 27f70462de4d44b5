// Reads the rings of ring_format.h. What is in them comes from the recorded program and is believed in nothing: files
// are read, never mapped, so that a file cut short cannot hurt; every length and position is checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace culprit::record::nvtx {

enum class EventType : std::uint8_t {
  push = 1,
  pop,
  mark,
  range_start,
  range_end,
  thread_name,
  category_name,
  domain_name,
};

/// One record. `text` lives until the sink returns.
struct Event {
  EventType type = EventType::push;
  std::uint8_t depth = 0;  ///< of push and pop
  std::uint16_t domain = 0;
  std::uint64_t time = 0;              ///< of the ring's clock
  std::optional<std::uint64_t> value;  ///< category, id of the range, thread: as the type says
  std::variant<std::monostate, std::int64_t, std::uint64_t, double> payload;
  std::string_view text;
  bool truncated = false;
};

using EventSink = std::function<void(const Event&)>;

/// Hands the records at the begin of `bytes` to the sink. False when something in it cannot be a record: what lies
/// behind is not looked at.
bool parse_records(std::span<const std::byte> bytes, const EventSink& sink);

/// Who wrote a ring, as the name of its file says.
struct RingName {
  std::int32_t pid = 0;
  std::int32_t tid = 0;
  std::int64_t created = 0;
};
std::optional<RingName> parse_ring_name(std::string_view file);

enum class RingState : std::uint8_t {
  ready,
  unfinished,     ///< the thread is just making it
  no_descriptor,  ///< so many files are open
  refused,        ///< not a ring, or not one of the thread its name tells
};

/// An open ring. Movable.
class RingReader {
 public:
  /// Opens `file` in the folder `folder_fd`; the reader is usable when the state is `ready`.
  static RingState open(int folder_fd, const std::string& file, RingReader& out);
  RingReader() = default;
  RingReader(RingReader&& other) noexcept;
  RingReader& operator=(RingReader&& other) noexcept;
  ~RingReader();

  /// Hands everything that is new to the sink and gives the room back; the number of bytes, at most one capacity.
  std::size_t drain(const EventSink& sink);

  [[nodiscard]] const RingName& name() const { return name_; }
  [[nodiscard]] bool counts_cycles() const { return counts_cycles_; }
  /// The thread has ended; nothing comes after the next drain().
  [[nodiscard]] bool finished() const { return finished_; }
  [[nodiscard]] std::uint64_t dropped() const { return dropped_; }      ///< as the thread says
  [[nodiscard]] std::uint64_t malformed() const { return malformed_; }  ///< times that the contents made no sense

 private:
  RingName name_;
  int fd_ = -1;
  bool counts_cycles_ = false;
  bool finished_ = false;
  std::uint64_t tail_ = 0;  // ours; what is in the file is never read back
  std::uint64_t dropped_ = 0;
  std::uint64_t malformed_ = 0;
};

}  // namespace culprit::record::nvtx
