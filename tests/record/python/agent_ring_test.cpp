#include "record/python/agent_ring.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace culprit::record::python {
namespace {

struct Memory {
  std::vector<std::uint64_t> words = std::vector<std::uint64_t>(CULPRIT_AGENT_BYTES / 8);
  culprit_agent_header* header() { return reinterpret_cast<culprit_agent_header*>(words.data()); }
  std::uint8_t* data() {
    return reinterpret_cast<std::uint8_t*>(words.data()) + CULPRIT_AGENT_HEADER_BYTES + CULPRIT_AGENT_CONFIG_BYTES;
  }
  void put(culprit_agent_record record, const std::string& text = {}, std::vector<std::int64_t> arguments = {}) {
    record.arguments = static_cast<std::uint8_t>(arguments.size());
    record.text_bytes = static_cast<std::uint16_t>(text.size());
    if (record.size == 0)
      record.size =
          static_cast<std::uint16_t>((sizeof record + arguments.size() * 8 + text.size() + 7) & ~std::size_t{7});
    std::uint8_t* at = data() + header()->head % CULPRIT_AGENT_CAPACITY;
    std::memcpy(at, &record, sizeof record);
    for (std::size_t i = 0; i < arguments.size(); ++i) std::memcpy(at + sizeof record + i * 8, &arguments[i], 8);
    std::ranges::copy(text, at + sizeof record + arguments.size() * 8);
    header()->head += record.size;
  }
};

culprit_agent_record record(std::uint8_t type, std::uint64_t time = 5) {
  culprit_agent_record r{};
  r.type = type;
  r.tid = 7;
  r.time = time;
  r.value = 3;
  return r;
}

TEST(AgentRing, RecordsComeInOrderWithTheirNumbersAndText) {
  Memory memory;
  AgentRing ring(memory.words.data());
  memory.put(record(CULPRIT_AGENT_BEGIN), "", {1, -2});
  memory.put(record(CULPRIT_AGENT_MESSAGE), "hello");
  std::vector<std::string> heard;
  EXPECT_EQ(ring.waiting(), memory.header()->head);
  EXPECT_EQ(ring.read([&](const AgentRecord& r) {
    heard.push_back(std::to_string(r.type) + ":" + std::to_string(r.tid) + ":" + std::to_string(r.count) + ":" +
                    std::to_string(r.arguments[1]) + ":" + std::string(r.text));
  }),
            2u);
  EXPECT_EQ(heard, (std::vector<std::string>{"1:7:2:-2:", "4:7:0:0:hello"}));
  EXPECT_EQ(memory.header()->tail, memory.header()->head);
  EXPECT_EQ(ring.waiting(), 0u);
  EXPECT_EQ(ring.read([](const AgentRecord&) {}), 0u);
  EXPECT_FALSE(ring.damaged());
}

TEST(AgentRing, TellsItsThreadAndSinceWhenItWatches) {
  Memory memory;
  const AgentRing ring(memory.words.data());
  EXPECT_EQ(ring.agent_thread(), 0);
  EXPECT_EQ(ring.running_since(), 0);
  memory.header()->thread = 4711;
  memory.header()->running_since = 123;
  EXPECT_EQ(ring.agent_thread(), 4711);
  EXPECT_EQ(ring.running_since(), 123);
  memory.header()->thread = ~std::uint32_t{0};  // whatever the process writes there
  memory.header()->running_since = ~std::uint64_t{0};
  EXPECT_GE(ring.agent_thread(), 0);
  EXPECT_GE(ring.running_since(), 0);
}

TEST(AgentRing, ThePadBeforeTheEndIsSkipped) {
  Memory memory;
  AgentRing ring(memory.words.data());
  // Fills all but the last eight bytes, which no head fits into.
  const std::size_t size = sizeof(culprit_agent_record) + 8;
  std::size_t count = 0;
  while (memory.header()->head + size + 8 <= CULPRIT_AGENT_CAPACITY) {
    memory.put(record(CULPRIT_AGENT_BEGIN), "", {1});
    ++count;
  }
  const std::uint64_t left = CULPRIT_AGENT_CAPACITY - memory.header()->head;
  std::size_t read = ring.read([](const AgentRecord&) {});
  EXPECT_EQ(read, count);
  std::memset(memory.data() + memory.header()->head, 0, left);
  memory.header()->head += left;
  memory.put(record(CULPRIT_AGENT_END));
  std::vector<int> types;
  ring.read([&](const AgentRecord& r) { types.push_back(r.type); });
  EXPECT_EQ(types, (std::vector<int>{CULPRIT_AGENT_END}));
  EXPECT_FALSE(ring.damaged());
}

TEST(AgentRing, WhatCannotBeIsGivenUp) {
  const auto damaged = [](const std::function<void(Memory&)>& spoil) {
    Memory memory;
    AgentRing ring(memory.words.data());
    spoil(memory);
    ring.read([](const AgentRecord&) { ADD_FAILURE() << "nothing is handed over"; });
    return ring.damaged();
  };
  const auto with = [&](const std::function<void(culprit_agent_record&)>& change) {
    return damaged([&](Memory& memory) {
      culprit_agent_record r = record(CULPRIT_AGENT_BEGIN);
      r.size = sizeof r;
      memory.put(r);
      change(*reinterpret_cast<culprit_agent_record*>(memory.data()));
    });
  };
  EXPECT_TRUE(with([](auto& r) { r.size = 8; }));
  EXPECT_TRUE(with([](auto& r) { r.size = 28; }));
  EXPECT_TRUE(with([](auto& r) { r.size = 65528; }));
  EXPECT_TRUE(with([](auto& r) { r.type = CULPRIT_AGENT_TYPES; }));
  EXPECT_TRUE(with([](auto& r) { r.arguments = 9; }));
  EXPECT_TRUE(with([](auto& r) { r.arguments = 1; })) << "beyond its size";
  EXPECT_TRUE(with([](auto& r) { r.text_bytes = 1; }));
  EXPECT_TRUE(with([](auto& r) { r.time = ~std::uint64_t{0}; }));
  EXPECT_TRUE(with([](auto& r) { r.tid = 0; }));
  EXPECT_TRUE(with([](auto& r) { r.type = CULPRIT_AGENT_PAD; })) << "a pad that reaches beyond what was written";
  EXPECT_TRUE(damaged([](Memory& m) { m.header()->head = CULPRIT_AGENT_CAPACITY + 8; }));
  EXPECT_TRUE(damaged([](Memory& m) { m.header()->head = ~std::uint64_t{7}; }));
  EXPECT_TRUE(damaged([](Memory& m) { m.header()->head = 12; }));
}

TEST(AgentRing, NoBytesLeadOutOfIt) {
  std::mt19937 random(11);
  for (int round = 0; round < 200; ++round) {
    Memory memory;
    for (std::size_t i = 0; i < 4096; ++i) memory.data()[i] = static_cast<std::uint8_t>(random());
    AgentRing ring(memory.words.data());
    memory.header()->head = random() % (CULPRIT_AGENT_CAPACITY + 16);
    std::size_t text = 0;
    ring.read([&](const AgentRecord& r) {
      for (const char c : r.text) text += static_cast<unsigned char>(c);
      for (std::size_t i = 0; i < r.count; ++i) text += static_cast<std::size_t>(r.arguments[i]);
    });
  }
}

}  // namespace
}  // namespace culprit::record::python
