#include "compare/like_work.h"

#include <utility>

namespace culprit::compare {

namespace {

struct SumOfClass {
  double sum = 0;
  double count = 0;
};

}  // namespace

LikeWork like_work_of(std::array<std::vector<std::uint32_t>, 2> class_of, std::size_t classes) {
  LikeWork work{std::move(class_of), classes, {}};
  for (std::size_t s = 0; s < 2; ++s) {
    work.cycles[s].resize(classes);
    for (const std::uint32_t c : work.class_of[s]) ++work.cycles[s][c];
  }
  return work;
}

std::array<std::vector<CycleValue>, 2> at_like_work(const std::array<std::vector<CycleValue>, 2>& values,
                                                    const LikeWork& work, bool absent_is_nothing) {
  if (work.classes < 2) return values;
  std::array<std::vector<SumOfClass>, 2> sides;
  std::array<double, 2> all{};
  for (std::size_t s = 0; s < 2; ++s) {
    sides[s].resize(work.classes);
    for (std::size_t c = 0; absent_is_nothing && c < work.classes; ++c) sides[s][c].count = work.cycles[s][c];
    for (const CycleValue& v : values[s]) {
      if (v.position >= work.class_of[s].size()) continue;
      SumOfClass& of = sides[s][work.class_of[s][v.position]];
      of.sum += v.value;
      if (!absent_is_nothing) ++of.count;
    }
    for (const SumOfClass& of : sides[s]) all[s] += of.count;
  }
  if (!(all[0] > 0) || !(all[1] > 0)) return values;
  std::vector<double> usual(work.classes, 0);
  std::vector<double> share_of(work.classes, 0);
  double mean = 0;
  double shares = 0;
  bool some_have_none = false;
  for (std::size_t c = 0; c < work.classes; ++c) {
    const SumOfClass& a = sides[0][c];
    const SumOfClass& b = sides[1][c];
    // A class that one side lacks cannot be held against it.
    if (!(a.count > 0) || !(b.count > 0)) continue;
    usual[c] = (a.sum / a.count + b.sum / b.count) / 2;
    share_of[c] = (a.count / all[0] + b.count / all[1]) / 2;
    mean += share_of[c] * usual[c];
    shares += share_of[c];
    some_have_none = some_have_none || !(usual[c] > 0);
  }
  auto scaled = values;
  const auto is_alone = [&](std::size_t s, const CycleValue& v) {
    return v.position < work.class_of[s].size() && !(share_of[work.class_of[s][v.position]] > 0);
  };
  if (!absent_is_nothing)
    for (std::size_t s = 0; s < 2; ++s) std::erase_if(scaled[s], [&](const CycleValue& v) { return is_alone(s, v); });
  if (!(shares > 0) || !(mean > 0)) return scaled;
  mean /= shares;
  for (std::size_t s = 0; s < 2; ++s)
    for (CycleValue& v : scaled[s]) {
      if (v.position >= work.class_of[s].size()) continue;
      const std::uint32_t c = work.class_of[s][v.position];
      // Where cycles of one kind have nothing of it, no factor frees it of the kind: each kind weighs as its share.
      if (some_have_none)
        v.value *= share_of[c] / shares * all[s] / sides[s][c].count;
      else if (usual[c] > 0)
        v.value *= mean / usual[c];
    }
  return scaled;
}

}  // namespace culprit::compare
