// What is found in traces that are in order.
#pragma once

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "cycles/find.h"
#include "trace/trace.h"

namespace culprit::cycles {

inline Found find(const Trace& trace, const FindOptions& options = {}) {
  auto found = find_cycles(trace, order_slices(trace), options);
  EXPECT_TRUE(found.ok());
  return std::move(*found);
}

inline model::Cycles cycles_in(const Trace& trace, const FindOptions& options = {}) {
  return find(trace, options).cycles;
}

inline std::vector<Ns> begins_of(const model::Cycles& cycles) {
  std::vector<Ns> begins;
  for (const model::Cycle& c : cycles.cycles) begins.push_back(c.begin);
  return begins;
}

}  // namespace culprit::cycles
