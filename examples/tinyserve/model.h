// A decoder-only transformer with random weights and a KV cache, on the CPU. Small, but nothing in it is pretended:
// every token goes through every matrix.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "thread_pool.h"

namespace tinyserve {

struct Shape {
  int layers = 8;
  int width = 384;  ///< multiple of 64
  int vocabulary = 4096;
  int slots = 8;      ///< requests that can be in the cache at once
  int context = 256;  ///< positions of a slot
  int threads = 1;
  std::uint64_t seed = 1;
  double extra = 0;  ///< share of every multiplication that is done once more, for nothing
};

/// New tokens of one request, to be put behind what its slot already holds.
struct Piece {
  int slot = 0;
  std::span<const std::int32_t> tokens;
};

/// A weight matrix of `k` rows and `n` columns as panels of 16 columns: [n / 16][k][16].
struct Matrix {
  int k = 0;
  int n = 0;
  std::vector<float> packed;
};
/// `rows` is [k][n] row by row; n is a multiple of 16.
Matrix pack(const std::vector<float>& rows, int k, int n);

class Model {
 public:
  static constexpr int kHeadDim = 64;

  explicit Model(const Shape& shape);

  /// Why `shape` cannot be; empty when it can.
  static std::string refusal(const Shape& shape);

  /// One step: puts the pieces through the model; `next` gets the most likely token behind each of them.
  /// Returns false, and does nothing, when a piece is empty, does not fit its slot, or names a token or slot that is
  /// not.
  bool forward(std::span<const Piece> pieces, std::span<std::int32_t> next);

  /// Empties a slot.
  void release(int slot);

  /// The logits behind each piece of the last step, [pieces][vocabulary].
  [[nodiscard]] const std::vector<float>& logits() const { return logits_; }
  [[nodiscard]] std::size_t weights() const;  ///< number of them

 private:
  struct Layer {
    Matrix qkv, out, up, down;
    std::vector<float> keys, values;  // [slot][position][width]
  };
  struct Row {  // a token of this step
    int slot, position;
  };

  void multiply(const std::vector<float>& x, int rows, const Matrix& w, std::vector<float>& y, bool accumulate);
  void attention(Layer& layer);
  [[nodiscard]] float* cached(std::vector<float>& cache, int slot, int position) const;

  Shape shape_;
  ThreadPool pool_;
  std::vector<float> embedding_;  // [vocabulary][width]
  std::vector<float> turns_;      // [context][head]: cosines and sines of each position
  Matrix head_;
  std::vector<Layer> layers_;
  double owed_ = 0;            // panels to be multiplied once more
  std::vector<float> unused_;  // what comes of it
  std::vector<int> filled_;  // positions in use, per slot

  std::vector<Row> rows_;
  std::vector<float> x_, normed_, qkv_, attended_, hidden_, last_, logits_;
};

}  // namespace tinyserve
