#include "cli/python_functions.h"

#include <utility>

#include "core/file.h"

namespace culprit::cli {

Result<std::vector<record::python::FunctionSpec>> python_functions(const std::vector<std::string>& given) {
  std::vector<record::python::FunctionSpec> functions;
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
    for (record::python::FunctionSpec& function : *listed) functions.push_back(std::move(function));
  }
  return functions;
}

}  // namespace culprit::cli
