#include "trace/category_table.h"

#include <fmt/format.h>

#include <string>

namespace culprit {

CategoryId CategoryTable::number(Trace& trace, std::string_view name, std::optional<SliceClass> known_class) {
  const StringId text = trace.strings.intern(name);
  if (const auto it = ids_.find(text); it != ids_.end()) return it->second;
  const SliceClass slice_class = known_class ? *known_class : classify_category(name);
  auto id = static_cast<CategoryId>(trace.categories.size());
  if (trace.categories.size() < kMost) {
    trace.categories.push_back({std::string(name), slice_class});
  } else {
    trace.losses.add(LossReason::categories_collapsed, 1, trace.ranks.empty() ? "" : trace.ranks.back().path);
    CategoryId& shared = shared_[static_cast<std::size_t>(slice_class)];
    if (shared == 0) {
      shared = id;
      trace.categories.push_back({fmt::format("(more categories: {})", to_string(slice_class)), slice_class});
    }
    id = shared;
  }
  ids_.emplace(text, id);
  return id;
}

}  // namespace culprit
