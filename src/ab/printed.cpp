#include "ab/printed.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <vector>

#include "core/text.h"

namespace culprit::ab {

namespace {

constexpr off_t kRead = 64 << 10;

/// The last bytes of a file, and whether there are others before them.
struct End {
  std::string text;
  bool cut = false;
};

End end_of(const std::string& file) {
  End end;
  const int fd = open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return end;
  struct stat facts {};
  const off_t size = fstat(fd, &facts) == 0 && S_ISREG(facts.st_mode) ? facts.st_size : 0;
  const off_t begin = std::max<off_t>(0, size - kRead);
  end.cut = begin > 0;
  end.text.resize(static_cast<std::size_t>(size - begin));
  std::size_t have = 0;
  while (have < end.text.size()) {
    const ssize_t got = pread(fd, end.text.data() + have, end.text.size() - have, begin + static_cast<off_t>(have));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    have += static_cast<std::size_t>(got);
  }
  end.text.resize(have);
  close(fd);
  return end;
}

}  // namespace

std::string last_lines(const std::string& file) {
  constexpr std::size_t kMost = 10;
  const End end = end_of(file);
  std::vector<std::string_view> lines = split_lines(end.text);
  if (end.cut && lines.size() > 1) lines.erase(lines.begin());  // its begin may be missing
  while (!lines.empty() && trim(lines.back()).empty()) lines.pop_back();
  if (lines.size() > kMost) lines.erase(lines.begin(), lines.end() - kMost);
  return fmt::format("{}", fmt::join(lines, "\n"));
}

}  // namespace culprit::ab
