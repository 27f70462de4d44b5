#include "kernels/align.h"

#include <algorithm>
#include <optional>

namespace culprit::kernels {

namespace {

using Ids = std::span<const std::uint32_t>;

/// A run of equal elements in the middle of a shortest edit script: a[x, u) equals b[y, v).
struct Snake {
  std::int64_t x, y, u, v;
};

class Aligner {
 public:
  Aligner(std::uint32_t max_edits, Alignment& to) : max_half_((static_cast<std::int64_t>(max_edits) + 1) / 2), to_(to) {
    forward_.resize(static_cast<std::size_t>(2 * max_half_ + 3));
    backward_.resize(forward_.size());
  }

  void align(Ids a, Ids b, std::uint32_t a0, std::uint32_t b0) {
    // The recursion halves the edits; the loop replaces the second branch.
    for (;;) {
      std::size_t same = 0;
      while (same < a.size() && same < b.size() && a[same] == b[same]) emit(a0, b0, same++);
      a = a.subspan(same);
      b = b.subspan(same);
      a0 += static_cast<std::uint32_t>(same);
      b0 += static_cast<std::uint32_t>(same);
      std::size_t tail = 0;
      while (tail < a.size() && tail < b.size() && a[a.size() - 1 - tail] == b[b.size() - 1 - tail]) ++tail;
      const std::size_t rest_a = a.size() - tail;
      const std::size_t rest_b = b.size() - tail;
      const auto emit_tail = [&] {
        for (std::size_t i = 0; i < tail; ++i)
          emit(a0 + static_cast<std::uint32_t>(rest_a), b0 + static_cast<std::uint32_t>(rest_b), i);
      };
      if (rest_a == 0 || rest_b == 0) return emit_tail();
      const auto snake = middle(a.first(rest_a), b.first(rest_b));
      if (!snake) {
        to_.bounded = true;
        return emit_tail();
      }
      align(a.first(static_cast<std::size_t>(snake->x)), b.first(static_cast<std::size_t>(snake->y)), a0, b0);
      for (std::int64_t i = 0; i < snake->u - snake->x; ++i)
        emit(a0 + static_cast<std::uint32_t>(snake->x), b0 + static_cast<std::uint32_t>(snake->y),
             static_cast<std::size_t>(i));
      a = a.subspan(static_cast<std::size_t>(snake->u));
      b = b.subspan(static_cast<std::size_t>(snake->v));
      a0 += static_cast<std::uint32_t>(snake->u);
      b0 += static_cast<std::uint32_t>(snake->v);
    }
  }

 private:
  void emit(std::uint32_t a0, std::uint32_t b0, std::size_t i) {
    to_.pairs.push_back({a0 + static_cast<std::uint32_t>(i), b0 + static_cast<std::uint32_t>(i)});
  }

  /// Both ends of the script grow until they meet. nullopt beyond the bound.
  std::optional<Snake> middle(Ids a, Ids b) {
    const auto n = static_cast<std::int64_t>(a.size());
    const auto m = static_cast<std::int64_t>(b.size());
    const std::int64_t delta = n - m;
    const bool odd = (delta & 1) != 0;
    const std::int64_t limit = std::min(max_half_, (n + m + 1) / 2);
    const std::int64_t base = max_half_ + 1;
    const auto at = [base](std::vector<std::int64_t>& v, std::int64_t k) -> std::int64_t& {
      return v[static_cast<std::size_t>(base + k)];
    };
    at(forward_, 1) = 0;
    at(backward_, 1) = 0;
    for (std::int64_t d = 0; d <= limit; ++d) {
      for (std::int64_t k = -d; k <= d; k += 2) {
        std::int64_t x = k == -d || (k != d && at(forward_, k - 1) < at(forward_, k + 1)) ? at(forward_, k + 1)
                                                                                          : at(forward_, k - 1) + 1;
        const std::int64_t x0 = x;
        const std::int64_t y0 = x - k;
        while (x < n && x - k >= 0 && x - k < m && a[static_cast<std::size_t>(x)] == b[static_cast<std::size_t>(x - k)])
          ++x;
        at(forward_, k) = x;
        const std::int64_t reverse = delta - k;
        if (odd && reverse >= -(d - 1) && reverse <= d - 1 && x + at(backward_, reverse) >= n && valid(x0, y0, x, n, m))
          return Snake{x0, y0, x, x - k};
      }
      for (std::int64_t k = -d; k <= d; k += 2) {
        std::int64_t x = k == -d || (k != d && at(backward_, k - 1) < at(backward_, k + 1)) ? at(backward_, k + 1)
                                                                                            : at(backward_, k - 1) + 1;
        const std::int64_t x0 = x;
        while (x < n && x - k >= 0 && x - k < m &&
               a[static_cast<std::size_t>(n - 1 - x)] == b[static_cast<std::size_t>(m - 1 - (x - k))])
          ++x;
        at(backward_, k) = x;
        const std::int64_t reverse = delta - k;
        if (!odd && reverse >= -d && reverse <= d && x + at(forward_, reverse) >= n && valid(x0, x0 - k, x, n, m))
          return Snake{n - x, m - (x - k), n - x0, m - (x0 - k)};
      }
    }
    return std::nullopt;
  }

  /// A meeting point outside the rectangle is none.
  static bool valid(std::int64_t x0, std::int64_t y0, std::int64_t x, std::int64_t n, std::int64_t m) {
    return x0 >= 0 && y0 >= 0 && x <= n && y0 + (x - x0) <= m;
  }

  std::int64_t max_half_;
  std::vector<std::int64_t> forward_;
  std::vector<std::int64_t> backward_;
  Alignment& to_;
};

}  // namespace

Alignment align(std::span<const std::uint32_t> a, std::span<const std::uint32_t> b, std::uint32_t max_edits) {
  Alignment result;
  result.pairs.reserve(std::min(a.size(), b.size()));
  const std::size_t most = std::min<std::size_t>(max_edits, a.size() + b.size());
  Aligner(static_cast<std::uint32_t>(most), result).align(a, b, 0, 0);
  return result;
}

}  // namespace culprit::kernels
