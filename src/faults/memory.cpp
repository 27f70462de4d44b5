// Memory pressure: this process takes what is available and then a share of the swap, and keeps touching all of it.

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/file.h"
#include "core/hash.h"
#include "faults/catalog.h"
#include "faults/files.h"
#include "faults/injector.h"

namespace culprit::faults {

namespace {

constexpr std::size_t kStep = 16U << 20U;

struct MemoryNow {
  std::int64_t total = 0;
  std::int64_t available = 0;
  std::int64_t swap_free = 0;
};

MemoryNow memory_now() {
  const std::string text = read_beginning("/proc/meminfo").value_or(std::string());
  const auto bytes = [&](std::string_view key) { return number_after(text, key).value_or(0) * 1024; };
  return {bytes("MemTotal:"), bytes("MemAvailable:"), bytes("SwapFree:")};
}

std::int64_t pages_swapped_out() {
  return number_after(read_beginning("/proc/vmstat").value_or(std::string()), "pswpout").value_or(0);
}

class Memory final : public Injector {
 public:
  Memory(std::size_t bytes, std::int64_t least_swap) : bytes_(bytes / kStep * kStep), least_swap_(least_swap) {}
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() override { end(); }

  [[nodiscard]] std::string what() const override {
    return fmt::format("{} of memory are taken, more than fits without swap",
                       format_bytes(static_cast<double>(bytes_)));
  }
  Status prepare(const std::function<bool()>&) override {
    // If the kernel has to end somebody, then this process.
    return write_small_file("/proc/self/oom_score_adj", "1000");
  }
  Status begin(Guard&) override {
    swapped_before_ = pages_swapped_out();
    void* const memory =
        mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
      return environment_error(fmt::format("no memory: {}", errno_text(errno)),
                               format_bytes(static_cast<double>(bytes_)));
    memory_ = static_cast<std::byte*>(memory);
    return {};
  }
  Result<Ns> tick(Guard&, Ns now) override {
    // One step at a time, so that signals and the guard are heard while it swaps.
    const bool may_grow = memory_now().swap_free > least_swap_;
    if (position_ >= taken_ && (!may_grow || taken_ == bytes_)) position_ = 0;
    if (position_ >= taken_ && may_grow) taken_ = std::min(bytes_, taken_ + kStep);
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t end = std::min(taken_, position_ + kStep);
    for (; position_ < end; position_ += page) fill(position_, page);
    return now + 1'000'000;
  }
  void end() override {
    if (memory_ == nullptr) return;
    swapped_ = pages_swapped_out() - swapped_before_;
    munmap(memory_, bytes_);
    memory_ = nullptr;
  }
  [[nodiscard]] std::vector<Figure> figures() const override {
    return {{"bytes_taken", static_cast<std::int64_t>(taken_)},
            {"pages_swapped_out_by_all", memory_ != nullptr ? pages_swapped_out() - swapped_before_ : swapped_}};
  }

 private:
  /// Different words everywhere, so that compressed swap does not shrink them away.
  void fill(std::size_t offset, std::size_t bytes) {
    std::uint64_t value = hash_parts(offset, ++rounds_);
    for (std::size_t i = 0; i < bytes; i += sizeof value) {
      value = value * 6364136223846793005U + 1442695040888963407U;
      std::memcpy(memory_ + offset + i, &value, sizeof value);
    }
  }

  std::size_t bytes_;
  std::int64_t least_swap_;
  std::byte* memory_ = nullptr;
  std::size_t taken_ = 0;
  std::size_t position_ = 0;
  std::uint64_t rounds_ = 0;
  std::int64_t swapped_before_ = 0;
  std::int64_t swapped_ = 0;
};

}  // namespace

Status memory_available() {
  const MemoryNow now = memory_now();
  constexpr std::int64_t kLeastSwap = 256LL << 20;
  if (now.swap_free >= kLeastSwap) return {};
  return environment_error(
      now.swap_free == 0 ? std::string("this machine has no free swap, so a process would be killed instead of slowed")
                         : fmt::format("only {} of swap are free", format_bytes(static_cast<double>(now.swap_free))),
      "/proc/meminfo", "add at least 256 MiB of swap");
}

Result<std::unique_ptr<Injector>> make_memory(const Request& request, const ProcessHandle*) {
  const MemoryNow now = memory_now();
  // At least half of the swap stays free.
  const double swap = 0.5 * request.severity * static_cast<double>(now.swap_free);
  const auto bytes = static_cast<std::size_t>(now.available) + static_cast<std::size_t>(swap);
  return std::unique_ptr<Injector>(std::make_unique<Memory>(bytes, now.swap_free / 2));
}

}  // namespace culprit::faults
