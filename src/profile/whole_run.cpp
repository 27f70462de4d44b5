#include "profile/whole_run.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "core/intervals.h"
#include "core/saturating.h"

namespace culprit::profile {

model::WholeRun whole_run_of(const Trace& trace) {
  model::WholeRun whole;
  Ns begin = std::numeric_limits<Ns>::max();
  Ns end = std::numeric_limits<Ns>::min();
  for (std::size_t i = 0; i < trace.slices.size(); ++i) {
    const Slice& slice = trace.slices[i];
    begin = std::min(begin, slice.begin);
    end = std::max(end, slice.end());
    const SliceClass kind = trace.slice_class(slice);
    whole.operators += kind == SliceClass::cpu_op ? 1 : 0;
    whole.launches += is_host_api(kind) ? 1 : 0;
  }
  if (end > begin) whole.wall_ns = static_cast<double>(subtract_saturating(end, begin));
  std::map<std::pair<std::uint16_t, std::int32_t>, std::vector<Interval>> devices;
  for (std::size_t g = 0; g < trace.gpu.size(); ++g) {
    const GpuSlice& gpu = trace.gpu[g];
    const Slice& slice = trace.slices[gpu.slice];
    devices[{slice.rank, gpu.device}].push_back({slice.begin, slice.end()});
    const bool kernel = trace.slice_class(slice) == SliceClass::kernel;
    (kernel ? whole.kernels : whole.copies) += 1;
    if (kernel) whole.kernel_ns += static_cast<double>(slice.duration);
  }
  for (auto& [device, spans] : devices)
    whole.busy_ns += static_cast<double>(union_length(spans)) / static_cast<double>(devices.size());
  return whole;
}

}  // namespace culprit::profile
