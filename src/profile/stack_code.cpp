#include "profile/stack_code.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "trace/code_name.h"

namespace culprit::profile {

std::string code_name(std::string_view function) {
  if (const auto file = file_of_unnamed(function)) return fmt::format("[{}]", *file);
  return python_function(function).value_or(std::string(function));
}

std::string innermost_named(const Trace& trace, std::uint32_t frame) {
  constexpr std::string_view kUnknown = "[unknown]";
  for (std::uint32_t at = frame; at != kNone; at = trace.stack_frames[at].caller) {
    const std::string_view function = trace.strings[trace.stack_frames[at].function];
    if (!function.empty() && function != kUnknown && !file_of_unnamed(function)) return code_name(function);
  }
  return code_name(trace.strings[trace.stack_frames[frame].function]);
}

std::string sleeper_named(const Trace& trace, std::uint32_t frame) {
  constexpr std::array<std::string_view, 8> kOfLibrary = {"clock_nanosleep", "nanosleep", "usleep",   "sleep",
                                                          "__nanosleep",     "__sleep",   "__usleep", "thrd_sleep"};
  for (std::uint32_t at = frame; at != kNone; at = trace.stack_frames[at].caller) {
    std::string_view function = trace.strings[trace.stack_frames[at].function];
    function = function.substr(0, function.find('@'));
    const bool of_library = std::ranges::find(kOfLibrary, function) != kOfLibrary.end() ||
                            function.starts_with("__clock_nanosleep") || function.starts_with("__GI_") ||
                            function.starts_with("std::this_thread::sleep_");
    if (!of_library && !file_of_unnamed(function)) return innermost_named(trace, at);
  }
  return innermost_named(trace, frame);
}

std::vector<std::uint32_t> frames_of_python(const Trace& trace) {
  std::vector<std::uint32_t> rows;
  std::map<StringId, bool> known;
  rows.reserve(trace.stack_frames.size());
  for (std::size_t f = 0; f < trace.stack_frames.size(); ++f) {
    const StackFrame& frame = trace.stack_frames[f];
    const auto [is_python, fresh] = known.try_emplace(frame.function);
    if (fresh) is_python->second = python_function(trace.strings[frame.function]).has_value();
    rows.push_back(is_python->second       ? static_cast<std::uint32_t>(f)
                   : frame.caller == kNone ? kNone
                                           : rows[frame.caller]);
  }
  return rows;
}

}  // namespace culprit::profile
