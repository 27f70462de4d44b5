// What a launch sequence is made of when one looks for its period: operations as comparable numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/hash.h"
#include "cycles/operations.h"

namespace culprit::cycles {

inline constexpr std::size_t kMinRepetitions = 3;

enum class TokenKind : std::uint8_t { name, shape, pair };

struct Token {
  std::uint64_t hash = 0;
  TokenKind kind = TokenKind::name;
  Role role = Role::none;
  bool backward = false;
  std::vector<std::uint32_t> at;  // operations, ascending
};

inline std::uint64_t pair_hash(std::uint64_t a, std::uint64_t b) { return hash_parts(a, b); }

/// The tokens of operation i: what runs, what runs with its grid, and which follows which. A token that repeats back to
/// back counts once, except for graph launches, where each may be a step.
template <class Use>
void tokens_of(const std::vector<Operation>& list, std::size_t i, Use&& use) {
  const Operation& op = list[i];
  const bool first = i == 0;
  if (op.graph || first || list[i - 1].name != op.name) use(op.name, TokenKind::name, op.role);
  if (op.shape != op.name && (op.graph || first || list[i - 1].shape != op.shape))
    use(op.shape, TokenKind::shape, Role::none);
  if (!first && list[i - 1].name != op.name && op.role != Role::sync)
    use(pair_hash(list[i - 1].name, op.name), TokenKind::pair, Role::none);
}

/// The tokens of the first `n` operations that occur at least kMinRepetitions times, by count, then by first
/// occurrence.
std::vector<Token> count_tokens(const std::vector<Operation>& list, std::size_t n);

}  // namespace culprit::cycles
