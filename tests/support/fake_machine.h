// A machine of files: /proc and /sys as a test wants them, and the samples that a sampler makes of them.
#pragma once

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/units.h"
#include "support/temp_file.h"

namespace culprit::test {

class FakeMachine {
 public:
  [[nodiscard]] std::string root() const { return folder_.path(); }
  /// Writes /proc/… or /sys/…, folders included. Keeps the file, so that one opened before sees the new text.
  void put(const std::string& path, std::string_view text) const {
    const std::filesystem::path full = folder_.path() + path;
    std::filesystem::create_directories(full.parent_path());
    std::ofstream(full, std::ios::binary | std::ios::trunc) << text;
  }
  void remove(const std::string& path) const { std::filesystem::remove_all(folder_.path() + path); }
  /// /proc/PID/stat of a process that has used so many ticks.
  void process(long pid, const std::string& name, long user, long system = 0, long minor = 0, long major = 0,
               long children = 0, long parent = 1) const {
    const auto n = [](long v) { return std::to_string(v) + " "; };
    put("/proc/" + std::to_string(pid) + "/stat",
        n(pid) + "(" + name + ") S " + n(parent) + "1 1 0 -1 4194560 " + n(minor) + "0 " + n(major) + "0 " + n(user) +
            n(system) + n(children) + "0 20 0 4 0 777 1000000 256 18446744073709551615 0 0 0 0\n");
  }

 private:
  TempDir folder_;
};

/// Keeps what comes, by track name and process.
struct Samples {
  struct Sample {
    Ns at = 0;
    double value = 0;
  };
  struct Series {
    std::string unit;
    std::vector<Sample> samples;
  };
  std::map<std::pair<std::string, std::int64_t>, Series> series;
  std::vector<std::pair<std::string, std::int64_t>> ids;
  std::map<std::int64_t, std::string> processes;

  [[nodiscard]] const Series* find(const std::string& name, std::int64_t pid = 0) const {
    const auto found = series.find({name, pid});
    return found == series.end() ? nullptr : &found->second;
  }
  /// The last value; NaN when the track does not exist, so that every comparison fails.
  [[nodiscard]] double last(const std::string& name, std::int64_t pid = 0) const {
    const Series* s = find(name, pid);
    return s == nullptr || s->samples.empty() ? std::numeric_limits<double>::quiet_NaN() : s->samples.back().value;
  }
};

}  // namespace culprit::test
