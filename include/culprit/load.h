// Loading a run: the first call of every program that uses the library.
#pragma once

#include <culprit/error.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace culprit {

struct LoadOptions {
  unsigned threads = 0;  ///< 0 = all cores
  /// Called from the loading threads, one call at a time: bytes of the files taken so far, and in all (0 = unknown).
  std::function<void(std::uint64_t done_bytes, std::uint64_t total_bytes)> progress{};
};

/// A run in memory. Copies share it; it does not change, so that several threads may use it.
class Run {
 public:
  struct Data;
  explicit Run(std::shared_ptr<const Data> data) : data_(std::move(data)) {}
  [[nodiscard]] const Data& data() const { return *data_; }

 private:
  std::shared_ptr<const Data> data_;
};

/// Loads one run from its files, one per rank; what each file is, its content tells. "-" is standard input. Errors name
/// the file; damage inside a good file is no error but counted, see losses().
Result<Run> load_run(const std::vector<std::string>& paths, const LoadOptions& options = {});

/// Something that could not be read as it stands, or was repaired.
struct Loss {
  std::string reason;      ///< a word: "event_malformed"
  std::string severity;    ///< "data loss", "warning", "info"
  std::string meaning;     ///< a sentence
  std::string remedy;      ///< what to do about it
  std::string first_seen;  ///< where, or empty
  std::uint64_t count = 0;
};
std::vector<Loss> losses(const Run& run);

}  // namespace culprit
