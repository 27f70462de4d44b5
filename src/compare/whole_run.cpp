#include "compare/whole_run.h"

namespace culprit::compare {

namespace {

model::WholeRun mean_of(std::span<const model::Recording> recordings) {
  model::WholeRun mean;
  const auto n = static_cast<double>(recordings.size());
  for (const model::Recording& recording : recordings)
    for (double model::WholeRun::*number :
         {&model::WholeRun::wall_ns, &model::WholeRun::busy_ns, &model::WholeRun::kernel_ns, &model::WholeRun::kernels,
          &model::WholeRun::copies, &model::WholeRun::operators, &model::WholeRun::launches})
      mean.*number += recording.whole.*number / n;
  return mean;
}

}  // namespace

std::array<model::WholeRun, 2> whole_runs(std::span<const model::Recording> base,
                                          std::span<const model::Recording> candidate) {
  return {mean_of(base), mean_of(candidate)};
}

}  // namespace culprit::compare
