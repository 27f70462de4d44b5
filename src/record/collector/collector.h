// What every collector of a recording is: something that is started, asked now and then for what it saw, and stopped.
//
// The recorder (`src/record`) drives all collectors from one thread. Collectors fail soft: one that cannot see its part
// says so in start() and the recording goes on without it. What it sees goes to the perfetto::Writer at once; nothing
// is kept that grows with the length of the recording.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "core/units.h"
#include "formats/perfetto/writer.h"

namespace culprit::record {

enum class Preset : std::uint8_t {
  watch,  ///< cheap enough to stay on: scheduling, aggregated system calls, host at 1 Hz
  deep,   ///< everything that costs a few percent
};

/// One thing that can or cannot be seen here: a line of `culprit doctor` and of the recorder's start.
struct Sight {
  std::string what;  ///< "context switches with waker", in words of the user
  bool available = false;
  std::string why;     ///< when not: the reason, as the machine gave it; else what of it is missing, where something is
  std::string remedy;  ///< when not: the command or setting that makes it available
};

/// A process that is recorded.
struct Target {
  std::int64_t pid = 0;
  std::int64_t start_ticks = 0;  ///< field 22 of /proc/PID/stat: tells a reused pid
};

/// Later than everything: collectors still start.
inline constexpr Ns kNotBegun = std::numeric_limits<Ns>::max();

/// What a collector needs to know of the recording. Valid as long as the collector runs.
struct Session {
  perfetto::Writer& writer;
  Preset preset = Preset::deep;
  const std::vector<Target>& targets;  ///< the processes recorded now, descendants included; kept true by the recorder
  std::int64_t own_pid = 0;
  bool starts_command = true;  ///< false: the targets run already, Collector::environment() reaches nobody
  std::uint64_t steps = 0;  ///< steps of the targets that ended so far; counted up by collectors that see step markers
  Ns begin = kNotBegun;     ///< of the recording, CLOCK_MONOTONIC; what began before is not recorded
  Ns end = kNotBegun;       ///< what begins later is not recorded; collectors take their time to stop
};

/// What a collector has cost and lost so far.
struct CollectorStats {
  std::uint64_t events = 0;
  std::uint64_t dropped = 0;    ///< seen and lost: full ring, malformed record
  std::uint64_t uncounted = 0;  ///< calls and requests that are in no total or no distribution: a map was full
  Ns kernel_cpu_ns = 0;         ///< CPU that its probes took inside the target and kernel, where it can be counted
};

class Collector {
 public:
  virtual ~Collector() = default;

  /// Short name: "sched", "syscalls", "samples", "host", "environment", "nvtx", "annotate".
  [[nodiscard]] virtual std::string_view name() const = 0;
  /// Begins to collect. An error means that nothing of this collector will be in the file; partial sight is no error.
  virtual Status start(Session& session) = 0;
  /// It holds up the targets while it starts, which the others must not see. It is polled while they start.
  [[nodiscard]] virtual bool starts_first() const { return false; }
  /// What it sees and what it misses; valid after start(), whether that failed or not.
  [[nodiscard]] virtual std::vector<Sight> sights() const = 0;
  /// Variables a started command needs in its environment ("NAME=value"); asked before start().
  [[nodiscard]] virtual std::vector<std::string> environment() const { return {}; }
  /// A process joined the recording (the first ones before start() returns them in Session::targets) or left it.
  virtual void target_joined(const Target& /*target*/) {}
  virtual void target_left(const Target& /*target*/) {}
  /// The started command has ended; only during this call /proc still tells what it took.
  virtual void command_ended(std::int64_t /*pid*/, Ns /*now*/) {}
  /// Writes what was seen up to about `now` (CLOCK_MONOTONIC). Called every 50 ms or less, while all are quiet every
  /// 100; must not block.
  virtual void poll(Session& session, Ns now) = 0;
  /// When poll() is wanted at the latest.
  [[nodiscard]] virtual Ns next_poll() const { return std::numeric_limits<Ns>::max(); }
  /// So little comes, and so much room is left, that it may be left alone for longer.
  [[nodiscard]] virtual bool is_quiet() const { return false; }
  /// Stops seeing, writes what is left and the metadata of its losses. Idempotent.
  virtual void stop(Session& session, Ns now) = 0;
  [[nodiscard]] virtual CollectorStats stats() const = 0;
};

/// CLOCK_MONOTONIC, ns.
Ns monotonic_now();
/// CPU of this thread so far, ns.
Ns thread_cpu();
/// Who looks at much rests so many times as long as that took, and no longer than that.
inline constexpr Ns kRest = 1000;
inline constexpr Ns kLongestRest = 5'000'000'000;

}  // namespace culprit::record
