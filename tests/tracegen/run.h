// Generates a run into a folder of its own and reads it back with a JSON library that knows nothing of the generator.
#pragma once

#include <gtest/gtest.h>
#include <isa-l/igzip_lib.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tracegen/generate.h"

namespace culprit::tracegen {

using Json = nlohmann::json;

inline std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline std::string gunzip(std::string data) {
  std::string out(data.size() * 40 + 1024, '\0');
  inflate_state state;
  isal_inflate_init(&state);
  state.crc_flag = ISAL_GZIP;
  state.next_in = reinterpret_cast<std::uint8_t*>(data.data());
  state.avail_in = static_cast<std::uint32_t>(data.size());
  state.next_out = reinterpret_cast<std::uint8_t*>(out.data());
  state.avail_out = static_cast<std::uint32_t>(out.size());
  EXPECT_EQ(isal_inflate(&state), ISAL_DECOMP_OK);
  EXPECT_EQ(state.block_state, ISAL_BLOCK_FINISH);
  out.resize(out.size() - state.avail_out);
  return out;
}

/// A folder that goes away with the test.
class Folder {
 public:
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "culprit-tracegen-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  [[nodiscard]] std::string file(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

struct SimulatedRun {
  std::vector<std::string> text;  ///< per rank
  std::vector<Json> trace;        ///< per rank
  Json truth;
};

inline SimulatedRun make_run(Options options, const std::string& ending = ".json") {
  const Folder folder;
  options.output = folder.file("run" + ending);
  const auto generated = generate(options);
  SimulatedRun run;
  if (!generated) {
    ADD_FAILURE() << to_string(generated.error());
    return run;
  }
  for (const std::string& path : generated->traces) {
    run.text.push_back(read_file(path));
    run.trace.push_back(Json::parse(ending.ends_with(".gz") ? gunzip(run.text.back()) : run.text.back()));
  }
  run.truth = Json::parse(read_file(generated->truth));
  return run;
}

inline const Json& events(const Json& trace) { return trace.is_array() ? trace : trace.at("traceEvents"); }

/// A slice of the trace in whole nanoseconds.
struct Slice {
  std::string category;
  std::string name;
  std::int64_t begin = 0;
  std::int64_t duration = 0;
  std::int64_t stream = -1;
  std::int64_t correlation = 0;
  [[nodiscard]] std::int64_t end() const { return begin + duration; }
};

inline std::int64_t to_ns(const Json& us) { return std::llround(us.get<double>() * 1000.0); }

inline std::vector<Slice> slices(const Json& trace) {
  std::vector<Slice> result;
  for (const Json& e : events(trace)) {
    if (e.at("ph") != "X") continue;
    const Json& args = e.at("args");
    result.push_back({e.at("cat"), e.at("name"), to_ns(e.at("ts")), to_ns(e.at("dur")),
                      args.value("stream", std::int64_t{-1}), args.value("correlation", std::int64_t{0})});
  }
  return result;
}

inline std::vector<Slice> of_category(const Json& trace, const std::string& category) {
  std::vector<Slice> result = slices(trace);
  std::erase_if(result, [&](const Slice& s) { return s.category != category; });
  return result;
}

}  // namespace culprit::tracegen
