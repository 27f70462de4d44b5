#include "profile/exposed.h"

#include <algorithm>
#include <map>
#include <optional>
#include <queue>
#include <tuple>
#include <utility>

#include "profile/function_kind.h"
#include "trace/sort_runs.h"

namespace culprit::profile {

namespace {

enum class Importance : std::uint8_t { compute, communication, copy, fill };

Importance importance(const Trace& trace, const Slice& slice, std::vector<std::optional<Importance>>& kernels) {
  switch (trace.slice_class(slice)) {
    case SliceClass::memcpy:
      return Importance::copy;
    case SliceClass::memset:
      return Importance::fill;
    default:
      break;
  }
  auto& known = kernels[slice.name];
  if (!known)
    known = kind_of(SliceClass::kernel, trace.name(slice)) == FunctionKind::gpu_comm ? Importance::communication
                                                                                     : Importance::compute;
  return *known;
}

struct Active {
  Importance importance;
  Ns begin;
  std::int32_t stream;
  GpuIndex row;
  Ns end;
  [[nodiscard]] auto key() const { return std::tuple(importance, begin, stream, row); }
  bool operator<(const Active& other) const { return key() > other.key(); }  // the queue's top is the smallest
};

}  // namespace

void for_each_exposure(const Trace& trace, const std::function<void(GpuIndex, Ns, Ns)>& tell) {
  std::vector<std::optional<Importance>> kernels(trace.strings.size());
  std::map<std::pair<std::uint16_t, std::int16_t>, std::vector<GpuIndex>> of_device;
  for (std::size_t g = 0; g < trace.gpu.size(); ++g)
    of_device[{trace.slices[trace.gpu[g].slice].rank, trace.gpu[g].device}].push_back(static_cast<GpuIndex>(g));
  const auto slice_of = [&](GpuIndex g) -> const Slice& { return trace.slices[trace.gpu[g].slice]; };
  for (auto& [device, rows] : of_device) {
    sort_runs(rows.begin(), rows.end(), [&](GpuIndex a, GpuIndex b) {
      return slice_of(a).begin != slice_of(b).begin ? slice_of(a).begin < slice_of(b).begin : a < b;
    });
    std::priority_queue<Active> active;
    Ns now = 0;
    const auto run_until = [&](std::optional<Ns> limit) {
      while (!active.empty() && (!limit || now < *limit)) {
        const Active& top = active.top();
        if (top.end <= now) {
          active.pop();
          continue;
        }
        const Ns until = limit ? std::min(top.end, *limit) : top.end;
        tell(top.row, now, until);
        now = until;
      }
    };
    for (const GpuIndex g : rows) {
      const Slice& slice = slice_of(g);
      run_until(slice.begin);
      now = slice.begin;
      active.push({importance(trace, slice, kernels), slice.begin, trace.gpu[g].stream, g, slice.end()});
    }
    run_until(std::nullopt);
  }
}

std::vector<Ns> exposed_times(const Trace& trace) {
  std::vector<Ns> exposed(trace.gpu.size(), 0);
  for_each_exposure(trace, [&](GpuIndex row, Ns begin, Ns end) { exposed[row] += end - begin; });
  return exposed;
}

}  // namespace culprit::profile
