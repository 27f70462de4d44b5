#include "model/launch_metrics.h"

#include <array>
#include <cmath>
#include <utility>

namespace culprit::model {

namespace {

constexpr std::array<std::pair<std::string_view, MetricRole>, 17> kExact = {
    {{"gpu__time_duration.sum", {LaunchField::duration, 0}},
     {"Duration", {LaunchField::duration, 1}},
     {"gpu__time_duration.avg", {LaunchField::duration, 2}},
     {"gpu__time_duration.max", {LaunchField::duration, 3}},
     {"gpu__time_duration", {LaunchField::duration, 4}},
     {"sm__throughput.avg.pct_of_peak_sustained_elapsed", {LaunchField::sm, 0}},
     {"Compute (SM) Throughput", {LaunchField::sm, 1}},
     {"SM [%]", {LaunchField::sm, 2}},
     {"SOL SM", {LaunchField::sm, 3}},
     {"gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed", {LaunchField::dram, 0}},
     {"dram__throughput.avg.pct_of_peak_sustained_elapsed", {LaunchField::dram, 1}},
     {"DRAM Throughput", {LaunchField::dram, 2}},
     {"SOL DRAM", {LaunchField::dram, 3}},
     {"sm__warps_active.avg.pct_of_peak_sustained_active", {LaunchField::occupancy, 0}},
     {"Achieved Occupancy", {LaunchField::occupancy, 1}},
     {"est. achieved occupancy %", {LaunchField::occupancy, 2}},
     {"dram__bytes.sum", {LaunchField::dram_bytes, 0}}}};

constexpr int kScalarParts = 3;  // additions, multiplications, fused ones of single precision: the least to know

}  // namespace

MetricRole metric_role(std::string_view name) {
  for (const auto& [text, role] : kExact)
    if (name == text) return role;
  if (name == "dram__bytes_read.sum" || name == "dram__bytes_write.sum") return {LaunchField::dram_bytes_part};
  constexpr std::string_view kScalar = "smsp__sass_thread_inst_executed_op_";
  if (name.starts_with(kScalar) && name.ends_with("_pred_on.sum")) {
    const std::string_view op = name.substr(kScalar.size(), name.size() - kScalar.size() - 12);
    if (op.size() == 4 && std::string_view("dfh").find(op[0]) != std::string_view::npos) {
      if (op.substr(1) == "fma") return {LaunchField::scalar_flops, 0, 2};
      if (op.substr(1) == "add" || op.substr(1) == "mul") return {LaunchField::scalar_flops, 0, 1};
    }
  }
  if (name.starts_with("sm__ops_path_tensor_") && name.ends_with(".sum")) return {LaunchField::tensor_flops};
  const bool tensor = name.starts_with("sm__pipe_tensor_") || name.starts_with("sm__inst_executed_pipe_tensor");
  if (tensor && name.ends_with(".avg.pct_of_peak_sustained_elapsed"))
    return {LaunchField::tensor, name.starts_with("sm__pipe_tensor_cycles_active") ? 0
                                 : name.starts_with("sm__pipe_tensor_")            ? 1
                                                                                   : 2};
  if (tensor && name.ends_with(".avg.pct_of_peak_sustained_active")) return {LaunchField::tensor_of_active};
  return {};
}

void LaunchFiller::add(MetricRole role, double value) {
  switch (role.role) {
    case LaunchField::none:
      break;
    case LaunchField::duration:
      duration_.take(value, role.rank);
      break;
    case LaunchField::sm:
      sm_.take(value, role.rank);
      break;
    case LaunchField::dram:
      dram_.take(value, role.rank);
      break;
    case LaunchField::tensor:
      tensor_.take(value, role.rank);
      break;
    case LaunchField::tensor_of_active:
      active_ = true;
      break;
    case LaunchField::occupancy:
      occupancy_.take(value, role.rank);
      break;
    case LaunchField::dram_bytes:
      bytes_.take(value, role.rank);
      break;
    case LaunchField::dram_bytes_part:
      bytes_parts_ += value;
      ++bytes_part_count_;
      break;
    case LaunchField::scalar_flops:
      scalar_flops_ += role.weight * value;
      ++scalar_count_;
      break;
    case LaunchField::tensor_flops:
      tensor_flops_ += value;
      has_tensor_flops_ = true;
      break;
  }
}

bool LaunchFiller::finish(KernelLaunch& launch) {
  constexpr double kNoTensorWork = 0.005;
  constexpr double kMostNs = 1e18;
  const auto fraction = [](const Best& best) {
    return best.known() && best.value >= 0 ? static_cast<float>(best.value) : kUnknown;
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

}  // namespace culprit::model
