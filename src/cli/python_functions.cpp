#include "cli/python_functions.h"

#include <fmt/format.h>

#include <utility>

#include "core/file.h"

namespace culprit::cli {

namespace {

using record::python::FunctionSpec;

/// Two lines of one function would be told apart by nobody: what the second one asks for besides would be lost.
Status check_twice(const std::vector<FunctionSpec>& functions) {
  const auto asks_else = [](const FunctionSpec& a, const FunctionSpec& b) {
    return a.text == b.text && (a.step != b.step || a.step_when != b.step_when || a.request != b.request ||
                                a.request_when != b.request_when);
  };
  for (auto b = functions.begin(); b != functions.end(); ++b)
    for (auto a = functions.begin(); a != b; ++a)
      if (asks_else(*a, *b))
        return usage_error(fmt::format("--python names '{}' twice, and asks for different things", a->text),
                           "name all that is wanted of it in one line");
  return {};
}

}  // namespace

Result<std::vector<FunctionSpec>> python_functions(const std::vector<std::string>& given) {
  std::vector<FunctionSpec> functions;
  for (const std::string& one : given) {
    if (!one.starts_with('@')) {
      auto function = record::python::parse_function(one);
      if (!function) return function.error();
      functions.push_back(std::move(*function));
      continue;
    }
    const auto text = read_file(one.substr(1));
    if (!text) return text.error();
    auto listed = record::python::parse_functions(*text);
    if (!listed) return input_error(listed.error().what, one.substr(1), listed.error().remedy);
    for (FunctionSpec& function : *listed) functions.push_back(std::move(function));
  }
  if (Status status = check_twice(functions); !status) return status.error();
  return functions;
}

}  // namespace culprit::cli
