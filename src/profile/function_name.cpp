#include "profile/function_name.h"

#include <cxxabi.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <optional>
#include <vector>

#include "core/text.h"

namespace culprit {

namespace {

constexpr std::string_view kAnonymous = "(anonymous namespace)";

bool is_hex_digit(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }
bool is_identifier(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' || (c & 0x80) != 0;
}

/// A back reference may repeat all that came before it, and a pack expansion repeats its pattern for each element, so a
/// short mangled name can unfold without end. With r references the text grows at most e^(r/e) times, with p packs n^p
/// times.
bool unfolds_safely(std::string_view name) {
  constexpr std::size_t kMaxLength = 8192;
  if (name.size() > kMaxLength) return false;
  double references = 0;
  double packs = 0;
  for (std::size_t i = 0; i + 1 < name.size(); ++i) {
    const char next = name[i + 1];
    if ((name[i] == 'S' || name[i] == 'T') && (next == '_' || is_digit(next) || (next >= 'A' && next <= 'Z')))
      references += 1;
    if ((name[i] == 'D' || name[i] == 's') && next == 'p') packs += 1;
  }
  const double length = static_cast<double>(name.size());
  constexpr double kMaxGrowth = 1 << 21;
  return references / 2.718281828 + packs * std::log(length) <= std::log(kMaxGrowth);
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  std::string result;
  std::size_t at = 0;
  for (std::size_t hit = text.find(from); hit != std::string::npos; hit = text.find(from, at)) {
    result.append(text, at, hit - at).append(to);
    at = hit + from.size();
  }
  if (at == 0) return;
  result.append(text, at);
  text = std::move(result);
}

/// Functions that only run what their template argument names.
bool is_wrapper(std::string_view stem) {
  constexpr std::array<std::string_view, 7> kWrappers = {"Kernel",     "Kernel2",      "device_kernel",    "kentry",
                                                         "KernelImpl", "kernel_entry", "trampoline_kernel"};
  const std::size_t at = stem.rfind("::");
  const std::string_view last = at == std::string_view::npos ? stem : stem.substr(at + 2);
  return std::ranges::find(kWrappers, last) != kWrappers.end();
}

/// The first identifier behind a namespace reference: "ILi1ENS_12Rmsnorm2dFwdINS_..." -> "Rmsnorm2dFwd".
std::string_view first_nested_identifier(std::string_view mangled) {
  for (std::size_t at = mangled.find("NS"); at != std::string_view::npos; at = mangled.find("NS", at + 2)) {
    std::size_t i = at + 2;
    while (i < mangled.size() && i < at + 6 && mangled[i] != '_') ++i;
    if (i >= mangled.size() || mangled[i] != '_') continue;
    std::size_t length = 0;
    for (++i; i < mangled.size() && is_digit(mangled[i]) && length < mangled.size(); ++i)
      length = length * 10 + static_cast<std::size_t>(mangled[i] - '0');
    if (length != 0 && length <= mangled.size() - i) return mangled.substr(i, length);
  }
  return {};
}

/// Reads `_ZN5aiter3fooI...` as far as the nested name goes: "aiter::foo". Serves names that the runtime cannot
/// demangle.
std::optional<std::string> mangled_path(std::string_view name) {
  std::string path;
  std::size_t i = 2;
  if (i < name.size() && name[i] == 'N') ++i;
  while (i < name.size() && (name[i] == 'K' || name[i] == 'V')) ++i;
  if (name.substr(i, 2) == "St") {
    path = "std";
    i += 2;
  }
  while (i < name.size() && is_digit(name[i])) {
    std::size_t length = 0;
    while (i < name.size() && is_digit(name[i]) && length < name.size())
      length = length * 10 + static_cast<std::size_t>(name[i++] - '0');
    if (length == 0 || length > name.size() - i) return std::nullopt;
    const std::string_view part = name.substr(i, length);
    i += length;
    if (part.starts_with("_GLOBAL__N_")) continue;
    if (!path.empty()) path += "::";
    path += part;
  }
  if (path.empty()) return std::nullopt;
  if (is_wrapper(path)) {
    const std::string_view inner = first_nested_identifier(name.substr(i));
    if (!inner.empty()) path.append("<").append(inner).append(">");
  }
  return path;
}

/// Namespaces that only carry a version: CUB_200200_890_NS, THRUST_..._NS, ROCPRIM_400200_NS.
bool is_version_namespace(std::string_view part) {
  if (!part.ends_with("_NS")) return false;
  return part.starts_with("CUB_") || part.starts_with("THRUST_") || part.starts_with("ROCPRIM_") ||
         part.starts_with("HIPCUB_");
}

std::string drop_version_namespaces(std::string_view path) {
  std::string result;
  while (!path.empty()) {
    const std::size_t end = path.find("::");
    const std::string_view part = path.substr(0, end);
    if (!is_version_namespace(part)) {
      if (!result.empty()) result += "::";
      result += part;
    }
    if (end == std::string_view::npos) break;
    path.remove_prefix(end + 2);
  }
  return result;
}

char closing_of(char open) {
  switch (open) {
    case '(':
      return ')';
    case '<':
      return '>';
    case '[':
      return ']';
    default:
      return '}';
  }
}

/// Position behind the bracket that closes the one at `open`, or npos. `->` and `>` inside round brackets close
/// nothing.
std::size_t skip_bracket(std::string_view text, std::size_t open) {
  std::vector<char> expected;
  for (std::size_t i = open; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '(' || c == '<' || c == '[' || c == '{') {
      if (c == '<' && !expected.empty() && expected.back() == ')' && i > 0 && text[i - 1] == ' ') continue;  // a < b
      expected.push_back(closing_of(c));
    } else if (c == ')' || c == ']' || c == '}') {
      while (!expected.empty() && expected.back() == '>') expected.pop_back();
      if (expected.empty() || expected.back() != c) return std::string_view::npos;
      expected.pop_back();
    } else if (c == '>') {
      if (i > 0 && text[i - 1] == '-') continue;
      if (!expected.empty() && expected.back() == '>') expected.pop_back();
    }
    if (expected.empty()) return i + 1;
  }
  return std::string_view::npos;
}

struct Parsed {
  std::string stem;
  std::string_view last_template_arguments;  ///< inside the brackets, of the last part of the stem
};

/// Length of "operator" and its symbol at `at`, or 0.
std::size_t operator_length(std::string_view text, std::size_t at) {
  constexpr std::string_view kOperator = "operator";
  if (text.substr(at, kOperator.size()) != kOperator || (at > 0 && is_identifier(text[at - 1]))) return 0;
  std::size_t end = at + kOperator.size();
  if (text.substr(end, 2) == "()" || text.substr(end, 2) == "[]") return end + 2 - at;
  const std::size_t symbol = end;
  while (end < text.size() && end - symbol < 3 &&
         std::string_view("<>=!+-*/%^&|~,").find(text[end]) != std::string_view::npos) {
    // In operator< <int> and operator<<int> the last bracket opens template arguments; it cannot be told apart cheaply.
    ++end;
  }
  return end == symbol ? 0 : end - at;
}

/// nullopt when the text is no C++ signature.
std::optional<Parsed> parse_signature(std::string_view text) {
  Parsed parsed;
  std::string& out = parsed.stem;
  std::size_t i = 0;
  while (i < text.size()) {
    const char c = text[i];
    if (text.substr(i, kAnonymous.size()) == kAnonymous) {
      i += kAnonymous.size();
      if (text.substr(i, 2) == "::") i += 2;
      continue;
    }
    if (const std::size_t length = c == 'o' ? operator_length(text, i) : 0; length != 0) {
      out += text.substr(i, length);
      parsed.last_template_arguments = {};
      i += length;
      continue;
    }
    if (c == ' ') {
      // What stood before a space was a return type or a qualifier; behind it only a name can follow.
      const char next = i + 1 < text.size() ? text[i + 1] : '\0';
      if (next == '[' || next == '\0') break;
      if (next == '(' && text.substr(i + 1, kAnonymous.size()) != kAnonymous) return std::nullopt;
      out.clear();
      parsed.last_template_arguments = {};
      ++i;
      continue;
    }
    if (c == '(') {
      const std::size_t end = skip_bracket(text, i);
      if (end == std::string_view::npos) break;  // cut in the middle of the parameters
      if (out == "decltype") {
        i = end;
        continue;
      }
      const std::string_view rest = text.substr(end);
      if (rest.starts_with("::") || rest.starts_with(" const::")) {
        i = end + rest.find("::");
        continue;
      }
      const bool over = rest.empty() || rest.front() == ' ' || rest.front() == '.' || rest.front() == '[';
      if (!over) return std::nullopt;
      break;
    }
    if (c == '<') {
      const std::size_t end = skip_bracket(text, i);
      if (out.empty()) return std::nullopt;
      if (end == std::string_view::npos) {
        parsed.last_template_arguments = text.substr(i + 1);
        break;
      }
      parsed.last_template_arguments = text.substr(i + 1, end - i - 2);
      i = end;
      continue;
    }
    if (c == '{') {
      const std::size_t end = skip_bracket(text, i);
      const std::string_view inside = text.substr(i + 1, std::min<std::size_t>(text.size() - i - 1, 6));
      out += inside.starts_with("lambda") ? "{lambda}" : "{...}";
      if (end == std::string_view::npos) break;
      i = end;
      continue;
    }
    if (c == ')' || c == '}' || c == ']' || c == '>') break;
    if (c == ':' && text.substr(i, 2) != "::") return std::nullopt;
    if (c == ':') {
      if (!out.empty()) out += "::";
      parsed.last_template_arguments = {};
      i += 2;
      continue;
    }
    if (c != '*' && c != '&') out.push_back(c);
    ++i;
  }
  while (out.ends_with("::")) out.resize(out.size() - 2);
  if (out.empty()) return std::nullopt;
  out = drop_version_namespaces(out);
  return parsed;
}

/// The first template argument that is a type's name, without its own template arguments.
std::string telling_argument(std::string_view arguments, int depth) {
  std::size_t i = 0;
  while (i < arguments.size()) {
    while (i < arguments.size() && (arguments[i] == ' ' || arguments[i] == ',')) ++i;
    std::size_t end = i;
    while (end < arguments.size() && arguments[end] != ',') {
      const char c = arguments[end];
      const std::size_t next = c == '<' || c == '(' || c == '{' || c == '[' ? skip_bracket(arguments, end) : end + 1;
      if (next == std::string_view::npos) {
        end = arguments.size();
        break;
      }
      end = next;
    }
    const std::string_view argument = arguments.substr(i, end - i);
    i = end + 1;
    constexpr std::array<std::string_view, 6> kPlain = {"int", "float", "bool", "true", "false", "unsigned int"};
    if (argument.empty() || is_digit(argument.front()) || argument.front() == '-' || argument.front() == '(' ||
        std::ranges::find(kPlain, argument) != kPlain.end())
      continue;
    const auto inner = parse_signature(argument);
    if (!inner) continue;
    const bool enabler = inner->stem.find("enable_") != std::string::npos;
    if (enabler && depth < 3) {
      std::string deeper = telling_argument(inner->last_template_arguments, depth + 1);
      if (!deeper.empty()) return deeper;
    }
    return inner->stem;
  }
  return {};
}

}  // namespace

