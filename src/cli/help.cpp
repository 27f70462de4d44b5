#include "cli/help.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>

#include "core/display_width.h"
#include "core/text.h"

namespace culprit::cli {

namespace {

constexpr std::size_t kColumns = 80;
constexpr std::size_t kTextColumn = 26;

/// `text` with its words spread over lines; all lines but the first begin with `indent` spaces, the first begins in
/// column `at`.
std::string wrapped(std::string_view text, std::size_t at, std::size_t indent) {
  std::string out;
  std::size_t column = at;
  bool first_word = true;
  for (const std::string_view word : split_words(text)) {
    const std::size_t width = display_width(word);
    if (!first_word && column + 1 + width > kColumns) {
      out += '\n' + std::string(indent, ' ');
      column = indent;
    } else if (!first_word) {
      out += ' ';
      ++column;
    }
    out += word;
    column += width;
    first_word = false;
  }
  return out;
}

std::string entry(const std::string& left, std::string_view text) {
  std::string out = "  " + left;
  const std::size_t width = display_width(out);
  out += width + 2 > kTextColumn ? '\n' + std::string(kTextColumn, ' ') : std::string(kTextColumn - width, ' ');
  return out + wrapped(text, kTextColumn, kTextColumn) + '\n';
}

std::string option_entry(const OptionText& option) {
  const bool say_required = option.required && option.names.front().starts_with('-');
  return entry(heading_of(option), option.help + (say_required ? " (required)" : ""));
}

/// Indented lines, titles and empty lines as they are, paragraphs filled.
std::string filled(std::string_view text) {
  std::string out;
  std::string paragraph;
  const auto end_paragraph = [&] {
    if (!paragraph.empty()) out += wrapped(paragraph, 0, 0) + '\n';
    paragraph.clear();
  };
  while (!text.empty()) {
    const std::string_view line = take_line(text);
    if (!line.empty() && line.front() != ' ' && line.back() != ':') {
      (paragraph += line) += ' ';
      continue;
    }
    end_paragraph();
    (out += line) += '\n';
  }
  end_paragraph();
  return out;
}

std::string sentence(std::string text) {
  if (!text.empty() && text.front() >= 'a' && text.front() <= 'z')
    text.front() = static_cast<char>(text.front() - 'a' + 'A');
  return text + '.';
}

std::string options_section(const std::vector<OptionText>& options) {
  if (options.empty()) return {};
  std::string out = "\nOptions:\n";
  for (const OptionText& option : options) out += option_entry(option);
  return out;
}

std::string footer_section(std::string_view footer) { return footer.empty() ? std::string() : '\n' + filled(footer); }

}  // namespace

std::string heading_of(const OptionText& option) {
  std::string text = fmt::format("{}", fmt::join(option.names, ", "));
  if (!option.value.empty()) text += ' ' + option.value;
  return text + (option.several ? "..." : "");
}

std::vector<std::string> usage_of(const VerbText& verb) {
  std::vector<std::string> lines = verb.forms;
  if (lines.empty()) {
    std::vector<std::string> words;
    words.reserve(verb.arguments.size());
    for (const OptionText& argument : verb.arguments)
      words.push_back(argument.required ? heading_of(argument) : fmt::format("[{}]", heading_of(argument)));
    lines.push_back(fmt::format("{}", fmt::join(words, " ")));
  }
  for (std::string& line : lines) line.insert(0, line.empty() ? "[OPTION]..." : "[OPTION]... ");
  return lines;
}

std::string help_text(const ProgramText& program) {
  std::string out = fmt::format("Usage: {} VERB [OPTION]...\n\n{}\n", program.name, wrapped(program.description, 0, 0));
  out += "\nVerbs:\n";
  for (const VerbText& verb : program.verbs) out += entry(verb.name, verb.summary);
  return out + options_section(program.options) + footer_section(program.footer);
}

std::string help_text(const ProgramText& program, const VerbText& verb) {
  std::string out;
  for (const std::string& form : usage_of(verb))
    out += fmt::format("{} {} {} {}\n", out.empty() ? "Usage:" : "      ", program.name, verb.name, form);
  out += '\n' + wrapped(sentence(verb.summary), 0, 0) + '\n';
  if (!verb.arguments.empty()) {
    out += "\nArguments:\n";
    for (const OptionText& argument : verb.arguments) out += option_entry(argument);
  }
  return out + options_section(verb.options) + footer_section(verb.footer);
}

}  // namespace culprit::cli
