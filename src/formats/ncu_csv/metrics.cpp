#include "formats/ncu_csv/metrics.h"

#include <array>
#include <cmath>
#include <utility>

namespace culprit::formats::ncu_csv {

namespace {

constexpr std::array<std::pair<std::string_view, MetricRole>, 17> kExact = {
    {{"gpu__time_duration.sum", {Role::duration, 0}},
     {"Duration", {Role::duration, 1}},
     {"gpu__time_duration.avg", {Role::duration, 2}},
     {"gpu__time_duration.max", {Role::duration, 3}},
     {"gpu__time_duration", {Role::duration, 4}},
     {"sm__throughput.avg.pct_of_peak_sustained_elapsed", {Role::sm, 0}},
     {"Compute (SM) Throughput", {Role::sm, 1}},
     {"SM [%]", {Role::sm, 2}},
     {"SOL SM", {Role::sm, 3}},
     {"gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed", {Role::dram, 0}},
     {"dram__throughput.avg.pct_of_peak_sustained_elapsed", {Role::dram, 1}},
     {"DRAM Throughput", {Role::dram, 2}},
     {"SOL DRAM", {Role::dram, 3}},
     {"sm__warps_active.avg.pct_of_peak_sustained_active", {Role::occupancy, 0}},
     {"Achieved Occupancy", {Role::occupancy, 1}},
     {"est. achieved occupancy %", {Role::occupancy, 2}},
     {"dram__bytes.sum", {Role::dram_bytes, 0}}}};

constexpr int kScalarParts = 3;  // additions, multiplications, fused ones of single precision: the least to know

}  // namespace

MetricRole metric_role(std::string_view name) {
  for (const auto& [text, role] : kExact)
    if (name == text) return role;
  if (name == "dram__bytes_read.sum" || name == "dram__bytes_write.sum") return {Role::dram_bytes_part};
  constexpr std::string_view kScalar = "smsp__sass_thread_inst_executed_op_";
  if (name.starts_with(kScalar) && name.ends_with("_pred_on.sum")) {
    const std::string_view op = name.substr(kScalar.size(), name.size() - kScalar.size() - 12);
    if (op.size() == 4 && std::string_view("dfh").find(op[0]) != std::string_view::npos) {
      if (op.substr(1) == "fma") return {Role::scalar_flops, 0, 2};
      if (op.substr(1) == "add" || op.substr(1) == "mul") return {Role::scalar_flops, 0, 1};
    }
  }
  if (name.starts_with("sm__ops_path_tensor_") && name.ends_with(".sum")) return {Role::tensor_flops};
  const bool tensor = name.starts_with("sm__pipe_tensor_") || name.starts_with("sm__inst_executed_pipe_tensor");
  if (tensor && name.ends_with(".avg.pct_of_peak_sustained_elapsed"))
    return {Role::tensor, name.starts_with("sm__pipe_tensor_cycles_active") ? 0
                          : name.starts_with("sm__pipe_tensor_")            ? 1
                                                                            : 2};
  if (tensor && name.ends_with(".avg.pct_of_peak_sustained_active")) return {Role::tensor_of_active};
  return {};
}

void LaunchFiller::add(MetricRole role, double value) {
  switch (role.role) {
    case Role::none:
      break;
    case Role::duration:
      duration_.take(value, role.rank);
      break;
    case Role::sm:
      sm_.take(value, role.rank);
      break;
    case Role::dram:
      dram_.take(value, role.rank);
      break;
    case Role::tensor:
      tensor_.take(value, role.rank);
      break;
    case Role::tensor_of_active:
      active_ = true;
      break;
    case Role::occupancy:
      occupancy_.take(value, role.rank);
      break;
    case Role::dram_bytes:
      bytes_.take(value, role.rank);
      break;
    case Role::dram_bytes_part:
      bytes_parts_ += value;
      ++bytes_part_count_;
      break;
    case Role::scalar_flops:
      scalar_flops_ += role.weight * value;
      ++scalar_count_;
      break;
    case Role::tensor_flops:
      tensor_flops_ += value;
      has_tensor_flops_ = true;
      break;
  }
}

bool LaunchFiller::finish(model::KernelLaunch& launch) {
  constexpr double kNoTensorWork = 0.005;
  constexpr double kMostNs = 1e18;
  const auto fraction = [](const Best& best) {
    return best.known() && best.value >= 0 ? static_cast<float>(best.value) : model::kUnknown;
  };
  launch.sm = fraction(sm_);
  launch.dram = fraction(dram_);
  launch.tensor = fraction(tensor_);
  launch.occupancy = fraction(occupancy_);
  if (bytes_.known())
    launch.dram_bytes = bytes_.value;
  else if (bytes_part_count_ == 2)
    launch.dram_bytes = bytes_parts_;
  // Scalar instructions alone are the work of a kernel only when its tensor cores are known to have done none.
  const bool tensor_known = has_tensor_flops_ || (tensor_.known() && tensor_.value < kNoTensorWork);
  if (scalar_count_ >= kScalarParts && tensor_known) launch.flops = scalar_flops_ + tensor_flops_;
  const bool timed = duration_.known() && duration_.value >= 0 && duration_.value < kMostNs;
  if (timed) launch.latency = std::llround(duration_.value);
  only_active_ = only_active_ || (active_ && !tensor_.known());
  const bool keep = only_active_;
  *this = {};
  only_active_ = keep;
  return timed;
}

}  // namespace culprit::formats::ncu_csv
