// What goes on when a recording goes on in another file ends in neither.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "record/nvtx/process_ranges.h"
#include "record/nvtx/recording.h"
#include "record/nvtx/thread_ranges.h"
#include "support/temp_file.h"

namespace culprit::record::nvtx {
namespace {

using ::testing::SizeIs;

Event event(EventType type, std::uint8_t depth, std::string_view name = {}) {
  Event made;
  made.type = type;
  made.depth = depth;
  made.text = name;
  return made;
}

struct TwoFiles : ::testing::Test {
  TwoFiles() {
    auto made = perfetto::Writer::create(folder.path("a.pftrace"));
    EXPECT_TRUE(made.ok());
    writer.emplace(std::move(*made));
  }
  void next_file() { ASSERT_TRUE(writer->next_file(folder.path("b.pftrace"), {}).ok()); }
  test::Recording read(const char* file) {
    EXPECT_TRUE(writer->close().ok());
    return test::read_recording(folder.path(file));
  }

  test::TempDir folder;
  std::optional<perfetto::Writer> writer;
};

TEST_F(TwoFiles, ARangeOfAThreadThatGoesOnEndsInNone) {
  ThreadRanges ranges(1, 1);
  ranges.push(*writer, event(EventType::push, 0, "step[TRAIN]"), 1000, {});
  ranges.cut();
  next_file();
  ranges.push(*writer, event(EventType::push, 1, "layer"), 2000, {});
  ranges.pop(*writer, event(EventType::pop, 1), 3000);
  ranges.pop(*writer, event(EventType::pop, 0), 4000);
  EXPECT_EQ(ranges.counts().steps, 0U);
  EXPECT_EQ(ranges.counts().unpaired, 0U);
  const test::Recording second = read("b.pftrace");
  EXPECT_EQ(second.ends_without_begin, 0U);
  EXPECT_THAT(second.slices, SizeIs(1));
  EXPECT_THAT(second.named("layer"), SizeIs(1));
  EXPECT_THAT(read("a.pftrace").named("step[TRAIN]"), SizeIs(1));
}

TEST_F(TwoFiles, ARangeOfAProcessThatGoesOnEndsInNone) {
  ProcessRanges ranges(1);
  ranges.start(*writer, 7, 1000, "request", {});
  ranges.cut();
  next_file();
  ranges.end(*writer, 7, 2000);
  ranges.start(*writer, 8, 3000, "another", {});
  ranges.end(*writer, 8, 4000);
  EXPECT_EQ(ranges.lost(), 0U);
  const test::Recording second = read("b.pftrace");
  EXPECT_EQ(second.ends_without_begin, 0U);
  EXPECT_THAT(second.slices, SizeIs(1));
}

}  // namespace
}  // namespace culprit::record::nvtx
