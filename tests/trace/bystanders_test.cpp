#include "trace/bystanders.h"

#include <gtest/gtest.h>

#include "build.h"
#include "core/units.h"

namespace culprit {
namespace {

/// A process that takes a whole CPU from `since` on.
Trace taken_since(Ns since) {
  test::Building b;
  const TrackId track = b.thread(7, 7);
  const ProcessId process = b.builder.process(7, b.builder.intern("7"));
  b.builder.name_process(process, b.builder.intern("backup"));
  b.builder.add_counter(b.builder.intern("other.cpu"), process, track, {since, 1.0});
  return b.finish();
}

TEST(Bystanders, WhatComesLateTookNothingBefore) {
  const auto always = bystanders(taken_since(0), 0, 10 * kSecond);
  ASSERT_EQ(always.size(), 1U);
  EXPECT_DOUBLE_EQ(always[0].cpus, 1);
  const auto late = bystanders(taken_since(8 * kSecond), 0, 10 * kSecond);
  ASSERT_EQ(late.size(), 1U);
  EXPECT_DOUBLE_EQ(late[0].cpus, 0.2);
  EXPECT_TRUE(bystanders(taken_since(12 * kSecond), 0, 10 * kSecond).empty());
}

}  // namespace
}  // namespace culprit
