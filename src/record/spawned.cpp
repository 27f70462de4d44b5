#include "record/spawned.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <string_view>
#include <utility>

namespace culprit::record {

Spawned::Spawned(const char* file) : fd_(open(file, O_RDONLY | O_CLOEXEC)) {}

Spawned::~Spawned() {
  if (fd_ >= 0) close(fd_);
}

bool Spawned::any() {
  std::array<char, 128> text{};
  const ssize_t size = fd_ < 0 ? -1 : pread(fd_, text.data(), text.size(), 0);
  if (size <= 0) return true;
  const std::string_view all(text.data(), static_cast<std::size_t>(size));
  const std::size_t space = all.rfind(' ');
  if (space == std::string_view::npos) return true;
  const std::string_view last = all.substr(space + 1);
  if (last.starts_with('0')) return true;
  const bool moved = last != last_;
  last_ = last;
  return std::exchange(again_, moved) || moved;
}

}  // namespace culprit::record
