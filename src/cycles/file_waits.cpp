#include "cycles/file_waits.h"

#include <algorithm>
#include <array>

namespace culprit::cycles {

std::string call_without_signals(std::string_view call) {
  constexpr std::array<std::string_view, 7> kShared = {"read",     "readv",  "write",         "writev",
                                                       "sendfile", "splice", "io_uring_enter"};
  const bool shared = std::ranges::find(kShared, call) != kShared.end();
  return std::string(call) + (shared ? ", uninterruptible" : "");
}

}  // namespace culprit::cycles
