#include "kernels/blocks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "support/launch_log.h"
#include "support/shared_data.h"

namespace culprit::kernels {
namespace {

using model::BlockNode;
using model::KernelLog;
using test::add_launch;

std::vector<BlockNode> blocks_of(const KernelLog& log) {
  const LaunchIds ids = launch_ids(log);
  auto lanes = lanes_of(log);
  EXPECT_EQ(lanes.size(), 1u);
  if (lanes.empty()) return {};
  return find_blocks(log, std::move(lanes[0]), ids, {}).nodes;
}

std::vector<BlockNode> repeated(const std::vector<BlockNode>& nodes) {
  std::vector<BlockNode> result;
  for (const BlockNode& node : nodes)
    if (node.copies > 1) result.push_back(node);
  return result;
}

/// The nodes of a lane are the whole lane, each launch once.
void expect_partition(const std::vector<BlockNode>& nodes, std::size_t launches) {
  std::uint32_t next = 0;
  for (const BlockNode& node : nodes) {
    EXPECT_EQ(node.first, next);
    next += node.launches;
  }
  EXPECT_EQ(next, launches);
}

std::size_t count_name(const KernelLog& log, std::string_view name) {
  std::size_t count = 0;
  for (const auto& launch : log.launches) count += log.names[launch.name] == name ? 1u : 0u;
  return count;
}

void add_body(KernelLog& log, int launches, std::string_view prefix, Ns base) {
  for (int i = 0; i < launches; ++i) add_launch(log, std::string(prefix) + std::to_string(i), base + 100 * i);
}

TEST(Blocks, NothingInNothing) { EXPECT_TRUE(lanes_of(KernelLog()).empty()); }

TEST(Blocks, NoRepetitionIsOneStretch) {
  KernelLog log;
  add_body(log, 200, "k", 1000);
  const auto nodes = blocks_of(log);
  ASSERT_EQ(nodes.size(), 1u);
  EXPECT_EQ(nodes[0].copies, 1u);
  EXPECT_EQ(nodes[0].launches, 200u);
}

TEST(Blocks, RandomNamesAreNoLayers) {
  KernelLog log;
  std::mt19937 random(7);
  for (int i = 0; i < 3000; ++i) add_launch(log, "k" + std::to_string(random() % 40), 1000);
  const auto nodes = blocks_of(log);
  expect_partition(nodes, 3000);
  std::uint32_t covered = 0;
  for (const BlockNode& node : repeated(nodes)) covered += node.launches;
  EXPECT_LT(covered, 300u);
}

TEST(Blocks, ExactCopies) {
  KernelLog log;
  add_body(log, 5, "head", 1000);
  for (int c = 0; c < 12; ++c) add_body(log, 38, "layer", 1000);
  add_body(log, 3, "tail", 1000);
  const auto nodes = blocks_of(log);
  expect_partition(nodes, 5 + 12 * 38 + 3);
  const auto found = repeated(nodes);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].copies, 12u);
  EXPECT_EQ(found[0].period, 38u);
  EXPECT_EQ(found[0].first, 5u);
  EXPECT_EQ(found[0].changed_copies, 0u);
  ASSERT_EQ(found[0].positions.size(), 38u);
  EXPECT_EQ(found[0].positions[3].copies, 12u);
  EXPECT_DOUBLE_EQ(found[0].positions[3].mean, 1300);
  EXPECT_DOUBLE_EQ(found[0].positions[3].deviation, 0);
  EXPECT_EQ(block_label(found[0]), "12 x [38 launches, 108.300us]");
}

