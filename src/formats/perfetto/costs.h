// What things of a Perfetto trace cost its reader in memory, about, until the trace is made: counted against the
// expansion of the file. The bytes of packets and of the texts in them are counted beside.
#pragma once

#include <cstdint>
#include <string_view>

#include "formats/io/expansion.h"

namespace culprit::perfetto {

inline constexpr std::uint64_t kPacketCost = 32;  ///< time, if no memory
inline constexpr std::uint64_t kEventCost = 96;
inline constexpr std::uint64_t kArgumentsCost = 160;
inline constexpr std::uint64_t kSampleCost = 48;
inline constexpr std::uint64_t kTrackCost = 256;
inline constexpr std::uint64_t kNamedCost = 96;  ///< an interned text, a process, a thread
inline constexpr std::uint64_t kClockCost = 64;
inline constexpr std::uint64_t kFactCost = 256;
inline constexpr std::uint64_t kSequenceCost = 1024;
inline constexpr std::uint64_t kSchedCost = 80;
inline constexpr std::uint64_t kSchedThreadCost = 1024;
inline constexpr std::uint64_t kRivalCost = 96;  ///< who had a CPU meanwhile, in one stretch of time

/// Of a message that protobuf parses as a whole: a field of two bytes may become an object.
inline constexpr std::uint64_t kParsedTimes = 48;

/// Long texts that short packets refer to again and again cost time.
inline void spend_on_text(formats::Expansion& expansion, std::string_view text) {
  constexpr std::size_t kUsualText = 256;
  if (text.size() > kUsualText) expansion.spend(text.size());
}

}  // namespace culprit::perfetto
