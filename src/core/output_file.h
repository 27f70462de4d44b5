// The one way in which files are written for a user, so that one rule holds for all of them:
//
// * A name that exists is an error, unless `replace` is set.
// * A file gets its name when it is complete (commit) or, if it grows while others may look, when its writer says so
//   (publish). Until then it lies beside the target under a temporary name; what never gets its name is removed.
// * Links are not followed: a symbolic or hard link under the name is replaced itself, what it names stays untouched.
// * A file that replaces one of the same user has its permissions; one of another user, none that either would not
// have.
// * A file that a living process still writes, be it complete or under a temporary name, is not replaced: an error. The
// temporary file of one that died is removed by the next who writes to that name.
// * Devices and pipes are opened as they are, never removed or replaced. "-" and the names of own descriptors
//   (/dev/stdout, /dev/fd/N) are written to where they stand.
//
// What a name stands for is decided once, on an open file, so nobody can change it between the check and the use.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "core/error.h"

namespace culprit {

inline constexpr mode_t kPrivateMode = 0600;  ///< recordings and traces: names in them are nobody else's business
inline constexpr mode_t kReportMode = 0666;   ///< what the shell gives to a file; the umask narrows it

struct OutputPolicy {
  mode_t mode = kReportMode;  ///< of a new file, as in open(2): narrowed by the umask
  bool replace = false;
};

class OutputFile {
 public:
  /// What create() would refuse, without making anything. For verbs that work long before they write.
  static Status check(const std::string& path, bool replace);
  /// Whether `path` is a device, a pipe or the name of an own descriptor: what takes text but is no file.
  static bool is_stream(const std::string& path);
  /// Waits for a reader when `path` is a pipe without one. Errors: the name exists, is a directory, is being written by
  /// another process, cannot be written.
  static Result<OutputFile> create(const std::string& path, const OutputPolicy& policy);
  ~OutputFile();
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;

  /// Appends. A reader that closed the other end of a pipe is no error: what follows is dropped and closed() becomes
  /// true.
  Status write(std::string_view bytes);
  [[nodiscard]] bool closed() const { return closed_; }
  /// Bytes written that are still in the file.
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  /// Takes off what was written behind the first `size` bytes. Does nothing to devices and pipes.
  Status cut(std::uint64_t size);
  /// Gives the file its name; more can be written. Idempotent. Error: meanwhile the name exists.
  Status publish();
  /// publish(), and closes. Idempotent.
  Status commit();

 private:
  OutputFile() = default;
  Status open_existing(int handle, mode_t mode);
  Status open_new(mode_t mode);
  Status look_for_others() const;
  Status rename() const;
  void discard() noexcept;

  std::string path_;
  std::string name_;       ///< last part of the path
  std::string temporary_;  ///< in the same folder; empty: written directly, or published
  int folder_ = -1;        ///< that holds both
  int fd_ = -1;
  bool made_ = false;   ///< by this object, so it can be cut and removed; else a device, a pipe, a descriptor
  bool owned_ = false;  ///< fd_ has to be closed
  bool replace_ = false;
  bool closed_ = false;
  std::uint64_t bytes_ = 0;
  dev_t device_ = 0;  ///< with inode_: what was made
  ino_t inode_ = 0;
};

}  // namespace culprit
