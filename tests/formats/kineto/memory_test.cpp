// Memory that runs out anywhere, in any thread, ends the load with one error: nobody waits for who is gone.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <new>
#include <string>

#include "formats/kineto/read_text.h"

namespace {
/// Allocations that still succeed.
std::atomic<std::int64_t> allocations_left{std::numeric_limits<std::int64_t>::max()};

void* allocate_or_null(std::size_t size) {
  if (allocations_left.fetch_sub(1, std::memory_order_relaxed) <= 0) return nullptr;
  return std::malloc(size == 0 ? 1 : size);
}

void* allocate(std::size_t size) {
  if (void* memory = allocate_or_null(size)) return memory;
  throw std::bad_alloc();
}
}  // namespace

void* operator new(std::size_t size) { return allocate(size); }
void* operator new[](std::size_t size) { return allocate(size); }
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return allocate_or_null(size); }
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept { return allocate_or_null(size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete[](void* memory, const std::nothrow_t&) noexcept { std::free(memory); }

namespace culprit::formats::kineto {
namespace {

std::string text_of_many_pieces() {
  std::string events;
  for (int i = 0; i < 3000; ++i)
    events += fmt::format(
        R"({}{{"ph":"X","cat":"cpu_op","name":"op {}","pid":1,"tid":{},"ts":{},"dur":5,"args":{{"External id":{}}}}})",
        i == 0 ? "" : ",", i, i % 7, i, i + 1);
  return test::with_events(events);
}

/// Reads with every number of allocations from few to enough; gives how often it was not enough.
int failures(const std::string& text) {
  const test::TempDir dir;
  const std::string path = dir.file("trace.json", text);
  EXPECT_TRUE(test::read_json(text));  // what is initialised at first use
  int failed = 0;
  for (std::int64_t allowed = 16;; allowed = allowed * 9 / 8 + 1) {
    auto input = Input::open(path);
    EXPECT_TRUE(input);
    allocations_left = allowed;
    const auto trace = read(std::move(*input), {.workers = 3, .progress = {}, .piece_bytes = 8 << 10});
    const bool enough = allocations_left > 0;
    allocations_left = std::numeric_limits<std::int64_t>::max();
    if (trace) {
      EXPECT_EQ(trace->slices.size(), 3000U);
      EXPECT_EQ(trace->losses.total(), 0U) << "memory that is missing is no fault of the text";
      if (enough) return failed;
      continue;
    }
    ++failed;
    EXPECT_EQ(trace.error().kind, ErrorKind::input);
    EXPECT_NE(trace.error().where.find("trace.json"), std::string::npos) << to_string(trace.error());
  }
}

TEST(Memory, RunningOutOfItAnywhereIsOneErrorAndNobodyWaits) {
  EXPECT_GT(failures(text_of_many_pieces()), 20);
  EXPECT_GT(failures(test::gzip(text_of_many_pieces())), 20);
}

}  // namespace
}  // namespace culprit::formats::kineto
