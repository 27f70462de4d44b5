#include "core/hash.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace culprit {
namespace {

/// How many of `n` keys share the lowest `bits` bits of their hash with an earlier one.
template <class Key>
std::size_t collisions(std::size_t n, unsigned bits, Key&& key) {
  std::set<std::uint64_t> seen;
  std::size_t count = 0;
  for (std::size_t i = 0; i < n; ++i)
    if (!seen.insert(key(i) & ((std::uint64_t{1} << bits) - 1)).second) ++count;
  return count;
}

TEST(Hash, IsXxh3) {
  // The reference values of xxHash 0.8: XXH3_64bits of no byte, and of "abc".
  EXPECT_EQ(hash_of(std::string_view()), 0x2d06800538d394c2ULL);
  EXPECT_EQ(hash_of(std::string_view("abc")), 0x78af5f94892f3950ULL);
}

TEST(Hash, PatternsOfIdsSpread) {
  // By chance 10,000 keys in 2^20 places collide about 48 times.
  for (const unsigned shift : {0U, 7U, 16U, 32U, 44U}) {
    EXPECT_LT(collisions(10'000, 20, [&](std::uint64_t i) { return hash_of(i << shift); }), 100U) << shift;
    EXPECT_LT(collisions(10'000, 20, [&](std::uint64_t i) { return hash_parts(1, i << shift, 0); }), 100U) << shift;
  }
}

TEST(Hash, PartsCountByTheirPlace) {
  EXPECT_NE(hash_parts(1, 2), hash_parts(2, 1));
  EXPECT_NE(hash_parts(0), hash_parts(0, 0));
  EXPECT_EQ(hash_parts(std::int32_t{-1}, 2), hash_parts(std::int64_t{-1}, 2U));
}

TEST(Hash, ServesContainers) {
  std::unordered_map<std::string, int, Hash, std::equal_to<>> by_name = {{"a", 1}};
  EXPECT_EQ(by_name.find(std::string_view("a"))->second, 1);
  enum class Kind : std::uint8_t { one, two };
  std::unordered_map<Kind, int, Hash> by_kind = {{Kind::two, 2}};
  EXPECT_EQ(by_kind.at(Kind::two), 2);
  std::unordered_map<std::pair<std::int64_t, std::uint32_t>, int, Hash> by_pair = {{{-3, 4}, 5}};
  EXPECT_EQ(by_pair.at({-3, 4}), 5);
}

}  // namespace
}  // namespace culprit
