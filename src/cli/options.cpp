#include "cli/options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <utility>

#include "cli/suggestion.h"

namespace culprit::cli {

namespace {

/// What stands for a value where the verb says nothing: nothing for a flag, N for a number, else the option's name.
std::string usual_value(const CLI::Option& option) {
  if (option.get_type_name().empty()) return {};
  if (option.get_type_name() != "TEXT") return "N";
  if (option.get_lnames().empty()) return {};
  std::string name = option.get_lnames().front();
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return name;
}

OptionText text_of(const CLI::Option& option, std::vector<std::string> choices, std::optional<std::string> value) {
  OptionText text;
  if (option.get_positional()) {
    text.names.push_back(option.get_name(true, false));
  } else {
    for (const std::string& name : option.get_snames()) text.names.push_back("-" + name);
    for (const std::string& name : option.get_lnames()) text.names.push_back("--" + name);
    text.value = value ? *value : usual_value(option);
  }
  text.several = option.get_expected_max() > 1;
  if (option.get_delimiter() != '\0') {
    text.value = fmt::format("{0}[{1}{0}...]", text.value, option.get_delimiter());
    text.several = false;
  }
  text.required = option.get_required();
  text.help = option.get_description();
  text.choices = std::move(choices);
  return text;
}

std::vector<std::string> names_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

Error usage_of(const CLI::ParseError& error, const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  const CLI::App* verb = chosen.empty() ? nullptr : chosen.front();
  const std::string help =
      verb != nullptr ? fmt::format("see 'culprit {} --help'", verb->get_name()) : std::string("see 'culprit --help'");
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
    const auto extras = app.remaining(true);
    const std::string first = extras.empty() ? std::string() : extras.front();
    if (first.starts_with('-'))
      return usage_error(fmt::format("unknown option '{}'", first),
                         suggestion(first.substr(0, first.find('=')), names_of(verb != nullptr ? *verb : app), help));
    return usage_error(fmt::format("unexpected argument '{}'", first),
                       verb != nullptr && verb->get_option_no_throw("--pid") != nullptr
                           ? fmt::format("a process that runs is given with -p; {}", help)
                           : help);
  }
  std::string what = error.what();
  if (const std::size_t end = what.find('\n'); end != std::string::npos) what.resize(end);
  return usage_error(what, help);
}

}  // namespace

Check one_of(std::vector<std::string> names) {
  return {[names](const std::string& value) {
            if (std::ranges::find(names, value) != names.end()) return std::string();
            return fmt::format("'{}' is none of {}: {}", value, fmt::join(names, ", "),
                               suggestion(value, names, "choose one of those"));
          },
          std::move(names)};
}

Check in_range(double low, double high) {
  return {[range = CLI::Range(low, high), low, high](std::string value) {
            return range(value).empty() ? std::string()
                                        : fmt::format("{} is no number from {:.15g} to {:.15g}", value, low, high);
          },
          {}};
}

Option* Option::check(Check check) {
  choices_ = std::move(check.choices);
  option_->check(check.problem);
  return this;
}

Option* Option::required() {
  option_->required();
  return this;
}

Option* Option::expected(int least, int most) {
  option_->expected(least, most);
  return this;
}

Option* Option::delimiter(char character) {
  option_->delimiter(character);
  option_->allow_extra_args(false);
  return this;
}

Option* Option::type_name(const std::string& name) {
  option_->type_name(name);
  value_ = name;
  return this;
}

OptionText Option::text() const { return text_of(*option_, choices_, value_); }

Option* Verb::keep(CLI::Option* option) {
  options_.push_back(std::make_unique<Option>(*option));
  return options_.back().get();
}

template <class T>
Option* Verb::add_option(const std::string& names, T& target, const std::string& help) {
  return keep(app_->add_option(names, target, help));
}
template Option* Verb::add_option(const std::string&, std::string&, const std::string&);
template Option* Verb::add_option(const std::string&, std::vector<std::string>&, const std::string&);
template Option* Verb::add_option(const std::string&, int&, const std::string&);
template Option* Verb::add_option(const std::string&, unsigned&, const std::string&);
template Option* Verb::add_option(const std::string&, std::size_t&, const std::string&);
template Option* Verb::add_option(const std::string&, std::optional<std::size_t>&, const std::string&);
template Option* Verb::add_option(const std::string&, std::int64_t&, const std::string&);
template Option* Verb::add_option(const std::string&, std::vector<std::int64_t>&, const std::string&);
template Option* Verb::add_option(const std::string&, double&, const std::string&);

Option* Verb::add_flag(const std::string& names, bool& target, const std::string& help) {
  return keep(app_->add_flag(names, target, help));
}

void Verb::usage(std::vector<std::string> forms) { forms_ = std::move(forms); }

void Verb::footer(const std::string& text) { app_->footer(text); }

void Verb::callback(std::function<void()> chosen) { app_->callback(std::move(chosen)); }

std::size_t Verb::count(const std::string& name) const { return app_->count(name); }

VerbText Verb::text() const {
  VerbText text{app_->get_name(), app_->get_description(), forms_, {}, {}, app_->get_footer()};
  for (const auto& option : options_) {
    OptionText one = option->text();
    (one.names.front().starts_with('-') ? text.options : text.arguments).push_back(std::move(one));
  }
  text.options.push_back(text_of(*app_->get_help_ptr(), {}, {}));
  return text;
}

CommandLine::CommandLine() : app_(std::make_unique<CLI::App>("", "culprit")) {
  app_->set_help_flag("-h,--help", "print this help");
  app_->set_version_flag("--version", "", "print the version");
  app_->require_subcommand(0, 1);
}

CommandLine::~CommandLine() = default;

Verb* CommandLine::add_subcommand(const std::string& name, const std::string& summary) {
  verbs_.push_back(std::make_unique<Verb>(*app_->add_subcommand(name, summary)));
  return verbs_.back().get();
}

Result<Parsed> CommandLine::parse(std::vector<std::string> arguments) {
  const auto parsed = [&](Parsed::Wants wants) {
    const auto chosen = app_->get_subcommands();
    return Parsed{wants, chosen.empty() ? "" : chosen.front()->get_name()};
  };
  try {
    std::ranges::reverse(arguments);  // the parser takes them from the back
    app_->parse(std::move(arguments));
  } catch (const CLI::CallForHelp&) {
    return parsed(Parsed::Wants::help);
  } catch (const CLI::CallForVersion&) {
    return parsed(Parsed::Wants::version);
  } catch (const CLI::ParseError& error) {
    return usage_of(error, *app_);
  }
  return parsed(Parsed::Wants::run);
}

std::vector<VerbText> CommandLine::verbs() const {
  std::vector<VerbText> texts;
  texts.reserve(verbs_.size());
  for (const auto& verb : verbs_) texts.push_back(verb->text());
  return texts;
}

std::vector<OptionText> CommandLine::options() const {
  std::vector<OptionText> texts;
  for (const CLI::Option* option : app_->get_options()) texts.push_back(text_of(*option, {}, {}));
  return texts;
}

}  // namespace culprit::cli
