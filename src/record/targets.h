// Which processes are recorded: the ones asked for, their descendants, and nobody who got one of their pids later; or
// all of the machine, or of a control group.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
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
  std::int64_t threads = 1;  ///< those left, where the first has ended and is still counted
  bool kernel_thread = false;
  std::string name;  ///< the kernel's 15 characters
};

/// proc(5): the name in parentheses may hold spaces, parentheses and line breaks. nullopt: not such a text.
std::optional<ProcessStat> parse_stat(std::string_view text);
/// A zombie, or less; not one whose first thread alone has ended.
bool has_ended(const ProcessStat& stat);

/// The processes of one recording. `proc` is where the kernel's view of them is mounted.
class Targets {
 public:
  explicit Targets(std::string proc = "/proc", std::int64_t own_pid = -1, std::size_t most = kMost);

  /// Adds a process and its descendants. Errors: there is none, it is a zombie, a thread
  /// of another process, the recorder, a kernel thread.
  Status add(std::int64_t pid);
  /// Adds every process but the recorder and threads of the kernel; refresh() those to come.
  void add_all();
  /// Adds the processes of a control group and the groups below it; refresh() those to come.
  void add_group(const std::string& folder);
  /// Adds a process that is known to descend from a target; false when it is gone already or known, or left out.
  bool add_child(std::int64_t pid);
  /// Drops those that ended or whose pid belongs to another process now; with `look_for_more`, adds descendants and who
  /// joined the machine or the group.
  void refresh(bool look_for_more);
  /// The same for one process without looking at the others; false when it still runs.
  bool drop_if_ended(std::int64_t pid);

  [[nodiscard]] const std::vector<Target>& list() const { return list_; }
  [[nodiscard]] bool contains(std::int64_t pid) const { return pids_.contains(pid); }
  /// Nobody is left, and nobody can come.
  [[nodiscard]] bool over() const;
  /// How many processes were left out because `kMost` were recorded: the work for each must stay bounded.
  [[nodiscard]] std::uint64_t left_out() const { return left_out_; }
  static constexpr std::size_t kMost = 4096;
  /// Since the last call, in the order in which they came and went.
  std::vector<Target> take_joined();
  std::vector<Target> take_left();

  [[nodiscard]] std::optional<ProcessStat> stat(std::int64_t pid) const;
  /// Everything below `proc` that has a number, ascending.
  [[nodiscard]] std::vector<std::int64_t> all_pids() const;
  /// Threads of a process with their names, in the order of their ids, without that of the recorder's agent.
  [[nodiscard]] std::vector<std::pair<std::int64_t, std::string>> threads(std::int64_t pid) const;

 private:
  bool join(const ProcessStat& stat);
  [[nodiscard]] bool still_runs(const Target& target) const;
  [[nodiscard]] bool exists(std::int64_t pid) const;
  /// The process that a thread belongs to, as /proc tells; nothing when it does not.
  [[nodiscard]] std::optional<std::int64_t> process_of(std::int64_t tid) const;
  void add_descendants();
  void look_around();

  std::string proc_;
  std::int64_t own_pid_;
  bool whole_machine_ = false;
  std::string group_;  ///< folder of a control group; empty: none
  std::size_t most_;
  std::uint64_t left_out_ = 0;
  std::vector<Target> list_;
  std::unordered_set<std::int64_t> pids_;  ///< of list_
  /// Ascending; looked at, and descending from nobody here: nor will they, but for orphans that a target takes in and
  /// numbers that are given again, so that they are forgotten now and then.
  std::vector<std::int64_t> strangers_;
  unsigned looks_ = 0;
  std::vector<Target> joined_;
  std::vector<Target> left_;
};

}  // namespace culprit::record
