#include "kernels/fusion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iostream>

#include "kernels/launch_identity.h"
#include "support/launch_log.h"
#include "support/shared_data.h"

namespace culprit::kernels {
namespace {

TEST(Fusion, DISABLED_Show) {
  for (const char* seed : {"001_abc90e299168b04d", "002_2e6eb07346960d83", "003_a62fcc25c90d6fd4"}) {
    const auto log = test::parse_launch_log(test::shared(std::string("seeds/") + seed + ".txt"));
    const auto report = fusion_report(log, lanes_of(log), {});
    std::cout << seed << " best " << report.best_dram << " total " << report.total << "\n";
    for (std::size_t i = 0; i < std::min<std::size_t>(9, report.candidates.size()); ++i) {
      const auto& c = report.candidates[i];
      std::cout << "  " << c.idiom << (c.by_shape ? " (by shape)" : "") << " places " << c.begins.size() << " first "
                << c.begins[0] << " time " << c.time / 1000 << " bound " << c.bound / 1000 << " careful "
                << c.careful / 1000 << " n " << c.names.size() << ":";
      for (auto name : c.names) std::cout << " " << log.names[name].substr(0, 12);
      std::cout << "\n";
    }
  }
}

}  // namespace
}  // namespace culprit::kernels
