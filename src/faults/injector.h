// What every fault is to the loop that runs it. A fault changes something only in begin() and tick(), and only after
// the guard knows the step back; what undoes it is never its own work, so that it is done however the program ends.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/error.h"
#include "core/units.h"
#include "faults/guard.h"
#include "faults/process.h"

namespace culprit::faults {

/// What is asked for, as given on the command line.
struct Request {
  std::string fault;
  double severity = 0.5;  ///< above 0, at most 1; what it means is the fault's own
  Ns duration = 10'000'000'000;
  pid_t target = 0;              ///< 0: the machine
  bool any_user = false;         ///< root: also processes of others
  unsigned threads = 0;          ///< cpu, memory-bandwidth: 0 chooses by severity
  std::string path;              ///< disk: folder; empty chooses
  std::string interface = "lo";  ///< network
};

/// A number or a text for the report; the key carries the unit ("bytes_per_s").
struct Figure {
  std::string key;
  std::variant<std::int64_t, double, std::string> value;
};

class Injector {
 public:
  virtual ~Injector() = default;
  /// One sentence for people: what is done, to what.
  [[nodiscard]] virtual std::string what() const = 0;
  /// Reads and allocates; changes nothing. `cancelled` says whether the user wants to stop.
  virtual Status prepare(const std::function<bool()>& cancelled) = 0;
  /// Makes the change.
  virtual Status begin(Guard& guard) = 0;
  /// Goes on; gives the monotonic time at which it wants to be called again, at most.
  virtual Result<Ns> tick(Guard& guard, Ns now) = 0;
  /// Stops own threads and takes the last figures; the guard's steps come after it.
  virtual void end() = 0;
  /// What was achieved so far.
  [[nodiscard]] virtual std::vector<Figure> figures() const = 0;
};

/// CLOCK_MONOTONIC and CLOCK_REALTIME in ns.
Ns monotonic_now();
Ns unix_now();

// One per fault: everything is checked that can be checked without a change. `target` outlives the injector and is null
// when the request names none. Error: why it is refused.
Result<std::unique_ptr<Injector>> make_cpu(const Request& request, const ProcessHandle* target);
Result<std::unique_ptr<Injector>> make_memory_bandwidth(const Request& request, const ProcessHandle* target);
Result<std::unique_ptr<Injector>> make_cgroup_throttle(const Request& request, const ProcessHandle* target);
Result<std::unique_ptr<Injector>> make_disk(const Request& request, const ProcessHandle* target);
Result<std::unique_ptr<Injector>> make_pause(const Request& request, const ProcessHandle* target);
Result<std::unique_ptr<Injector>> make_gil(const Request& request, const ProcessHandle* target);
Result<std::unique_ptr<Injector>> make_network(const Request& request, const ProcessHandle* target);
Result<std::unique_ptr<Injector>> make_cpu_frequency(const Request& request, const ProcessHandle* target);
Result<std::unique_ptr<Injector>> make_memory(const Request& request, const ProcessHandle* target);
Result<std::unique_ptr<Injector>> make_gpu_setting(const Request& request, const ProcessHandle* target);

}  // namespace culprit::faults
