// Rings as a hostile program could leave them.
#include "record/nvtx/ring_reader.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <random>

#include "record/nvtx/counter_clock.h"
#include "record/nvtx/ring_format.h"
#include "support/temp_file.h"

namespace culprit::record::nvtx {
namespace {

std::vector<std::byte> record(std::uint8_t type, std::string_view text, std::uint8_t flags = 0) {
  culprit_nvtx_record head{};
  const std::size_t fixed =
      16 + ((flags & CULPRIT_NVTX_HAS_VALUE) != 0 ? 8 : 0) + ((flags & CULPRIT_NVTX_PAYLOAD_MASK) != 0 ? 8 : 0);
  std::vector<std::byte> out((fixed + text.size() + 7) / 8 * 8);
  head.size = static_cast<std::uint16_t>(out.size());
  head.type = type;
  head.flags = flags;
  head.text_bytes = static_cast<std::uint8_t>(text.size());
  head.time = 1234;
  std::memcpy(out.data(), &head, 16);
  std::memcpy(out.data() + fixed, text.data(), text.size());
  return out;
}

std::vector<std::string> texts(std::span<const std::byte> bytes, bool* good = nullptr) {
  std::vector<std::string> out;
  const bool ok = parse_records(bytes, [&](const Event& event) { out.emplace_back(event.text); });
  if (good != nullptr) *good = ok;
  return out;
}

TEST(ParseRecords, ReadsWhatTheLibraryWrites) {
  auto bytes = record(CULPRIT_NVTX_PUSH, "hello");
  const auto more = record(CULPRIT_NVTX_MARK, "with payload", CULPRIT_NVTX_HAS_VALUE | 2);
  bytes.insert(bytes.end(), more.begin(), more.end());
  bool good = false;
  EXPECT_THAT(texts(bytes, &good), ::testing::ElementsAre("hello", "with payload"));
  EXPECT_TRUE(good);
}

TEST(ParseRecords, StopsAtWhatCannotBeARecord) {
  const auto first = record(CULPRIT_NVTX_PUSH, "first");
  const auto damaged = [&](std::size_t at, std::uint8_t value) {
    auto bytes = first;
    auto second = record(CULPRIT_NVTX_PUSH, "second");
    second[at] = std::byte{value};
    bytes.insert(bytes.end(), second.begin(), second.end());
    bool good = true;
    const auto seen = texts(bytes, &good);
    return !good && seen == std::vector<std::string>{"first"};
  };
  EXPECT_TRUE(damaged(0, 0)) << "size 0 would never end";
  EXPECT_TRUE(damaged(0, 7)) << "not a multiple of 8";
  EXPECT_TRUE(damaged(1, 255)) << "beyond the data";
  EXPECT_TRUE(damaged(2, 99)) << "unknown type";
  EXPECT_TRUE(damaged(3, 7)) << "unknown payload";
  EXPECT_TRUE(damaged(4, 200)) << "text longer than the record";
}

TEST(ParseRecords, RandomBytesDoNoHarm) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 20000; ++i) {
    std::vector<std::byte> bytes(random() % 600);
    for (std::byte& b : bytes) b = static_cast<std::byte>(random());
    if (i % 2 == 0 && bytes.size() >= 8) {  // a believable head, so that more than the first check is tried
      bytes[0] = static_cast<std::byte>(random() % 64 * 8);
      bytes[1] = std::byte{0};
      bytes[2] = static_cast<std::byte>(random() % 10);
    }
    std::size_t total = 0;
    parse_records(bytes, [&](const Event& event) { total += event.text.size(); });
    EXPECT_LE(total, bytes.size());
  }
}

TEST(ParseRingName, TakesOnlyItsOwn) {
  const auto name = parse_ring_name("12-34-567.ring");
  ASSERT_TRUE(name);
  EXPECT_EQ(name->pid, 12);
  EXPECT_EQ(name->tid, 34);
  EXPECT_EQ(name->created, 567);
  for (const char* wrong : {"", ".ring", "12-34.ring", "12-34-567", "12-34-567.ringx", "-1-2-3.ring", "0-1-2.ring",
                            "99999999999-1-1.ring", "12-34-567.ring/..", "a-b-c.ring"})
    EXPECT_FALSE(parse_ring_name(wrong)) << wrong;
}

class RingFile : public ::testing::Test {
 protected:
  RingFile() {
    folder_fd_ = open(folder_.path().c_str(), O_RDONLY | O_DIRECTORY);
    header_.magic = CULPRIT_NVTX_MAGIC;
    header_.version = CULPRIT_NVTX_VERSION;
    header_.capacity = CULPRIT_NVTX_CAPACITY;
    header_.pid = 12;
    header_.tid = 34;
  }
  ~RingFile() override { close(folder_fd_); }

  void write_file(std::span<const std::byte> data = {}) {
    const int fd = open(folder_.path(kName).c_str(), O_RDWR | O_CREAT, 0600);
    EXPECT_EQ(ftruncate(fd, CULPRIT_NVTX_HEADER_BYTES + CULPRIT_NVTX_CAPACITY), 0);
    EXPECT_EQ(pwrite(fd, &header_, sizeof header_, 0), static_cast<ssize_t>(sizeof header_));
    EXPECT_EQ(pwrite(fd, data.data(), data.size(), CULPRIT_NVTX_HEADER_BYTES), static_cast<ssize_t>(data.size()));
    close(fd);
  }
  RingState open_it(RingReader& ring) const { return RingReader::open(folder_fd_, kName, ring); }

