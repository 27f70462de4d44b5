#include "model.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "kernels.h"
#include "ranges.h"

namespace tinyserve {

namespace {

/// SplitMix64: the same weights everywhere.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  float uniform() {  // -1 .. 1
    std::uint64_t z = (state_ += 0x9E3779B97F4A7C15U);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
    return static_cast<float>((z ^ (z >> 31)) >> 40) * 0x1p-23F - 1.0F;
  }

 private:
  std::uint64_t state_;
};

std::vector<float> random_floats(Random& random, std::size_t n, float scale) {
  std::vector<float> out(n);
  for (float& f : out) f = random.uniform() * scale;
  return out;
}

Matrix random_matrix(Random& random, int k, int n) {
  Matrix out{k, n, {}};
  out.packed = random_floats(random, static_cast<std::size_t>(k) * static_cast<std::size_t>(n),
                             std::sqrt(3.0F / static_cast<float>(k)));
  return out;
}

void layer_norm(const float* x, int width, float* out) {
  float mean = 0;
  for (int i = 0; i < width; ++i) mean += x[i];
  mean /= static_cast<float>(width);
  float square = 0;
  for (int i = 0; i < width; ++i) square += (x[i] - mean) * (x[i] - mean);
  const float scale = 1.0F / std::sqrt(square / static_cast<float>(width) + 1e-5F);
  for (int i = 0; i < width; ++i) out[i] = (x[i] - mean) * scale;
}

/// Rotary position: turns pairs of one head by angles that grow with the position. `turns` holds the cosines, then the
/// sines, of one position.
void rotate(float* head, int head_dim, const float* turns) {
  const int half = head_dim / 2;
  for (int i = 0; i < half; ++i) {
    const float a = head[i];
    const float b = head[i + half];
    head[i] = a * turns[i] - b * turns[half + i];
    head[i + half] = a * turns[half + i] + b * turns[i];
  }
}

std::vector<float> rotary_table(int positions, int head_dim) {
  const int half = head_dim / 2;
  std::vector<float> out(static_cast<std::size_t>(positions) * static_cast<std::size_t>(head_dim));
  float* at = out.data();
  for (int p = 0; p < positions; ++p, at += head_dim)
    for (int i = 0; i < half; ++i) {
      const double angle = p * std::pow(10000.0, -static_cast<double>(i) / half);
      at[i] = static_cast<float>(std::cos(angle));
      at[half + i] = static_cast<float>(std::sin(angle));
    }
  return out;
}

}  // namespace

Matrix pack(const std::vector<float>& rows, int k, int n) {
  Matrix out{k, n, std::vector<float>(rows.size())};
  for (int i = 0; i < k; ++i)
    for (int j = 0; j < n; ++j)
      out.packed[(static_cast<std::size_t>(j / kPanel) * static_cast<std::size_t>(k) + static_cast<std::size_t>(i)) *
                     kPanel +
                 static_cast<std::size_t>(j % kPanel)] =
          rows[static_cast<std::size_t>(i) * static_cast<std::size_t>(n) + static_cast<std::size_t>(j)];
  return out;
}

std::string Model::refusal(const Shape& s) {
  if (s.layers < 1 || s.layers > 256) return "layers must be 1 to 256";
  if (s.width < kHeadDim || s.width > 8192 || s.width % kHeadDim != 0)
    return "width must be a multiple of 64 up to 8192";
  if (s.vocabulary < 16 || s.vocabulary > 1 << 20 || s.vocabulary % kPanel != 0)
    return "vocabulary must be a multiple of 16 up to 1048576";
  if (s.slots < 1 || s.slots > 1024) return "slots must be 1 to 1024";
  if (s.context < 1 || s.context > 1 << 16) return "context must be 1 to 65536";
  if (!(s.extra >= 0 && s.extra <= 1)) return "extra work must be 0 to 100 percent";
  if (s.threads < 1 || s.threads > 256) return "threads must be 1 to 256";
  return {};
}

Model::Model(const Shape& shape) : shape_(shape), pool_(shape.threads) {
  Random random(shape.seed);
  const int w = shape.width;
  embedding_ = random_floats(random, static_cast<std::size_t>(shape.vocabulary) * static_cast<std::size_t>(w), 1.0F);
  head_ = random_matrix(random, w, shape.vocabulary);
  turns_ = rotary_table(shape.context, kHeadDim);
  const std::size_t cache =
      static_cast<std::size_t>(shape.slots) * static_cast<std::size_t>(shape.context) * static_cast<std::size_t>(w);
  for (int i = 0; i < shape.layers; ++i) {
    Layer layer;
    layer.qkv = random_matrix(random, w, 3 * w);
    layer.out = random_matrix(random, w, w);
    layer.up = random_matrix(random, w, 4 * w);
    layer.down = random_matrix(random, 4 * w, w);
    layer.keys.resize(cache);
    layer.values.resize(cache);
    layers_.push_back(std::move(layer));
  }
  filled_.resize(static_cast<std::size_t>(shape.slots));
}

std::size_t Model::weights() const {
  std::size_t out = embedding_.size() + head_.packed.size();
  for (const Layer& layer : layers_)
    out += layer.qkv.packed.size() + layer.out.packed.size() + layer.up.packed.size() + layer.down.packed.size();
  return out;
}

void Model::release(int slot) {
  if (slot >= 0 && slot < shape_.slots) filled_[static_cast<std::size_t>(slot)] = 0;
}

float* Model::cached(std::vector<float>& cache, int slot, int position) const {
  return cache.data() + (static_cast<std::size_t>(slot) * static_cast<std::size_t>(shape_.context) +
                         static_cast<std::size_t>(position)) *
                            static_cast<std::size_t>(shape_.width);
}

