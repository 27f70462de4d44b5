// Small files that claim to be large ones: what they cost is bounded by their size, or they are refused.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <isa-l.h>
#include <sys/resource.h>

#include "support.h"
#include "support/cpu_time.h"

namespace culprit::perfetto::test {
namespace {

using culprit::test::TempDir;

// ---- packets by hand: numbers of the format, nothing of Culprit's code

std::string varint(std::uint64_t n) {
  std::string bytes;
  for (; n >= 0x80; n >>= 7) bytes += static_cast<char>(n | 0x80);
  return bytes + static_cast<char>(n);
}
std::string number(std::uint64_t field, std::uint64_t value) { return varint(field << 3) + varint(value); }
std::string text(std::uint64_t field, const std::string& bytes) {
  return varint(field << 3 | 2) + varint(bytes.size()) + bytes;
}
std::string packet(const std::string& fields) { return text(1, fields); }
std::string repeated(const std::string& bytes, std::size_t times) {
  std::string all;
  for (std::size_t i = 0; i < times; ++i) all += bytes;
  return all;
}
template <class Make>
std::string each(std::uint64_t count, const Make& make) {
  std::string all;
  for (std::uint64_t i = 0; i < count; ++i) all += make(i);
  return all;
}
std::string deflated(const std::string& packets) {
  std::string out(packets.size() + packets.size() / 8 + 4096, '\0');
  isal_zstream stream{};
  isal_deflate_stateless_init(&stream);
  stream.gzip_flag = IGZIP_ZLIB;
  stream.end_of_stream = 1;
  stream.next_in = reinterpret_cast<std::uint8_t*>(const_cast<char*>(packets.data()));
  stream.avail_in = static_cast<std::uint32_t>(packets.size());
  stream.next_out = reinterpret_cast<std::uint8_t*>(out.data());
  stream.avail_out = static_cast<std::uint32_t>(out.size());
  EXPECT_EQ(isal_deflate_stateless(&stream), COMP_OK);
  out.resize(stream.total_out);
  return packet(text(50, out));
}
/// A begin of a slice on the track `uuid`.
std::string begin(std::uint64_t uuid, const std::string& more = {}) {
  return packet(number(8, 5) + number(10, 1) + text(11, number(9, 1) + text(23, "n") + number(11, uuid) + more));
}
/// Names of events, each with 4 digits.
std::string names(std::uint64_t first, std::uint64_t count) {
  return text(12, each(count, [&](std::uint64_t i) {
                return text(2, number(1, first + i) + text(2, std::to_string(1000 + i)));
              }));
}

Result<Trace> read_with(const TempDir& dir, const std::string& bytes,
                        formats::Expansion expansion = formats::Expansion()) {
  auto input = formats::Input::open(dir.file("bomb.pftrace", bytes));
  if (!input) return input.error();
  return read(std::move(*input), expansion);
}

void expect_refused(const std::string& bytes, std::uint64_t times = formats::Expansion::kUsualTimes) {
  const TempDir dir;
  const auto trace = read_with(dir, bytes, formats::Expansion(times));
  ASSERT_FALSE(trace);
  EXPECT_EQ(trace.error().kind, ErrorKind::input);
  EXPECT_EQ(trace.error().what, fmt::format("expands to more than {} times its size", times));
  EXPECT_NE(trace.error().remedy.find("--max-expansion"), std::string::npos);
}

long peak_kib() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

constexpr std::size_t kChunk = std::size_t{4} << 20;

TEST(PerfettoBombs, PacketsWithoutContent) { expect_refused(repeated(deflated(repeated(packet({}), kChunk / 2)), 5)); }

TEST(PerfettoBombs, TheSameEventAgainAndAgain) {
  expect_refused(repeated(deflated(repeated(begin(7), kChunk / begin(7).size())), 5));
}

TEST(PerfettoBombs, ObjectsOfTwoBytes) {
  const long before = peak_kib();
  expect_refused(deflated(begin(7, repeated(text(4, {}), 7 << 20))));                  // arguments
  expect_refused(deflated(packet(text(2, text(1, repeated(text(3, {}), 7 << 20))))));  // command line of a process
  expect_refused(deflated(packet(text(6, repeated(text(1, {}), 7 << 20)))));           // readings of clocks
  expect_refused(deflated(packet(text(12, repeated(text(2, {}), 7 << 20)))));          // names
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  constexpr long kMost = 600 << 10;  // they pad every allocation, keep what was freed, and shadow what is touched
#else
  constexpr long kMost = 200 << 10;
#endif
  EXPECT_LT(peak_kib() - before, kMost);
}

TEST(PerfettoBombs, SequencesWithoutEnd) {
  expect_refused(deflated(each(400'000, [](std::uint64_t i) { return packet(number(10, i)); })));
}

TEST(PerfettoBombs, ThreadsThatSwitchOnce) {
  const std::string switches = text(1, repeated("\x01", 200'000)) + text(2, repeated(std::string(1, '\0'), 200'000)) +
                               text(3, each(200'000, [](std::uint64_t i) { return varint(i); }));
  expect_refused(
      deflated(packet(text(2, text(1, number(1, 1))))) + deflated(packet(text(1, number(1, 0) + text(4, switches)))),
      10);
}

TEST(PerfettoBombs, TheLimitCanBeRaised) {
  const TempDir dir;
  const std::string bomb = deflated(repeated(begin(7), 600'000));
  EXPECT_FALSE(read_with(dir, bomb, formats::Expansion(1)));
  const auto trace = read_with(dir, bomb, formats::Expansion(0));
  ASSERT_TRUE(trace);
  EXPECT_EQ(trace->slices.size(), 600'000U);
}

// ---- what is allowed, but must not take longer than its size explains: each took minutes

class InTime {
 public:
  ~InTime() { EXPECT_LT(culprit::test::cpu_seconds_of_process() - begin_, 20); }

 private:
  double begin_ = culprit::test::cpu_seconds_of_process();
};

TEST(PerfettoBombs, ForgettingTakesTheTimeOfLearning) {
  const InTime in_time;
  const TempDir dir;
  const std::string cleared = packet(number(10, 1) + number(13, 1));
  const auto trace = read_with(dir, cleared + each(300, [](std::uint64_t i) {
                                      return deflated(packet(number(10, 1) + number(13, 2) + names(1000 * i, 1000)));
                                    }) + deflated(repeated(cleared, 500'000)));
  EXPECT_TRUE(trace) << (trace ? "" : to_string(trace.error()));
}

TEST(PerfettoBombs, TracksWhoseNumbersCollide) {
  const InTime in_time;
  const TempDir dir;
  const auto trace =
      read_with(dir, each(100, [](std::uint64_t i) {
                  return deflated(each(2000, [&](std::uint64_t j) { return begin((2000 * i + j) << 40); }));
                }));
  EXPECT_TRUE(trace) << (trace ? "" : to_string(trace.error()));
}

TEST(PerfettoBombs, ALongNameIsNotReadForEveryEvent) {
  const InTime in_time;
  const TempDir dir;
  const std::string switches = text(1, repeated("\x01", 100'000)) + text(2, repeated(std::string(1, '\0'), 100'000)) +
                               text(3, repeated("\x05", 100'000)) + text(5, std::string(4 << 20, 'x')) +
                               text(6, repeated(std::string(1, '\0'), 100'000));
  EXPECT_TRUE(read_with(dir, deflated(packet(text(1, number(1, 0) + text(4, switches))))));
  const std::string category =
      packet(number(10, 1) + number(13, 1) + text(12, text(1, number(1, 1) + text(2, std::string(8 << 20, 'c')))));
  expect_refused(deflated(category + repeated(begin(7, number(3, 1)), 100'000)));
}

TEST(PerfettoBombs, ClocksThatGoBackwards) {
  const InTime in_time;
  const TempDir dir;
  const auto trace = read_with(dir, each(20, [](std::uint64_t i) {
                                 return deflated(each(10'000, [&](std::uint64_t j) {
                                   const auto reading = [&](std::uint64_t clock) {
                                     return text(1, number(1, clock) + number(2, 1'000'000'000'000 - 10'000 * i - j));
                                   };
                                   return packet(text(6, reading(6) + reading(3)));
                                 }));
                               }));
  EXPECT_TRUE(trace) << (trace ? "" : to_string(trace.error()));
}

TEST(PerfettoBombs, ManySmallChunks) {
  const InTime in_time;
  const TempDir dir;
  const auto trace = read_with(dir, repeated(deflated(packet({})), 200'000));
  EXPECT_TRUE(trace) << (trace ? "" : to_string(trace.error()));
}

TEST(PerfettoBombs, ChunksInChunksAreNotOpened) {
  const TempDir dir;
  std::string bytes = begin(7);
  for (int i = 0; i < 50; ++i) bytes = deflated(bytes);
  const auto trace = read_with(dir, bytes);
  ASSERT_TRUE(trace);
  EXPECT_EQ(trace->losses[LossReason::event_malformed], 1U);
  EXPECT_EQ(trace->slices.size(), 0U);
}

TEST(PerfettoBombs, WhatIsNoPacketInAChunkIsCounted) {
  const TempDir dir;
  const auto trace = read_with(dir, deflated(begin(7) + "no packet" + begin(7)));
  ASSERT_TRUE(trace);
  EXPECT_EQ(trace->slices.size(), 1U);
  EXPECT_EQ(trace->losses[LossReason::event_malformed], 1U);
  EXPECT_EQ(trace->losses[LossReason::text_after_damage], 9 + begin(7).size());
}

}  // namespace
}  // namespace culprit::perfetto::test
