#include "core/hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace culprit {

std::uint64_t hash_of(std::string_view text) { return XXH3_64bits(text.data(), text.size()); }
std::uint64_t hash_of(std::uint64_t number) { return XXH3_64bits(&number, sizeof number); }
std::uint64_t hash_of(std::span<const std::uint64_t> numbers) {
  return XXH3_64bits(numbers.data(), numbers.size_bytes());
}

}  // namespace culprit
