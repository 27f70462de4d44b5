// Files that a target executes from, which it wrote itself: their tables are read to find callers.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "record/samples/unwind.h"

using culprit::record::samples::Unwinder;

/// libelf 0.188 forgets a piece of some damaged files when it lets go of them: a hundred bytes for each such file.
extern "C" const char* __asan_default_options() { return "detect_leaks=0"; }

/// Where in the file the thread runs (4 bytes), the page from which the file is mapped (1), bytes of the stack behind
/// their number (1), and the file.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kHead = 6;
  constexpr std::uint64_t kPage = 4096;
  if (size <= kHead || size < kHead + data[5]) return 0;
  std::uint32_t at = 0;
  std::memcpy(&at, data, sizeof at);
  const std::uint64_t skip = data[4] % 8 * kPage;
  const std::vector<std::uint8_t> stack(data + kHead, data + kHead + data[5]);
  const std::string path = "/dev/shm/culprit-fuzz-unwind-" + std::to_string(getpid());
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return 0;
  const std::size_t bytes = size - kHead - data[5];
  void* code = MAP_FAILED;
  if (write(fd, data + kHead + data[5], bytes) == static_cast<ssize_t>(bytes) && skip < bytes)
    code = mmap(nullptr, bytes - skip, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, static_cast<off_t>(skip));
  if (code != MAP_FAILED) {
    std::array<std::uint64_t, 17> registers{};
    if (!stack.empty()) std::memcpy(registers.data(), stack.data(), std::min(stack.size(), sizeof registers));
    registers.back() = reinterpret_cast<std::uint64_t>(code) + at % (bytes - skip);
    // Return addresses that lead back into the file.
    std::vector<std::uint64_t> words(64, registers.back());
    std::vector<std::uint8_t> memory(stack);
    memory.resize(memory.size() / 8 * 8);
    const auto* begin = reinterpret_cast<const std::uint8_t*>(words.data());
    memory.insert(memory.end(), begin, begin + words.size() * sizeof(std::uint64_t));
    Unwinder unwinder;
    unwinder.chain({getpid(), registers, memory}, 1, 64);
    munmap(code, bytes - skip);
  }
  close(fd);
  unlink(path.c_str());
  return 0;
}
