#include "formats/ncu_csv/ncu_csv.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>

#include "formats/ncu_csv/numbers.h"
#include "model/launch_metrics.h"
#include "support/shared_data.h"

namespace culprit::formats::ncu_csv {
namespace {

using model::LaunchField;
using model::metric_role;

const std::string kLong =
    "\"ID\",\"Process ID\",\"Process Name\",\"Host Name\",\"Kernel Name\",\"Context\",\"Stream\",\"Block Size\","
    "\"Grid Size\",\"Device\",\"CC\",\"Section Name\",\"Metric Name\",\"Metric Unit\",\"Metric Value\",\"Rule Name\","
    "\"Rule Description\"\n";

std::string row(const std::string& id, const std::string& metric, const std::string& unit, const std::string& value,
                const std::string& pid = "7", const std::string& device = "0") {
  return "\"" + id + "\",\"" + pid +
         "\",\"app\",\"127.0.0.1\",\"gemm<float>(int, int)\",\"1\",\"13\",\"(384, 1, 1)\"," + "\"(9, 32, 1)\",\"" +
         device + "\",\"8.0\",\"Speed\",\"" + metric + "\",\"" + unit + "\",\"" + value + "\",\n";
}

NcuData read(const std::string& text) {
  auto data = parse(text, "x.csv");
  EXPECT_TRUE(data) << to_string(data.error());
  return data ? std::move(*data) : NcuData{};
}

TEST(NcuNumbers, EveryNumberVotesForWhatItCanBe) {
  EXPECT_EQ(vote("9,00"), LocaleVote::comma);
  EXPECT_EQ(vote("27.595.520"), LocaleVote::comma);
  EXPECT_EQ(vote("1.234,5"), LocaleVote::comma);
  EXPECT_EQ(vote("0,123"), LocaleVote::comma);
  EXPECT_EQ(vote("1,215,000,000.00"), LocaleVote::point);
  EXPECT_EQ(vote("23.59"), LocaleVote::point);
  EXPECT_EQ(vote("0.123"), LocaleVote::point);
  EXPECT_EQ(vote("1.234"), LocaleVote::either);
  EXPECT_EQ(vote("1,234"), LocaleVote::either);
  EXPECT_EQ(vote("406240"), LocaleVote::none);
  EXPECT_EQ(vote("PolicySpread"), LocaleVote::none);
  EXPECT_EQ(vote("(9, 32, 1)"), LocaleVote::none);
}

TEST(NcuNumbers, UnitsDecideWhatDigitsDoNot) {
  EXPECT_EQ(vote_by_unit("1.234", "ns"), LocaleVote::comma);
  EXPECT_EQ(vote_by_unit("1,234", "byte"), LocaleVote::point);
  EXPECT_EQ(vote_by_unit("12.345", "%"), LocaleVote::point);
  EXPECT_EQ(vote_by_unit("12,345", "%"), LocaleVote::comma);
  EXPECT_EQ(vote_by_unit("1.234", "us"), LocaleVote::none);
  EXPECT_EQ(vote_by_unit("1.23", "ns"), LocaleVote::none);
}

TEST(NcuNumbers, ParsesBothLocales) {
  EXPECT_DOUBLE_EQ(*parse_number("1,215,000,000.00", Locale::point), 1215000000);
  EXPECT_DOUBLE_EQ(*parse_number("27.595.520", Locale::comma), 27595520);
  EXPECT_DOUBLE_EQ(*parse_number("1.234", Locale::comma), 1234);
  EXPECT_DOUBLE_EQ(*parse_number("1.234", Locale::point), 1.234);
  EXPECT_DOUBLE_EQ(*parse_number("9,00", Locale::comma), 9);
  EXPECT_DOUBLE_EQ(*parse_number("27\xE2\x80\xAF"
                                 "595,5",
                                 Locale::comma),
                   27595.5);
  EXPECT_DOUBLE_EQ(*parse_number("27'595.5", Locale::point), 27595.5);
  EXPECT_DOUBLE_EQ(*parse_number("1e3", Locale::point), 1000);
  EXPECT_DOUBLE_EQ(*parse_number("12 (3; 4; 5)", Locale::point), 12);
  EXPECT_DOUBLE_EQ(*parse_number("(!) 5", Locale::point), 5);
  EXPECT_FALSE(parse_number("12,34,5", Locale::point));
  EXPECT_FALSE(parse_number("inf", Locale::point));
  EXPECT_FALSE(parse_number("", Locale::point));
  EXPECT_FALSE(parse_number("1.2.3", Locale::point));
}

TEST(NcuNumbers, UnitsBecomeSi) {
  EXPECT_DOUBLE_EQ(unit_scale("usecond").factor, 1e3);
  EXPECT_DOUBLE_EQ(unit_scale("nsecond").factor, 1);
  EXPECT_DOUBLE_EQ(unit_scale("ms").factor, 1e6);
  EXPECT_DOUBLE_EQ(unit_scale("s").factor, 1e9);
  EXPECT_EQ(unit_scale("s").si, "ns");
  EXPECT_DOUBLE_EQ(unit_scale("%").factor, 0.01);
  EXPECT_DOUBLE_EQ(unit_scale("Gbyte/s").factor, 1e9);
  EXPECT_DOUBLE_EQ(unit_scale("Mbyte").factor, 1e6);
  EXPECT_DOUBLE_EQ(unit_scale("Ghz").factor, 1e9);
  EXPECT_EQ(unit_scale("warp").si, "warp");
  EXPECT_EQ(unit_scale("").si, "");
}

TEST(NcuMetrics, ElapsedAndActiveAreNotTheSame) {
  EXPECT_EQ(metric_role("sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed").role, LaunchField::tensor);
  EXPECT_EQ(metric_role("sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active").role,
            LaunchField::tensor_of_active);
  EXPECT_EQ(metric_role("smsp__sass_thread_inst_executed_op_ffma_pred_on.sum").weight, 2);
  EXPECT_EQ(metric_role("smsp__sass_thread_inst_executed_op_branch_pred_on.sum").role, LaunchField::none);
}

TEST(NcuCsv, LongLayoutAmongProgramOutput) {
  const auto data =
      read("==PROF== Connected to process 7\n2208 2048 \"odd quote\n" + kLong + row("0", "Duration", "us", "1,406.24") +
           "step 3 done\n" + row("0", "DRAM Throughput", "%", "21.68") +
           row("0", "DRAM Throughput", "Gbyte/second", "700.5") + row("0", "Compute (SM) Throughput", "%", "23.59") +
           "\"0\",\"7\",\"app\",\"h\",\"gemm<float>(int, int)\",\"1\",\"13\",\"\",\"\",\"0\",\"8.0\",\"SOL\",\"\","
           "\"\",\"\",\"SOLBottleneck\",\"low, \"\"very\"\" low\"\n" +
           row("1", "Duration", "ns", "5") + "==PROF== Disconnected\n");
  ASSERT_EQ(data.log.launches.size(), 2U);
  const auto& launch = data.log.launches[0];
  EXPECT_EQ(launch.latency, 1406240);
  EXPECT_FLOAT_EQ(launch.dram, 0.2168F);
  EXPECT_FLOAT_EQ(launch.sm, 0.2359F);
  EXPECT_TRUE(std::isnan(launch.tensor));
  EXPECT_EQ(launch.grid[1], 32U);
  EXPECT_EQ(launch.block[0], 384U);
  EXPECT_EQ(launch.stream, 13);
  EXPECT_EQ(data.log.names[launch.name], "gemm<float>(int, int)");
  EXPECT_EQ(data.log.inputs[0].bad_rows, 0U);
  EXPECT_EQ(data.log.notes.size(), 2U);
}

/// One launch of `duration` in `unit` as a row of the long form, or as one of the wide form.
std::vector<std::string> with_duration(const std::string& duration, const std::string& unit,
                                       const std::string& more = {}) {
  return {
      "\"ID\",\"Process ID\",\"Kernel Name\",\"Metric Name\",\"Metric Unit\",\"Metric Value\"\n"
      "\"0\",\"7\",\"k\",\"gpu__time_duration.sum\",\"" +
          unit + "\",\"" + duration + "\"\n" +
          (more.empty() ? "" : "\"0\",\"7\",\"k\",\"x.sum\",\"Kbyte\",\"" + more + "\"\n"),
      "\"ID\",\"Process ID\",\"Kernel Name\",\"gpu__time_duration.sum\",\"x.sum\"\n"
      "\"\",\"\",\"\",\"" +
          unit +
          "\",\"Kbyte\"\n"
          "\"0\",\"7\",\"k\",\"" +
          duration + "\",\"" + more + "\"\n"};
}

TEST(NcuCsv, ThousandsAreToldFromFractionsByUnitsAndOtherNumbers) {
  const auto expect = [](const std::vector<std::string>& files, Ns latency, bool says_so) {
    for (const std::string& file : files) {
      const auto read = parse(file, "x");
      ASSERT_TRUE(read) << to_string(read.error());
      EXPECT_EQ(read->log.launches[0].latency, latency) << file;
      const bool note = std::ranges::any_of(read->log.notes, [](const std::string& n) {
        return n.find("nothing in the file says") != std::string::npos;
      });
      EXPECT_EQ(note, says_so) << file;
    }
  };
  expect(with_duration("1.234", "ns"), 1234, false);
  expect(with_duration("1.234", "nsecond"), 1234, false);
  expect(with_duration("1,234", "ns"), 1234, false);
  expect(with_duration("1.234", ""), 1234, false);
  expect(with_duration("1.234", "us"), 1234, true);
  expect(with_duration("1,234", "us"), 1'234'000, true);
  expect(with_duration("1.234", "us", "12,5"), 1'234'000, false);
  expect(with_duration("1.234", "us", "1.234.567"), 1'234'000, false);
  expect(with_duration("1.234", "us", "1,234,567"), 1234, false);
  expect(with_duration("1.234", "ns", "12.5"), 1, false);
}

TEST(NcuCsv, NegativeCountsAreCountedAndLeftOut) {
  const auto read = parse(
      "ID,Process ID,Kernel Name,Grid Size,Block Size,gpu__time_duration.sum,dram__bytes.sum\n"
      "0,7,k,\"(4, -3, 1)\",\"(128, 1, 1)\",100,-5\n1,7,k,\"(4, 3, 1)\",\"(128, 1, 1)\",-100,5\n",
      "x");
  ASSERT_TRUE(read) << to_string(read.error());
  ASSERT_EQ(read->log.launches.size(), 1U);
  const auto& launch = read->log.launches[0];
  EXPECT_EQ(launch.grid[0], 0U);
  EXPECT_EQ(launch.block[0], 128U);
  EXPECT_TRUE(std::isnan(launch.dram_bytes));
  EXPECT_EQ(read->log.metrics.size(), 1U);
  EXPECT_EQ(read->log.inputs[0].bad_cells, 3U);
  EXPECT_EQ(read->log.inputs[0].bad_rows, 1U) << "a launch without a duration";
}

TEST(NcuCsv, EuropeanLocale) {
  const auto data = read(kLong + row("0", "Duration", "us", "1.406,24") + row("0", "DRAM Throughput", "%", "9,00") +
                         row("0", "Elapsed Cycles", "cycle", "27.595.520"));
  EXPECT_EQ(data.log.launches[0].latency, 1406240);
  EXPECT_FLOAT_EQ(data.log.launches[0].dram, 0.09F);
  EXPECT_DOUBLE_EQ(data.log.metrics.back().value, 27595520);
}

TEST(NcuCsv, WideLayoutWithUnitRow) {
  const auto data = read(
      "\"ID\",\"Process ID\",\"Process Name\",\"Host Name\",\"Kernel Name\",\"Context\",\"Stream\",\"Block "
      "Size\",\"Grid "
      "Size\",\"Device\",\"CC\",\"gpu__time_duration.sum\",\"sm__throughput.avg.pct_of_peak_sustained_elapsed\","
      "\"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed\",\"dram__bytes_read.sum\",\"dram__bytes_"
      "write.sum\"\n"
      "\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"usecond\",\"%\",\"%\",\"Kbyte\",\"byte\"\n"
      "\"0\",\"7\",\"app\",\"h\",\"k\",\"1\",\"7\",\"(1, 1, 1)\",\"(2, 1, "
      "1)\",\"1\",\"9.0\",\"12.5\",\"50\",\"25\",\"2\",\"96\"\n");
  ASSERT_EQ(data.log.launches.size(), 1U);
  const auto& launch = data.log.launches[0];
  EXPECT_EQ(launch.latency, 12500);
  EXPECT_FLOAT_EQ(launch.sm, 0.5F);
  EXPECT_FLOAT_EQ(launch.tensor, 0.25F);
  EXPECT_DOUBLE_EQ(launch.dram_bytes, 2096);
  EXPECT_EQ(launch.device, 1);
}

TEST(NcuCsv, WideLayoutWithoutQuotesOrUnits) {
  const auto data = read("ID,Process ID,Kernel Name,gpu__time_duration.sum\n0,7,k,123\nnoise\n1,7,k,124\n");
  ASSERT_EQ(data.log.launches.size(), 2U);
  EXPECT_EQ(data.log.launches[1].latency, 124);
  EXPECT_EQ(data.log.inputs[0].bad_rows, 0U);
}

TEST(NcuCsv, SeveralProcessesDevicesAndCaptures) {
  const auto data = read(kLong + row("0", "Duration", "ns", "1", "7", "0") + row("0", "Duration", "ns", "2", "8", "1") +
                         row("0", "DRAM Throughput", "%", "50", "7", "0") + kLong + row("0", "Duration", "ns", "3"));
  ASSERT_EQ(data.log.launches.size(), 3U);
  EXPECT_FLOAT_EQ(data.log.launches[0].dram, 0.5F);
  EXPECT_EQ(data.log.launches[1].device, 1);
  ASSERT_EQ(data.log.processes.size(), 2U);
  EXPECT_EQ(data.log.processes[1].pid, 8);
  EXPECT_EQ(data.log.launches[2].latency, 3);
}

TEST(NcuCsv, SummaryFormGivesOneRowPerKernel) {
  const auto data = read(
      "\"Process ID\",\"Process Name\",\"Host Name\",\"Kernel Name\",\"Context\",\"Stream\",\"Block Size\",\"Grid "
      "Size\",\"Device\",\"CC\",\"Invocations\",\"Section Name\",\"Metric Name\",\"Metric "
      "Unit\",\"Minimum\",\"Maximum\","
      "\"Average\"\n"
      "\"7\",\"app\",\"h\",\"k\",\"1\",\"7\",\"\",\"\",\"0\",\"8.0\",\"10\",\"S\",\"Duration\",\"us\",\"1.00\",\"3."
      "00\",\"2.00\"\n"
      "\"7\",\"app\",\"h\",\"k\",\"1\",\"7\",\"\",\"\",\"0\",\"8.0\",\"10\",\"S\",\"DRAM "
      "Throughput\",\"%\",\"1\",\"3\",\"2\"\n");
  ASSERT_TRUE(data.is_summary);
  ASSERT_EQ(data.summaries.tables.size(), 1U);
  const auto& table = data.summaries.tables[0];
  ASSERT_EQ(table.rows.size(), 1U);
  EXPECT_DOUBLE_EQ(table.rows[0].calls, 10);
  EXPECT_DOUBLE_EQ(table.rows[0].average_device_ns, 2000);
  EXPECT_DOUBLE_EQ(table.listed_device_ns, 20000);
  EXPECT_EQ(table.columns.size(), 7U);
}

TEST(NcuCsv, TensorUseOfActiveCyclesStaysUnknown) {
  const auto data = read(kLong + row("0", "Duration", "ns", "9") +
                         row("0", "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active", "%", "80.0"));
  EXPECT_TRUE(std::isnan(data.log.launches[0].tensor));
  EXPECT_EQ(data.log.notes.size(), 1U);
}

TEST(NcuCsv, BadRowsAreCounted) {
  const auto data =
      read(kLong + row("0", "Duration", "ns", "9") + "\"1\",\"7\",\"app\"\n" + row("2", "Duration", "ns", "fast") +
           row("3", "Elapsed Cycles", "cycle", "4") + row("4", "Duration", "cycle", "4") + "\"5\",\"open\n");
  EXPECT_EQ(data.log.launches.size(), 1U);
  EXPECT_EQ(data.log.inputs[0].bad_rows, 5U);  // short, three without duration, open quote
  EXPECT_EQ(data.log.inputs[0].bad_cells, 2U);
  EXPECT_EQ(data.log.inputs[0].first[0].line, 3U);
}

TEST(NcuCsv, RefusesWhatItCannotWeigh) {
  EXPECT_FALSE(parse(kLong, "x"));
  EXPECT_FALSE(parse(kLong + row("0", "Elapsed Cycles", "cycle", "4"), "x"));
  EXPECT_FALSE(parse("==ERROR== no permission\n", "x"));
  EXPECT_FALSE(looks_like("ID,Name\n1,2\n"));
  EXPECT_FALSE(looks_like("{\"Kernel Name\": 1, \"ID\": 2}\n"));
  EXPECT_TRUE(looks_like("noise\n" + kLong));
}

TEST(NcuCsv, CorpusLog) {
  CULPRIT_NEEDS_SHARED("corpus/ncu/cublaslt_b200.log");
  std::ifstream in(test::shared("corpus/ncu/cublaslt_b200.log"));
  std::stringstream text;
  text << in.rdbuf();
  const auto data = read(text.str());
  ASSERT_EQ(data.log.launches.size(), 1U);
  EXPECT_EQ(data.log.launches[0].latency, 406240);
  EXPECT_FLOAT_EQ(data.log.launches[0].sm, 0.2359F);
  EXPECT_FLOAT_EQ(data.log.launches[0].dram, 0.0074F);
  EXPECT_FLOAT_EQ(data.log.launches[0].occupancy, 0.1553F);
  EXPECT_EQ(data.log.inputs[0].bad_rows, 0U);
  EXPECT_EQ(data.log.inputs[0].bad_cells, 0U);
}

}  // namespace
}  // namespace culprit::formats::ncu_csv
