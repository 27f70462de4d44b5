// The columns of the profile table, in the order in which they are written.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace culprit::deepdive {

enum class PerfColumn : std::uint8_t {
  cycle,
  pid,
  hostname,
  beta_pct,
  function_name,
  metric_name,
  device,
  func_type,
  mu_pct,
  sigma_pct,
  duration,
  interpolation_status,
  anchor_name,
  anchor_dur_us,
  cycle_start_ts,
  instances_count,
  simple_name,
};

struct PerfColumnInfo {
  PerfColumn id;
  std::string_view name;
  bool required;  ///< without it nothing can be compared
};

inline constexpr std::array<PerfColumnInfo, 17> kPerfColumns = {{
    {PerfColumn::cycle, "cycle", true},
    {PerfColumn::pid, "pid", true},
    {PerfColumn::hostname, "hostname", false},
    {PerfColumn::beta_pct, "beta_pct", true},
    {PerfColumn::function_name, "function_name", true},
    {PerfColumn::metric_name, "metric_name", true},
    {PerfColumn::device, "device", true},
    {PerfColumn::func_type, "func_type", false},
    {PerfColumn::mu_pct, "mu_pct", true},
    {PerfColumn::sigma_pct, "sigma_pct", false},
    {PerfColumn::duration, "duration", false},
    {PerfColumn::interpolation_status, "interpolation_status", false},
    {PerfColumn::anchor_name, "anchor_name", false},
    {PerfColumn::anchor_dur_us, "anchor_dur_us", true},
    {PerfColumn::cycle_start_ts, "cycle_start_ts", false},
    {PerfColumn::instances_count, "instances_count", false},
    {PerfColumn::simple_name, "simple_name", false},
}};

}  // namespace culprit::deepdive
