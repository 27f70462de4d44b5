#include "formats/perfetto/copy.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "formats/perfetto/writer.h"
#include "support.h"

namespace culprit::perfetto::test {
namespace {

using culprit::test::TempDir;
using testing::HasSubstr;

Status copy(const std::string& from, const std::string& to) {
  auto input = formats::Input::open(from);
  if (!input) return input.error();
  return copy_trace(std::move(*input), formats::Expansion(), to, true);
}

/// A recording with everything that only the packets hold: switches, wake-ups, arguments of slices, totals of calls.
std::string record(const TempDir& dir, std::size_t steps = 400) {
  const std::string path = dir.path("x.pftrace");
  auto writer = Writer::create(path, {.chunk_bytes = 4096, .replace = true});
  EXPECT_TRUE(writer);
  writer->metadata("record.version", "1");
  writer->process({.pid = 100, .name = "server"});
  writer->thread(100, 101, "worker");
  const TrackUuid totals = writer->named_track("system call totals", 100, 101);
  const TrackUuid blocked = writer->named_track("blocked", 100, 101);
  const TrackUuid memory = writer->counter_track("host.memory.available", "bytes");
  for (std::size_t i = 0; i < steps; ++i) {
    const Ns at = static_cast<Ns>(i + 1) * 1000;
    writer->sched_switch({.at = at, .prev_tid = 101, .next_tid = 55, .prev_state = 1, .next_name = "rival"});
    writer->sched_waking({.at = at + 200, .waker_tid = 55, .tid = 101});
    writer->sched_switch({.at = at + 300, .prev_tid = 55, .next_tid = 101, .prev_state = 0, .prev_name = "rival"});
    writer->slice(blocked, at, at + 200, "blocked:read", "blocked",
                  std::vector<Argument>{{"waker", "rival"}, {"stack", "main;read"}});
    writer->counter(memory, at, static_cast<double>(i));
    writer->instant(
        totals, at + 400, "read", kCallTotals,
        std::vector<Argument>{
            {"count", std::int64_t{3}}, {"total_ns", std::int64_t{70}}, {"longest_so_far_ns", std::int64_t{50}}});
  }
  writer->metadata("record.end", "duration");
  EXPECT_TRUE(writer->close());
  return path;
}

TEST(PerfettoCopy, KeepsEveryPacket) {
  const TempDir dir;
  const std::string from = record(dir);
  ASSERT_TRUE(copy(from, dir.path("y.pftrace")));
  EXPECT_EQ(decode(dir.path("y.pftrace")), decode(from));
  const Trace trace = read_file(dir.path("y.pftrace"));
  EXPECT_EQ(trace.losses.total(), 0U);
  ASSERT_EQ(trace.sched.size(), 1U);
  EXPECT_EQ(trace.sched.front().switches, 400U);
  ASSERT_FALSE(trace.sched.front().woken_by.empty());
  EXPECT_EQ(trace.sched.front().woken_by.front().tid, 55);
  EXPECT_EQ(trace.calls.size(), 400U);
}

TEST(PerfettoCopy, ACopyOfACopyHasTheSameBytes) {
  const TempDir dir;
  ASSERT_TRUE(copy(record(dir, 6000), dir.path("y.pftrace")));
  ASSERT_TRUE(copy(dir.path("y.pftrace"), dir.path("z.pftrace")));
  EXPECT_EQ(bytes_of(dir.path("z.pftrace")), bytes_of(dir.path("y.pftrace")));
}

TEST(PerfettoCopy, PacketsThatNobodyHereReadsAreKept) {
  const TempDir dir;
  // Packets of other programs: a field 900 of two bytes, and one larger than any chunk.
  const std::string small("\x0a\x05\xa2\x38\x02hi", 7);
  std::string large = "\xa2\x38\x80\x8a\x30" + std::string(0xc0500, 'x');
  large = std::string("\x0a\x85\x8a\x30", 4) + large;
  const std::string from = dir.file("x.pftrace", small + large + small);
  ASSERT_TRUE(copy(from, dir.path("y.pftrace")));
  const std::string plain = run("/usr/bin/python3 " + std::string(CULPRIT_SOURCE_DIR) +
                                "/tests/formats/perfetto/unpack.py " + dir.path("y.pftrace"));
  EXPECT_EQ(plain, small + large + small);
}

TEST(PerfettoCopy, DamageOfTheOriginalIsALossOfTheCopyAndOfItsCopies) {
  const TempDir dir;
  std::string bytes = bytes_of(record(dir, 4000));
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 0x55);
  const std::string damaged = dir.file("damaged.pftrace", bytes);
  ASSERT_GT(read_file(damaged).losses.total(Severity::data_loss), 0U);
  ASSERT_TRUE(copy(damaged, dir.path("y.pftrace")));
  ASSERT_TRUE(copy(dir.path("y.pftrace"), dir.path("z.pftrace")));
  EXPECT_GT(read_file(dir.path("y.pftrace")).losses[LossReason::export_damaged], 0U);
  EXPECT_EQ(bytes_of(dir.path("z.pftrace")), bytes_of(dir.path("y.pftrace")));
}

TEST(PerfettoCopy, ARecordingThatWasCutOffStaysOne) {
  const TempDir dir;
  const std::string bytes = bytes_of(record(dir, 4000));
  const std::string cut = dir.file("cut.pftrace", bytes.substr(0, bytes.size() * 2 / 3));
  ASSERT_TRUE(copy(cut, dir.path("y.pftrace")));
  const Trace trace = read_file(dir.path("y.pftrace"));
  EXPECT_EQ(trace.losses[LossReason::truncated_tail], 1U);
  EXPECT_EQ(trace.losses.total(), 1U);
}

TEST(PerfettoCopy, AFileWithoutAWholePacketIsAnError) {
  const TempDir dir;
  const Status status = copy(dir.file("x.pftrace", std::string("\x0a\x50\x08", 3)), dir.path("y.pftrace"));
  ASSERT_FALSE(status);
  EXPECT_THAT(to_string(status.error()), HasSubstr("no whole packet"));
}

}  // namespace
}  // namespace culprit::perfetto::test
