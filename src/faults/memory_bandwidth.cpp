// Threads that copy buffers larger than the last-level cache, with loads that miss and stores that go past the cache:
// whoever needs memory on the same socket waits longer for it.

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/file.h"
#include "faults/catalog.h"
#include "faults/files.h"
#include "faults/injector.h"
#include "faults/text.h"
#include "faults/workers.h"

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace culprit::faults {

namespace {

constexpr std::int64_t kLeastBytes = 256LL << 20;
constexpr std::int64_t kMostBytes = 2LL << 30;
constexpr std::size_t kChunk = 256U << 10U;  // copied between two looks at the clock

std::int64_t last_level_cache() {
  const long size = sysconf(_SC_LEVEL3_CACHE_SIZE);
  return size > 0 ? size : 32 << 20;
}

/// Source and destination of all threads together: twice the cache, within bounds.
std::int64_t wanted_bytes() { return std::clamp<std::int64_t>(2 * last_level_cache(), kLeastBytes, kMostBytes); }

std::int64_t bytes_available() {
  const auto text = read_beginning("/proc/meminfo");
  return text ? number_after(*text, "MemAvailable:").value_or(0) * 1024 : 0;
}

void stream_copy(std::byte* to, const std::byte* from, std::size_t bytes) {
#if defined(__x86_64__)
  for (std::size_t i = 0; i < bytes; i += 64)
    for (std::size_t j = 0; j < 64; j += 16)
      _mm_stream_si128(reinterpret_cast<__m128i*>(to + i + j),
                       _mm_load_si128(reinterpret_cast<const __m128i*>(from + i + j)));
  _mm_sfence();
#else
  std::memcpy(to, from, bytes);
#endif
}

class MemoryBandwidth final : public Injector {
 public:
  MemoryBandwidth(std::vector<double> duties, std::vector<int> cpus)
      : duties_(std::move(duties)), cpus_(std::move(cpus)) {
    // Whole chunks for each half of each thread's share.
    const auto share = static_cast<std::size_t>(wanted_bytes()) / duties_.size() / 2;
    half_ = std::max<std::size_t>(1, share / kChunk) * kChunk;
  }
  MemoryBandwidth(const MemoryBandwidth&) = delete;
  MemoryBandwidth& operator=(const MemoryBandwidth&) = delete;
  ~MemoryBandwidth() override {
    workers_.stop();
    if (memory_ != nullptr) munmap(memory_, 2 * half_ * duties_.size());
  }

  [[nodiscard]] std::string what() const override {
    return fmt::format("{} thread{} of CPU {} stream through {} of memory", duties_.size(),
                       duties_.size() == 1 ? "" : "s", ranges_text(cpus_),
                       format_bytes(static_cast<double>(2 * half_ * duties_.size())));
  }

  Status prepare(const std::function<bool()>& cancelled) override {
    const std::size_t bytes = 2 * half_ * duties_.size();
    void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
      return environment_error(fmt::format("no memory: {}", errno_text(errno)),
                               format_bytes(static_cast<double>(bytes)));
    memory_ = static_cast<std::byte*>(memory);
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    for (std::size_t i = 0; i < bytes; i += page) {
      memory_[i] = std::byte{1};
      constexpr std::size_t kLook = 64U << 20U;
      if (i % kLook == 0 && cancelled()) return environment_error("interrupted before anything was changed", "");
    }
    next_.assign(duties_.size(), 0);
    return {};
  }
  Status begin(Guard&) override {
    began_ = monotonic_now();
    return workers_.start(duties_, cpus_, [this](std::size_t index, WorkDone& done) {
      std::byte* const from = memory_ + 2 * half_ * index;
      stream_copy(from + half_ + next_[index], from + next_[index], kChunk);
      next_[index] = (next_[index] + kChunk) % half_;
      done.rounds.fetch_add(1, std::memory_order_relaxed);
      done.bytes.fetch_add(2 * static_cast<std::int64_t>(kChunk), std::memory_order_relaxed);
    });
  }
  Result<Ns> tick(Guard&, Ns now) override { return now + 1'000'000'000; }
  void end() override {
    workers_.stop();
    ended_ = monotonic_now();
  }
  [[nodiscard]] std::vector<Figure> figures() const override {
    const std::int64_t bytes = workers_.sum(&WorkDone::bytes);
    const Ns elapsed = std::max<Ns>(1, (ended_ != 0 ? ended_ : monotonic_now()) - began_);
    return {{"threads", static_cast<std::int64_t>(duties_.size())},
            {"buffer_bytes", static_cast<std::int64_t>(2 * half_ * duties_.size())},
            {"bytes_read_and_written", bytes},
            {"bytes_per_s", static_cast<double>(bytes) * 1e9 / static_cast<double>(elapsed)},
            {"cpu_ns", workers_.sum(&WorkDone::cpu_ns)}};
  }

 private:
  std::vector<double> duties_;
  std::vector<int> cpus_;
  std::size_t half_ = 0;  ///< bytes of one thread's source, and of its destination
  std::byte* memory_ = nullptr;
  std::vector<std::size_t> next_;
  Ns began_ = 0;
  Ns ended_ = 0;
  Workers workers_;
};

}  // namespace

Result<std::unique_ptr<Injector>> make_memory_bandwidth(const Request& request, const ProcessHandle* target) {
  std::vector<int> cpus = allowed_cpus(target != nullptr ? target->id().pid : 0);
  if (cpus.empty()) return environment_error("the CPUs it may run on cannot be read", "target");
  auto duties = request.threads > 0 ? std::vector<double>(request.threads, request.severity)
                                    : duties_of_share(request.severity, cpus.size());
  if (duties.empty()) return usage_error("this severity is less than half a percent of one CPU", "raise --severity");
  return std::unique_ptr<Injector>(std::make_unique<MemoryBandwidth>(std::move(duties), std::move(cpus)));
}

Status memory_bandwidth_available() {
  // A quarter of what is available, so that this becomes no memory shortage by itself.
  const std::int64_t available = bytes_available();
  if (4 * wanted_bytes() <= available) return {};
  return environment_error(fmt::format("only {} of memory are available", format_bytes(static_cast<double>(available))),
                           "", fmt::format("{} must be", format_bytes(static_cast<double>(4 * wanted_bytes()))));
}

}  // namespace culprit::faults
