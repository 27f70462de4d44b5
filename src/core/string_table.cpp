#include "core/string_table.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstring>

namespace culprit {

namespace {
constexpr std::size_t kBlock = std::size_t{64} << 10;
}  // namespace

std::size_t detail::TextHash::operator()(std::string_view text) const { return XXH3_64bits(text.data(), text.size()); }

StringTable::StringTable() {
  texts_.emplace_back();
  ids_.emplace(std::string_view(), 0);
}

std::string_view StringTable::store(std::string_view text) {
  bytes_ += text.size();
  if (text.size() > block_left_) {
    const std::size_t size = text.size() > kBlock / 4 ? text.size() : kBlock;
    blocks_.push_back(std::make_unique_for_overwrite<char[]>(size));
    if (size != kBlock) {  // a long text gets a block of its own and the current one stays in use
      std::memcpy(blocks_.back().get(), text.data(), text.size());
      return {blocks_.back().get(), text.size()};
    }
    block_next_ = blocks_.back().get();
    block_left_ = kBlock;
  }
  char* place = block_next_;
  std::memcpy(place, text.data(), text.size());
  block_next_ += text.size();
  block_left_ -= text.size();
  return {place, text.size()};
}

StringId StringTable::intern(std::string_view text) {
  if (text.empty()) return 0;
  const std::size_t hash = detail::TextHash{}(text);
  if (auto it = ids_.find(text, hash); it != ids_.end()) return it->second;
  const StringId id = static_cast<StringId>(texts_.size());
  texts_.push_back(store(text));
  ids_.emplace(texts_.back(), id);
  return id;
}

StringId StringTable::find(std::string_view text, StringId missing) const {
  auto it = ids_.find(text);
  return it == ids_.end() ? missing : it->second;
}

}  // namespace culprit
