#include "formats/io/csv_rows.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace culprit::formats {
namespace {

struct Split {
  std::vector<std::vector<std::string>> rows;
  std::vector<std::uint64_t> lines;
  std::vector<std::uint64_t> damaged;
};

Split split(std::string_view text) {
  Split result;
  const Status status =
      split_csv(text, "t.csv",
                {[&](std::span<const std::string_view> fields, std::uint64_t line) {
                   result.rows.emplace_back(fields.begin(), fields.end());
                   result.lines.push_back(line);
                 },
                 [&](std::uint64_t line, const std::string&, const std::string&) { result.damaged.push_back(line); }});
  EXPECT_TRUE(status.ok());
  return result;
}

using Rows = std::vector<std::vector<std::string>>;
using Lines = std::vector<std::uint64_t>;

TEST(SplitCsv, EveryLineEndWorksAndTheLastMayLackOne) {
  for (const char* text : {"a,b\nc,d\n", "a,b\r\nc,d\r\n", "a,b\rc,d\r", "a,b\nc,d", "a,b\r\nc,d"}) {
    const Split s = split(text);
    EXPECT_EQ(s.rows, (Rows{{"a", "b"}, {"c", "d"}})) << text;
    EXPECT_EQ(s.lines, (Lines{1, 2})) << text;
  }
}

TEST(SplitCsv, KeepsBlanksAndReadsQuotes) {
  EXPECT_EQ(split("\" a,\"\"b\"\" \", ,\n").rows, (Rows{{" a,\"b\" ", " ", ""}}));
}

TEST(SplitCsv, BlankLinesAndLineEndsInQuotesCountAsLines) {
  const Split s = split("a\n\n\"x\ny\r\nz\"\r\n\r\nb\n");
  EXPECT_EQ(s.rows, (Rows{{"a"}, {"x\ny\r\nz"}, {"b"}}));
  EXPECT_EQ(s.lines, (Lines{1, 3, 7}));
}

TEST(SplitCsv, AByteOrderMarkIsSkipped) {
  EXPECT_EQ(split("\xEF\xBB\xBF"
                  "a\n")
                .rows,
            (Rows{{"a"}}));
}

TEST(SplitCsv, NulBytesAreOrdinary) {
  EXPECT_EQ(split(std::string_view("a\0b,c\n", 6)).rows, (Rows{{std::string("a\0b", 3), "c"}}));
}

TEST(SplitCsv, AnOpenQuoteCostsItsOwnLineOnly) {
  const Split s = split("a,b\nc,\"d\ne,f\r\ng,h\n");
  EXPECT_EQ(s.rows, (Rows{{"a", "b"}, {"e", "f"}, {"g", "h"}}));
  EXPECT_EQ(s.lines, (Lines{1, 3, 4}));
  EXPECT_EQ(s.damaged, (Lines{2}));
}

TEST(SplitCsv, ManyOpenQuotesEndAndAreReported) {
  // An even number of quotes inside lines pairs up; an odd number leaves one open again and again.
  std::string text;
  for (int i = 0; i < 1001; ++i) text += "x,\"y\n";
  const Split s = split(text);
  EXPECT_GE(s.damaged.size(), 1u);
  EXPECT_LE(s.damaged.size(), 17u);
}

TEST(SplitCsv, NothingGivesNothing) {
  EXPECT_TRUE(split("").rows.empty());
  EXPECT_TRUE(split("\n\r\n\r").rows.empty());
}

TEST(SplitCsv, AHugeFieldIsOneField) {
  const std::string field(std::size_t{5} << 20, 'x');
  EXPECT_EQ(split("a," + field + "\nb,c\n").rows, (Rows{{"a", field}, {"b", "c"}}));
}

TEST(AppendCsvField, QuotesOnlyWhatNeedsIt) {
  std::string out;
  for (const char* field : {"plain", " ", "a,b", "say \"x\"", "line\nend"}) {
    append_csv_field(out, field);
    out += ';';
  }
  EXPECT_EQ(out, "plain; ;\"a,b\";\"say \"\"x\"\"\";\"line\nend\";");
}

}  // namespace
}  // namespace culprit::formats
