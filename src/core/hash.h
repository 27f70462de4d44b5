// The hash of every table and digest, by xxHash. Ids of traces come in patterns (multiples of 2^16 or 2^32, small
// counters), in which a home-made mixer collides by the thousand.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

namespace culprit {

/// XXH3 (64 bits) of a text, of a number, and of several numbers in order; the same on every machine of one byte order
/// and in every version of Culprit.
std::uint64_t hash_of(std::string_view text);
std::uint64_t hash_of(std::uint64_t number);
std::uint64_t hash_of(std::span<const std::uint64_t> numbers);

/// Whatever a key is made of besides texts; hashed by its value.
template <class T>
concept HashablePart = std::integral<T> || std::is_enum_v<T>;

/// The hash of a key of several parts: `hash_parts(key.pid, key.tid, key.kind)`. A text part comes in as hash_of(text).
template <HashablePart... Parts>
std::uint64_t hash_parts(Parts... parts) {
  const std::uint64_t numbers[] = {static_cast<std::uint64_t>(parts)...};
  return hash_of(std::span<const std::uint64_t>(numbers));
}

/// For containers with keys that are texts, numbers, enums, or pairs of numbers. Texts are found by any text type when
/// the container's equality is std::equal_to<>.
struct Hash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const { return hash_of(text); }
  template <HashablePart T>
  std::size_t operator()(T number) const {
    return hash_of(static_cast<std::uint64_t>(number));
  }
  template <class Pair>
  requires HashablePart<typename Pair::first_type> && HashablePart<typename Pair::second_type> std::size_t operator()(
      const Pair& pair) const {
    return hash_parts(pair.first, pair.second);
  }
};

}  // namespace culprit
