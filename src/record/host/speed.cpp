#include "record/host/speed.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <ctime>
#include <numeric>
#include <optional>
#include <random>

namespace culprit::record {

namespace {

constexpr std::size_t kLine = 64 / sizeof(std::uint32_t);
constexpr std::size_t kWalked = std::size_t{256} << 10;
constexpr int kMultiplications = 4000;
constexpr int kSteps = 60;
constexpr Ns kOffCpu = 3'000;  ///< wall time beyond that on the CPU: the thread was interrupted

Ns read(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return Ns{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

}  // namespace

SpeedProbes::SpeedProbes() : next_(kWalked / sizeof(std::uint32_t)) {
  std::mt19937 random(1);  // NOLINT(cert-msc51-cpp): the work is the same everywhere
  std::vector<std::uint32_t> lines(next_.size() / kLine);
  std::iota(lines.begin(), lines.end(), 0U);
  std::ranges::shuffle(lines, random);
  for (std::size_t i = 0; i < lines.size(); ++i)
    next_[lines[i] * kLine] = lines[(i + 1) % lines.size()] * static_cast<std::uint32_t>(kLine);
  for (std::uint8_t& operation : code_) operation = static_cast<std::uint8_t>(random() % 8);
}

std::uint64_t SpeedProbes::multiply() {
  std::uint64_t value = seed_ | 1;
  for (int i = 0; i < kMultiplications; ++i) value = value * 6364136223846793005U + 1442695040888963407U;
  return value;
}

std::uint64_t SpeedProbes::walk() {
  for (int i = 0; i < kSteps; ++i) at_ = next_[at_];
  return at_;
}

std::uint64_t SpeedProbes::interpret() {
  std::uint64_t a = seed_;
  std::uint64_t b = 12345;
  for (const std::uint8_t operation : code_) switch (operation) {
      case 0:
        a += b;
        break;
      case 1:
        b ^= a >> 7;
        break;
      case 2:
        a = a * 31 + 1;
        break;
      case 3:
        if ((a & 1) != 0) b += 3;
        break;
      case 4:
        std::swap(a, b);
        break;
      case 5:
        b -= a << 3;
        break;
      case 6:
        if ((b & 4) != 0) a ^= 0x9e3779b9U;
        break;
      default:
        a ^= b;
        break;
    }
  return a + b;
}

bool SpeedProbes::sample(Ns now, Emitter& emitter) {
  if (now < due_) return false;
  due_ = now + kEvery;
  const auto time = [&](Track& track, std::uint64_t (SpeedProbes::*work)()) -> std::optional<Ns> {
    const Ns cpu = read(CLOCK_THREAD_CPUTIME_ID);
    const Ns begin = read(CLOCK_MONOTONIC);
    seed_ += (this->*work)();
    const Ns wall = read(CLOCK_MONOTONIC) - begin;
    if (wall > read(CLOCK_THREAD_CPUTIME_ID) - cpu + kOffCpu) {
      ++preempted_;
      return std::nullopt;
    }
    emitter.put(track, now, static_cast<double>(wall));
    return wall;
  };
  // What the program that ran before left of the code in the caches is not measured; what it left of memory is.
  seed_ += multiply();
  time(arithmetic_, &SpeedProbes::multiply);
  time(memory_, &SpeedProbes::walk);
  seed_ += interpret();
  const int cpu = sched_getcpu();
  const auto wall = time(branches_, &SpeedProbes::interpret);
  if (wall && cpu >= 0 && sched_getcpu() == cpu) {
    const auto [of, is_new] = branches_of_.try_emplace(cpu);
    if (is_new) of->second = {fmt::format("host.cpu{}.speed.branches", cpu), "ns"};
    emitter.put(of->second, now, static_cast<double>(*wall));
  }
  return true;
}

void SpeedProbes::sights(std::vector<Sight>& out) {
  out.push_back({"speed of the machine: fixed work, timed", true, "", ""});
}

}  // namespace culprit::record
