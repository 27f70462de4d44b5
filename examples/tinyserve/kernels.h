// The arithmetic of the model. One source, compiled for several instruction sets; the best the machine has is chosen at
// run time. Every output element is summed in the order of k, whatever the tile it falls into, so that a request's
// tokens depend neither on the batch it shared nor on the number of threads.
#pragma once

namespace tinyserve {

constexpr int kPanel = 16;  ///< columns of a weight matrix that lie together

struct Kernels {
  const char* name;
  /// y[rows][panels * 16] (+)= x[rows][k] * w, for the panels [begin, end) of w (see pack() in model.cpp).
  void (*gemm)(const float* x, int rows, int k, const float* w, int begin, int end, float* y, int y_stride,
               bool accumulate);
  /// Attention of one head of one token: `out` = softmax(q . keys * scale) . values over `count` cached positions.
  /// `head_dim` is a multiple of 16; `scores` has room for `count` floats.
  void (*attend)(const float* q, const float* keys, const float* values, int stride, int count, int head_dim,
                 float scale, float* scores, float* out);
};

/// The kernels for this CPU.
const Kernels& kernels();

}  // namespace tinyserve
