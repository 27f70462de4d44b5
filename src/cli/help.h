// What the command line says of itself, as data: help, manual pages and completion are made of it, so that they cannot
// say different things.
#pragma once

#include <string>
#include <vector>

namespace culprit::cli {

/// An option, flag or argument.
struct OptionText {
  std::vector<std::string> names;  ///< "-o", "--output"; of an argument "FILE"
  std::string value;               ///< what stands for its value; empty for a flag and for an argument
  bool several = false;            ///< several words may follow
  bool required = false;
  std::string help;
  std::vector<std::string> choices;  ///< all values there are; empty: not a fixed list
};

struct VerbText {
  std::string name;
  std::string summary;             ///< half a sentence
  std::vector<std::string> forms;  ///< what may follow the options; empty: the arguments
  std::vector<OptionText> arguments;
  std::vector<OptionText> options;
  std::string footer;  ///< paragraphs of any line length, and sections "Title:" of indented lines
};

struct ProgramText {
  std::string name;
  std::string version;
  std::string description;
  std::vector<OptionText> options;
  std::vector<VerbText> verbs;
  std::string footer;
};

/// "[OPTION]... FILE...": what may follow the verb's name, one line per form.
std::vector<std::string> usage_of(const VerbText& verb);
/// "-o, --output PATH", "FILE...".
std::string heading_of(const OptionText& option);

/// Help of the program and of one verb; no line is wider than 80 columns unless a single word is.
std::string help_text(const ProgramText& program);
std::string help_text(const ProgramText& program, const VerbText& verb);

}  // namespace culprit::cli
