#include "cli/completion.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace culprit::cli {

namespace {

bool is_argument(const OptionText& option) { return !option.names.front().starts_with('-'); }
bool has_value(const OptionText& option) { return is_argument(option) || !option.value.empty(); }
/// Several values in one word, with commas between them.
bool is_list(const OptionText& option) { return option.value.find("...]") != std::string::npos; }

enum class Values { choices, files, folders, processes, unknown };
Values values_of(const OptionText& option) {
  if (!option.choices.empty()) return Values::choices;
  std::string_view name = is_argument(option) ? option.names.front() : option.value;
  name = name.substr(0, name.find('['));
  constexpr std::array<std::string_view, 4> kFiles = {"PATH", "FILE", "CAND", "INPUT"};
  if (std::ranges::find(kFiles, name) != kFiles.end()) return Values::files;
  if (name == "DIR" || name == "FOLDER") return Values::folders;
  return name == "PID" ? Values::processes : Values::unknown;
}

/// A command can follow "--".
bool takes_command(const VerbText& verb) {
  return std::ranges::any_of(verb.forms, [](const std::string& form) { return form.starts_with("-- "); });
}

std::string words_of(const std::vector<OptionText>& options) {
  std::vector<std::string> names;
  for (const OptionText& option : options)
    if (!is_argument(option)) names.insert(names.end(), option.names.begin(), option.names.end());
  return fmt::format("{}", fmt::join(names, " "));
}

std::string verb_names(const ProgramText& program) {
  std::vector<std::string> names;
  names.reserve(program.verbs.size());
  for (const VerbText& verb : program.verbs) names.push_back(verb.name);
  return fmt::format("{}", fmt::join(names, " "));
}

/// 'text' for a shell.
std::string shell_quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

// ---- bash

std::string bash_values(const OptionText& option) {
  switch (values_of(option)) {
    case Values::choices:
      return fmt::format("_culprit_{} {}", is_list(option) ? "list" : "words",
                         shell_quoted(fmt::format("{}", fmt::join(option.choices, " "))));
    case Values::files:
      return "_culprit_files -f";
    case Values::folders:
      return "_culprit_files -d";
    case Values::processes:
      return "_culprit_processes";
    case Values::unknown:
      break;
  }
  return ":";
}

std::string bash_case(const VerbText& verb, const OptionText& option) {
  std::string names;
  for (const std::string& name : option.names)
    names += fmt::format("{}{}:{}", names.empty() ? "" : " | ", verb.name, name);
  return fmt::format("    {}) {}; return ;;\n", names, bash_values(option));
}

// ---- zsh

/// Inside brackets or between colons of _arguments.
std::string zsh_text(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string zsh_values(const OptionText& option) {
  switch (values_of(option)) {
    case Values::choices:
      return is_list(option) ? fmt::format("_values -s , value {}", fmt::join(option.choices, " "))
                             : fmt::format("({})", fmt::join(option.choices, " "));
    case Values::files:
      return "_files";
    case Values::folders:
      return "_files -/";
    case Values::processes:
      return "_pids";
    case Values::unknown:
      break;
  }
  return " ";
}

std::string zsh_option(const OptionText& option) {
  if (is_argument(option))
    return shell_quoted(
        fmt::format("{}:{}:{}", option.several ? "*" : "1", zsh_text(option.names.front()), zsh_values(option)));
  std::string value;
  if (has_value(option)) value = fmt::format(":{}:{}", zsh_text(option.value), zsh_values(option));
  const std::string text = fmt::format("[{}]{}", zsh_text(option.help), value);
  std::vector<std::string> specs;
  for (const std::string& name : option.names) {
    const std::string others = option.names.size() > 1 ? fmt::format("({})", fmt::join(option.names, " ")) : "";
    specs.push_back(shell_quoted(fmt::format("{}{}{}{}", option.several ? "*" : others, name,
                                             has_value(option) && name.starts_with("--") ? "=" : "", text)));
  }
  return fmt::format("{}", fmt::join(specs, " "));
}

// ---- fish

std::string fish_values(const OptionText& option) {
  if (!has_value(option)) return {};
  switch (values_of(option)) {
    case Values::choices:
      return fmt::format(" -x -a {}", shell_quoted(fmt::format("{}", fmt::join(option.choices, " "))));
    case Values::files:
      return " -r -F";
    case Values::folders:
      return " -x -a '(__fish_complete_directories)'";
    case Values::processes:
      return " -x -a '(__fish_complete_pids)'";
    case Values::unknown:
      break;
  }
  return " -x";
}

std::string fish_option(std::string_view condition, const OptionText& option) {
  std::string out = fmt::format("complete -c culprit -n {}", shell_quoted(condition));
  if (!is_argument(option))
    for (const std::string& name : option.names)
      out += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  out += is_argument(option) && values_of(option) == Values::files ? " -F" : fish_values(option);
  return out + " -d " + shell_quoted(option.help) + '\n';
}

}  // namespace

std::string bash_completion(const ProgramText& program) {
  std::string out = R"bash(# Completion of culprit for bash, made from the text of --help.

_culprit_words() { mapfile -t COMPREPLY < <(compgen -W "$1" -- "$cur"); }

# The last of several words with commas between them.
_culprit_list() {
  local before=
  [[ $cur == *,* ]] && before=${cur%,*},
  mapfile -t COMPREPLY < <(compgen -P "$before" -W "$1" -- "${cur##*,}")
  compopt -o nospace 2>/dev/null
}

_culprit_files() {
  mapfile -t COMPREPLY < <(compgen "$1" -- "$cur")
  compopt -o filenames 2>/dev/null
}

_culprit_processes() { _culprit_list "$(cd /proc && echo [0-9]*)"; }

_culprit() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} verb= i
  if [[ $cur == '=' ]]; then
    cur=
  elif [[ $prev == '=' ]]; then
    prev=${COMP_WORDS[COMP_CWORD - 2]}
  fi
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; ++i)); do
    if [[ ${COMP_WORDS[i]} == -- ]]; then
      [[ $verb == )bash";
  std::vector<std::string> commanding;
  for (const VerbText& verb : program.verbs)
    if (takes_command(verb)) commanding.push_back(verb.name);
  out += fmt::format("@({})", fmt::join(commanding, "|"));
  out += R"bash( ]] && { mapfile -t COMPREPLY < <(compgen -c -f -- "$cur"); return; }
    elif [[ -z $verb && ${COMP_WORDS[i]} != -* ]]; then
      verb=${COMP_WORDS[i]}
    fi
  done
  case $verb:$prev in
)bash";
  for (const VerbText& verb : program.verbs)
    for (const OptionText& option : verb.options)
      if (has_value(option)) out += bash_case(verb, option);
  out += "  esac\n  case $verb:$cur in\n";
  out += fmt::format("    :-*) _culprit_words {} ;;\n", shell_quoted(words_of(program.options)));
  out += fmt::format("    :*) _culprit_words {} ;;\n", shell_quoted(verb_names(program) + " help"));
  out += fmt::format("    help:*) _culprit_words {} ;;\n", shell_quoted(verb_names(program)));
  for (const VerbText& verb : program.verbs) {
    out += fmt::format("    {}:-*) _culprit_words {} ;;\n", verb.name, shell_quoted(words_of(verb.options)));
    if (!verb.arguments.empty())
      out += fmt::format("    {}:*) {} ;;\n", verb.name, bash_values(verb.arguments.front()));
  }
  return out + "  esac\n}\n\ncomplete -F _culprit culprit\n";
}

