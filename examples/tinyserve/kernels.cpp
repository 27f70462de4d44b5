// Compiled once per instruction set with KERNEL_SET naming it (see CMakeLists.txt); kernels_choose.cpp picks one.
#include <cmath>
#include <cstring>

#include "kernels.h"

namespace tinyserve::KERNEL_SET {

namespace {

using Vec = float __attribute__((vector_size(kPanel * sizeof(float))));

inline void load(Vec& v, const float* from) { std::memcpy(&v, from, sizeof(Vec)); }
inline void store(float* to, const Vec& v) { std::memcpy(to, &v, sizeof(Vec)); }

/// Rows x Panels accumulators stay in registers while k runs.
template <int Rows, int Panels>
void tile(const float* x, int k, const float* w, float* y, int y_stride, bool accumulate) {
  Vec sum[Rows][Panels] = {};
  const long panel_floats = static_cast<long>(k) * kPanel;
  for (int i = 0; i < k; ++i)
    for (int p = 0; p < Panels; ++p) {
      Vec weights;
      load(weights, w + p * panel_floats + static_cast<long>(i) * kPanel);
      for (int r = 0; r < Rows; ++r) sum[r][p] += weights * x[static_cast<long>(r) * k + i];
    }
  for (int r = 0; r < Rows; ++r)
    for (int p = 0; p < Panels; ++p) {
      float* out = y + static_cast<long>(r) * y_stride + p * kPanel;
      if (accumulate) {
        Vec old;
        load(old, out);
        sum[r][p] += old;
      }
      store(out, sum[r][p]);
    }
}

template <int Panels>
void rows_of(const float* x, int rows, int k, const float* w, float* y, int y_stride, bool accumulate) {
  int r = 0;
  const auto at = [&](auto run, int step) {
    for (; r + step <= rows; r += step)
      run(x + static_cast<long>(r) * k, k, w, y + static_cast<long>(r) * y_stride, y_stride, accumulate);
  };
#ifdef __AVX512F__
  at(tile<8, Panels>, 8);
#endif
  at(tile<4, Panels>, 4);
  at(tile<1, Panels>, 1);
}

void gemm(const float* x, int rows, int k, const float* w, int begin, int end, float* y, int y_stride,
          bool accumulate) {
#ifdef __AVX512F__
  constexpr int kPanels = 2;
#else
  constexpr int kPanels = 1;
#endif
  int p = begin;
  const auto from = [&] { return w + static_cast<long>(p) * k * kPanel; };
  for (; p + kPanels <= end; p += kPanels) rows_of<kPanels>(x, rows, k, from(), y + p * kPanel, y_stride, accumulate);
  for (; p < end; ++p) rows_of<1>(x, rows, k, from(), y + p * kPanel, y_stride, accumulate);
}

void attend(const float* q, const float* keys, const float* values, int stride, int count, int head_dim, float scale,
            float* scores, float* out) {
  float largest = -INFINITY;
  for (int i = 0; i < count; ++i) {
    Vec sum = {};
    for (int d = 0; d < head_dim; d += kPanel) {
      Vec a, b;
      load(a, q + d);
      load(b, keys + static_cast<long>(i) * stride + d);
      sum += a * b;
    }
    float dot = 0;
    for (int lane = 0; lane < kPanel; ++lane) dot += sum[lane];
    scores[i] = dot * scale;
    largest = scores[i] > largest ? scores[i] : largest;
  }
  float total = 0;
  for (int i = 0; i < count; ++i) {
    scores[i] = std::exp(scores[i] - largest);
    total += scores[i];
  }
  for (int d = 0; d < head_dim; d += kPanel) {
    Vec sum = {};
    for (int i = 0; i < count; ++i) {
      Vec value;
      load(value, values + static_cast<long>(i) * stride + d);
      sum += value * scores[i];
    }
    store(out + d, sum / total);
  }
}

}  // namespace

extern const Kernels kKernels;
const Kernels kKernels = {KERNEL_NAME, gemm, attend};

}  // namespace tinyserve::KERNEL_SET
