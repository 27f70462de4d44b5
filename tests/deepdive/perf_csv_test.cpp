#include "deepdive/perf_csv.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <string>

#include "formats/io/csv_rows.h"

namespace culprit::deepdive {
namespace {

constexpr std::string_view kHeader =
    "cycle,pid,hostname,beta_pct,function_name,metric_name,device,func_type,mu_pct,sigma_pct,duration,interpolation_"
    "status,"
    "anchor_name,anchor_dur_us,cycle_start_ts,instances_count,simple_name\n";

std::string table(std::string_view rows) { return std::string(kHeader) + std::string(rows); }

const std::string kTwoRows = table(
    "1,77,h,12.5000,\"gemm<1, 2>\",gpu_sm_frequency,GPU 7,gpu_compute,21000.0000,10.0000,125.5000,*,run,1004.0000,"
    "1762935807026558.7500,4,gemm\n"
    "1,77,h,3.0000,cudaStreamSynchronize,N/A,Host,cpu_sync,,,30.1200, ,run,1004.0000,1762935807026558.7500,2,sync\n");

Profile parsed(std::string_view text, DecimalRule rule = DecimalRule::nearest) {
  auto profile = parse_perf_csv(text, "t.csv", {rule, 20});
  EXPECT_TRUE(profile.ok()) << (profile.ok() ? "" : to_string(profile.error()));
  return profile.ok() ? std::move(profile).value() : Profile();
}

TEST(PerfCsv, NumbersAreThoseOfTheTable) {
  const auto p = parsed(kTwoRows);
  ASSERT_EQ(p.cycles.size(), 1u);
  EXPECT_DOUBLE_EQ(p.cycles[0].duration_us, 1004);
  EXPECT_DOUBLE_EQ(p.cycles[0].begin_us, 1762935807026558.75);
  EXPECT_EQ(p.texts[p.cycles[0].anchor], "run");
  ASSERT_EQ(p.functions.size(), 2u);
  EXPECT_EQ(p.texts[p.functions[0].function], "gemm<1, 2>");
  EXPECT_DOUBLE_EQ(p.functions[0].duration_us, 125.5);
  EXPECT_EQ(p.functions[0].count, 4);
  EXPECT_DOUBLE_EQ(p.functions[0].beta_pct, 12.5);
  ASSERT_EQ(p.resources.size(), 2u);
  EXPECT_DOUBLE_EQ(p.resources[0].mu_pct, 21000);
  EXPECT_DOUBLE_EQ(p.resources[0].sigma_pct, 10);
  EXPECT_EQ(p.resources[0].provenance, Provenance::mixed);
  EXPECT_EQ(p.resources[1].metric, 0u);
  EXPECT_EQ(p.resources[1].provenance, Provenance::none);
  EXPECT_TRUE(std::isnan(p.resources[1].mu_pct));
}

TEST(PerfCsv, WritingGivesTheSameBytes) { EXPECT_EQ(write_perf_csv(parsed(kTwoRows)), kTwoRows); }

TEST(PerfCsv, StyleIsKept) {
  std::string text = "\xEF\xBB\xBF";
  for (const char c : kTwoRows) text += c == '\n' ? std::string("\r\n") : std::string(1, c);
  CsvStyle style;
  auto p = parse_perf_csv(text, "t.csv", {}, &style);
  ASSERT_TRUE(p.ok());
  EXPECT_TRUE(style.crlf);
  EXPECT_TRUE(style.byte_order_mark);
  EXPECT_EQ(write_perf_csv(*p, style), text);
}

TEST(PerfCsv, ColumnsAreFoundByNameAndOthersAreNamed) {
  const auto p = parsed(
      "device,mood,mu_pct,metric_name,function_name,beta_pct,anchor_dur_us,pid,cycle\nHost,glad,5,cpu_temp,f,1,10,7,"
      "3\n");
  ASSERT_EQ(p.functions.size(), 1u);
  EXPECT_EQ(p.cycles[0].number, 3);
  EXPECT_EQ(p.processes[0].pid, 7);
  EXPECT_EQ(p.input.unknown_columns, std::vector<std::string>{"mood"});
}

TEST(PerfCsv, BadRowsAreCountedAndDescribedAndTheRestIsKept) {
  const auto p =
      parsed(table("1,7,,1,f,m,GPU 0,k,1,0,1,*,a,10,5,1,f\n"
                   "1,7,,1,f,m,GPU 0\n"
                   "x,7,,1,f,m,GPU 0,k,1,0,1,*,a,10,5,1,f\n"
                   "1,,,1,f,m,GPU 0,k,1,0,1,*,a,10,5,1,f\n"
                   "1,7,,much,f,m,GPU 0,k,1,0,1,*,a,10,5,1,f\n"
                   "1,7,,1,f,m,GPU 0,k,1,0,1,*,a,1e999,5,1,f\n"
                   "1,7,,1,f,m,GPU 0,k,wrong,0,1,*,a,10,5,1,f\n"));
  EXPECT_EQ(p.input.rows, 2u);
  EXPECT_EQ(p.input.bad_rows, 5u);
  EXPECT_EQ(p.input.bad_cells, 1u);
  ASSERT_EQ(p.input.first.size(), 6u);
  EXPECT_EQ(p.input.first[0].line, 3u);
  EXPECT_NE(p.input.first[0].what.find("7 columns instead of 17"), std::string::npos);
  EXPECT_NE(p.input.first[1].what.find("'cycle' holds 'x'"), std::string::npos);
  EXPECT_EQ(p.input.first[5].line, 8u);
  for (const auto& damage : p.input.first) EXPECT_FALSE(damage.remedy.empty());
  EXPECT_TRUE(std::isnan(p.resources[1].mu_pct));
}

TEST(PerfCsv, OnlyTheFirstDamageIsDescribedButAllIsCounted) {
  std::string rows;
  for (int i = 0; i < 1000; ++i) rows += "short,row\n";
  const auto p = parsed(table(rows));
  EXPECT_EQ(p.input.bad_rows, 1000u);
  EXPECT_EQ(p.input.first.size(), 20u);
}

TEST(PerfCsv, AMissingColumnIsAnInputErrorThatNamesIt) {
  const auto p = parse_perf_csv("cycle,pid,beta_pct,function_name,device,mu_pct,anchor_dur_us\n", "x.csv");
  ASSERT_FALSE(p.ok());
  EXPECT_EQ(p.error().kind, ErrorKind::input);
  EXPECT_EQ(p.error().where, "x.csv");
  EXPECT_NE(p.error().what.find("'metric_name'"), std::string::npos);
  EXPECT_FALSE(p.error().remedy.empty());
}

TEST(PerfCsv, EmptyAndForeignFilesAreInputErrors) {
  for (const std::string_view text :
       {std::string_view(""), std::string_view("\n\n"), std::string_view("{\"traceEvents\":[]}"),
        std::string_view("\0\0\0\0", 4), std::string_view("\"\"\"\"")}) {
    const auto p = parse_perf_csv(text, "x.csv");
    ASSERT_FALSE(p.ok()) << text;
    EXPECT_EQ(p.error().kind, ErrorKind::input);
  }
  EXPECT_FALSE(read_perf_csv("/nonexistent/x.csv").ok());
  EXPECT_FALSE(read_perf_csv("/").ok());
}

TEST(PerfCsv, AHeaderAloneIsAnEmptyProfile) {
  const auto p = parsed(kHeader);
  EXPECT_TRUE(p.resources.empty());
  EXPECT_EQ(p.input.bad_rows, 0u);
}

TEST(PerfCsv, HostileNamesSurviveAndAreNoFormulas) {
  const std::string name(std::size_t{1} << 20, 'k');
  for (const std::string& function :
       {name, std::string("=cmd|' /C calc'!A0"), std::string("@x"), std::string("a\"b\nc,d"), std::string("-1+2")}) {
    std::string row = "1,7,,1.0000,";
    formats::append_csv_field(row, function);
    row += ",m,GPU 0,k,1.0000,0.0000,1.0000,*,a,10.0000,5.0000,1,f\n";
    const auto p = parsed(table(row));
    ASSERT_EQ(p.functions.size(), 1u);
    EXPECT_EQ(p.texts[p.functions[0].function], function);
    const std::string written = write_perf_csv(p);
    EXPECT_EQ(written.find("1.0000,=") + written.find("1.0000,@"), 2 * std::string::npos);
    const auto again = parsed(written);
    EXPECT_EQ(again.texts[again.functions[0].function], function);
  }
}

TEST(PerfCsv, ReferenceDecimalsAreUsedOnRequest) {
  const std::string text = table("1,7,,1,f,gpu_link_receive,GPU 0,k,22750004014933.2521,0,1,*,a,10,5,1,f\n");
  EXPECT_EQ(parsed(text, DecimalRule::reference).resources[0].mu_pct, *parse_reference_decimal("22750004014933.2521"));
  EXPECT_NE(parsed(text).resources[0].mu_pct, *parse_reference_decimal("22750004014933.2521"));
}

TEST(PerfCsv, PublishedTablesAreWrittenBackByteByByte) {
  const std::filesystem::path shared = std::filesystem::path(CULPRIT_SOURCE_DIR).parent_path() / "shared";
  int files = 0;
  for (const auto& folder : {shared / "corpus" / "latencyprism", shared / "golden" / "deepdive"}) {
    if (!std::filesystem::exists(folder)) GTEST_SKIP() << "shared data missing: " << folder;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
      if (!entry.path().string().ends_with("_perf_data.csv")) continue;
      const auto text = formats::read_whole_file(entry.path().string());
      ASSERT_TRUE(text.ok());
      CsvStyle style;
      auto p = parse_perf_csv(*text, entry.path().string(), {}, &style);
      ASSERT_TRUE(p.ok());
      EXPECT_EQ(p->input.bad_rows + p->input.bad_cells, 0u) << entry.path();
      EXPECT_TRUE(write_perf_csv(*p, style) == *text) << entry.path();
      ++files;
    }
  }
  EXPECT_GE(files, 4);
}

}  // namespace
}  // namespace culprit::deepdive
