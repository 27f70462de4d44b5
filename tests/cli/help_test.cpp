// What --help shows: everything that is declared, in 80 columns, with whole words.
#include "cli/help.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/cli.h"
#include "cli/declared.h"
#include "core/display_width.h"
#include "core/text.h"

namespace culprit::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST(Help, FitsIntoEightyColumns) {
  const ProgramText program = declared();
  std::vector<std::string> helps = {help_text(program)};
  for (const VerbText& verb : program.verbs) helps.push_back(help_text(program, verb));
  EXPECT_GT(helps.size(), 10U);
  for (const std::string& help : helps)
    for (const std::string_view line : split_lines(help)) EXPECT_LE(display_width(line), 80U) << line;
}

TEST(Help, ShowsEveryOptionOfEveryVerbWithItsText) {
  const ProgramText program = declared();
  for (const VerbText& verb : program.verbs) {
    const auto words = [](std::string_view text) {
      std::string joined;
      for (const std::string_view word : split_words(text)) (joined += word) += ' ';
      return joined;
    };
    const std::string help = words(help_text(program, verb));
    for (const auto* list : {&verb.arguments, &verb.options})
      for (const OptionText& option : *list)
        EXPECT_THAT(help, HasSubstr(heading_of(option) + ' ' + words(option.help).substr(0, option.help.size())))
            << verb.name;
  }
}

TEST(Help, EveryVerbTakesLongOptionsInOneStyle) {
  for (const VerbText& verb : declared().verbs) {
    EXPECT_FALSE(verb.summary.ends_with('.')) << verb.name;
    for (const OptionText& option : verb.options) {
      EXPECT_TRUE(option.names.back().starts_with("--")) << verb.name << ' ' << option.names.back();
      EXPECT_EQ(option.names.back().find_first_not_of("abcdefghijklmnopqrstuvwxyz-"), std::string::npos)
          << verb.name << ' ' << option.names.back();
      EXPECT_EQ(option.value.find_first_of("abcdefghijklmnopqrstuvwxyz"), std::string::npos)
          << verb.name << ' ' << option.value;
    }
  }
}

TEST(Help, NamesTheExitCodes) {
  EXPECT_THAT(help_text(declared()), HasSubstr("Exit codes:\n"
                                               "  0  fine\n"
                                               "  1  a difference (only with --fail-on)\n"
                                               "  2  bad usage\n"
                                               "  3  bad input\n"
                                               "  4  missing permission or device\n"
                                               "  5  not comparable, or undecided (only with --fail-on)\n"));
}

TEST(Help, WordsAreNotBroken) {
  const ProgramText program{"culprit", "1", "", {}, {}, ""};
  VerbText verb{"top", "sums", {}, {}, {}, ""};
  verb.options.push_back({{"-l", "--limit"}, "N", false, false, "", {}});
  for (int i = 0; i < 40; ++i) verb.options.back().help += "abc,defg ";
  const std::string help = help_text(program, verb);
  EXPECT_THAT(help, AllOf(HasSubstr("  -l, --limit N           abc,defg abc,defg"), Not(HasSubstr("abc,\n"))));
  for (const std::string_view line : split_lines(help)) EXPECT_LE(display_width(line), 80U) << line;
}

TEST(Help, LongNamesStandOnALineOfTheirOwn) {
  const ProgramText program{"culprit", "1", "", {}, {}, ""};
  const VerbText verb{"top", "sums", {}, {}, {{{"--a-very-long-option"}, "VALUE", true, true, "text", {}}}, ""};
  EXPECT_THAT(help_text(program, verb),
              HasSubstr("\n  --a-very-long-option VALUE...\n                          text (required)\n"));
}

TEST(Help, UsageHasOneLinePerForm) {
  const ProgramText program{"culprit", "1", "", {}, {}, ""};
  VerbText verb{"top", "sums", {}, {{{"FILE"}, "", true, true, "", {}}, {{"MORE"}, "", false, false, "", {}}}, {}, ""};
  EXPECT_THAT(help_text(program, verb), HasSubstr("Usage: culprit top [OPTION]... FILE... [MORE]\n\nSums.\n"));
  verb.forms = {"A", "-- B"};
  EXPECT_THAT(help_text(program, verb),
              HasSubstr("Usage: culprit top [OPTION]... A\n       culprit top [OPTION]... -- B\n"));
}

TEST(Help, ParagraphsAreFilledAndExamplesAreNot) {
  const ProgramText program{"culprit", "1", "", {}, {}, "one\ntwo\n\nExample:\n  culprit x\n  culprit y\n"};
  EXPECT_THAT(help_text(program), HasSubstr("\none two\n\nExample:\n  culprit x\n  culprit y\n"));
}

}  // namespace
}  // namespace culprit::cli
