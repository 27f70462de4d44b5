// Kernels of real captures, through the readers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "formats/load.h"
#include "kernels/align_logs.h"
#include "kernels/launch_tables.h"
#include "kernels/trace_log.h"
#include "summary/function_stats.h"
#include "support/shared_data.h"

namespace culprit {
namespace {

using model::Change;

model::KernelLog log_of(const std::string& inside) {
  auto data = formats::load_kernel_data({test::shared(inside)}, {});
  EXPECT_TRUE(data.ok()) << (data.ok() ? "" : to_string(data.error()));
  if (!data) return {};
  if (const auto* trace = std::get_if<Trace>(&*data)) return kernels::kernel_log_of(*trace);
  return std::get<model::KernelLog>(std::move(*data));
}

// 68 against 60 attention calls: one capture is longer. Per call nothing changed; send and receive differ by who waits.
TEST(KernelsOfCaptures, ALongerCaptureAccusesNoKernel) {
  CULPRIT_NEEDS_SHARED("corpus/nsys/mfu_2gpu_before.sqlite");
  const auto before = log_of("corpus/nsys/mfu_2gpu_before.sqlite");
  const auto after = log_of("corpus/nsys/mfu_2gpu_after.sqlite");
  const auto comparison = kernels::compare_logs(before, after, {});
  ASSERT_FALSE(comparison.names.empty());
  std::uint64_t attention_a = 0;
  std::uint64_t attention_b = 0;
  for (const model::KernelChange& change : comparison.names) {
    if (change.name.find("flash_fwd") != std::string::npos) {
      attention_a += change.calls_a;
      attention_b += change.calls_b;
    }
    if (change.name.find("nccl") != std::string::npos) {
      EXPECT_EQ(change.change, Change::not_judged);
      EXPECT_THAT(change.note, testing::HasSubstr("transfer"));
      EXPECT_THAT(change.note, testing::HasSubstr("waits"));
    } else {
      EXPECT_EQ(change.change, Change::same) << change.name << " " << change.where;
    }
  }
  EXPECT_EQ(attention_a, 68u);
  EXPECT_EQ(attention_b, 60u);
  for (const model::KernelChange& change : comparison.positions) EXPECT_EQ(change.change, Change::not_judged);
}

TEST(KernelsOfCaptures, SameTotalsAsTop) {
  for (const char* file : {"corpus/nsys/mfu_2gpu_before.sqlite", "corpus/nsys/mfu_2gpu_after.sqlite"}) {
    CULPRIT_NEEDS_SHARED(file);
    const auto trace = formats::load_run({test::shared(file)}, {});
    ASSERT_TRUE(trace.ok());
    summary::FunctionQuery query;
    query.classes = summary::class_bit(SliceClass::kernel);
    const summary::FunctionSums top = function_stats(*trace, query);
    const auto log = log_of(file);
    const model::Table table = kernels::name_table(log, {});
    EXPECT_EQ(log.launches.size(), top.calls);
    std::map<std::string, std::pair<std::int64_t, std::int64_t>> by_name;
    for (const auto& row : table.rows)
      by_name[std::get<std::string>(row[0])] = {std::get<std::int64_t>(row[1]), std::get<std::int64_t>(row[2])};
    ASSERT_EQ(by_name.size(), top.functions.size());
    for (const summary::FunctionStats& function : top.functions) {
      const auto found = by_name.find(function.label);
      ASSERT_NE(found, by_name.end()) << function.label;
      EXPECT_EQ(found->second.first, static_cast<std::int64_t>(function.calls));
      EXPECT_EQ(found->second.second, function.total);
    }
  }
}

}  // namespace
}  // namespace culprit
