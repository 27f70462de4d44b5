// Two loads whose every operation a recorder notices: threads that hand the CPU to each other, and a loop of the
// cheapest system call that reads. Prints one line: operations, wall ns and CPU ns per operation.
#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string_view>
#include <thread>

namespace {

std::int64_t now(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

std::int64_t switches() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_nvcsw + usage.ru_nivcsw;
}

/// Both threads on one CPU, so that every hand-over is a context switch. Returns the switches made.
std::int64_t ping_pong(std::int64_t rounds) {
  std::array<int, 2> there{};
  std::array<int, 2> back{};
  if (pipe(there.data()) != 0 || pipe(back.data()) != 0) std::exit(4);
  const std::int64_t before = switches();
  std::thread other([&] {
    char byte = 0;
    for (std::int64_t i = 0; i < rounds; ++i)
      if (read(there[0], &byte, 1) != 1 || write(back[1], &byte, 1) != 1) std::exit(4);
  });
  char byte = 'x';
  for (std::int64_t i = 0; i < rounds; ++i)
    if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1) std::exit(4);
  other.join();
  return switches() - before;
}

std::int64_t read_loop(std::int64_t count) {
  const int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
  char byte = 0;
  for (std::int64_t i = 0; i < count; ++i)
    if (read(zero, &byte, 1) != 1) std::exit(4);
  close(zero);
  return count;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: record_load switch|read COUNT CPU\n");
    return 2;
  }
  const std::int64_t count = std::atoll(argv[2]);
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<std::size_t>(std::atoi(argv[3])), &one);
  if (sched_setaffinity(0, sizeof one, &one) != 0) return 4;
  const std::int64_t wall = now(CLOCK_MONOTONIC);
  const std::int64_t cpu = now(CLOCK_PROCESS_CPUTIME_ID);
  const std::int64_t done = std::string_view(argv[1]) == "switch" ? ping_pong(count) : read_loop(count);
  const auto per = [&](std::int64_t ns) { return static_cast<double>(ns) / static_cast<double>(done); };
  std::printf("%lld %.1f %.1f\n", static_cast<long long>(done), per(now(CLOCK_MONOTONIC) - wall),
              per(now(CLOCK_PROCESS_CPUTIME_ID) - cpu));
  return 0;
}
