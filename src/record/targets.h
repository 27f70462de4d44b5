// Which processes are recorded: the ones asked for, their descendants, and nobody who got one of their pids later.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "record/collector/collector.h"

namespace culprit::record {

/// What /proc/PID/stat tells of a process.
struct ProcessStat {
  std::int64_t pid = 0;
  std::int64_t parent = 0;
  std::int64_t start_ticks = 0;
  char state = '?';
  bool kernel_thread = false;
  std::string name;  ///< the kernel's 15 characters
};

/// proc(5): the name in parentheses may hold spaces, parentheses and line breaks. nullopt: not such a text.
std::optional<ProcessStat> parse_stat(std::string_view text);

/// The processes of one recording. `proc` is where the kernel's view of them is mounted.
class Targets {
 public:
  explicit Targets(std::string proc = "/proc", std::int64_t own_pid = -1);

  /// Adds a process and its descendants. Errors: there is none, it is a zombie, a thread
  /// of another process, the recorder, a kernel thread.
  Status add(std::int64_t pid);
  /// Adds a process that is known to descend from a target; false when it is gone already or known.
  bool add_child(std::int64_t pid);
  /// Drops those that ended or whose pid belongs to another process now; with `look_for_children`, adds descendants.
  void refresh(bool look_for_children);

  [[nodiscard]] const std::vector<Target>& list() const { return list_; }
  [[nodiscard]] bool contains(std::int64_t pid) const;
  /// Since the last call, in the order in which they came and went.
  std::vector<Target> take_joined();
  std::vector<Target> take_left();

  [[nodiscard]] std::optional<ProcessStat> stat(std::int64_t pid) const;
  /// Threads of a process with their names, in the order of their ids.
  [[nodiscard]] std::vector<std::pair<std::int64_t, std::string>> threads(std::int64_t pid) const;

 private:
  void join(const ProcessStat& stat);
  [[nodiscard]] bool exists(std::int64_t pid) const;
  /// The process that a thread belongs to, as /proc tells; nothing when it does not.
  [[nodiscard]] std::optional<std::int64_t> process_of(std::int64_t tid) const;
  void add_descendants();

  std::string proc_;
  std::int64_t own_pid_;
  std::vector<Target> list_;
  std::vector<Target> joined_;
  std::vector<Target> left_;
};

}  // namespace culprit::record
