#include "kernels/blocks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <iostream>
#include <random>

#include "support/launch_log.h"
#include "support/shared_data.h"

namespace culprit::kernels {
namespace {

using model::BlockNode;
using model::KernelLog;

model::LaneBlocks blocks_of(const KernelLog& log) {
  const LaunchIds ids = launch_ids(log);
  auto lanes = lanes_of(log);
  EXPECT_EQ(lanes.size(), 1u);
  return find_blocks(log, std::move(lanes[0]), ids, {});
}

void print(const std::vector<BlockNode>& nodes, int depth) {
  for (const BlockNode& node : nodes) {
    std::cout << std::string(static_cast<std::size_t>(2 * depth), ' ') << node.first << ": " << block_label(node)
              << " shape " << node.shape << " like " << static_cast<int>(node.likeness) << " changed "
              << node.changed_copies << "\n";
    if (getenv("STARTS") && node.copies > 1 && node.copies < 13) { for (auto x : node.starts) std::cout << " " << x; std::cout << "\n"; }
    print(node.children, depth + 1);
  }
}

TEST(Blocks, DISABLED_Show) {
  for (const char* seed : {"001_abc90e299168b04d", "002_2e6eb07346960d83", "003_a62fcc25c90d6fd4"}) {
    const KernelLog log = test::parse_launch_log(test::shared(std::string("seeds/") + seed + ".txt"));
    std::cout << seed << "\n";
    print(blocks_of(log).nodes, 1);
  }
}

}  // namespace
}  // namespace culprit::kernels
