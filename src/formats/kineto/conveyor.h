// Pieces of text on their way from the workers, who cut and extract them, to the one thread that joins them in order.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "formats/kineto/extract.h"

namespace culprit::formats::kineto {

/// A piece of text with room for what the extractor writes around it.
struct Chunk {
  /// A buffer that a large event made larger is given back.
  static constexpr std::size_t kKeep = std::size_t{2} << 20;

  std::unique_ptr<char[]> buffer;
  std::size_t capacity = 0;
  std::size_t size = 0;
  std::uint64_t offset = 0;  // of the text in the whole text
  bool last = false;
  bool extracted = false;
  std::size_t worker = 0;
  Batch batch;

  char* text() { return buffer.get() + 1; }
  [[nodiscard]] std::string_view view() const { return {buffer.get() + 1, size}; }
  void reserve(std::size_t bytes) {
    if (bytes <= capacity) return;
    auto larger = std::make_unique_for_overwrite<char[]>(bytes + 1 + kTail);
    if (size != 0) std::memcpy(larger.get() + 1, text(), size);
    buffer = std::move(larger);
    capacity = bytes;
  }
  void recycle() {
    size = 0;
    last = extracted = false;
    if (capacity > kKeep) {
      buffer.reset();
      capacity = 0;
    }
  }
};

/// Chunks on their way: free -> filled and extracted by a worker -> taken in order by the joining thread. When one side
/// fails, nobody waits any longer.
class Conveyor {
 public:
  explicit Conveyor(std::size_t chunks) : chunks_(chunks) {
    for (Chunk& chunk : chunks_) free_.push_back(&chunk);
  }

  /// nullptr once stopped.
  Chunk* take_free() {
    std::unique_lock lock(mutex_);
    some_free_.wait(lock, [&] { return stopped_ || !free_.empty(); });
    if (stopped_) return nullptr;
    Chunk* chunk = free_.back();
    free_.pop_back();
    return chunk;
  }
  /// Fixes the place of `chunk` in the order; called in the order of the text.
  void filled(Chunk* chunk) {
    const std::lock_guard lock(mutex_);
    order_.push_back(chunk);
    all_filled_ = chunk->last;
  }
  void extracted(Chunk* chunk) {
    const std::lock_guard lock(mutex_);
    chunk->extracted = true;
    if (order_.front() == chunk) next_extracted_.notify_one();
  }
  /// The next chunk in order once it is extracted; nullptr after the last one or once stopped.
  Chunk* take_extracted() {
    std::unique_lock lock(mutex_);
    if (order_.empty() && all_filled_) return nullptr;
    next_extracted_.wait(lock, [&] { return stopped_ || (!order_.empty() && order_.front()->extracted); });
    if (stopped_) return nullptr;
    Chunk* chunk = order_.front();
    order_.pop_front();
    return chunk;
  }
  void recycle(Chunk* chunk) {
    chunk->recycle();
    const std::lock_guard lock(mutex_);
    free_.push_back(chunk);
    some_free_.notify_one();
  }
  /// Lets everybody go; `why` is what a worker failed of.
  void stop(std::exception_ptr why = nullptr) {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    if (!failure_) failure_ = std::move(why);
    some_free_.notify_all();
    next_extracted_.notify_all();
  }
  /// What a worker failed of; to be asked when no worker runs any more.
  [[nodiscard]] std::exception_ptr failure() const { return failure_; }

 private:
  std::mutex mutex_;
  std::condition_variable some_free_;       ///< one worker at a time waits for it
  std::condition_variable next_extracted_;  ///< the joining thread waits for it
  std::vector<Chunk> chunks_;
  std::vector<Chunk*> free_;  ///< the last one used stands last: its memory is still in a cache
  std::deque<Chunk*> order_;
  bool all_filled_ = false;
  bool stopped_ = false;
  std::exception_ptr failure_;
};

}  // namespace culprit::formats::kineto
