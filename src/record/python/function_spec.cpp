#include "record/python/function_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace culprit::record::python {

namespace {

constexpr std::string_view kAs = " as ";
constexpr std::string_view kSays = " says ";
constexpr std::string_view kRequests = " requests ";
constexpr std::string_view kWhen = " when ";
constexpr std::string_view kEach = "[]";
constexpr std::string_view kExample =
    "write module:Class.function(argument.path, name=len(argument.path), sum(argument.path))";

Error wrong(std::string_view text, std::string what) {
  return usage_error(fmt::format("'{}' names no Python function: {}", text, what), std::string(kExample));
}

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

/// Python's names may hold any letter; bytes beyond ASCII are letters here.
bool is_name(std::string_view text) {
  const auto fits = [](char c) {
    const auto u = static_cast<unsigned char>(c);
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || u >= 0x80;
  };
  return !text.empty() && !(text[0] >= '0' && text[0] <= '9') && std::ranges::all_of(text, fits);
}

/// Names with dots between them; how many, or 0 when it is something else.
std::size_t names_in(std::string_view text, bool locals = false) {
  std::size_t count = 0;
  while (true) {
    const std::size_t dot = text.find('.');
    const std::string_view name = text.substr(0, dot);
    if (!is_name(name) && !(locals && name == "<locals>")) return 0;
    ++count;
    if (dot == std::string_view::npos) return count;
    text.remove_prefix(dot + 1);
  }
}

Result<Capture> parse_capture(std::string_view whole, std::string_view text) {
  Capture capture;
  const std::size_t equals = text.find('=');
  if (equals != std::string_view::npos) {
    capture.label = std::string(trimmed(text.substr(0, equals)));
    if (names_in(capture.label) != 1) return wrong(whole, fmt::format("'{}' is no name for a number", capture.label));
    text = trimmed(text.substr(equals + 1));
  } else {
    capture.label = std::string(text);
  }
  for (const auto& [name, kind] : {std::pair("len(", Capture::Kind::length), std::pair("sum(", Capture::Kind::sum),
                                   std::pair("ones(", Capture::Kind::ones), std::pair("ns(", Capture::Kind::seconds)}) {
    const std::string_view begin = name;
    if (!text.starts_with(begin) || !text.ends_with(')')) continue;
    capture.kind = kind;
    text = trimmed(text.substr(begin.size(), text.size() - begin.size() - 1));
  }
  std::string path(text);
  if (const std::size_t each = path.find(kEach); each != std::string::npos) {
    if (capture.kind != Capture::Kind::sum && capture.kind != Capture::Kind::ones)
      return wrong(whole, "only a sum or ones can be of each member of a list");
    path.erase(each, kEach.size());
    if (path.substr(each, 1) != ".")
      return wrong(whole, fmt::format("an attribute is missing behind the '[]' of '{}'", text));
  }
  const std::size_t names = names_in(path);
  if (names == 0) return wrong(whole, fmt::format("'{}' is no argument with attributes", text));
  if (names > kMostSteps + 1)
    return wrong(whole, fmt::format("'{}' has more than {} attributes", capture.label, kMostSteps));
  capture.path = std::string(text);
  return capture;
}

/// "NAME=BEGIN..END", "NAME=BEGIN..END/TOKENS", by commas.
Result<std::vector<RequestSpan>> parse_request(std::string_view whole, std::string_view text) {
  std::vector<RequestSpan> spans;
  while (true) {
    const std::size_t end = text.find(',');
    const std::string_view part = trimmed(text.substr(0, end));
    const std::size_t equals = part.find('=');
    const std::size_t dots = part.find("..");
    if (equals == std::string_view::npos || dots == std::string_view::npos || dots < equals)
      return wrong(whole, fmt::format("'{}' behind 'requests' is not NAME=BEGIN..END", part));
    const std::size_t slash = part.find('/', dots);
    RequestSpan span;
    span.name = std::string(trimmed(part.substr(0, equals)));
    span.begin = std::string(trimmed(part.substr(equals + 1, dots - equals - 1)));
    span.end = std::string(trimmed(part.substr(dots + 2, slash == std::string_view::npos ? slash : slash - dots - 2)));
    if (slash != std::string_view::npos) span.tokens = std::string(trimmed(part.substr(slash + 1)));
    spans.push_back(std::move(span));
    if (end == std::string_view::npos) return spans;
    text.remove_prefix(end + 1);
  }
}

/// Every number that the spans speak of is taken.
Status check_request(std::string_view whole, const FunctionSpec& spec) {
  const auto check = [&](std::string_view name) -> Status {
    if (name == kNow || std::ranges::find(spec.captures, name, &Capture::label) != spec.captures.end()) return {};
    return wrong(whole, fmt::format("'{}' behind 'requests' is none of its numbers", name));
  };
  if (!spec.request_when.empty())
    if (Status status = check(spec.request_when); !status) return status;
  for (const RequestSpan& span : spec.request) {
    if (names_in(span.name) != 1) return wrong(whole, fmt::format("'{}' is no name for a time", span.name));
    for (const std::string_view point : {std::string_view(span.begin), std::string_view(span.end)}) {
      const std::size_t minus = point.find('-');
      if (Status status = check(point.substr(0, minus)); !status) return status;
      if (minus == std::string_view::npos) continue;
      if (Status status = check(point.substr(minus + 1)); !status) return status;
    }
    if (span.tokens.empty()) continue;
    if (Status status = check(span.tokens); !status) return status;
  }
  return {};
}

/// Every number in the name of a step is taken.
Status check_step(std::string_view whole, const FunctionSpec& spec) {
  const std::string_view by = spec.says ? kSays : kAs;
  const auto check = [&](std::string_view name) -> Status {
    if (std::ranges::find(spec.captures, name, &Capture::label) != spec.captures.end()) return {};
    return wrong(whole, fmt::format("'{}' behind '{}' is none of its numbers", name, trimmed(by)));
  };
  for (std::string_view rest = spec.step; rest.find('{') != std::string_view::npos;) {
    rest.remove_prefix(rest.find('{') + 1);
    const std::size_t close = rest.find('}');
    if (close == std::string_view::npos) return wrong(whole, fmt::format("a '}}' is missing behind '{}'", trimmed(by)));
    std::string_view inside = rest.substr(0, close);
    rest.remove_prefix(close + 1);
    if (inside.starts_with('~')) inside.remove_prefix(1);
    const std::size_t sign = inside.find_first_of(":-");
    if (Status status = check(inside.substr(0, sign)); !status) return status;
    if (sign == std::string_view::npos) continue;
    if (inside[sign] == '-')
      if (Status status = check(inside.substr(sign + 1)); !status) return status;
    for (std::string_view texts = inside.substr(sign + 1); texts.find('<') != std::string_view::npos;) {
      texts.remove_prefix(texts.find('<') + 1);
      const std::size_t end = texts.find('>');
      if (end == std::string_view::npos) return wrong(whole, fmt::format("a '>' is missing behind '{}'", trimmed(by)));
      const std::size_t begin = texts.starts_with('~') ? 1 : 0;
      if (Status status = check(texts.substr(begin, end - begin)); !status) return status;
    }
  }
  return {};
}

}  // namespace

