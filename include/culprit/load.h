// Loading a run: the first call of every program that uses the library.
#pragma once

#include <culprit/api.h>
#include <culprit/error.h>
#include <culprit/task.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace culprit {

constexpr std::uint64_t kUsualExpansion = 200;

struct LoadOptions {
  unsigned threads = 0;  ///< 0 = all cores
  /// How many times its size a file may become when it is read; 0: no limit.
  std::uint64_t max_expansion = kUsualExpansion;
  Task task{};
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
/// the file; damage inside a good file is no error but counted, see losses(). All long calls: cancelled.
CULPRIT_API Result<Run> load_run(const std::vector<std::string>& paths, const LoadOptions& options = {});

/// Loads one side of a comparison: files that carry different numbers of ranks are the ranks of one run, all others are
/// recordings of the same run again, one file each. Errors: as load_run().
CULPRIT_API Result<std::vector<Run>> load_recordings(const std::vector<std::string>& paths,
                                                     const LoadOptions& options = {});

/// Something that could not be read as it stands, or was repaired.
struct Loss {
  std::string reason;      ///< a word: "event_malformed"
  std::string severity;    ///< "data loss", "warning", "info"
  std::string meaning;     ///< a sentence
  std::string remedy;      ///< what to do about it
  std::string first_seen;  ///< where, or empty
  std::uint64_t count = 0;
};
CULPRIT_API std::vector<Loss> losses(const Run& run);

/// How much a run holds.
struct Extent {
  std::vector<std::string> files;  ///< as they were named, in their order
  std::uint64_t ranks = 0;
  std::uint64_t slices = 0;        ///< spans of time, those on devices among them
  std::uint64_t on_devices = 0;    ///< slices that are work of a device
  std::int64_t duration_ns = 0;    ///< from the first event to the last; of a recording as long as it lasted
};
CULPRIT_API Extent extent_of(const Run& run);

}  // namespace culprit
