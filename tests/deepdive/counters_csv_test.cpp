#include "deepdive/counters_csv.h"

#include <gtest/gtest.h>

namespace culprit::deepdive {
namespace {

TEST(CountersCsv, SixDecimalsAndNoFormulas) {
  CounterLog log;
  log.samples.push_back({log.texts.intern("cpu_frequency"), log.texts.intern("h"), 1762935811022609.75, 2600.5});
  log.samples.push_back({log.texts.intern("=1+1"), log.texts.intern(""), 0.001, -3});
  EXPECT_EQ(write_counters_csv(log),
            "counter_name,timestamp,value,hostname\n"
            "cpu_frequency,1762935811022609.750000,2600.500000,h\n"
            "'=1+1,0.001000,-3.000000,\n");
}

}  // namespace
}  // namespace culprit::deepdive
