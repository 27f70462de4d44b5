#include "core/escape.h"

#include <gtest/gtest.h>

namespace culprit {
namespace {

TEST(EscapeTerminal, ControlsBecomeVisible) {
  EXPECT_EQ(escape_terminal("a\x1b[31mb"), "a\\x1b[31mb");
  EXPECT_EQ(escape_terminal("a\nb\tc\r"), "a\\x0ab\\x09c\\x0d");
  EXPECT_EQ(escape_terminal(std::string_view("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(escape_terminal("\x7f"), "\\x7f");
  EXPECT_EQ(escape_terminal("\xc2\x9b"), "\\u009b");  // C1 CSI
}

TEST(EscapeTerminal, BidirectionalOverridesBecomeVisible) {
  EXPECT_EQ(escape_terminal("a\xe2\x80\xae"
                            "b"),
            "a\\u202eb");
  EXPECT_EQ(escape_terminal("\xe2\x81\xa6"), "\\u2066");
}

TEST(EscapeTerminal, PrintableTextStays) {
  const std::string text = "void f<int>(char\\*) é 漢 \xf0\x9f\x98\x80";
  EXPECT_EQ(escape_terminal(text), text);
  EXPECT_EQ(escape_terminal(""), "");
}

TEST(EscapeTerminal, InvalidUtf8BecomesBytes) {
  EXPECT_EQ(escape_terminal("\xff"
                            "a"),
            "\\xffa");
  EXPECT_EQ(escape_terminal("\xc0\xaf"), "\\xc0\\xaf");           // overlong
  EXPECT_EQ(escape_terminal("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // surrogate
  EXPECT_EQ(escape_terminal("\xe6\xbc"), "\\xe6\\xbc");           // cut
  EXPECT_EQ(escape_terminal("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");
}

TEST(EscapeMarkdown, MarkupIsNeutralised) {
  EXPECT_EQ(escape_markdown("a|b"), "a\\|b");
  EXPECT_EQ(escape_markdown("\\|"), "\\\\\\|");
  EXPECT_EQ(escape_markdown("<script>&"), "&lt;script&gt;&amp;");
  EXPECT_EQ(escape_markdown("*_`[x]"), "\\*\\_\\`\\[x\\]");
  EXPECT_EQ(escape_markdown("a\nb"), "a\\\\x0ab");
  EXPECT_EQ(escape_markdown("plain name"), "plain name");
}

TEST(EscapeCsv, QuotesOnlyWhenNeeded) {
  EXPECT_EQ(escape_csv("plain"), "plain");
  EXPECT_EQ(escape_csv("a,b"), "\"a,b\"");
  EXPECT_EQ(escape_csv("say \"x\""), "\"say \"\"x\"\"\"");
  EXPECT_EQ(escape_csv("a\nb"), "\"a\nb\"");
  EXPECT_EQ(escape_csv(" a"), "\" a\"");
  EXPECT_EQ(escape_csv(""), "");
}

TEST(EscapeCsv, FormulasAreDisarmedNumbersAreNot) {
  EXPECT_EQ(escape_csv("=cmd()"), "'=cmd()");
  EXPECT_EQ(escape_csv("@SUM(A1,A2)"), "\"'@SUM(A1,A2)\"");
  EXPECT_EQ(escape_csv("\t=1"), "'\t=1");
  EXPECT_EQ(escape_csv("-inf"), "'-inf");
  EXPECT_EQ(escape_csv("-1+2"), "'-1+2");
  EXPECT_EQ(escape_csv("+"), "'+");
  EXPECT_EQ(escape_csv("-1.5e-3"), "-1.5e-3");
  EXPECT_EQ(escape_csv("+12"), "+12");
}

TEST(EscapeCsv, TerminalControlsAreVisible) { EXPECT_EQ(escape_csv("a\x1b]0;x\x07"), "a\\x1b]0;x\\x07"); }

TEST(EscapeHtml, TextAndAttributes) {
  EXPECT_EQ(escape_html("</script>\"'&"), "&lt;/script&gt;&quot;&#39;&amp;");
  EXPECT_EQ(escape_html("a\x01"), "a\\x01");
}

}  // namespace
}  // namespace culprit