void Model::multiply(const std::vector<float>& x, int rows, const Matrix& w, std::vector<float>& y, bool accumulate) {
  pool_.split(w.n / kPanel, [&](int begin, int end) {
    kernels().gemm(x.data(), rows, w.k, w.packed.data(), begin, end, y.data(), w.n, accumulate);
  });
  owed_ += shape_.extra * (w.n / kPanel);
  const int again = static_cast<int>(owed_);
  if (again == 0) return;
  owed_ -= again;
  unused_.resize(static_cast<std::size_t>(rows) * static_cast<std::size_t>(w.n));
  pool_.split(again, [&](int begin, int end) {
    kernels().gemm(x.data(), rows, w.k, w.packed.data(), begin, end, unused_.data(), w.n, false);
  });
}

void Model::attention(Layer& layer) {
  const int width = shape_.width;
  const int heads = width / kHeadDim;
  const int rows = static_cast<int>(rows_.size());
  pool_.split(heads, [&](int begin, int end) {
    std::vector<float> scores(static_cast<std::size_t>(shape_.context));
    const float scale = 1.0F / std::sqrt(static_cast<float>(kHeadDim));
    for (int head = begin; head < end; ++head) {
      for (int r = 0; r < rows; ++r) {  // keys and values of all rows first: tokens of one piece see each other
        const Row& row = rows_[static_cast<std::size_t>(r)];
        float* qkv = qkv_.data() + static_cast<std::ptrdiff_t>(r) * 3 * width + head * kHeadDim;
        const float* turns = turns_.data() + static_cast<std::ptrdiff_t>(row.position) * kHeadDim;
        rotate(qkv, kHeadDim, turns);
        rotate(qkv + width, kHeadDim, turns);
        std::copy_n(qkv + width, kHeadDim, cached(layer.keys, row.slot, row.position) + head * kHeadDim);
        std::copy_n(qkv + 2 * width, kHeadDim, cached(layer.values, row.slot, row.position) + head * kHeadDim);
      }
      for (int r = 0; r < rows; ++r) {
        const Row& row = rows_[static_cast<std::size_t>(r)];
        kernels().attend(qkv_.data() + static_cast<std::ptrdiff_t>(r) * 3 * width + head * kHeadDim,
                         cached(layer.keys, row.slot, 0) + head * kHeadDim,
                         cached(layer.values, row.slot, 0) + head * kHeadDim, width, row.position + 1, kHeadDim, scale,
                         scores.data(), attended_.data() + static_cast<std::ptrdiff_t>(r) * width + head * kHeadDim);
      }
    }
  });
}

bool Model::forward(std::span<const Piece> pieces, std::span<std::int32_t> next) {
  if (next.size() < pieces.size()) return false;
  rows_.clear();
  std::vector<bool> used(filled_.size());
  for (const Piece& piece : pieces) {
    if (piece.slot < 0 || piece.slot >= shape_.slots || piece.tokens.empty()) return false;
    const auto slot = static_cast<std::size_t>(piece.slot);
    if (used[slot] || piece.tokens.size() > static_cast<std::size_t>(shape_.context - filled_[slot])) return false;
    used[slot] = true;
    for (const std::int32_t token : piece.tokens)
      if (token < 0 || token >= shape_.vocabulary) return false;
  }
  const auto width = static_cast<std::size_t>(shape_.width);
  x_.clear();
  for (const Piece& piece : pieces)
    for (const std::int32_t token : piece.tokens) {
      rows_.push_back({piece.slot, filled_[static_cast<std::size_t>(piece.slot)]++});
      const auto at = embedding_.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(token) * width);
      x_.insert(x_.end(), at, at + static_cast<std::ptrdiff_t>(width));
    }
  const std::size_t n = rows_.size();
  const int rows = static_cast<int>(n);
  normed_.resize(n * width);
  attended_.resize(n * width);
  qkv_.resize(n * width * 3);
  hidden_.resize(n * width * 4);
  const auto normalise = [&] {
    for (std::size_t r = 0; r < n; ++r) layer_norm(&x_[r * width], shape_.width, &normed_[r * width]);
  };

  for (std::size_t i = 0; i < layers_.size(); ++i) {
    char name[32];
    std::snprintf(name, sizeof name, "layer %zu", i);
    const Range layer_range(name);
    Layer& layer = layers_[i];
    {
      const Range range("attention");
      normalise();
      multiply(normed_, rows, layer.qkv, qkv_, false);
      attention(layer);
      multiply(attended_, rows, layer.out, x_, true);
    }
    {
      const Range range("mlp");
      normalise();
      multiply(normed_, rows, layer.up, hidden_, false);
      for (float& f : hidden_) f = std::max(f, 0.0F);
      multiply(hidden_, rows, layer.down, x_, true);
    }
  }

  const Range range("sample");
  last_.resize(pieces.size() * width);
  std::size_t row = 0;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    row += pieces[i].tokens.size();
    layer_norm(&x_[(row - 1) * width], shape_.width, &last_[i * width]);
  }
  logits_.resize(pieces.size() * static_cast<std::size_t>(shape_.vocabulary));
  multiply(last_, static_cast<int>(pieces.size()), head_, logits_, false);
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const auto begin = logits_.begin() + static_cast<std::ptrdiff_t>(i * static_cast<std::size_t>(shape_.vocabulary));
    next[i] = static_cast<std::int32_t>(std::max_element(begin, begin + shape_.vocabulary) - begin);
  }
  return true;
}

}  // namespace tinyserve
