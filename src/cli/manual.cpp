#include "cli/manual.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "core/text.h"

namespace culprit::cli {

namespace {

/// Text as it is: what roff would read as a request or an escape does not begin one.
std::string roff(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else if (c == '\'')
      out += "\\(aq";
    else if (c == '`')
      out += "\\(ga";
    else if (c == '^')
      out += "\\(ha";
    else if (c == '~')
      out += "\\(ti";
    else
      out += c;
  }
  return out;
}

/// The same as lines of their own.
std::string line_of(std::string_view text) { return (text.starts_with('.') ? "\\&" : "") + roff(text) + '\n'; }

std::string bold(std::string_view text) { return "\\fB" + roff(text) + "\\fR"; }
std::string italic(std::string_view text) { return "\\fI" + roff(text) + "\\fR"; }

std::string upper(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return out;
}

std::string heading(const ProgramText& program, std::string_view page) {
  return fmt::format(".\\\" Made from the text of --help.\n.TH {} 1 \"\" \"{} {}\" \"User Commands\"\n",
                     roff(upper(page)), roff(program.name), roff(program.version));
}

std::string name_section(std::string_view page, std::string_view summary) {
  return fmt::format(".SH NAME\n{} \\- {}\n", roff(page), roff(summary));
}

std::string tagged(const std::string& tag, std::string_view text) { return ".TP\n" + tag + '\n' + line_of(text); }

std::string entry_of(const OptionText& option) {
  std::string tag;
  const bool argument = !option.names.front().starts_with('-');
  for (const std::string& name : option.names)
    tag += (tag.empty() ? "" : ", ") + (argument ? italic(name) : bold(name));
  if (!option.value.empty()) tag += ' ' + italic(option.value);
  if (option.several) tag += "...";
  return tagged(tag, option.help + (option.required && !argument ? " (required)" : ""));
}

std::string entries(std::string_view title, const std::vector<OptionText>& options) {
  if (options.empty()) return {};
  std::string out = fmt::format(".SH {}\n", title);
  for (const OptionText& option : options) out += entry_of(option);
  return out;
}

/// Paragraphs, and sections "Title:" whose indented lines stand as they are.
std::string footer_of(std::string_view footer) {
  std::string paragraphs;
  std::string sections;
  bool open = false;
  bool begins = true;
  const auto close = [&] {
    if (open) sections += ".fi\n";
    open = false;
  };
  while (!footer.empty()) {
    const std::string_view line = take_line(footer);
    if (line.empty()) {
      close();
      begins = true;
    } else if (line.ends_with(':') && line.front() != ' ') {
      close();
      const std::string_view title = line.substr(0, line.size() - 1);
      sections += fmt::format(".SH {}\n.nf\n", title == "Exit codes" ? "EXIT STATUS" : roff(upper(title)));
      open = true;
    } else if (open) {
      sections += line_of(trim(line));
    } else {
      paragraphs += (begins && !paragraphs.empty() ? ".PP\n" : "") + line_of(line);
      begins = false;
    }
  }
  close();
  return (paragraphs.empty() ? "" : ".SH NOTES\n" + paragraphs) + sections;
}

std::string page_of(const ProgramText& program, const VerbText& verb) { return program.name + '-' + verb.name; }

std::string see_also(const std::vector<std::string>& pages) {
  std::string out = ".SH SEE ALSO\n";
  for (std::size_t i = 0; i < pages.size(); ++i)
    out += fmt::format(".BR {} (1){}\n", roff(pages[i]), i + 1 < pages.size() ? "," : "");
  return out;
}

std::string roff_sentence(std::string text) {
  if (!text.empty()) text.front() = upper(text.substr(0, 1)).front();
  return text + '.';
}

}  // namespace

std::string man_page(const ProgramText& program) {
  std::string out = heading(program, program.name);
  out += name_section(program.name, "names what made a GPU workload slow");
  out += fmt::format(".SH SYNOPSIS\n{} {} [{}]...\n", bold(program.name), italic("VERB"), italic("OPTION"));
  out += ".SH DESCRIPTION\n" + line_of(program.description);
  out += ".SH VERBS\n";
  std::vector<std::string> pages;
  for (const VerbText& verb : program.verbs) {
    out += tagged(fmt::format("{}(1)", bold(page_of(program, verb))), roff_sentence(verb.summary));
    pages.push_back(page_of(program, verb));
  }
  return out + entries("OPTIONS", program.options) + footer_of(program.footer) + see_also(pages);
}

std::string man_page(const ProgramText& program, const VerbText& verb) {
  const std::string page = page_of(program, verb);
  std::string out = heading(program, page) + name_section(page, verb.summary) + ".SH SYNOPSIS\n";
  const std::vector<std::string> forms = usage_of(verb);
  for (std::size_t i = 0; i < forms.size(); ++i)
    out += fmt::format("{}{} {}\n", i == 0 ? "" : ".br\n", bold(program.name + ' ' + verb.name), roff(forms[i]));
  out += ".SH DESCRIPTION\n" + line_of(roff_sentence(verb.summary));
  out += entries("ARGUMENTS", verb.arguments) + entries("OPTIONS", verb.options) + footer_of(verb.footer);
  return out + see_also({program.name});
}

}  // namespace culprit::cli
