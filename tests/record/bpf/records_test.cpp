#include "record/bpf/records.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "record/bpf/stacks_apart.h"

namespace culprit::record::bpf {
namespace {

struct HeardRecords : Listener {
  std::vector<culprit_switch> switches;
  std::vector<culprit_waking> wakings;
  std::vector<culprit_task> forks, execs, exits;
  std::vector<culprit_syscall> calls;
  std::vector<culprit_block> blocks;
  std::vector<culprit_calls> totals;
  std::vector<culprit_sample> samples;
  std::vector<culprit_memory> memories;
  std::vector<culprit_python_stack> python;

  void on_switch(const culprit_switch& record) override { switches.push_back(record); }
  void on_waking(const culprit_waking& record) override { wakings.push_back(record); }
  void on_fork(const culprit_task& record) override { forks.push_back(record); }
  void on_exec(const culprit_task& record) override { execs.push_back(record); }
  void on_exit(const culprit_task& record) override { exits.push_back(record); }
  void on_syscall(const culprit_syscall& record) override { calls.push_back(record); }
  void on_block(const culprit_block& record) override { blocks.push_back(record); }
  void on_sample(const culprit_sample& record) override { samples.push_back(record); }
  void on_memory(const culprit_memory& record) override { memories.push_back(record); }
  void on_python_stack(const culprit_python_stack& record) override { python.push_back(record); }
  void on_calls(const culprit_calls& record) override { totals.push_back(record); }
  [[nodiscard]] std::size_t total() const {
    return switches.size() + wakings.size() + forks.size() + execs.size() + exits.size() + calls.size() +
           blocks.size() + totals.size() + samples.size() + memories.size() + python.size();
  }
};

template <class T>
std::vector<std::byte> bytes_of(T record, __u32 kind, __u64 at = 1000) {
  record.head.kind = kind;
  record.head.at = at;
  std::vector<std::byte> bytes(sizeof record);
  std::memcpy(bytes.data(), &record, sizeof record);
  return bytes;
}

bool hear(HeardRecords& heard, std::span<const std::byte> bytes, Ns end = std::numeric_limits<Ns>::max()) {
  Listener* listeners[] = {&heard};
  return dispatch(bytes, listeners, end);
}

TEST(Records, WhatHappensAfterTheEndIsToldNobodyButTotalsOfCallsAre) {
  HeardRecords heard;
  EXPECT_TRUE(hear(heard, bytes_of(culprit_switch{}, CULPRIT_SWITCH, 1001), 1000));
  EXPECT_TRUE(hear(heard, bytes_of(culprit_sample{}, CULPRIT_SAMPLE, 1001), 1000));
  EXPECT_EQ(heard.total(), 0u);
  EXPECT_TRUE(hear(heard, bytes_of(culprit_switch{}, CULPRIT_SWITCH, 1000), 1000));
  EXPECT_TRUE(hear(heard, bytes_of(culprit_calls{}, CULPRIT_CALLS, 1001), 1000));
  EXPECT_EQ(heard.switches.size(), 1u);
  ASSERT_EQ(heard.totals.size(), 1u);
  EXPECT_EQ(heard.totals[0].head.at, 1000u) << "nothing was counted later";
  EXPECT_FALSE(hear(heard, std::vector<std::byte>(sizeof(culprit_head)), 1000)) << "a malformed one is one also then";
}

TEST(Records, EveryKindReachesItsListener) {
  HeardRecords heard;
  EXPECT_TRUE(hear(heard, bytes_of(culprit_switch{}, CULPRIT_SWITCH)));
  EXPECT_TRUE(hear(heard, bytes_of(culprit_waking{}, CULPRIT_WAKING)));
  EXPECT_TRUE(hear(heard, bytes_of(culprit_task{}, CULPRIT_FORK)));
  EXPECT_TRUE(hear(heard, bytes_of(culprit_task{}, CULPRIT_EXEC)));
  EXPECT_TRUE(hear(heard, bytes_of(culprit_task{}, CULPRIT_EXIT)));
  EXPECT_TRUE(hear(heard, bytes_of(culprit_syscall{}, CULPRIT_SYSCALL)));
  EXPECT_TRUE(hear(heard, bytes_of(culprit_block{}, CULPRIT_BLOCK)));
  EXPECT_EQ(heard.switches.size(), 1u);
  EXPECT_EQ(heard.wakings.size(), 1u);
  EXPECT_EQ(heard.forks.size(), 1u);
  EXPECT_EQ(heard.execs.size(), 1u);
  EXPECT_EQ(heard.exits.size(), 1u);
  EXPECT_EQ(heard.calls.size(), 1u);
  EXPECT_EQ(heard.blocks.size(), 1u);
}

TEST(Records, ASwitchToAWokenThreadIsItsWakeUpAndTheSwitch) {
  culprit_woken_switch record{};
  record.to.head.kind = CULPRIT_WOKEN_SWITCH;
  record.to.head.at = 1000;
  record.to.next_tid = 9;
  record.to.next_tgid = 8;
  std::memcpy(record.to.next_comm, "worker", 6);
  record.woken = {.at = 400,
                  .cpu = 1,
                  .target_cpu = 2,
                  .waker_tid = 5,
                  .waker_tgid = 4,
                  .prio = 120,
                  .context = CULPRIT_SOFTIRQ,
                  .waker_comm = "client"};
  std::vector<std::byte> bytes(sizeof record);
  std::memcpy(bytes.data(), &record, sizeof record);
  HeardRecords heard;
  ASSERT_TRUE(hear(heard, bytes));
  ASSERT_EQ(heard.wakings.size(), 1u);
  const culprit_waking& waking = heard.wakings[0];
  EXPECT_EQ(waking.head.at, 400u);
  EXPECT_EQ(waking.head.cpu, 1u);
  EXPECT_EQ(waking.target_cpu, 2u);
  EXPECT_EQ(waking.tid, 9);
  EXPECT_EQ(waking.tgid, 8);
  EXPECT_EQ(waking.waker_tid, 5);
  EXPECT_EQ(waking.waker_tgid, 4);
  EXPECT_EQ(waking.prio, 120);
  EXPECT_EQ(waking.context, static_cast<__u32>(CULPRIT_SOFTIRQ));
  EXPECT_EQ(waking.is_new, 0u);
  EXPECT_EQ(comm(waking.comm), "worker");
  EXPECT_EQ(comm(waking.waker_comm), "client");
  ASSERT_EQ(heard.switches.size(), 1u);
  EXPECT_EQ(heard.switches[0].head.at, 1000u);
  EXPECT_EQ(heard.switches[0].next_tid, 9);
  for (std::size_t n = sizeof(culprit_head); n < bytes.size(); ++n)
    EXPECT_FALSE(hear(heard, std::span(bytes).first(n))) << n;
  record.woken.at = ~0ull;
  std::memcpy(bytes.data(), &record, sizeof record);
  EXPECT_FALSE(hear(heard, bytes));
  EXPECT_EQ(heard.total(), 2u);
}

TEST(Records, KeepsWhatTheKernelWrote) {
  culprit_switch record{};
  record.prev_tid = 7;
  record.next_tid = 9;
  record.prev_state = 1;
  record.syscall = 202;
  std::memcpy(record.next_comm, "worker", 6);
  HeardRecords heard;
  ASSERT_TRUE(hear(heard, bytes_of(record, CULPRIT_SWITCH, 123456789)));
  EXPECT_EQ(heard.switches.front().prev_tid, 7);
  EXPECT_EQ(heard.switches.front().head.at, 123456789u);
  EXPECT_EQ(heard.switches.front().syscall, 202);
  EXPECT_EQ(comm(heard.switches.front().next_comm), "worker");
}

TEST(Records, TooShortIsRefusedAtEveryLength) {
  const auto whole = bytes_of(culprit_switch{}, CULPRIT_SWITCH);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    // A copy of exactly this size, so that a sanitizer sees every byte read too many.
    const std::vector<std::byte> cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    HeardRecords heard;
    EXPECT_FALSE(hear(heard, cut)) << size;
    EXPECT_EQ(heard.total(), 0u);
  }
}

/// A sample with so many frames, of which `there` are there.
std::vector<std::byte> sample_of(__u32 kernel, __u32 user, std::size_t there) {
  culprit_sample sample{};
  sample.kernel_frames = kernel;
  sample.user_frames = user;
  for (std::size_t i = 0; i < there; ++i) sample.frames[i] = 100 + i;
  auto bytes = bytes_of(sample, CULPRIT_SAMPLE);
  bytes.resize(offsetof(culprit_sample, frames) + there * sizeof(__u64));
  return bytes;
}

TEST(Records, ASampleHasTheFramesThatItSays) {
  HeardRecords heard;
  EXPECT_TRUE(hear(heard, sample_of(2, 3, 5)));
  EXPECT_TRUE(hear(heard, sample_of(0, 0, 0)));
  EXPECT_TRUE(
      hear(heard, sample_of(CULPRIT_KERNEL_FRAMES, CULPRIT_USER_FRAMES, CULPRIT_KERNEL_FRAMES + CULPRIT_USER_FRAMES)));
  ASSERT_EQ(heard.samples.size(), 3u);
  EXPECT_EQ(heard.samples[0].frames[4], 104u);
  EXPECT_FALSE(hear(heard, sample_of(2, 3, 4)));
  EXPECT_FALSE(hear(heard, sample_of(CULPRIT_KERNEL_FRAMES + 1, 0, 100)));
  EXPECT_FALSE(hear(heard, sample_of(0, 0xffffffffu, 100)));
  EXPECT_EQ(heard.samples.size(), 3u);
}

/// Memory of so many bytes, of which `there` are there.
std::vector<std::byte> memory_of(__u32 size, std::size_t there) {
  culprit_memory memory{};
  memory.size = size;
  std::ranges::fill(memory.bytes, std::uint8_t{7});
  auto bytes = bytes_of(memory, CULPRIT_MEMORY);
  bytes.resize(offsetof(culprit_memory, bytes) + there);
  return bytes;
}

TEST(Records, MemoryHasTheBytesThatItSays) {
  HeardRecords heard;
  EXPECT_TRUE(hear(heard, memory_of(0, 0)));
  EXPECT_TRUE(hear(heard, memory_of(1024, 1024)));
  ASSERT_EQ(heard.memories.size(), 2u);
  EXPECT_EQ(heard.memories[1].size, 1024u);
  EXPECT_EQ(heard.memories[1].bytes[1023], 7u);
  EXPECT_FALSE(hear(heard, memory_of(1024, 1023)));
  EXPECT_FALSE(hear(heard, memory_of(sizeof(culprit_memory::bytes) + 1, sizeof(culprit_memory::bytes))));
  EXPECT_FALSE(hear(heard, memory_of(0xffffffffu, 100)));
  EXPECT_EQ(heard.memories.size(), 2u);
}

std::vector<std::byte> python_stack_of(__u32 count, std::size_t there) {
  culprit_python_stack stack{};
  stack.count = count;
  for (std::size_t i = 0; i < there; ++i) stack.frames[i] = 100 + i;
  auto bytes = bytes_of(stack, CULPRIT_PYTHON_STACK);
  bytes.resize(offsetof(culprit_python_stack, frames) + there * sizeof(__u64));
  return bytes;
}

TEST(Records, AStackOfPythonHasTheFramesThatItSays) {
  HeardRecords heard;
  EXPECT_TRUE(hear(heard, python_stack_of(0, 0)));
  EXPECT_TRUE(hear(heard, python_stack_of(CULPRIT_PYTHON_FRAMES, CULPRIT_PYTHON_FRAMES)));
  ASSERT_EQ(heard.python.size(), 2u);
  EXPECT_EQ(heard.python[1].frames[CULPRIT_PYTHON_FRAMES - 1], 99u + CULPRIT_PYTHON_FRAMES);
  EXPECT_FALSE(hear(heard, python_stack_of(3, 2)));
  EXPECT_FALSE(hear(heard, python_stack_of(CULPRIT_PYTHON_FRAMES + 1, CULPRIT_PYTHON_FRAMES)));
  EXPECT_FALSE(hear(heard, python_stack_of(0xffffffffu, 4)));
  EXPECT_EQ(heard.python.size(), 2u);
}

TEST(Records, StacksApartAreKeptByTheirIds) {
  constexpr Ns kNever = std::numeric_limits<Ns>::max();
  StacksApart stacks;
  const std::vector<Listener*> listeners = {&stacks};
  culprit_stack stack{};
  stack.id = CULPRIT_STACK_APART | 7;
  stack.count = 2;
  stack.frames[0] = 10;
  stack.frames[1] = 20;
  EXPECT_TRUE(dispatch(bytes_of(stack, CULPRIT_STACK), listeners, kNever));
  EXPECT_EQ(stacks.find(stack.id), (std::vector<std::uint64_t>{10, 20}));
  stack.count = 0xffffffffu;
  EXPECT_TRUE(dispatch(bytes_of(stack, CULPRIT_STACK), listeners, kNever));
  EXPECT_EQ(stacks.find(stack.id).size(), std::size_t{CULPRIT_STACK_DEPTH}) << "never more than there are";
  stacks.forget(stack.id);
  EXPECT_TRUE(stacks.find(stack.id).empty());
  auto cut = bytes_of(stack, CULPRIT_STACK);
  cut.pop_back();
  EXPECT_FALSE(dispatch(cut, listeners, kNever));
}

TEST(Records, LongerThanKnownIsRead) {
  auto longer = bytes_of(culprit_waking{}, CULPRIT_WAKING);
  longer.resize(longer.size() + 24);
  HeardRecords heard;
  EXPECT_TRUE(hear(heard, longer));
}

TEST(Records, UnknownKindsAreRefused) {
  for (const __u32 kind : {0u, 11u, 255u, 0xffffffffu}) {
    HeardRecords heard;
    EXPECT_FALSE(hear(heard, bytes_of(culprit_switch{}, kind))) << kind;
  }
}

TEST(Records, ImpossibleTimesAreRefused) {
  HeardRecords heard;
  EXPECT_FALSE(hear(heard, bytes_of(culprit_switch{}, CULPRIT_SWITCH, std::numeric_limits<__u64>::max())));
  culprit_syscall call{};
  call.begin = 2000;  // after its end
  EXPECT_FALSE(hear(heard, bytes_of(call, CULPRIT_SYSCALL, 1999)));
  EXPECT_TRUE(hear(heard, bytes_of(call, CULPRIT_SYSCALL, 2000)));
  culprit_block block{};
  block.begin = 5;
  EXPECT_FALSE(hear(heard, bytes_of(block, CULPRIT_BLOCK, 4)));
}

TEST(Records, RandomBytesNeverBreakAnything) {
  std::mt19937 random(4);
  std::uniform_int_distribution<int> byte(0, 255);
  std::uniform_int_distribution<int> length(0, 128);
  for (int round = 0; round < 20000; ++round) {
    std::vector<std::byte> bytes(static_cast<std::size_t>(length(random)));
    for (std::byte& b : bytes) b = static_cast<std::byte>(byte(random));
    if (bytes.size() >= 4) {
      bytes[0] = static_cast<std::byte>(byte(random) % 11);
      bytes[1] = bytes[2] = bytes[3] = std::byte{0};
    }
    HeardRecords heard;
    EXPECT_EQ(heard.total(), 0u);
    const bool taken = hear(heard, bytes);
    EXPECT_EQ(heard.total(), taken ? 1u : 0u);
  }
}

TEST(Records, NamesNeedNoZeroAtTheirEnd) {
  char full[CULPRIT_COMM];
  std::memset(full, 'x', sizeof full);
  EXPECT_EQ(comm(full), std::string(CULPRIT_COMM, 'x'));
  char empty[CULPRIT_COMM] = {};
  EXPECT_EQ(comm(empty), "");
}

}  // namespace
}  // namespace culprit::record::bpf
