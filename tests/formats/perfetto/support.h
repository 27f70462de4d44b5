// Perfetto files for tests: made and looked at with protoc and Python, which know nothing of Culprit's code.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

#include "formats/io/input.h"
#include "formats/perfetto/reader.h"
#include "support/temp_file.h"

namespace culprit::perfetto::test {

inline const std::string kFolder = std::string(CULPRIT_SOURCE_DIR) + "/src/formats/perfetto";

inline std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline std::string run(const std::string& command) {
  std::string output;
  FILE* pipe = popen(command.c_str(), "r");
  std::array<char, 4096> buffer{};
  for (std::size_t n = 0; (n = fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) output.append(buffer.data(), n);
  EXPECT_EQ(pclose(pipe), 0) << command;
  return output;
}

/// The packets of a file as protoc prints them.
inline std::string decode(const std::string& path) {
  return run("/usr/bin/python3 " + std::string(CULPRIT_SOURCE_DIR) + "/tests/formats/perfetto/unpack.py " + path +
             " | protoc -I " + kFolder + " --decode=culprit.perfetto.proto.Trace trace.proto");
}

/// The bytes of a trace given as protoc's text.
inline std::string encode(const culprit::test::TempDir& dir, const std::string& text) {
  const std::string source = dir.file("trace.txt", text);
  return run("protoc -I " + kFolder + " --encode=culprit.perfetto.proto.Trace trace.proto < " + source);
}

inline Trace read_file(const std::string& path) {
  auto input = formats::Input::open(path);
  EXPECT_TRUE(input) << to_string(input.error());
  auto trace = read(std::move(*input));
  EXPECT_TRUE(trace);
  return std::move(*trace);
}

inline Trace read_bytes(const culprit::test::TempDir& dir, const std::string& bytes) {
  return read_file(dir.file("bytes.pftrace", bytes));
}

inline std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++count;
  return count;
}

/// The slice of this name; fails when there is not exactly one.
inline Slice slice_named(const Trace& trace, std::string_view name) {
  Slice found;
  int count = 0;
  for (std::size_t i = 0; i < trace.slices.size(); ++i)
    if (trace.name(trace.slices[i]) == name) {
      found = trace.slices[i];
      ++count;
    }
  EXPECT_EQ(count, 1) << name;
  return found;
}

/// Time of a thread in slices of this name on its scheduling track.
inline Ns sched_time(const Trace& trace, std::int64_t tid, std::string_view name) {
  Ns sum = 0;
  for (std::size_t i = 0; i < trace.slices.size(); ++i) {
    const Slice& slice = trace.slices[i];
    const Track& track = trace.tracks[slice.track];
    if (track.kind == TrackKind::sched && track.tid == tid && trace.name(slice) == name) sum += slice.duration;
  }
  return sum;
}

}  // namespace culprit::perfetto::test
