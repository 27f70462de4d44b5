#include "record/annotate/slow_close.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>

#include "core/text.h"

namespace culprit::record::annotate {

namespace {

/// Nothing but system calls: other threads of the recorder may have held locks when it was forked.
[[noreturn]] void hold(const std::vector<int>& descriptors, int wait_for_end) {
  ::setsid();
  unsigned from = 0;
  for (const int kept : descriptors) {
    const auto fd = static_cast<unsigned>(kept);
    if (fd > from) ::close_range(from, fd - 1, 0);
    from = fd + 1;
  }
  ::close_range(from, ~0U, 0);
  char byte = 0;
  while (::read(wait_for_end, &byte, 1) > 0) {
  }
  ::_exit(0);
}

}  // namespace

std::vector<int> open_descriptors() {
  std::vector<int> open;
  {
    std::error_code error;
    for (std::filesystem::directory_iterator it("/proc/self/fd", error), end; !error && it != end; it.increment(error))
      if (const auto fd = parse_number<int>(it->path().filename().string())) open.push_back(*fd);
  }
  // The one of the listing itself is closed by now.
  std::erase_if(open, [](int fd) { return ::fcntl(fd, F_GETFD) < 0; });
  std::ranges::sort(open);
  return open;
}

Holder::Holder(const std::vector<int>& descriptors) {
  if (descriptors.empty()) return;
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return;
  std::vector<int> kept = descriptors;
  std::erase(kept, ends[1]);  // else it would wait for itself
  kept.insert(std::ranges::upper_bound(kept, ends[0]), ends[0]);
  const pid_t child = ::fork();
  if (child == 0) {
    // The holder's own child goes on alone: nobody has to wait for it.
    if (::fork() != 0) ::_exit(0);
    hold(kept, ends[0]);
  }
  ::close(ends[0]);
  if (child < 0) {
    ::close(ends[1]);
    return;
  }
  while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  end_ = ends[1];
}

Holder::~Holder() {
  if (end_ >= 0) ::close(end_);
}

}  // namespace culprit::record::annotate
