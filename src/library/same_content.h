// Whether two files hold the same: a recording that is compared with itself must not look like two that agree.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace culprit::library {

/// A file as it was when it was read.
struct FileState {
  std::string path;
  bool regular = false;
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::int64_t bytes = 0;
  std::int64_t changed_ns = 0;
  bool operator==(const FileState&) const = default;
};
FileState state_of(const std::string& path);

/// True when both are one file, or regular files of the same content, packed or not.
bool same_content(const std::string& a, const std::string& b);

/// One number per file of each list, the same for the same content. What is no regular file, or is not any more what it
/// was, is like nothing else.
std::vector<std::vector<std::uint64_t>> content_numbers(const std::vector<std::vector<FileState>>& lists);

/// One number for the files of a recording, in whatever order they are named.
std::uint64_t digest_of(std::vector<std::uint64_t> numbers);

}  // namespace culprit::library
