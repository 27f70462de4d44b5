// Neither the order of files nor that of ranks decides what is held against what.
#include "compare/align_ranks.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "make_recording.h"

namespace culprit::compare {
namespace {

std::vector<model::Recording> of_ranks(const std::vector<std::int32_t>& ranks) {
  std::vector<model::Recording> side(1);
  for (const std::int32_t rank : ranks) {
    side[0].profile.processes.push_back({100 + rank, 0, rank});
    side[0].profile.cycles.emplace_back().rank = rank;
    side[0].profile.series.emplace_back().rank = rank;
    side[0].collectives.emplace_back().rank = rank;
  }
  return side;
}

std::vector<std::int32_t> ranks_of(const model::Recording& recording) {
  std::vector<std::int32_t> ranks;
  for (std::size_t i = 0; i < recording.profile.processes.size(); ++i) {
    ranks.push_back(recording.profile.processes[i].rank);
    EXPECT_EQ(recording.profile.cycles[i].rank, ranks.back());
    EXPECT_EQ(recording.profile.series[i].rank, ranks.back());
    EXPECT_EQ(recording.collectives[i].rank, ranks.back());
  }
  return ranks;
}

TEST(AlignRanks, ThoseOfOneNumberAreTheSame) {
  auto base = of_ranks({0, 1, 2, 3});
  auto candidate = of_ranks({0, 2, 3});
  align_ranks(base, candidate);
  EXPECT_EQ(ranks_of(base[0]), (std::vector<std::int32_t>{0, 1, 2, 3}));
  EXPECT_EQ(ranks_of(candidate[0]), (std::vector<std::int32_t>{0, 2, 3}));
}

TEST(AlignRanks, WithoutANumberInCommonTheirOrderDecides) {
  auto base = of_ranks({4, 6});
  auto candidate = of_ranks({9, 5, 7});
  align_ranks(base, candidate);
  EXPECT_EQ(ranks_of(base[0]), (std::vector<std::int32_t>{4, 6}));
  EXPECT_EQ(ranks_of(candidate[0]), (std::vector<std::int32_t>{9, 4, 6}));
}

TEST(AlignRanks, RecordingsWithoutRanksStayAsTheyAre) {
  auto base = of_ranks({});
  auto candidate = of_ranks({5});
  align_ranks(base, candidate);
  EXPECT_EQ(ranks_of(candidate[0]), std::vector<std::int32_t>{5});
}

TEST(PutInOrder, ByTimeThenByFiles) {
  std::vector<model::Recording> side;
  for (const char* name : {"c", "b", "a"}) {
    side.push_back(make_recording({1000, 1000}));
    side.back().files = {name};
  }
  side[1].profile.cycles[0].begin = 10;
  put_in_order(side);
  EXPECT_EQ(side[0].files[0], "b");
  EXPECT_EQ(side[1].files[0], "a");
  EXPECT_EQ(side[2].files[0], "c");
}

}  // namespace
}  // namespace culprit::compare
