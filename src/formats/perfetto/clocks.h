// Clocks of a Perfetto trace: which one a time is of, and what it is on the one that all events are put on.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include <tsl/hopscotch_map.h>

#include "core/units.h"

namespace culprit::perfetto {

struct ClockReading {
  std::uint32_t clock = 0;
  std::uint64_t at = 0;
  bool incremental = false;
  std::uint64_t unit_ns = 1;
};

class Clocks {
 public:
  Clocks();
  /// A snapshot: what all these clocks showed at one moment. Clocks 64 to 127 belong to `sequence`.
  void snapshot(std::uint32_t sequence, const std::vector<ClockReading>& readings,
                std::optional<std::uint32_t> primary);
  /// `at` of `clock` on the trace's clock; `clock` 0 is that clock. nullopt: no snapshot relates the two, or the time
  /// is out of range.
  std::optional<Ns> convert(std::uint32_t sequence, std::uint32_t clock, std::uint64_t at);
  /// Unix time at 0 of the trace's clock.
  [[nodiscard]] std::optional<Ns> realtime_of_zero() const { return realtime_of_zero_; }

 private:
  /// Between two snapshots: what is added to the clock from `begin` to before `end`.
  struct Stretch {
    Ns begin = 0;
    Ns end = 0;
    Ns shift = 0;
  };
  struct Clock {
    std::map<Ns, Ns> points;  ///< the clock in ns, and the trace's at the same moment
    Stretch last_used;        ///< empty when unknown
    std::uint64_t unit_ns = 1;
    bool incremental = false;
    std::uint64_t last = 0;  ///< incremental: the time so far, in units
  };
  using Key = std::uint64_t;
  static Key key(std::uint32_t sequence, std::uint32_t clock);
  static std::optional<Ns> at_point(Clock& clock, Ns at);

  std::map<Key, Clock> clocks_;
  std::uint32_t primary_;
  bool primary_known_ = false;
  std::optional<Ns> realtime_of_zero_;
};

}  // namespace culprit::perfetto
