// Reads JSON given as text.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include <fmt/format.h>

#include "formats/io/input.h"
#include "formats/kineto/reader.h"
#include "support/temp_file.h"

namespace culprit::test {

inline Result<Trace> read_json(std::string_view text, unsigned workers = 2,
                               std::size_t piece_bytes = formats::kineto::ReadOptions{}.piece_bytes) {
  const TempDir dir;
  auto input = formats::Input::open(dir.file("trace.json", text));
  if (!input) return input.error();
  return formats::kineto::read(std::move(*input), {.workers = workers, .progress = {}, .piece_bytes = piece_bytes});
}

/// The trace of a text that is one.
inline Trace trace_of(std::string_view text, unsigned workers = 2) {
  auto trace = read_json(text, workers);
  EXPECT_TRUE(trace) << (trace ? "" : to_string(trace.error()));
  return trace ? std::move(*trace) : Trace{};
}

/// A whole trace with these events.
inline std::string with_events(std::string_view events) {
  return fmt::format(R"({{"schemaVersion":1,"traceEvents":[{}],"traceName":"x"}})", events);
}

}  // namespace culprit::test
