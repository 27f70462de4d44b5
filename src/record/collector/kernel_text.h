// Reading what the kernel says of itself: the small text files of /proc and /sys.
//
// Counters are read many times a second, so their files stay open and are read again from the begin. Every path begins
// with a root, so that tests can stand a machine of their own beside the real one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace culprit::record {

/// A file that is kept open and read again and again. Movable, closes itself.
class KernelFile {
 public:
  KernelFile() = default;
  explicit KernelFile(const std::string& path);
  KernelFile(KernelFile&& other) noexcept;
  KernelFile& operator=(KernelFile&& other) noexcept;
  ~KernelFile();

  [[nodiscard]] bool is_open() const { return fd_ >= 0; }
  /// errno of the failed open or of the last failed read, 0 when fine.
  [[nodiscard]] int error() const { return error_; }
  /// The whole text now, kept in `buffer`; empty when it cannot be read (file gone, device removed). Reads at most
  /// 4 MiB.
  std::string_view read(std::vector<char>& buffer);

 private:
  int fd_ = -1;
  int error_ = 0;
};

/// The text of a small file, at most `limit` bytes of it. nullopt: it cannot be read.
std::optional<std::string> read_text(const std::string& path, std::size_t limit = std::size_t{1} << 20);
/// The same without white space around it; empty when it cannot be read.
std::string read_word(const std::string& path);
/// A file that holds one number. nullopt: it cannot be read or is no whole number that fits.
std::optional<std::int64_t> read_number(const std::string& path);
/// Names in a folder, sorted; at most `limit`. Empty when it cannot be read.
std::vector<std::string> list_folder(const std::string& path, std::size_t limit = 100'000);

/// The CPUs of a list such as "0-3,8": how many. nullopt when it is no such list.
std::optional<std::size_t> count_cpu_list(std::string_view list);

}  // namespace culprit::record
