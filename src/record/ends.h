// Whether processes have ended, asked of the kernel in one call: reading /proc of each twenty times a second is a good
// part of what a recorder of a few functions costs.
#pragma once

#include <poll.h>

#include <cstdint>
#include <vector>

#include "record/collector/collector.h"

namespace culprit::record {

/// Holds a descriptor (pidfd) of each process that it follows.
class Ends {
 public:
  Ends() = default;
  Ends(const Ends&) = delete;
  Ends& operator=(const Ends&) = delete;
  ~Ends() { clear(); }

  /// From now on these and nobody else.
  void follow(const std::vector<Target>& targets);
  /// False where the kernel gave no descriptor of one: it has ended, files are short, or Linux is older than 5.3.
  [[nodiscard]] bool follows_all() const { return follows_all_; }
  /// True when one has ended, with all its threads.
  [[nodiscard]] bool any();

 private:
  void clear();

  std::vector<Target> followed_;
  std::vector<pollfd> files_;
  bool follows_all_ = false;
};

}  // namespace culprit::record
