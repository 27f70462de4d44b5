// Counter tracks and how samples get onto them.
//
// A value holds from its sample until the next one of its track. So a mean over an interval is written at the begin of
// the interval. Values that stay the same are left out, for at most a second, and the last of them is written before
// a change, so that neither steps nor straight lines between samples are wrong.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "core/units.h"

namespace culprit::record {

/// Where samples go: the writer of the recording, or a list in a test.
struct CounterOut {
  std::function<std::uint64_t(std::string_view name, std::string_view unit, std::int64_t pid)> track;
  std::function<void(std::uint64_t track, Ns at, double value)> put;
  std::function<void(std::int64_t pid, std::string_view name)> process;  ///< names a process that is no target
};

/// One series. Its track is made with its first value.
struct Track {
  std::string name;
  std::string unit;
  std::int64_t pid = 0;
  std::optional<std::uint64_t> id{};
  double value = 0;
  Ns written = 0;
  std::optional<Ns> skipped{};
};

/// Hands samples on and counts them.
class Emitter {
 public:
  explicit Emitter(CounterOut out) : out_(std::move(out)) {}

  /// Not-a-number and infinite values are dropped and counted.
  void put(Track& track, Ns at, double value);
  /// From here on samples begin at `at` at the earliest: they go into a file that does.
  void begin_at(Ns at) { begin_ = at; }
  void name_process(std::int64_t pid, std::string_view name) { out_.process(pid, name); }

  [[nodiscard]] std::uint64_t written() const { return written_; }
  /// Counters that went back and values that are no numbers.
  [[nodiscard]] std::uint64_t odd() const { return odd_; }
  void count_odd() { ++odd_; }

 private:
  CounterOut out_;
  Ns begin_ = 0;
  std::uint64_t written_ = 0;
  std::uint64_t odd_ = 0;
};

/// The last reading of a number that only grows.
struct Growing {
  std::optional<std::uint64_t> last{};
  Ns at = 0;

  /// How much it grew since the last reading, and over which time. nullopt for the first reading and when it went back
  /// (a device or group that was made anew), which is counted as odd. `wraps_at` != 0: it begins at 0 again after that
  /// value.
  struct Step {
    std::uint64_t delta = 0;
    Ns begin = 0;
    Ns span = 0;
    [[nodiscard]] double per_second() const;
  };
  std::optional<Step> step(std::uint64_t now_value, Ns now, Emitter& emitter, std::uint64_t wraps_at = 0);
};

/// A track of the rate of a number that only grows, in `scale` units per count and second.
struct RateTrack {
  Track track;
  double scale = 1;
  Growing counter{};

  void put(Emitter& emitter, Ns now, std::uint64_t value, std::uint64_t wraps_at = 0) {
    if (const auto step = counter.step(value, now, emitter, wraps_at))
      emitter.put(track, step->begin, step->per_second() * scale);
  }
};

/// A device name as part of a track's name: letters, digits, '-', '_' and '.' stay, all else becomes '_'; 32
/// characters.
std::string track_part(std::string_view name);

}  // namespace culprit::record
