#include "deepdive/comparison_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "deepdive/comparison_text.h"

namespace culprit::deepdive {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

/// One comparison with one row and one finding, of a function called `name`.
ComparisonSet one(const std::string& name) {
  Comparison c;
  c.identifier = "case";
  c.base_name = "case";
  c.sides[0].label = "normal";
  c.sides[1].label = "abnormal";
  c.sides[0].file = "a.csv";
  c.sides[1].file = "b.csv";
  for (auto& side : c.sides) {
    side.pid = 7;
    side.anchors = {c.texts.intern("step")};
    side.rows = 10;
  }
  c.sides[0].cycle_us = {2000, 1000};
  c.sides[0].mean_cycle_us = 1500;
  c.sides[1].cycle_us = {3000.5, 2999.5, 1000};
  c.sides[1].mean_cycle_us = 2333.333;
  SuspicionRow row;
  row.function = c.texts.intern(name);
  row.metric = c.texts.intern("gpu_usage");
  row.device = c.texts.intern("GPU 0");
  row.score = 88442678.4321;
  row.beta = {1.5, 151.25};
  row.delta_beta = 149.75;
  row.z_beta = -0.001;
  row.p_beta = 0.0004;
  row.u_beta = 0.25;
  row.mu = {118687.5, 21000};
  row.delta_mu = -97687.5;
  c.rows.push_back(row);
  c.findings.push_back({0, {0}});
  ComparisonSet set;
  set.comparisons.push_back(std::move(c));
  return set;
}

std::string markdown(const ComparisonSet& set) { return comparison_markdown(set.comparisons[0], set); }

TEST(TableNumber, LooksLikeThePublishedTables) {
  EXPECT_EQ(table_number(1269.16789, 4), "1269.17");
  EXPECT_EQ(table_number(0.00004, 4), "0");
  EXPECT_EQ(table_number(88442678.4321, 2), "8.84427e+07");
  EXPECT_EQ(table_number(-0.001, 2), "0");
  EXPECT_EQ(table_number(-2.039107, 2), "-2.04");
  EXPECT_EQ(table_number(model::kNoNumber, 3), "");
}

TEST(WithThousands, GroupsTheWholePart) {
  EXPECT_EQ(with_thousands(750054.294, 2), "750,054.29");
  EXPECT_EQ(with_thousands(-2297.25, 2), "-2,297.25");
  EXPECT_EQ(with_thousands(-999, 0), "-999");
  EXPECT_EQ(with_thousands(1234567, 0), "1,234,567");
  EXPECT_EQ(with_thousands(0, 2), "0.00");
}

TEST(ChangePercent, IsSignedAndInfiniteFromZero) {
  EXPECT_EQ(change_percent(750054.29, 785001.80), "+4.66%");
  EXPECT_EQ(change_percent(2, 1), "-50.00%");
  EXPECT_EQ(change_percent(0, 1), "+inf%");
  EXPECT_EQ(change_percent(0, 0), "+0.00%");
}

TEST(Markdown, HasTheSectionsInOrder) {
  const std::string text = markdown(one("f"));
  std::size_t at = 0;
  for (const char* part :
       {"# Strict Performance Comparison: case (PID: 7)", "## 1. High-Level Performance Summary",
        "## 2. Cycle Duration Distribution Comparison", "## 3. In-depth Core Metric Comparison", "### Overview",
        "### Key Findings:", "**Recommendation:**", "### Detailed comparison table", "## 4. Legend"}) {
    const std::size_t found = text.find(part, at);
    ASSERT_NE(found, std::string::npos) << part;
    at = found;
  }
  EXPECT_THAT(text, HasSubstr("**increased** from **1.50%** to **151.25%** (+149.75 ppt), which is statistically "
                              "significant (p-value: 0.000)"));
  EXPECT_THAT(text, HasSubstr("decreased from 118,687.50 to 21,000.00"));
  EXPECT_THAT(text, HasSubstr("β above 100%"));
}

TEST(Markdown, LongNamesAreShortenedWithAFootnote) {
  const std::string name = "void kernel<" + std::string(5000, 'x') + ">(int)";
  const std::string text = markdown(one(name));
  EXPECT_THAT(text, HasSubstr("[^1]: void kernel&lt;xxx"));
  EXPECT_LT(text.size(), 12000u);
  EXPECT_THAT(markdown(one("short")), Not(HasSubstr("[^1]")));
}

TEST(Markdown, HostileNamesAreNeutralised) {
  const std::string text = markdown(one("a|b\n# head <script>\x1b[31m`"));
  EXPECT_THAT(text, Not(HasSubstr("<script>")));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_THAT(text, Not(HasSubstr("\n# head")));
  EXPECT_THAT(text, Not(HasSubstr("a|b")));
}

TEST(Markdown, WithoutFindingTheThresholdIsNamed) {
  ComparisonSet set = one("f");
  set.comparisons[0].findings.clear();
  EXPECT_THAT(markdown(set), HasSubstr("No function of normal and abnormal differs with a Suspicion Score above 10."));
  EXPECT_THAT(markdown(set), Not(HasSubstr("### Key Findings")));
}

TEST(Notes, AnchorsLossesAndUnpairedProcessesAreShownEverywhere) {
  ComparisonSet set = one("f");
  Comparison& c = set.comparisons[0];
  c.anchors_differ = true;
  c.sides[1].anchors = {c.texts.intern("layer")};
  c.sides[0].rows_no_metric = 4;
  c.unscored.push_back({c.texts.intern("cudaStreamSynchronize"), c.texts.intern("Host"), {0.01, 0.81}});
  set.unpaired.push_back({"a.csv", 99, "nothing is left over"});
  set.unpaired.push_back({"other.csv", std::nullopt, "no partner"});
  InputReport input;
  input.file = "b.csv";
  input.rows = 5;
  input.bad_rows = 2;
  input.first.push_back({17, "column 'pid' holds 'x', which is no whole number", "correct it"});
  set.inputs.push_back(input);
  const std::string terminal = comparisons_terminal(set, 5);
  for (const std::string& text : {markdown(set), terminal}) {
    EXPECT_THAT(
        text,
        HasSubstr("WARNING: the two sides have different anchors: step delimits the cycles of normal, layer those of"));
    EXPECT_THAT(text, HasSubstr("4 of 10 rows of normal"));
    EXPECT_THAT(text, HasSubstr("cudaStreamSynchronize on Host (β 0.01 to 0.81 %)"));
    EXPECT_THAT(text, HasSubstr("process 99 of a.csv"));
    EXPECT_THAT(text, HasSubstr("Line 17"));
  }
  EXPECT_THAT(terminal, HasSubstr("Not compared: other.csv: no partner."));
  const std::string json = comparisons_json(set);
  EXPECT_THAT(json, HasSubstr("\"anchors_differ\":true"));
  EXPECT_THAT(json, HasSubstr("\"rows_without_metric\":4"));
  EXPECT_THAT(json, HasSubstr("{\"file\":\"a.csv\",\"pid\":99,"));
  EXPECT_THAT(json, HasSubstr("\"pid\":null"));
  EXPECT_THAT(json, HasSubstr("\"line\":17"));
}

TEST(Notes, AHealthyComparisonHasNone) { EXPECT_THAT(markdown(one("f")), Not(HasSubstr("Notes on this comparison"))); }

TEST(Csv, HasThePublishedHeaderAndSixDecimals) {
  const std::string text = comparison_csv(one("f").comparisons[0]);
  EXPECT_EQ(text,
            "Function Name,Metric Name,Device,Suspicion "
            "Score,β_normal(%),β_abnormal(%),Δβ(%),Z-Score(β),p-value(β),U-test p(β),μ_normal,"
            "μ_abnormal,Δμ,Z-Score(μ),Z-Score(log_μ),p-value(μ),U-test p(μ)\n"
            "f,gpu_usage,GPU "
            "0,88442678.432100,1.500000,151.250000,149.750000,-0.001000,0.000400,0.250000,118687.500000,21000.000000,"
            "-97687.500000,0.000000,0.000000,,\n");
}

TEST(Csv, FormulaNamesAreDefused) {
  EXPECT_THAT(comparison_csv(one("=1+1").comparisons[0]), HasSubstr("\n'=1+1,"));
  EXPECT_THAT(comparison_csv(one("g<1, 2>").comparisons[0]), HasSubstr("\n\"g<1, 2>\","));
}

TEST(Json, ControlCharactersAndMissingNumbers) {
  const std::string text = comparisons_json(one("a\"\x1b\n</script>"));
  EXPECT_THAT(text, HasSubstr("\"function\":\"a\\\"\\u001b\\n\\u003c/script\\u003e\""));
  EXPECT_THAT(text, HasSubstr("\"mu_p\":null"));
}

TEST(Terminal, RowsWithoutAnyScoreAreNoTable) {
  ComparisonSet set = one("f");
  EXPECT_THAT(comparisons_terminal(set, 5), HasSubstr("μ cand"));
  set.comparisons[0].rows[0].score = 0;
  set.comparisons[0].findings.clear();
  EXPECT_THAT(comparisons_terminal(set, 5), AllOf(HasSubstr("every score is 0"), Not(HasSubstr("μ cand"))));
}

TEST(Terminal, NoEscapeReachesIt) { EXPECT_THAT(comparisons_terminal(one("a\x1b[31mb"), 5), Not(HasSubstr("\x1b"))); }

}  // namespace
}  // namespace culprit::deepdive
