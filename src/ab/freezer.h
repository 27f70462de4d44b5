// Lets all processes of a side stand still and go on: by the freezer of a control group of our own below the one they
// are in (whose limits stay in force), or by SIGSTOP and SIGCONT where no such group can be made or they are in
// several. The guard knows the way back before anything is changed.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "faults/guard.h"
#include "faults/process.h"

namespace culprit::ab {

/// Where the kernel shows control groups; tests name others.
struct GroupFiles {
  std::string proc = "/proc";
  std::string mounts = "/proc/self/mounts";
};

/// A group that can be frozen.
struct FreezerGroup {
  bool version2 = false;
  std::string folder;

  [[nodiscard]] std::string file() const { return folder + (version2 ? "/cgroup.freeze" : "/freezer.state"); }
  [[nodiscard]] std::string_view frozen() const { return version2 ? "1" : "FROZEN"; }
  [[nodiscard]] std::string_view thawed() const { return version2 ? "0" : "THAWED"; }
};

/// The groups of a process in the hierarchies that can freeze: version 2 first. Empty when there are none.
std::vector<FreezerGroup> freezer_groups_of(pid_t pid, const GroupFiles& files = {});

/// Error: the process or a descendant is stopped already, so that it could not be left as it was.
Status runs(faults::ProcessId root);

class Freezer {
 public:
  /// Takes charge of the process and its descendants, none of which is changed but for its group. `name` becomes the
  /// name of that. `groups` false: by signals. Error: the guard has ended, or a process is stopped already (it could
  /// not be left as it was).
  static Result<Freezer> take(faults::ProcessId root, const std::string& name, faults::Guard& guard,
                              bool groups = true);

  /// Returns when all of them stand still. Processes that were started meanwhile are included. Error: some go on.
  Status freeze();
  /// Error: some stay frozen.
  Status thaw();
  /// How it is done, for people.
  [[nodiscard]] std::string how() const;
  /// The first process has ended.
  [[nodiscard]] bool over() const { return root_.ended(); }
  /// Living processes of the side.
  [[nodiscard]] std::vector<faults::ProcessId> processes() const;

 private:
  Freezer(faults::ProcessHandle root, faults::Guard& guard) : root_(std::move(root)), guard_(&guard) {}
  Status enter(const FreezerGroup& origin, const std::string& name);
  Result<std::size_t> learn();
  [[nodiscard]] bool nobody_is_left() const;

  faults::ProcessHandle root_;
  faults::Guard* guard_;
  FreezerGroup group_;  ///< without folder: by signals
  std::map<pid_t, faults::ProcessHandle> known_;
};

}  // namespace culprit::ab