std::string zsh_completion(const ProgramText& program) {
  std::string out =
      "#compdef culprit\n# Completion of culprit for zsh, made from the text of --help.\n\n_culprit() {\n"
      "  local context state state_descr line\n  typeset -A opt_args\n  local -a verbs=(\n";
  for (const VerbText& verb : program.verbs)
    out += fmt::format("    {}\n", shell_quoted(verb.name + ':' + zsh_text(verb.summary)));
  out += "    'help:print the help of a verb'\n  )\n  _arguments -C";
  for (const OptionText& option : program.options) out += " \\\n    " + zsh_option(option);
  out +=
      " \\\n    '1:VERB:->verb' '*:: :->rest' && return\n"
      "  case $state in\n    verb) _describe verb verbs ;;\n    rest)\n      case $words[1] in\n"
      "        help) _describe verb verbs ;;\n";
  for (const VerbText& verb : program.verbs) {
    out += fmt::format("        {})\n          _arguments -s -S", verb.name);
    for (const auto* list : {&verb.options, &verb.arguments})
      for (const OptionText& option : *list) out += " \\\n            " + zsh_option(option);
    if (takes_command(verb)) out += " \\\n            '*:: :_normal'";
    out += " ;;\n";
  }
  return out + "      esac ;;\n  esac\n}\n\n_culprit \"$@\"\n";
}

std::string fish_completion(const ProgramText& program) {
  std::string out = "# Completion of culprit for fish, made from the text of --help.\n\ncomplete -c culprit -f\n";
  for (const OptionText& option : program.options) out += fish_option("__fish_use_subcommand", option);
  for (const VerbText& verb : program.verbs)
    out += fmt::format("complete -c culprit -n '__fish_use_subcommand' -a {} -d {}\n", verb.name,
                       shell_quoted(verb.summary));
  out += fmt::format("complete -c culprit -n '__fish_seen_subcommand_from help' -a {}\n",
                     shell_quoted(verb_names(program)));
  for (const VerbText& verb : program.verbs)
    for (const auto* list : {&verb.options, &verb.arguments})
      for (const OptionText& option : *list) out += fish_option("__fish_seen_subcommand_from " + verb.name, option);
  return out;
}

}  // namespace culprit::cli
