// Interning: every distinct text of a run is stored once and named by a small number.
#pragma once

#include <tsl/hopscotch_map.h>

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace culprit {

/// Identifies a text in one StringTable. 0 is always the empty text.
using StringId = std::uint32_t;

namespace detail {
struct TextHash {
  std::size_t operator()(std::string_view text) const;
};
}  // namespace detail

/// Texts to dense ids and back. The views it returns stay valid as long as the table lives. Not thread safe.
class StringTable {
 public:
  StringTable();

  /// The id of `text`, new or known.
  StringId intern(std::string_view text);
  /// The id of `text`, or `missing` when it was never interned.
  [[nodiscard]] StringId find(std::string_view text, StringId missing) const;
  [[nodiscard]] std::string_view operator[](StringId id) const { return texts_[id]; }
  [[nodiscard]] std::size_t size() const { return texts_.size(); }
  /// Bytes of text held, without the index.
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 private:
  std::string_view store(std::string_view text);

  std::vector<std::string_view> texts_;
  std::vector<std::unique_ptr<char[]>> blocks_;
  std::size_t block_left_ = 0;
  char* block_next_ = nullptr;
  std::size_t bytes_ = 0;
  tsl::hopscotch_map<std::string_view, StringId, detail::TextHash> ids_;
};

}  // namespace culprit