TEST(Blocks, LayersInsideSteps) {
  KernelLog log;
  for (int step = 0; step < 4; ++step) {
    add_body(log, 12, "input", 1000);
    for (int layer = 0; layer < 6; ++layer) add_body(log, 20, "layer", 2000);
    add_body(log, 15, "optimizer", 3000);
  }
  const auto found = repeated(blocks_of(log));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].copies, 4u);
  EXPECT_EQ(found[0].period, 12u + 6 * 20 + 15);
  const auto inside = repeated(found[0].children);
  ASSERT_EQ(inside.size(), 1u);
  EXPECT_EQ(inside[0].copies, 6u);
  EXPECT_EQ(inside[0].period, 20u);
}

/// 200 copies of 50 launches, of which a part is lost, added or replaced.
KernelLog disturbed(double rate, unsigned seed) {
  KernelLog log;
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> uniform;
  for (int copy = 0; copy < 200; ++copy)
    for (int i = 0; i < 50; ++i) {
      const double dice = uniform(random);
      if (dice < rate / 3) continue;
      if (dice < rate) add_launch(log, "stray" + std::to_string(random() % 5), 1500);
      if (dice < 2 * rate / 3 || dice >= rate) add_launch(log, "layer" + std::to_string(i % 23), 1000 + 300 * i);
    }
  return log;
}

TEST(Blocks, ToleratesSmallDifferences) {
  for (const unsigned seed : {1u, 2u, 3u}) {
    const KernelLog log = disturbed(0.02, seed);
    const auto nodes = blocks_of(log);
    expect_partition(nodes, log.launches.size());
    std::uint32_t copies = 0;
    for (const BlockNode& node : repeated(nodes))
      if (node.period >= 48 && node.period <= 52) copies += node.copies;
    EXPECT_GE(copies, 190u) << "seed " << seed;
    EXPECT_LE(copies, 202u) << "seed " << seed;
  }
}

TEST(Blocks, ChangedCopiesAndUnstablePositionsAreMarked) {
  KernelLog log;
  for (int copy = 0; copy < 10; ++copy)
    for (int i = 0; i < 20; ++i) {
      const bool odd = copy == 4 && i == 7;
      const Ns time = i == 11 ? (copy % 2 == 0 ? 10'000 : 13'000) : 10'000;
      add_launch(log, odd ? "other" : "k" + std::to_string(i), time);
    }
  const auto found = repeated(blocks_of(log));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].copies, 10u);
  EXPECT_EQ(found[0].changed_copies, 1u);
  EXPECT_TRUE(found[0].positions[7].unstable);
  EXPECT_TRUE(found[0].positions[7].other_names);
  EXPECT_EQ(found[0].positions[7].copies, 9u);
  EXPECT_TRUE(found[0].positions[11].unstable);
  EXPECT_FALSE(found[0].positions[11].other_names);
  EXPECT_FALSE(found[0].positions[12].unstable);
}

