// Manual pages and completions say what --help says: they are made of the same data, and nothing gets lost on the way.
#include "cli/manual.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>

#include "cli/cli.h"
#include "cli/completion.h"
#include "cli/declared.h"
#include "core/text.h"

namespace culprit::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

/// As groff shows it: without fonts and escapes.
std::string shown(std::string_view page) {
  std::string out;
  for (std::size_t i = 0; i < page.size(); ++i) {
    if (page[i] != '\\') {
      out += page[i];
      continue;
    }
    const std::string_view rest = page.substr(i + 1);
    if (rest.starts_with('f')) {
      i += 2;
    } else if (rest.starts_with('(')) {
      const std::string_view name = rest.substr(1, 2);
      out += name == "aq" ? '\'' : name == "ga" ? '`' : name == "ha" ? '^' : '~';
      i += 3;
    } else if (rest.starts_with('&')) {
      i += 1;
    } else {
      out += rest.starts_with('e') ? '\\' : rest[0];
      i += 1;
    }
  }
  return out;
}

TEST(Manual, EveryPageHasEveryArgumentAndOptionWithItsHelp) {
  const ProgramText program = declared();
  for (const VerbText& verb : program.verbs) {
    const std::string page = shown(man_page(program, verb));
    EXPECT_THAT(page, HasSubstr("culprit-" + verb.name + " - " + verb.summary));
    for (const auto* list : {&verb.arguments, &verb.options})
      for (const OptionText& option : *list)
        EXPECT_THAT(page, HasSubstr(".TP\n" + heading_of(option) + '\n' + option.help)) << verb.name;
  }
}

TEST(Manual, TheMainPageNamesEveryVerbAndEveryExitCode) {
  const ProgramText program = declared();
  const std::string page = shown(man_page(program));
  for (const VerbText& verb : program.verbs) EXPECT_THAT(page, HasSubstr("culprit-" + verb.name + "(1)\n"));
  EXPECT_THAT(page, HasSubstr(".SH EXIT STATUS\n.nf\n0  fine\n1  a difference"));
  EXPECT_THAT(page, HasSubstr("culprit " + program.version));
}

TEST(Manual, TextBeginsNoRequestOfRoff) {
  VerbText verb;
  verb.name = "verb";
  verb.summary = "it's -x";
  verb.arguments = {{{"FILE"}, "", true, true, ".hidden \\n `code` ~ ^", {}}};
  verb.footer = "A paragraph.\n\nAnother.\n\nExample:\n  'quoted' first\n  .dot first\n";
  const std::string page = man_page({"culprit", "1", "", {}, {}, ""}, verb);
  EXPECT_THAT(page, HasSubstr("It\\(aqs \\-x.\n"));
  EXPECT_THAT(page, HasSubstr("\n\\&.hidden \\en \\(gacode\\(ga \\(ti \\(ha\n"));
  EXPECT_THAT(page, HasSubstr(".SH EXAMPLE\n.nf\n\\(aqquoted\\(aq first\n\\&.dot first\n.fi\n"));
  EXPECT_THAT(page, HasSubstr(".SH NOTES\nA paragraph.\n.PP\nAnother.\n"));
}

TEST(Completion, EveryShellKnowsEveryOptionAndEveryChoiceOfEveryVerb) {
  const ProgramText program = declared();
  const std::string bash = bash_completion(program);
  const std::string zsh = zsh_completion(program);
  const std::string fish = fish_completion(program);
  for (const VerbText& verb : program.verbs) {
    const auto begin = bash.find("    " + verb.name + ":-*)");
    ASSERT_NE(begin, std::string::npos) << verb.name;
    const std::string options = bash.substr(begin, bash.find('\n', begin) - begin);
    const auto at = zsh.find("        " + verb.name + ")\n");
    ASSERT_NE(at, std::string::npos) << verb.name;
    const std::string arguments = zsh.substr(at, zsh.find(";;", at) - at);
    for (const OptionText& option : verb.options) {
      for (const std::string& name : option.names) {
        EXPECT_THAT(options, testing::ContainsRegex("[ ']" + name + "[ ']")) << verb.name;
        EXPECT_THAT(arguments, HasSubstr(name)) << verb.name;
      }
      const std::string wanted = "seen_subcommand_from " + verb.name + "'" +
                                 (option.names.size() > 1 ? " -s " + option.names[0].substr(1) : "") + " -l " +
                                 option.names.back().substr(2);
      EXPECT_THAT(fish, HasSubstr(wanted));
      for (const std::string& choice : option.choices) {
        const auto value = bash.find(verb.name + ':' + option.names.back() + ")");
        ASSERT_NE(value, std::string::npos) << verb.name << option.names.back();
        EXPECT_THAT(bash.substr(value, bash.find('\n', value) - value), HasSubstr(choice));
        EXPECT_THAT(arguments, HasSubstr(choice));
      }
    }
  }
}

TEST(Completion, TextOfTheHelpEndsNoQuotes) {
  VerbText verb;
  verb.name = "verb";
  verb.summary = "what's [this]: it";
  verb.options = {{{"--look"}, "LOOK", false, false, "don't [x]: y", {"plain", "torch"}}};
  const ProgramText program{"culprit", "1", "", {}, {verb}, ""};
  EXPECT_THAT(zsh_completion(program), HasSubstr(R"('--look=[don'\''t \[x\]\: y]:LOOK:(plain torch)')"));
  EXPECT_THAT(zsh_completion(program), HasSubstr(R"('verb:what'\''s \[this\]\: it')"));
  EXPECT_THAT(fish_completion(program), HasSubstr(R"(-l look -x -a 'plain torch' -d 'don'\''t [x]: y')"));
}

}  // namespace
}  // namespace culprit::cli
