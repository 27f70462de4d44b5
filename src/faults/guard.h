// The process that brings the machine back when the injector cannot. It is forked before anything is changed, lives in
// a session of its own, and is told each step back before the change it undoes is made. It acts when the injector's end
// of their socket closes, which the kernel does however the injector ends, and when the injector has been silent for
// too long (stopped, for instance). The list also stands in a state file, for the case that both are killed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "core/units.h"
#include "faults/process.h"
#include "faults/undo.h"

namespace culprit::faults {

class Guard {
 public:
  /// Forks the guard; call while this process has one thread. It kills an injector that was silent for `patience`, and
  /// undoes. Error: no process, or the state file cannot be written.
  static Result<Guard> start(const std::string& state_file, Ns patience = 10'000'000'000);
  Guard(Guard&& other) noexcept;
  Guard& operator=(Guard&&) = delete;
  /// Undoes what undo() has not.
  ~Guard();

  /// Returns once the guard knows the step and the state file holds it. Error: it does not know it, so the change must
  /// not be made.
  Status add(const Undo& undo);
  /// A sign of life; call at least once a second.
  void beat();
  /// Readable when the guard has ended: the injector then has to stop and call undo().
  [[nodiscard]] int descriptor() const { return socket_; }
  [[nodiscard]] bool alive() const;
  [[nodiscard]] pid_t pid() const { return pid_; }
  /// Takes all steps back, by the guard, or here when the guard is gone; ends the guard. Gives what went wrong; the
  /// state file stays when something did.
  std::vector<std::string> undo();

 private:
  Guard(int socket, pid_t pid, std::string state_file)
      : socket_(socket), pid_(pid), state_file_(std::move(state_file)) {}

  int socket_ = -1;
  pid_t pid_ = -1;
  std::string state_file_;
  std::vector<Undo> steps_;
};

/// What a state file holds.
struct Leftover {
  std::string file;
  std::string boot;  ///< boot id of the kernel under which it was written
  ProcessId injector;
  ProcessId guard;
  std::vector<Undo> steps;
  [[nodiscard]] bool in_use() const;  ///< injector or guard still live
};

/// Where state files lie: $XDG_RUNTIME_DIR/culprit, else /run/culprit for root and /var/tmp/culprit-UID for others;
/// created for this user alone. Error: it is somebody else's, or others may write there.
Result<std::string> state_folder();
/// The readable state files of the folder, by name.
std::vector<Leftover> leftovers(const std::string& folder);
/// Takes the steps of a leftover back and removes its file; after a restart only files are removed, because processes,
/// cgroups and settings did not survive. Gives what went wrong.
std::vector<std::string> undo_leftover(const Leftover& leftover);

}  // namespace culprit::faults