  static constexpr const char* kName = "12-34-5.ring";
  test::TempDir folder_;
  int folder_fd_ = -1;
  culprit_nvtx_header header_{};
};

TEST_F(RingFile, IsDrainedOnce) {
  const auto bytes = record(CULPRIT_NVTX_PUSH, "hello");
  header_.head = bytes.size();
  header_.dropped = 3;
  write_file(bytes);
  RingReader ring;
  ASSERT_EQ(open_it(ring), RingState::ready);
  int events = 0;
  EXPECT_EQ(ring.drain([&](const Event&) { ++events; }), bytes.size());
  EXPECT_EQ(ring.drain([&](const Event&) { ++events; }), 0U);
  EXPECT_EQ(events, 1);
  EXPECT_EQ(ring.dropped(), 3U);
  EXPECT_EQ(ring.malformed(), 0U);
}

TEST_F(RingFile, IsNotBelieved) {
  RingReader ring;
  header_.capacity = 1U << 31;
  write_file();
  EXPECT_EQ(open_it(ring), RingState::refused);
  header_.capacity = CULPRIT_NVTX_CAPACITY;
  header_.pid = 13;
  write_file();
  EXPECT_EQ(open_it(ring), RingState::refused) << "somebody else's name";
  header_.pid = 12;
  header_.magic = 0;
  write_file();
  EXPECT_EQ(open_it(ring), RingState::unfinished);
}

TEST_F(RingFile, OfAnotherKindIsRefused) {
  RingReader ring;
  ASSERT_EQ(mkfifo(folder_.path(kName).c_str(), 0600), 0);
  EXPECT_EQ(open_it(ring), RingState::refused) << "and opening it does not wait";
  unlink(folder_.path(kName).c_str());
  ASSERT_EQ(symlink("/etc/passwd", folder_.path(kName).c_str()), 0);
  EXPECT_EQ(open_it(ring), RingState::refused);
}

TEST_F(RingFile, WithAnImpossibleHeadIsSkippedAndCounted) {
  for (const std::uint64_t head : {std::uint64_t{CULPRIT_NVTX_CAPACITY} + 8, ~std::uint64_t{0}, std::uint64_t{4}}) {
    header_.head = head;
    write_file();
    RingReader ring;
    ASSERT_EQ(open_it(ring), RingState::ready);
    EXPECT_LE(ring.drain([](const Event&) { FAIL(); }), std::size_t{CULPRIT_NVTX_CAPACITY});
    EXPECT_EQ(ring.malformed(), 1U);
  }
}

TEST_F(RingFile, CutShortWhileOpenDoesNoHarm) {
  header_.head = 4096;
  write_file();
  RingReader ring;
  ASSERT_EQ(open_it(ring), RingState::ready);
  ASSERT_EQ(truncate(folder_.path(kName).c_str(), 300), 0);
  ring.drain([](const Event&) {});
  EXPECT_EQ(ring.malformed(), 1U);
  ASSERT_EQ(truncate(folder_.path(kName).c_str(), 10), 0);
  ring.drain([](const Event&) {});
  EXPECT_TRUE(ring.finished());
}

TEST_F(RingFile, OfRandomBytesEndsSoon) {
  std::mt19937_64 random(11);
  for (int i = 0; i < 50; ++i) {
    std::vector<std::byte> data(CULPRIT_NVTX_CAPACITY);
    for (std::size_t at = 0; at + 8 <= data.size(); at += 8) {
      std::uint64_t word = random();
      if (random() % 4 != 0) word = (word & ~0xFFFFFFULL) | (random() % 3 + 1) * 8 | (random() % 4) << 16;
      std::memcpy(&data[at], &word, 8);
    }
    header_.head = random() % (CULPRIT_NVTX_CAPACITY / 8 + 2) * 8;
    write_file(data);
    RingReader ring;
    ASSERT_EQ(open_it(ring), RingState::ready);
    std::size_t events = 0;
    ring.drain([&](const Event&) { ++events; });
    EXPECT_LE(events, std::size_t{CULPRIT_NVTX_CAPACITY} / 16);
  }
}

TEST(CounterClock, InterpolatesAndGoesOn) {
  CounterClock clock;
  clock.add({1000, 5'000'000});
  EXPECT_FALSE(clock.ready());
  clock.add({3000, 5'001'000});  // 2 ticks per ns
  clock.add({7000, 5'002'000});  // then 4
  ASSERT_TRUE(clock.ready());
  EXPECT_EQ(clock.at(1000), 5'000'000);
  EXPECT_EQ(clock.at(2000), 5'000'500);
  EXPECT_EQ(clock.at(3000), 5'001'000);
  EXPECT_EQ(clock.at(5000), 5'001'500);
  EXPECT_EQ(clock.at(11000), 5'003'000);
  EXPECT_EQ(clock.at(0), 4'999'500);
  EXPECT_GT(clock.at(~std::uint64_t{0}), 5'003'000) << "far away, but no overflow";
}

TEST(CounterClock, PointsThatRunBackAreLeftOut) {
  CounterClock clock;
  clock.add({1000, 100});
  clock.add({900, 200});
  clock.add({2000, 50});
  EXPECT_FALSE(clock.ready());
}

}  // namespace
}  // namespace culprit::record::nvtx
