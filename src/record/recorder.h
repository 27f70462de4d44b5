// Drives the collectors of one recording: makes the file, follows the targets, asks every collector now and then,
// decides when it ends, and writes down what it cost.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/units.h"
#include "record/collector/collector.h"
#include "record/collectors.h"
#include "record/command.h"

namespace culprit::record {

struct RecordOptions {
  std::vector<std::int64_t> pids;    ///< processes that run, or
  bool whole_machine = false;        ///< all of them, or
  std::string group;                 ///< those of the control group in this folder (process_group.h), or
  std::vector<std::string> command;  ///< a program to start
  int command_stderr = -1;           ///< the descriptor that is its standard error; -1: the recorder's own
  Preset preset = Preset::deep;
  std::uint64_t steps = 0;  ///< end after so many steps; 0: no limit
  Ns duration = 0;          ///< 0: no limit
  std::string output;
  Ns switch_every = 0;   ///< go on in another file (output_ring.h) after this time; 0: one file
  std::size_t keep = 0;  ///< of those files; 0: all
  bool replace = false;  ///< an existing output is an error unless set
  bool prompt = true;    ///< as far as it may, the recorder comes before ordinary threads (collector/prompt.h)
  std::string version;   ///< of the program, for the file
};

/// `switched`: it goes on in another file.
enum class Ending : std::uint8_t { none, duration, steps, target_ended, interrupted, failed, switched };
std::string_view to_string(Ending ending);

/// While it runs.
struct RecordProgress {
  Ns elapsed = 0;
  std::uint64_t events = 0;
  std::uint64_t dropped = 0;
  std::uint64_t uncounted = 0;
  std::uint64_t steps = 0;
  std::uint64_t file_bytes = 0;
  Ns own_cpu = 0;
  std::size_t targets = 0;
};

/// Of one collector.
struct CollectorSummary {
  std::string name;
  bool collected = false;  ///< start() went well
  CollectorStats stats;
  std::vector<Sight> sights;
};

struct RecordSummary {
  std::string path;       ///< of the last file
  std::size_t files = 1;  ///< that were written; the oldest may be removed already
  Ending ending = Ending::none;
  RecordProgress total;
  std::uint64_t raw_bytes = 0;
  std::int64_t peak_memory = 0;  ///< bytes of this process
  Ns kernel_cpu = 0;             ///< of the programs in the kernel; 0: not measured
  std::uint64_t left_out = 0;    ///< processes, because too many are recorded
  std::vector<CollectorSummary> collectors;
  std::optional<int> command_status;  ///< wait status of a started command that ended by itself
  CommandUse command_use;             ///< of one that has ended
  std::optional<Error> error;         ///< why it ended early; the file is readable up to there
};

/// One recording: start(), then run(), or poll() until ending() and finish(). One thread.
class Recorder {
 public:
  Recorder(RecordOptions options, CollectorSet collectors);
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  /// Finds the targets and makes the file, which waits for a reader when it is a pipe: for callers who then still want
  /// to be ended by a signal. Errors: a target does not exist, the file cannot be made.
  Status open();
  /// open(), unless that was done; starts the collectors, then the command, and gives the file its name. Errors: those
  /// of open(), no collector can collect anything, the command cannot be executed; then there is no file.
  Status start();
  /// What every collector sees and misses; after start().
  [[nodiscard]] std::vector<CollectorSummary> collectors() const;

  /// Waits at most 50 ms, or until `stop_fd` (-1: none) is readable or the kernel has much to tell; then asks the
  /// collectors. False when the recording is over. When `stop_fd` is readable it ends with Ending::interrupted, for a
  /// started command after that has ended or `kPatience` has passed.
  bool poll(int stop_fd = -1);
  /// Stops the collectors, writes the facts, closes the file. Idempotent.
  /// A signal at `stop_fd` ends the wait for a command that was asked to end.
  RecordSummary finish(int stop_fd = -1);
  /// poll() until it is over, finish(). `progress` is called a few times a second.
  RecordSummary run(int stop_fd, const std::function<void(const RecordProgress&)>& progress = {});

  void stop(Ending why);
  [[nodiscard]] Ending ending() const;
  [[nodiscard]] RecordProgress progress() const;

  static constexpr Ns kPatience = 5'000'000'000;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace culprit::record
