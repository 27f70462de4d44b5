// The arithmetic of the example server against plain loops, and what must not change its answers.
#include "model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "kernels.h"

namespace tinyserve {
namespace {

std::vector<float> random_floats(std::size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> out(n);
  for (float& f : out) f = uniform(random);
  return out;
}

TEST(Gemm, IsTheSumOfProducts) {
  for (const int rows : {1, 3, 4, 8, 13}) {
    const int k = 37;
    const int n = 80;  // five panels: not a multiple of any tile
    const std::vector<float> x = random_floats(static_cast<std::size_t>(rows * k), 1);
    const std::vector<float> w = random_floats(static_cast<std::size_t>(k * n), 2);
    const Matrix packed = pack(w, k, n);
    std::vector<float> y(static_cast<std::size_t>(rows * n), 0.5F);
    kernels().gemm(x.data(), rows, k, packed.packed.data(), 0, 2, y.data(), n, true);
    kernels().gemm(x.data(), rows, k, packed.packed.data(), 2, n / kPanel, y.data(), n, true);
    for (int r = 0; r < rows; ++r)
      for (int j = 0; j < n; ++j) {
        double expected = 0.5;
        for (int i = 0; i < k; ++i) expected += double{x[r * k + i]} * double{w[i * n + j]};
        ASSERT_NEAR(y[static_cast<std::size_t>(r * n + j)], expected, 1e-4) << rows << " rows, " << r << ", " << j;
      }
  }
}

TEST(Attention, IsTheWeightedMeanOfTheValues) {
  const int dim = 64;
  const int stride = 192;
  for (const int count : {1, 2, 17, 100}) {
    const std::vector<float> q = random_floats(dim, 3);
    const std::vector<float> keys = random_floats(static_cast<std::size_t>(count * stride), 4);
    const std::vector<float> values = random_floats(static_cast<std::size_t>(count * stride), 5);
    std::vector<float> scores(static_cast<std::size_t>(count));
    std::vector<float> out(dim);
    kernels().attend(q.data(), keys.data(), values.data(), stride, count, dim, 0.125F, scores.data(), out.data());
    std::vector<double> weights;
    double total = 0;
    for (int i = 0; i < count; ++i) {
      double dot = 0;
      for (int d = 0; d < dim; ++d) dot += double{q[d]} * double{keys[i * stride + d]};
      weights.push_back(std::exp(dot * 0.125));
      total += weights.back();
    }
    for (int d = 0; d < dim; ++d) {
      double expected = 0;
      for (int i = 0; i < count; ++i) expected += weights[i] / total * double{values[i * stride + d]};
      ASSERT_NEAR(out[d], expected, 1e-5) << count << " positions, " << d;
    }
  }
}

Shape small(int threads = 1) {
  Shape shape;
  shape.layers = 2;
  shape.width = 128;
  shape.vocabulary = 256;
  shape.slots = 3;
  shape.context = 32;
  shape.threads = threads;
  return shape;
}

std::vector<float> logits_of(Model& model, int slot, std::vector<std::int32_t> tokens) {
  std::int32_t next = -1;
  const Piece piece{slot, tokens};
  EXPECT_TRUE(model.forward({&piece, 1}, {&next, 1}));
  EXPECT_EQ(model.logits()[static_cast<std::size_t>(next)],
            *std::max_element(model.logits().begin(), model.logits().end()));
  return model.logits();
}

TEST(Model, TheCacheHoldsWhatWasSaid) {
  Model model(small());
  const std::vector<float> at_once = logits_of(model, 0, {5, 9, 200, 31});
  logits_of(model, 1, {5, 9});
  logits_of(model, 1, {200});
  EXPECT_EQ(logits_of(model, 1, {31}), at_once);
  logits_of(model, 2, {9, 5});  // order matters
  logits_of(model, 2, {200});
  EXPECT_NE(logits_of(model, 2, {31}), at_once);
}

TEST(Model, AnswersDependNeitherOnTheBatchNorOnThreads) {
  Model alone(small());
  const std::vector<float> expected = logits_of(alone, 0, {1, 2, 3});
  for (const int threads : {1, 2, 5}) {
    Model model(small(threads));
    const std::vector<std::int32_t> other(20, 7);
    const std::vector<std::int32_t> tokens = {1, 2, 3};
    const std::vector<Piece> pieces = {{0, other}, {2, tokens}};
    std::vector<std::int32_t> next(2);
    ASSERT_TRUE(model.forward(pieces, next));
    EXPECT_EQ(std::vector<float>(model.logits().begin() + 256, model.logits().end()), expected);
  }
}

TEST(Model, AnswersDependNotOnExtraWork) {
  Shape shape = small(2);
  Model model(shape);
  shape.extra = 0.3;
  Model more(shape);
  EXPECT_EQ(logits_of(more, 0, {4, 9, 1}), logits_of(model, 0, {4, 9, 1}));
}

TEST(Model, ReleasedSlotsAreEmpty) {
  Model model(small());
  const std::vector<float> first = logits_of(model, 0, {4, 4});
  model.release(0);
  EXPECT_EQ(logits_of(model, 0, {4, 4}), first);
}

TEST(Model, RefusesWhatDoesNotFit) {
  Model model(small());
  std::vector<std::int32_t> next(2);
  const auto refused = [&](std::vector<Piece> pieces) { return !model.forward(pieces, next); };
  const std::vector<std::int32_t> good = {1};
  const std::vector<std::int32_t> wrong = {256};
  const std::vector<std::int32_t> negative = {-1};
  const std::vector<std::int32_t> longer(33, 1);
  EXPECT_TRUE(refused({{0, {}}}));
  EXPECT_TRUE(refused({{3, good}}));
  EXPECT_TRUE(refused({{-1, good}}));
  EXPECT_TRUE(refused({{0, wrong}}));
  EXPECT_TRUE(refused({{0, negative}}));
  EXPECT_TRUE(refused({{0, longer}}));
  EXPECT_TRUE(refused({{0, good}, {0, good}})) << "one slot twice";
  EXPECT_TRUE(refused({{0, good}, {1, good}, {2, good}})) << "no room for the answers";
  EXPECT_FALSE(refused({{0, good}}));
}

TEST(Model, RefusesImpossibleShapes) {
  EXPECT_EQ(Model::refusal(small()), "");
  Shape shape = small();
  shape.width = 100;
  EXPECT_THAT(Model::refusal(shape), ::testing::HasSubstr("width"));
  shape = small();
  shape.threads = 0;
  EXPECT_THAT(Model::refusal(shape), ::testing::HasSubstr("threads"));
  shape = small();
  shape.extra = 1.5;
  EXPECT_THAT(Model::refusal(shape), ::testing::HasSubstr("extra"));
}

TEST(ThreadPool, EveryPartOnce) {
  for (const int threads : {1, 2, 4}) {
    ThreadPool pool(threads);
    for (int round = 0; round < 200; ++round) {
      std::vector<std::atomic<int>> seen(static_cast<std::size_t>(round % 23));
      pool.split(round % 23, [&](int begin, int end) {
        for (int i = begin; i < end; ++i) ++seen[static_cast<std::size_t>(i)];
      });
      for (const auto& n : seen) ASSERT_EQ(n, 1);
    }
  }
}

}  // namespace
}  // namespace tinyserve