std::string demangle(std::string_view name) {
  std::string text(name);
  if (!name.starts_with("_Z") || !unfolds_safely(name) || name.find('\0') != std::string_view::npos) return text;
  // A kernel descriptor is named like its kernel, with ".kd" behind.
  if (text.ends_with(".kd")) text.resize(text.size() - 3);
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> demangled(
      abi::__cxa_demangle(text.c_str(), nullptr, nullptr, &status), &std::free);
  if (status != 0 || !demangled) return std::string(name);
  text = demangled.get();
  replace_all(text, "bool _Accum", "__bf16");  // DF16b is younger than the runtime's table
  return text;
}

std::string without_addresses(std::string_view name) {
  constexpr std::string_view kAt = " at 0x";
  std::string out;
  std::size_t kept = 0;
  for (std::size_t at = name.find(kAt); at != std::string_view::npos; at = name.find(kAt, at + kAt.size())) {
    std::size_t end = at + kAt.size();
    while (end < name.size() && is_hex_digit(name[end])) ++end;
    const bool closed = end > at + kAt.size() && (end == name.size() || name[end] == '>');
    if (!closed) continue;
    out += name.substr(kept, at - kept);
    kept = end;
  }
  return out += name.substr(kept);
}

std::string short_name(std::string_view name) {
  if (name.starts_with("_Z")) {
    std::string readable = demangle(name);
    if (readable != name) return short_name(readable);
    if (auto path = mangled_path(name)) return drop_version_namespaces(*path);
    return readable;
  }
  if (name.find_first_of("<({ ") == std::string_view::npos) {
    // No brackets: only versioned namespaces could be dropped.
    return name.find("_NS::") == std::string_view::npos ? std::string(name) : drop_version_namespaces(name);
  }
  const bool bracket = name.find_first_of("<(") != std::string_view::npos;
  const bool signature =
      name.starts_with("void ") || (bracket && (name.find("::") != std::string_view::npos ||
                                                name.find('<') != std::string_view::npos || name.ends_with(')')));
  if (!signature) return without_addresses(name);
  auto parsed = parse_signature(name);
  if (!parsed) return without_addresses(name);
  if (is_wrapper(parsed->stem)) {
    const std::string inner = telling_argument(parsed->last_template_arguments, 0);
    if (!inner.empty()) parsed->stem += "<" + inner + ">";
  }
  return std::move(parsed->stem);
}

}  // namespace culprit
