// The order of slices: by time, and among slices of one span by who called whom.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "trace/build.h"
#include "trace/sort_runs.h"

namespace culprit {
namespace {

using test::Building;
using testing::ElementsAre;

std::vector<std::string> in_order(const Trace& t) {
  std::vector<std::string> names;
  for (const SliceIndex i : order_slices(t).order) names.emplace_back(t.name(t.slices[i]));
  return names;
}

TEST(Order, TracksOneByOneByBeginLongerFirst) {
  Building b;
  b.slice(b.thread(1, 2), "", "second thread", 0, 1);
  b.slice(b.thread(1, 1), "", "inner", 5, 2);
  b.slice(b.thread(1, 1), "", "outer", 5, 9);
  b.slice(b.thread(1, 1), "", "early", 1, 1);
  const Trace t = b.finish();
  EXPECT_THAT(in_order(t), ElementsAre("early", "outer", "inner", "second thread"));
  EXPECT_THAT(order_slices(t).track_begin, ElementsAre(0U, 3U, 4U));
}

TEST(Order, AnEmptyTraceHasOne) {
  EXPECT_TRUE(order_slices(Building().finish()).order.empty());
  EXPECT_TRUE(order_slices(Trace{}).order.empty());
}

struct Call {
  const char* category;
  const char* name;
  std::uint32_t number;
  Ns begin = 10;
  Ns duration = 5;
};

Trace trace_of(const std::vector<Call>& calls) {
  Building b;
  for (const Call& call : calls) {
    Slice slice = b.make(b.thread(1, 1), call.category, call.name, call.begin, call.duration);
    TraceBuilder::number_call(slice, call.number);
    b.builder.add(slice);
  }
  return b.finish();
}

TEST(Order, OfOneSpanWhatUsuallyHoldsTheOtherComesFirst) {
  std::vector<Call> calls = {{"user_annotation", "annotation", 0},
                             {"python_function", "python", 0},
                             {"cpu_op", "op", 0},
                             {"cuda_runtime", "runtime", 0},
                             {"cuda_driver", "driver", 0}};
  std::mt19937 random(1);
  for (int i = 0; i < 30; ++i) {
    ASSERT_THAT(in_order(trace_of(calls)), ElementsAre("annotation", "python", "op", "runtime", "driver"));
    std::ranges::shuffle(calls, random);
  }
}

TEST(Order, OfOneSpanAndClassTheCallWithTheLowerNumberHoldsTheOther) {
  // The alphabet has it the other way round.
  std::vector<Call> calls = {{"cpu_op", "aten::item", 7},
                             {"cpu_op", "aten::_local_scalar_dense", 8},
                             {"cpu_op", "aten::other", 3, 1, 2},
                             {"cpu_op", "aten::later", 9, 30, 1}};
  std::mt19937 random(1);
  for (int i = 0; i < 30; ++i) {
    ASSERT_THAT(in_order(trace_of(calls)),
                ElementsAre("aten::other", "aten::item", "aten::_local_scalar_dense", "aten::later"));
    std::ranges::shuffle(calls, random);
  }
}

TEST(Order, WithoutNumbersTheAlphabetDecidesNotTheFile) {
  std::vector<Call> calls = {{"cpu_op", "c", 0}, {"cpu_op", "a", 0}, {"cpu_op", "b", 0}};
  std::mt19937 random(1);
  for (int i = 0; i < 10; ++i) {
    ASSERT_THAT(in_order(trace_of(calls)), ElementsAre("a", "b", "c"));
    std::ranges::shuffle(calls, random);
  }
}

TEST(Order, WhereRowsChangePlacesWhatBelongsToThemFollows) {
  Building b;
  const TrackId stream = b.thread(0, 7);
  for (const auto& [name, id] : {std::pair("second", 9U), {"first", 4U}}) {
    const SliceIndex row = b.kernel(stream, name, 10, 5, id);
    b.builder.trace().metrics.push_back({row, b.builder.intern(name), static_cast<double>(id)});
  }
  const Trace t = b.finish();
  for (SliceIndex i = 0; i < 2; ++i) {
    EXPECT_EQ(t.gpu[t.slices[i].gpu].slice, i);
    EXPECT_EQ(t.metrics[i].slice, i);
    EXPECT_EQ(t.strings[t.metrics[i].name], t.name(t.slices[i]));
  }
  EXPECT_EQ(t.name(t.slices[0]), "first");
}

TEST(SortRuns, SortsWhateverThePiecesAre) {
  std::mt19937 random(5);
  for (const int length : {0, 1, 2, 3, 100, 5000}) {
    for (const int runs : {1, 2, 3, 7, 5000}) {
      std::vector<int> numbers(static_cast<std::size_t>(length));
      std::iota(numbers.begin(), numbers.end(), 0);
      const auto wanted = numbers;
      std::ranges::shuffle(numbers, random);
      for (int r = 0; r < runs; ++r)  // pieces in order
        std::sort(numbers.begin() + std::ptrdiff_t{length} * r / runs,
                  numbers.begin() + std::ptrdiff_t{length} * (r + 1) / runs);
      sort_runs(numbers.begin(), numbers.end(), std::less<>());
      ASSERT_EQ(numbers, wanted) << length << ' ' << runs;
    }
  }
}

}  // namespace
}  // namespace culprit
