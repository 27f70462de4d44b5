#include "record/bpf/jit_map.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <vector>

#include "core/file.h"
#include "record/collector/target_file.h"

namespace culprit::record::bpf {

namespace {

constexpr std::size_t kMostAtOnce = std::size_t{4} << 20;
constexpr std::uint64_t kMostOfFile = std::uint64_t{64} << 20;
constexpr std::size_t kMostFunctions = std::size_t{1} << 20;

/// The number by which the process knows itself, which a pid namespace makes another one.
std::int64_t inner_pid(const std::string& status, std::int64_t pid) {
  const std::size_t at = status.find("\nNSpid:");
  if (at == std::string::npos) return pid;
  const std::string line = status.substr(at + 1, status.find('\n', at + 1) - at - 1);
  const std::size_t last = line.find_last_of(" \t");
  const std::int64_t inner = std::strtoll(line.c_str() + last + 1, nullptr, 10);
  return inner > 0 ? inner : pid;
}

}  // namespace

void JitMap::read(std::int64_t pid, const std::string& proc) {
  const std::string process = fmt::format("{}/{}", proc, pid);
  const auto status = read_beginning(process + "/status", 64 << 10);
  struct stat owner {};
  if (!status || stat(process.c_str(), &owner) != 0) return;
  const TargetFile file = open_target_file(process + "/root", fmt::format("/tmp/perf-{}.map", inner_pid(*status, pid)));
  struct stat about {};
  if (!file || fstat(file.fd(), &about) != 0 || (about.st_uid != owner.st_uid && about.st_uid != 0)) return;
  const auto size = std::min(static_cast<std::uint64_t>(std::max<off_t>(about.st_size, 0)), kMostOfFile);
  if (identity_ != file.identity() || size < taken_) {
    functions_ = {};
    taken_ = 0;
    identity_ = file.identity();
  }
  if (size == taken_) return;
  const int fd = open(file.path().c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return;
  std::vector<char> text(std::min<std::uint64_t>(size - taken_, kMostAtOnce));
  const ssize_t got = pread(fd, text.data(), text.size(), static_cast<off_t>(taken_));
  close(fd);
  if (got > 0) taken_ += take({text.data(), static_cast<std::size_t>(got)});
}

std::size_t JitMap::take(std::string_view text) {
  std::size_t taken = 0;
  for (std::size_t end = 0; (end = text.find('\n', taken)) != std::string_view::npos; taken = end + 1) {
    const char* at = text.data() + taken;
    const char* const last = text.data() + end;
    const auto number = [&](std::uint64_t& value) {
      if (last - at > 2 && at[0] == '0' && (at[1] == 'x' || at[1] == 'X')) at += 2;
      const auto read = std::from_chars(at, last, value, 16);
      const bool good = read.ec == std::errc() && read.ptr != last && *read.ptr == ' ';
      at = read.ptr + (good ? 1 : 0);
      return good;
    };
    std::uint64_t start = 0;
    std::uint64_t size = 0;
    if (!number(start) || !number(size) || size == 0 || functions_.size() >= kMostFunctions) continue;
    functions_.add(start, size, {at, static_cast<std::size_t>(last - at)});
  }
  functions_.sort();
  return taken;
}

}  // namespace culprit::record::bpf
