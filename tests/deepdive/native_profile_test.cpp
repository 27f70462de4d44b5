#include "deepdive/native_profile.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>

#include "deepdive/perf_csv.h"

namespace culprit::deepdive {
namespace {

using model::Unit;

const std::string kHeader =
    "cycle,pid,hostname,beta_pct,function_name,metric_name,device,func_type,mu_pct,sigma_pct,duration,interpolation_"
    "status,anchor_name,anchor_dur_us,cycle_start_ts,instances_count,simple_name\n";
const std::string kTwoRows =
    kHeader +
    "1,77,h,12.5000,\"gemm<1, 2>\",gpu_sm_frequency,GPU 7,gpu_compute,21000.0000,10.0000,125.5000,*,run,1004.0000,"
    "1762935807026558.7500,4,gemm\n"
    "1,77,h,3.0000,cudaStreamSynchronize,N/A,Host,cpu_sync,,,30.1200, ,run,1004.0000,1762935807026558.7500,2,sync\n";

model::Profile native(const std::string& text) {
  auto parsed = parse_perf_csv(text, "t.csv");
  EXPECT_TRUE(parsed.ok());
  return parsed.ok() ? native_profile(std::move(*parsed)) : model::Profile();
}

TEST(NativeProfile, ValuesAreSi) {
  const auto p = native(kTwoRows);
  ASSERT_EQ(p.cycles.size(), 1u);
  EXPECT_EQ(p.cycles[0].duration, 1'004'000);
  EXPECT_NEAR(static_cast<double>(p.cycles[0].begin), 1762935807026558750.0, 256);
  EXPECT_EQ(p.texts[p.cycles[0].anchor], "run");
  ASSERT_EQ(p.functions.size(), 2u);
  EXPECT_EQ(p.texts[p.functions[0].function], "gemm<1, 2>");
  EXPECT_EQ(p.functions[0].duration, 125'500);
  EXPECT_EQ(p.functions[0].count, 4);
  EXPECT_DOUBLE_EQ(p.functions[0].beta, 0.125);
  ASSERT_EQ(p.resources.size(), 2u);
  EXPECT_EQ(p.resources[0].unit, Unit::hertz);
  EXPECT_DOUBLE_EQ(p.resources[0].mu, 210e6);
  EXPECT_DOUBLE_EQ(p.resources[0].sigma, 0.1e6);
  EXPECT_EQ(p.resources[0].provenance, model::Provenance::interpolated);
  EXPECT_EQ(p.resources[1].metric, 0u);
  EXPECT_EQ(p.resources[1].provenance, model::Provenance::none);
  EXPECT_TRUE(std::isnan(p.resources[1].mu));
}

TEST(NativeProfile, EveryResourceHasItsScale) {
  const struct {
    const char* metric;
    const char* reported;
    Unit unit;
    double si;
  } kCases[] = {{"gpu_usage", "43.5", Unit::fraction, 0.435},
                {"process_cpu_usage", "2.5", Unit::fraction, 0.025},
                {"cpu_frequency", "87.5", Unit::fraction, 0.875},
                {"cpu_frequency", "336602.3288", Unit::hertz, 3366023288},
                {"gpu_frequency", "141000", Unit::hertz, 1.41e9},
                {"gpu_mem_used", "85.7049", Unit::fraction, 0.857049},
                {"gpu_mem_used", "8000000000000", Unit::bytes, 8e10},
                {"gpu_sm_util", "0.774", Unit::fraction, 0.774},
                {"gpu_sm_occupancy", "0.076", Unit::fraction, 0.076},
                {"gpu_link_receive", "45000000000000", Unit::bytes_per_second, 4.5e11},
                {"gpu_pcie_transmit", "701590200", Unit::bytes_per_second, 7015902},
                {"net_tx_rate", "125000000", Unit::bytes_per_second, 1.25e8},
                {"process_mem_rss", "409600", Unit::bytes, 4096},
                {"cpu_temp", "6100", Unit::celsius, 61},
                {"cpu_power", "21500", Unit::watt, 215},
                {"disk_usage", "68.6015", Unit::fraction, 0.686015}};
  for (const auto& c : kCases) {
    const auto p = native(std::string(kHeader) + std::string("1,7,,1,f,") + c.metric + ",GPU 0,k," + c.reported +
                          ",0,1,*,a,10,5,1,f\n");
    ASSERT_EQ(p.resources.size(), 1u) << c.metric;
    EXPECT_EQ(p.resources[0].unit, c.unit) << c.metric;
    EXPECT_DOUBLE_EQ(p.resources[0].mu, c.si) << c.metric;
  }
}

TEST(NativeProfile, AbsurdTimesAreUnknown) {
  const auto p = native(
      "cycle,pid,beta_pct,function_name,metric_name,device,mu_pct,anchor_dur_us,duration\n"
      "1,7,1,f,m,d,1,9000000000000000,1e300\n");
  ASSERT_EQ(p.functions.size(), 1u);
  EXPECT_EQ(p.functions[0].duration, 0);
  EXPECT_EQ(p.cycles[0].duration, 9000000000000000000);
}

}  // namespace
}  // namespace culprit::deepdive
