// What a verb declares on the command line: its arguments, options, and what its help says beyond them.
//
// CLI11 parses. Only options.cpp includes its headers: they are templates and virtual functions without a home, and
// every file that includes them compiles the parser once more.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/help.h"
#include "core/error.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace culprit::cli {

/// What values an option takes. Says so in errors; the help of the option says it in its own words.
struct Check {
  std::function<std::string(const std::string& value)> problem;  ///< what is wrong with a value, or ""
  std::vector<std::string> choices;                              ///< all values there are; empty: not a fixed list
};
Check one_of(std::vector<std::string> names);
/// A number from `low` to `high`.
Check in_range(double low, double high);

/// One option, flag or argument.
class Option {
 public:
  explicit Option(CLI::Option& option) : option_(&option) {}
  Option* check(Check check);
  Option* required();
  /// How many values follow, when not one or any number as the type of the target has it.
  Option* expected(int least, int most);
  /// Several values in one word.
  Option* delimiter(char character);
  /// What stands for the value in the help: N, PATH, NAME. "" leaves it out.
  Option* type_name(const std::string& name);

  [[nodiscard]] OptionText text() const;

 private:
  CLI::Option* option_;
  std::vector<std::string> choices_;
  std::optional<std::string> value_;  ///< of type_name()
};

/// One verb.
class Verb {
 public:
  explicit Verb(CLI::App& app) : app_(&app) {}
  /// `names`: "--limit", "-o,--output", or "FILE" for an argument. T: std::string, a vector of it, int, unsigned,
  /// std::size_t, std::int64_t, a vector of it, double.
  template <class T>
  Option* add_option(const std::string& names, T& target, const std::string& help);
  Option* add_flag(const std::string& names, bool& target, const std::string& help);
  /// What may follow the options, one form each; else the arguments as they are declared.
  void usage(std::vector<std::string> forms);
  /// What the help ends with: paragraphs, and sections "Title:" of indented lines.
  void footer(const std::string& text);
  /// Called when the verb was chosen and its options are set.
  void callback(std::function<void()> chosen);
  /// How often an option was given.
  [[nodiscard]] std::size_t count(const std::string& name) const;

  [[nodiscard]] VerbText text() const;

 private:
  Option* keep(CLI::Option* option);
  CLI::App* app_;
  std::vector<std::string> forms_;
  std::vector<std::unique_ptr<Option>> options_;
};

/// What a command line asks for.
struct Parsed {
  enum class Wants { run, help, version } wants = Wants::run;
  std::string verb;  ///< empty: none
};

/// The whole command line.
class CommandLine {
 public:
  CommandLine();
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;
  Verb* add_subcommand(const std::string& name, const std::string& summary);
  /// Sets the targets of the options and calls the chosen verb's callback. Error: usage.
  Result<Parsed> parse(std::vector<std::string> arguments);
  [[nodiscard]] std::vector<VerbText> verbs() const;
  /// The options beside the verbs.
  [[nodiscard]] std::vector<OptionText> options() const;

 private:
  std::unique_ptr<CLI::App> app_;
  std::vector<std::unique_ptr<Verb>> verbs_;
};

}  // namespace culprit::cli
