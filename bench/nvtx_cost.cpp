// What one NVTX push and one pop cost a program: without a tool, with a tool that does nothing, with Culprit's library
// and somebody who drains its rings. Each in a process of its own, in turns, so that all see the same machine.
//
//   nvtx_cost [ROUNDS]     default 15
#include <fmt/format.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>
#include <vector>

#include "nvtx_client.h"
#include "record/nvtx/counter_clock.h"
#include "record/nvtx/ring_folder.h"
#include "record/nvtx/ring_format.h"
#include "record/nvtx/ring_reader.h"

namespace {

constexpr int kPairs = 2000;  // less than a ring holds
constexpr int kBatches = 20;

double now_ns() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

void pause_ms(long ms) {
  const timespec t{0, ms * 1'000'000};
  nanosleep(&t, nullptr);
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

/// Nanoseconds per pair of push and pop, median over batches.
double measure() {
  std::vector<double> batches;
  for (int batch = 0; batch < kBatches; ++batch) {
    const double begin = now_ns();
    for (int i = 0; i < kPairs; ++i) {
      nvtx_client_push("step[DECODE bs=4 toks=4]");
      nvtx_client_pop();
    }
    batches.push_back((now_ns() - begin) / kPairs);
    pause_ms(3);  // the rings are drained meanwhile
  }
  return median(batches);
}

struct Case {
  std::string name;
  std::string library;
  std::vector<double> results;
};

/// One process with `library` as its tool.
double run_case(const Case& one, const culprit::record::nvtx::RingFolder& folder, std::uint64_t& dropped) {
  int pipe_fds[2];
  if (pipe(pipe_fds) != 0) std::exit(1);
  const pid_t pid = fork();
  if (pid == 0) {
    if (!one.library.empty()) setenv("NVTX_INJECTION64_PATH", one.library.c_str(), 1);
    setenv(CULPRIT_NVTX_DIR_VARIABLE, folder.path().c_str(), 1);
    measure();  // warms up
    const double result = measure();
    _exit(write(pipe_fds[1], &result, sizeof result) == sizeof result ? 0 : 1);
  }
  close(pipe_fds[1]);
  std::vector<culprit::record::nvtx::RingReader> rings;
  int status = 0;
  while (waitpid(pid, &status, WNOHANG) == 0) {
    for (const std::string& file : folder.files()) {
      culprit::record::nvtx::RingReader ring;
      if (culprit::record::nvtx::RingReader::open(folder.fd(), file, ring) != culprit::record::nvtx::RingState::ready)
        continue;
      folder.remove(file);
      rings.push_back(std::move(ring));
    }
    for (auto& ring : rings) ring.drain([](const culprit::record::nvtx::Event&) {});
    pause_ms(1);
  }
  for (auto& ring : rings) {
    ring.drain([](const culprit::record::nvtx::Event&) {});
    dropped += ring.dropped();
  }
  double result = 0;
  if (read(pipe_fds[0], &result, sizeof result) != sizeof result) std::exit(1);
  close(pipe_fds[0]);
  return result;
}

template <class Read>
double clock_cost(Read read) {
  std::vector<double> batches;
  std::uint64_t sum = 0;
  for (int batch = 0; batch < kBatches; ++batch) {
    const double begin = now_ns();
    for (int i = 0; i < kPairs; ++i) sum += read();
    batches.push_back((now_ns() - begin) / kPairs);
  }
  return sum == 0 ? 0.0 : median(batches);
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::max(1, std::atoi(argv[1])) : 15;
  unsetenv("NVTX_INJECTION64_PATH");
  auto library = culprit::record::nvtx::find_library();
  auto folder = culprit::record::nvtx::RingFolder::create();
  if (!library || !folder) {
    fmt::print(stderr, "nvtx_cost: {}\n", to_string(library ? folder.error() : library.error()));
    return 4;
  }
  const std::string here = library->substr(0, library->rfind('/'));
  std::vector<Case> cases = {
      {"no tool", "", {}}, {"empty tool", here + "/libnvtx_empty.so", {}}, {"culprit", *library, {}}};
  std::vector<double> clock_ns;
  std::vector<double> counter_ns;
  std::uint64_t dropped = 0;
  for (int round = 0; round < rounds; ++round) {
    for (Case& one : cases) one.results.push_back(run_case(one, *folder, dropped));
    clock_ns.push_back(clock_cost([] { return static_cast<std::uint64_t>(now_ns()); }));
    counter_ns.push_back(clock_cost(culprit::record::nvtx::read_counter));
  }
  fmt::print("NVTX push + pop, ns per pair (median and minimum of {} processes each)\n", rounds);
  for (const Case& one : cases)
    fmt::print("  {:<12} {:7.1f} {:7.1f}\n", one.name, median(one.results), *std::ranges::min_element(one.results));
  fmt::print("of which two clock reads\n  clock_gettime {:6.1f}\n  cycle counter {:6.1f}\n", 2 * median(clock_ns),
             2 * median(counter_ns));
  fmt::print("records dropped: {}\n", dropped);
  return 0;
}
