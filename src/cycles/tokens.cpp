#include "cycles/tokens.h"

#include <algorithm>
#include <utility>

namespace culprit::cycles {

std::vector<Token> count_tokens(const std::vector<Operation>& list, std::size_t n) {
  struct Occurrence {
    std::uint64_t hash;
    std::uint32_t at;
    TokenKind kind;
    Role role;
  };
  std::vector<Occurrence> all;
  all.reserve(n * 3);
  for (std::size_t i = 0; i < n; ++i)
    tokens_of(list, i, [&](std::uint64_t hash, TokenKind kind, Role role) {
      all.push_back({hash, static_cast<std::uint32_t>(i), kind, role});
    });
  std::ranges::sort(
      all, [](const Occurrence& a, const Occurrence& b) { return a.hash != b.hash ? a.hash < b.hash : a.at < b.at; });
  std::vector<Token> tokens;
  for (std::size_t i = 0; i < all.size();) {
    std::size_t end = i;
    while (end < all.size() && all[end].hash == all[i].hash) ++end;
    if (end - i >= kMinRepetitions) {
      Token token{all[i].hash, all[i].kind, all[i].role, list[all[i].at].backward(), {}};
      token.at.reserve(end - i);
      for (std::size_t k = i; k < end; ++k) token.at.push_back(all[k].at);
      tokens.push_back(std::move(token));
    }
    i = end;
  }
  // Order independent of hashes: by count, then by first occurrence.
  std::ranges::stable_sort(tokens, [](const Token& a, const Token& b) {
    if (a.at.size() != b.at.size()) return a.at.size() < b.at.size();
    if (a.at.front() != b.at.front()) return a.at.front() < b.at.front();
    return a.kind < b.kind;
  });
  return tokens;
}

}  // namespace culprit::cycles
