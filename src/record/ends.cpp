#include "record/ends.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace culprit::record {

void Ends::clear() {
  for (const pollfd& file : files_) close(file.fd);
  files_.clear();
  followed_.clear();
}

void Ends::follow(const std::vector<Target>& targets) {
  const auto same = [](const Target& a, const Target& b) { return a.pid == b.pid && a.start_ticks == b.start_ticks; };
  if (follows_all_ && std::ranges::equal(followed_, targets, same)) return;
  clear();
  followed_ = targets;
  follows_all_ = true;
  for (const Target& target : targets) {
    const auto fd = static_cast<int>(syscall(SYS_pidfd_open, target.pid, 0U));
    if (fd >= 0)
      files_.push_back({fd, POLLIN, 0});
    else
      follows_all_ = false;
  }
}

bool Ends::any() { return !files_.empty() && ::poll(files_.data(), files_.size(), 0) > 0; }

}  // namespace culprit::record
