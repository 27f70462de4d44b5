// Tells a waiting person how far the work is: one line on a terminal, and only when the work takes longer than a
// second.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>

namespace culprit {

/// One progress bar. update() may be called from several threads; the bar is removed when it is destroyed.
class Progress {
 public:
  using Clock = std::chrono::steady_clock;
  using Sink = std::function<void(std::string_view)>;

  /// `sink` receives the text to show (empty function: show nothing); `now` is the clock.
  Progress(std::string label, Sink sink, std::function<Clock::time_point()> now = Clock::now);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// `total` 0 means that the end is unknown. Shown at most ten times a second, never in the first second.
  void update(std::uint64_t done, std::uint64_t total);

 private:
  std::string label_;
  Sink sink_;
  std::function<Clock::time_point()> now_;
  Clock::time_point start_;
  Clock::time_point shown_;
  bool visible_ = false;
  std::mutex mutex_;
};

/// Writes to standard error when that is a terminal, else an empty function.
Progress::Sink progress_sink_of_stderr();

}  // namespace culprit
