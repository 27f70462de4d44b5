#include "core/error.h"

#include <system_error>

namespace culprit {

Error out_of_memory(std::string where) {
  return input_error("not enough memory", std::move(where),
                     "give fewer files, raise the limit (ulimit -v), or use a machine with more memory");
}

std::string_view to_string(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::usage:
      return "usage";
    case ErrorKind::input:
      return "input";
    case ErrorKind::environment:
      return "environment";
    case ErrorKind::cancelled:
      return "cancelled";
  }
  return "environment";
}

std::string to_string(const Error& error) {
  std::string text;
  if (!error.where.empty()) text += error.where + ": ";
  text += error.what;
  if (!error.remedy.empty()) text += " (" + error.remedy + ")";
  return text;
}

std::string errno_text(int code) { return std::generic_category().message(code); }

}  // namespace culprit
