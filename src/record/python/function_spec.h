// Which Python functions to watch and which numbers of theirs: what the user writes, and what the agent reads.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"

namespace culprit::record::python {

/// A number taken when the function is called, or with `return` when it returns. Only exact ints are, and exact floats
/// as times: nothing else of an argument is ever read.
struct Capture {
  enum class Kind : std::uint8_t { value, length, sum, ones, seconds };
  Kind kind = Kind::value;
  /// "batch.reqs": an argument, and attributes behind it; "return.x": of the result; "batch.reqs[].n": of each member.
  std::string path;
  std::string label;  ///< as it was written, or the name it was given
};

/// A time of a request, told by the numbers of one call: its ends are numbers by their names, "a-b" or "now".
struct RequestSpan {
  std::string name;  ///< "queue", "first_token"
  std::string begin;
  std::string end;
  std::string tokens;  ///< not empty: the mean of the (tokens - 1) parts between so many tokens
  bool operator==(const RequestSpan&) const = default;
};

struct FunctionSpec {
  std::string text;  ///< as it was written
  std::string module;
  std::string qualified;  ///< "Class.function", "outer.<locals>.inner"
  std::vector<Capture> captures;
  std::string step;                  ///< not empty: each call is a step, and how it is called (step_name())
  bool says = false;                 ///< `step` only tells of the step that the call is a part of
  std::string step_when;             ///< not empty: only calls in which this number is not 0 are
  std::vector<RequestSpan> request;  ///< not empty: each call ends a request
  std::string request_when;          ///< not empty: only calls in which this number is not 0 are
  bool optional = false;             ///< of a ready-made set: nobody misses it where its module is not loaded
};

inline constexpr std::string_view kNow = "now";  ///< when the function was called
inline constexpr std::size_t kMostCaptures = 8;
inline constexpr std::size_t kMostSteps = 6;  ///< of a path, without its first name

/// "module:Class.function(argument.path, name=len(argument.path), sum(argument.path), ones(argument.path),
/// ns(argument.path))"; without parentheses only times are taken, without a name a number is called what was written. "
/// as NAME" behind it makes each call a step of that name, see step_name(), " says NAME" only a range of that name,
/// which tells of the step around it ("bs=8"); " requests NAME=BEGIN..END,NAME=BEGIN..END/TOKENS" makes each the end of
/// a request. Errors (Usage) say what is expected at which place.
Result<FunctionSpec> parse_function(std::string_view text);

/// A list: one function a line; empty lines and lines that begin with '#' count for nothing. Errors name the line.
Result<std::vector<FunctionSpec>> parse_functions(std::string_view text);

/// The name of a step: `format` with numbers in the place of what stands in braces: "{a}" a number by its name, "{a-b}"
/// a difference, "{a:1=X,2=Y <b>}" a text for each value, in which "<b>" is a number by its name; "{~a}" and "<~b>" are
/// rounded. A missing number is "?".
std::string step_name(std::string_view format, std::span<const std::string_view> names,
                      std::span<const std::optional<std::int64_t>> numbers);

/// For the agent's hooks.py; the order is that of the numbers by which it calls them.
std::string agent_config(std::span<const FunctionSpec> functions, bool collections);

}  // namespace culprit::record::python
