// How much a file may become when it is read. A few kilobytes can claim to be gigabytes (deflated zeroes, packets
// without content, rows that a database repeats for ever); what people record becomes 5 to 60 times as large.
#pragma once

#include <cstdint>
#include <string>

#include "core/error.h"

namespace culprit::formats {

class Expansion {
 public:
  static constexpr std::uint64_t kUsualTimes = 200;
  static constexpr std::uint64_t kFreeBytes = std::uint64_t{64} << 20;  ///< of any file, however small

  /// At most `times` the size of the file; 0 is no limit.
  explicit Expansion(std::uint64_t times = kUsualTimes) : times_(times) { allow(0); }

  /// So many bytes of the file have been taken.
  void allow(std::uint64_t file_bytes);
  /// Text, or memory that is kept of it.
  void spend(std::uint64_t bytes) { spent_ += bytes; }
  [[nodiscard]] bool exceeded() const { return spent_ > allowed_; }
  /// `bytes` more would not be too many.
  [[nodiscard]] bool fits(std::uint64_t bytes) const { return spent_ <= allowed_ && bytes <= allowed_ - spent_; }
  [[nodiscard]] Error error(const std::string& file) const;

 private:
  std::uint64_t times_;
  std::uint64_t allowed_ = 0;
  std::uint64_t spent_ = 0;
};

}  // namespace culprit::formats
