// A growing column that never copies what it holds.
//
// A trace has up to 10^8 rows; doubling a std::vector of them would touch every byte again and again and peak at three
// times the need. Chunks of fixed size cost one pointer each and keep references valid.
#pragma once

#include <cassert>
#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

namespace culprit {

/// Append-only array of trivially copyable T in chunks of 2^16 elements; index is O(1).
template <class T>
class ChunkedVector {
  static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__);

 public:
  static constexpr std::size_t kShift = 16;
  static constexpr std::size_t kChunk = std::size_t{1} << kShift;

  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }

  T& operator[](std::size_t i) { return assert(i < size_), chunks_[i >> kShift][i & (kChunk - 1)]; }
  const T& operator[](std::size_t i) const { return assert(i < size_), chunks_[i >> kShift][i & (kChunk - 1)]; }
  T& back() { return (*this)[size_ - 1]; }
  const T& back() const { return (*this)[size_ - 1]; }

  void push_back(const T& value) {
    if ((size_ & (kChunk - 1)) == 0) add_chunk();
    chunks_[size_ >> kShift][size_ & (kChunk - 1)] = value;
    ++size_;
  }

  /// Grows to `size` rows with `value`; never shrinks.
  void resize(std::size_t size, const T& value) {
    while (size_ < size) push_back(value);
  }

  void clear() {
    chunks_.clear();
    size_ = 0;
  }

  /// Bytes held, whole chunks counted.
  [[nodiscard]] std::size_t bytes() const { return chunks_.size() * kChunk * sizeof(T); }

 private:
  struct Free {
    void operator()(T* chunk) const { ::operator delete(chunk); }
  };

  /// Owned before there is a place for it, which may find no memory.
  void add_chunk() {
    std::unique_ptr<T[], Free> chunk(static_cast<T*>(::operator new(kChunk * sizeof(T))));
    chunks_.push_back(std::move(chunk));
  }

  /// Bare memory: what no row has used is never touched, and costs nothing. (An array of T would be written whole.)
  std::vector<std::unique_ptr<T[], Free>> chunks_;
  std::size_t size_ = 0;
};

}  // namespace culprit
