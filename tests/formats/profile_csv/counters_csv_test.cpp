#include "formats/profile_csv/counters_csv.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "formats/io/csv_rows.h"

namespace culprit::formats {
namespace {

constexpr std::string_view kText =
    "counter_name,timestamp,value,hostname\n"
    "cpu_frequency,1762935811022609.750000,2600.500000,h\n"
    "gpu_usage,1762935811022610.000000,43.000000,\n"
    "process_mem_rss_77,1762935811022611.000000,4096.000000,h\n";

TEST(CountersCsv, SamplesAreSiInside) {
  const auto log = parse_counters_csv(kText, "c.csv");
  ASSERT_TRUE(log.ok());
  ASSERT_EQ(log->samples.size(), 3u);
  EXPECT_EQ(log->samples[0].time, 1762935811022609750);
  EXPECT_EQ(log->samples[0].unit, model::Unit::hertz);
  EXPECT_DOUBLE_EQ(log->samples[0].value, 2600.5e6);
  EXPECT_DOUBLE_EQ(log->samples[1].value, 0.43);
  EXPECT_EQ(log->samples[2].unit, model::Unit::bytes);
  EXPECT_EQ(log->texts[log->samples[2].counter], "process_mem_rss_77");
}

TEST(CountersCsv, WritingGivesTheSameBytes) {
  auto log = parse_counters_csv(kText, "c.csv");
  ASSERT_TRUE(log.ok());
  EXPECT_EQ(write_counters_csv(*log), kText);
  log->reported = false;
  EXPECT_EQ(write_counters_csv(*log), kText);
}

TEST(CountersCsv, BadRowsAreCounted) {
  const auto log = parse_counters_csv("counter_name,timestamp,value\na,1,2\na,x,2\na,1,\na,1\n", "c.csv");
  ASSERT_TRUE(log.ok());
  EXPECT_EQ(log->samples.size(), 1u);
  EXPECT_EQ(log->input.bad_rows, 3u);
  EXPECT_EQ(log->input.first[0].line, 3u);
}

TEST(CountersCsv, AMissingColumnIsAnInputError) {
  const auto log = parse_counters_csv("counter_name,timestamp\n", "c.csv");
  ASSERT_FALSE(log.ok());
  EXPECT_EQ(log.error().kind, ErrorKind::input);
  EXPECT_NE(log.error().what.find("'value'"), std::string::npos);
  EXPECT_FALSE(parse_counters_csv("", "c.csv").ok());
}

TEST(CountersCsv, PublishedTablesAreWrittenBackByteByByte) {
  const std::filesystem::path folder =
      std::filesystem::path(CULPRIT_SOURCE_DIR).parent_path() / "shared" / "corpus" / "latencyprism";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "shared data missing: " << folder;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.path().string().ends_with("_counters_data.csv")) continue;
    const auto text = read_whole_file(entry.path().string());
    ASSERT_TRUE(text.ok());
    CsvStyle style;
    const auto log = parse_counters_csv(*text, entry.path().string(), &style);
    ASSERT_TRUE(log.ok());
    EXPECT_EQ(log->input.bad_rows, 0u);
    EXPECT_TRUE(write_counters_csv(*log, style) == *text) << entry.path();
  }
}

}  // namespace
}  // namespace culprit::formats
