// Numbers the categories of a trace. A slice names its category by 16 bits, so there is an end to them: what comes
// later shares one category per class, so that a kernel stays a kernel.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

#include <tsl/hopscotch_map.h>

#include "core/hash.h"
#include "trace/trace.h"

namespace culprit {

class CategoryTable {
 public:
  static constexpr std::size_t kMost = 65'000;

  /// The number of the category in `trace`, which is the same at every call; its name is interned there. Every category
  /// beyond kMost counts once as a loss. Without a class the name tells it.
  CategoryId number(Trace& trace, std::string_view name, std::optional<SliceClass> known_class = {});

 private:
  tsl::hopscotch_map<StringId, CategoryId, Hash> ids_;
  std::array<CategoryId, kSliceClasses> shared_{};  ///< by class; 0 when there is none yet
};

}  // namespace culprit