Result<FunctionSpec> parse_function(std::string_view text) {
  FunctionSpec spec;
  text = trimmed(text);
  spec.text = std::string(text);
  for (const std::string_view word : {"as", "says"})
    if (text.ends_with(fmt::format(" {}", word))) return wrong(text, fmt::format("no name stands behind '{}'", word));
  if (text.ends_with(" requests")) return wrong(text, "no NAME=BEGIN..END stands behind 'requests'");
  spec.says = text.find(kSays) < text.find(kAs);
  const std::string_view named_by = spec.says ? kSays : kAs;
  if (const std::size_t as = text.find(named_by); as != std::string_view::npos) {
    spec.step = std::string(trimmed(text.substr(as + named_by.size())));
    text = trimmed(text.substr(0, as));
    spec.text = std::string(text);
    if (const std::size_t when = spec.step.rfind(kWhen); when != std::string::npos) {
      spec.step_when = std::string(trimmed(std::string_view(spec.step).substr(when + kWhen.size())));
      spec.step = std::string(trimmed(std::string_view(spec.step).substr(0, when)));
    }
    if (spec.step.empty()) return wrong(text, fmt::format("no name stands behind '{}'", trimmed(named_by)));
  }
  if (const std::size_t requests = text.find(kRequests); requests != std::string_view::npos) {
    std::string_view spoken = text.substr(requests + kRequests.size());
    if (const std::size_t when = spoken.rfind(kWhen); when != std::string_view::npos) {
      spec.request_when = std::string(trimmed(spoken.substr(when + kWhen.size())));
      spoken = spoken.substr(0, when);
    }
    auto spans = parse_request(text, spoken);
    if (!spans) return spans.error();
    spec.request = std::move(*spans);
    text = trimmed(text.substr(0, requests));
    spec.text = std::string(text);
  }
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) return wrong(text, "there is no ':' behind the module");
  const std::size_t open = text.find('(', colon);
  const std::string_view module = trimmed(text.substr(0, colon));
  const std::string_view qualified =
      trimmed(text.substr(colon + 1, open == std::string_view::npos ? open : open - colon - 1));
  if (names_in(module) == 0) return wrong(text, fmt::format("'{}' is no module", module));
  if (names_in(qualified, true) == 0) return wrong(text, fmt::format("'{}' is no function", qualified));
  spec.module = std::string(module);
  spec.qualified = std::string(qualified);
  if (open == std::string_view::npos) {
    if (!spec.step_when.empty()) return wrong(text, "'when' needs a number");
    if (Status status = check_request(text, spec); !status) return status.error();
    return spec;
  }
  if (!text.ends_with(')')) return wrong(text, "the last ')' is missing");
  std::string_view rest = trimmed(text.substr(open + 1, text.size() - open - 2));
  while (!rest.empty()) {
    int depth = 0;
    std::size_t end = 0;
    while (end < rest.size() && (rest[end] != ',' || depth > 0)) {
      depth += rest[end] == '(' ? 1 : rest[end] == ')' ? -1 : 0;
      ++end;
    }
    auto capture = parse_capture(text, trimmed(rest.substr(0, end)));
    if (!capture) return capture.error();
    spec.captures.push_back(std::move(*capture));
    if (end == rest.size()) break;
    rest = trimmed(rest.substr(end + 1));
    if (rest.empty()) return wrong(text, "nothing stands behind the last ','");
  }
  if (!spec.step_when.empty() &&
      std::ranges::find(spec.captures, spec.step_when, &Capture::label) == spec.captures.end())
    return wrong(text, fmt::format("'{}' behind 'when' is none of its numbers", spec.step_when));
  if (spec.captures.size() > kMostCaptures)
    return wrong(text, fmt::format("more than {} numbers are asked for", kMostCaptures));
  if (Status status = check_request(text, spec); !status) return status.error();
  if (Status status = check_step(text, spec); !status) return status.error();
  return spec;
}