TEST(Blocks, SameNameOfDifferentSizeIsAnotherKernel) {
  KernelLog log;
  for (int i = 0; i < 3; ++i) add_launch(log, "Kernel", 80'000 + 500 * i, 0.32f, 0.05f);
  add_launch(log, "Kernel", 157'000, 0.68f, 0.09f);
  add_launch(log, "Kernel", 81'000, 0.02f, 0.60f);
  const LaunchIds ids = launch_ids(log);
  EXPECT_EQ(ids.kernel[0], ids.kernel[1]);
  EXPECT_EQ(ids.kernel[1], ids.kernel[2]);
  EXPECT_NE(ids.kernel[0], ids.kernel[3]);
  EXPECT_NE(ids.kernel[0], ids.kernel[4]);
  EXPECT_EQ(ids.name[0], ids.name[4]);
}

TEST(Blocks, GridAndBlockTellKernelsApart) {
  KernelLog log;
  add_launch(log, "k", 1000).grid[0] = 8;
  add_launch(log, "k", 1000).grid[0] = 16;
  const LaunchIds ids = launch_ids(log);
  EXPECT_NE(ids.kernel[0], ids.kernel[1]);
}

TEST(Lanes, ByDeviceAndStreamInOrderOfBegin) {
  KernelLog log;
  for (const Ns begin : {30, 10, 20}) {
    auto& launch = add_launch(log, "k", 5);
    launch.begin = begin;
    launch.device = 0;
    launch.stream = 7;
  }
  add_launch(log, "k", 100).device = 1;
  const auto lanes = lanes_of(log);
  ASSERT_EQ(lanes.size(), 2u);
  EXPECT_EQ(lanes[0].device, 1);
  EXPECT_THAT(lanes[1].launches, testing::ElementsAre(1, 2, 0));
}

// The number of layers is known from elsewhere: every layer launches one attention softmax forward and one backward.
// One of each belongs to the loss of BERT's next-sentence head, not to a layer.
TEST(Blocks, LayersOfTheBertStep) {
  CULPRIT_NEEDS_SHARED("seeds/002_2e6eb07346960d83.txt");
  const KernelLog log = test::parse_launch_log(test::shared("seeds/002_2e6eb07346960d83.txt"));
  ASSERT_EQ(log.launches.size(), 1626u);
  const std::size_t layers = count_name(log, "softmax_warp_forward") - 1;
  ASSERT_EQ(count_name(log, "softmax_warp_backward") - 1, layers);
  const auto nodes = blocks_of(log);
  expect_partition(nodes, log.launches.size());
  const auto found = repeated(nodes);
  ASSERT_GE(found.size(), 2u);
  EXPECT_EQ(found[0].copies, layers);
  EXPECT_EQ(found[0].period, 38u);
  EXPECT_EQ(found[1].copies, layers);
  EXPECT_EQ(found[1].period, 90u);
  EXPECT_EQ(layers, 12u);
  // One softmax in every copy, at one position.
  for (std::size_t b = 0; b < 2; ++b) {
    const char* name = b == 0 ? "softmax_warp_forward" : "softmax_warp_backward";
    for (std::size_t c = 0; c < found[b].copies; ++c) {
      std::size_t softmax = 0;
      for (std::uint32_t i = found[b].starts[c]; i < found[b].starts[c + 1]; ++i)
        softmax += log.names[log.launches[i].name] == name ? 1u : 0u;
      EXPECT_EQ(softmax, 1u) << name << " in copy " << c;
    }
  }
}

TEST(Blocks, LayersOfTheGptInference) {
  CULPRIT_NEEDS_SHARED("seeds/003_a62fcc25c90d6fd4.txt");
  const KernelLog log = test::parse_launch_log(test::shared("seeds/003_a62fcc25c90d6fd4.txt"));
  const auto found = repeated(blocks_of(log));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].copies, count_name(log, "softmax_warp_forward"));
  EXPECT_EQ(found[0].copies, 24u);
  EXPECT_EQ(found[0].period, 40u);
}

// A U-Net has 18 convolutions with batch norm forward (9 pairs), and no two levels are of one size: what repeats are
// names.
TEST(Blocks, ConvolutionsOfTheUnetStep) {
  CULPRIT_NEEDS_SHARED("seeds/001_abc90e299168b04d.txt");
  const KernelLog log = test::parse_launch_log(test::shared("seeds/001_abc90e299168b04d.txt"));
  const std::size_t norms =
      count_name(log, "cudnn::bn_fw_tr_1C11_kernel_NCHW") + count_name(log, "cudnn::bn_fw_tr_1C11_singleread_spec");
  ASSERT_EQ(norms, 18u);
  const auto nodes = blocks_of(log);
  expect_partition(nodes, log.launches.size());
  const auto found = repeated(nodes);
  ASSERT_GE(found.size(), 2u);
  EXPECT_EQ(found[0].period, 10u);
  EXPECT_GE(found[0].copies, 17u);
  EXPECT_LE(found[0].copies, 19u);
  EXPECT_NE(found[0].likeness, model::Likeness::same_kernel);
}

}  // namespace
}  // namespace culprit::kernels
