// The fallback: what /proc tells about a thread's scheduling without any privilege. Totals only: no wake-ups, no
// reasons.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "record/collector/collector.h"

namespace culprit::record::sched {

/// Totals of one thread since it started.
struct ThreadTotals {
  std::int64_t oncpu_ns = 0;
  std::int64_t runq_ns = 0;
  std::int64_t voluntary = 0;    ///< switches because it blocked
  std::int64_t involuntary = 0;  ///< switches because another thread got the CPU
};

/// Text of /proc/PID/task/TID/schedstat and of .../status. nullopt: not what the kernel writes.
std::optional<ThreadTotals> parse_totals(std::string_view schedstat, std::string_view status);

/// Whether the text of /proc/PID/task/TID/status is that of the recorder's agent (src/record/agent).
bool is_agent(std::string_view status);

/// Writes the totals as counters, one set per thread but the agent's: ten times a second in deep recordings, else once,
/// and more rarely where that takes a tenth of the time.
class Schedstat final : public Collector {
 public:
  [[nodiscard]] std::string_view name() const override { return "sched"; }
  Status start(Session& session) override;
  [[nodiscard]] std::vector<Sight> sights() const override;
  void poll(Session& session, Ns now) override;
  void stop(Session& session, Ns now) override;
  [[nodiscard]] CollectorStats stats() const override { return stats_; }

 private:
  struct Tracks {
    perfetto::TrackUuid oncpu, runq, voluntary, involuntary;
    std::uint64_t round = 0;  ///< in which the thread was there
  };
  void sample(Session& session, Ns now);

  std::map<std::pair<std::int64_t, std::int64_t>, Tracks> tracks_;  // by pid and tid
  Ns next_ = 0;
  std::uint64_t round_ = 0;
  bool started_ = false;
  bool stopped_ = false;
  CollectorStats stats_;
};

}  // namespace culprit::record::sched
