#include "summary/busy.h"

#include <algorithm>

#include "core/saturating.h"

namespace culprit::summary {

Ns union_length(std::vector<Span>& spans) {
  if (!std::is_sorted(spans.begin(), spans.end())) std::sort(spans.begin(), spans.end());
  Ns length = 0;
  for (std::size_t i = 0; i < spans.size();) {
    const Ns begin = spans[i].begin;
    Ns end = spans[i].end;
    for (++i; i < spans.size() && spans[i].begin <= end; ++i) end = std::max(end, spans[i].end);
    length = add_saturating(length, end - begin);
  }
  return length;
}

}  // namespace culprit::summary
