// What every long call takes: a way to end it early, and a way to tell how far it is.
#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string_view>

namespace culprit {

struct Task {
  /// When a stop is requested the call ends soon, with ErrorKind::cancelled.
  std::stop_token stop{};
  /// Gets what is done ("loading", "finding cycles", "measuring"), how much of it, and how much there is (0 = unknown):
  /// bytes of the files, passes, slices. Called one call at a time, perhaps from other threads; must not call back.
  std::function<void(std::string_view step, std::uint64_t done, std::uint64_t total)> progress{};

  void report(std::string_view step, std::uint64_t done, std::uint64_t total) const {
    if (progress) progress(step, done, total);
  }
};

}  // namespace culprit