Result<std::vector<FunctionSpec>> parse_functions(std::string_view text) {
  std::vector<FunctionSpec> functions;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    const std::string_view line = trimmed(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.empty() || line.starts_with('#')) continue;
    auto spec = parse_function(line);
    if (!spec) return usage_error(fmt::format("line {}: {}", number, spec.error().what), spec.error().remedy);
    functions.push_back(std::move(*spec));
  }
  return functions;
}

namespace {

std::optional<std::int64_t> number_named(std::string_view name, std::span<const std::string_view> names,
                                         std::span<const std::optional<std::int64_t>> numbers) {
  const auto at = std::ranges::find(names, name);
  return at == names.end() ? std::nullopt : numbers[static_cast<std::size_t>(at - names.begin())];
}

std::string shown(std::optional<std::int64_t> number) { return number ? std::to_string(*number) : "?"; }

/// Of "1=X,2=Y"; the number where it is not among them.
std::string text_for(std::int64_t number, std::string_view texts) {
  const std::string begin = std::to_string(number) + "=";
  while (!texts.empty()) {
    const std::size_t end = texts.find(',');
    const std::string_view text = texts.substr(0, end);
    if (text.starts_with(begin)) return std::string(text.substr(begin.size()));
    texts.remove_prefix(end == std::string_view::npos ? texts.size() : end + 1);
  }
  return std::to_string(number);
}

/// Rounded to quarters of a doubling, so that few names come of it.
std::optional<std::int64_t> roughly(std::optional<std::int64_t> number) {
  constexpr double kSteps = 4;
  if (!number || *number < 1) return number;
  return std::llround(std::exp2(std::round(kSteps * std::log2(static_cast<double>(*number))) / kSteps));
}

/// "bs=<batch> ctx=<~context>" with the numbers in their places, behind ~ roughly.
std::string with_numbers(std::string_view text, std::span<const std::string_view> names,
                         std::span<const std::optional<std::int64_t>> numbers) {
  std::string out;
  while (!text.empty()) {
    const std::size_t open = text.find('<');
    const std::size_t close = text.find('>', open);
    out += text.substr(0, open);
    if (close == std::string_view::npos) break;
    const bool rough = text.substr(open + 1).starts_with('~');
    const std::size_t begin = open + (rough ? 2 : 1);
    const auto number = number_named(text.substr(begin, close - begin), names, numbers);
    out += shown(rough ? roughly(number) : number);
    text.remove_prefix(close + 1);
  }
  return out;
}

}  // namespace

std::string step_name(std::string_view format, std::span<const std::string_view> names,
                      std::span<const std::optional<std::int64_t>> numbers) {
  std::string text;
  while (!format.empty()) {
    const std::size_t open = format.find('{');
    text += format.substr(0, open);
    if (open == std::string_view::npos) break;
    const std::size_t close = format.find('}', open);
    if (close == std::string_view::npos) break;
    std::string_view inside = format.substr(open + 1, close - open - 1);
    format.remove_prefix(close + 1);
    const bool rough = inside.starts_with('~');
    if (rough) inside.remove_prefix(1);
    const std::size_t sign = inside.find_first_of(":-");
    const auto number = number_named(inside.substr(0, sign), names, numbers);
    if (sign == std::string_view::npos) {
      text += shown(rough ? roughly(number) : number);
    } else if (inside[sign] == ':') {
      text += number ? with_numbers(text_for(*number, inside.substr(sign + 1)), names, numbers) : "?";
    } else {
      const auto less = number_named(inside.substr(sign + 1), names, numbers);
      const auto rest = number && less ? std::optional(*number - *less) : std::nullopt;
      text += shown(rough ? roughly(rest) : rest);
    }
  }
  return text;
}

std::string agent_config(std::span<const FunctionSpec> functions, bool collections) {
  std::string text = collections ? "gc\n" : "\n";
  for (const FunctionSpec& spec : functions) {
    text += fmt::format("{}\x1f{}\x1f{}", spec.text, spec.module, spec.qualified);
    for (const Capture& capture : spec.captures)
      text += fmt::format("\x1f{}:{}", static_cast<int>(capture.kind), capture.path);
    text += '\n';
  }
  return text;
}

}  // namespace culprit::record::python
