#include "record/output_ring.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string_view>
#include <system_error>

#include "core/output_file.h"
#include "core/text.h"

namespace culprit::record {

std::string numbered_output(const std::string& output, std::size_t number) {
  const std::filesystem::path path(output);
  return (path.parent_path() / fmt::format("{}.{:04}{}", path.stem().string(), number, path.extension().string()))
      .string();
}

Status refuse_numbered(const std::string& output) {
  const std::filesystem::path path(output);
  const std::string stem = path.stem().string() + ".";
  const std::string extension = path.extension().string();
  const std::filesystem::path folder = path.parent_path().empty() ? "." : path.parent_path();
  std::error_code code;
  for (std::filesystem::directory_iterator entry(folder, code), last; !code && entry != last; entry.increment(code)) {
    const std::string name = entry->path().filename();
    if (!name.starts_with(stem) || !name.ends_with(extension) || name.size() <= stem.size() + extension.size())
      continue;
    const std::string_view middle = std::string_view(name).substr(stem.size());
    if (!parse_number<unsigned>(middle.substr(0, middle.size() - extension.size()))) continue;
    if (Status status = OutputFile::check(entry->path(), false); !status) return status;
  }
  return {};
}

void OutputRing::add(const std::string& path) {
  struct stat file {};
  if (keep_ == 0 || lstat(path.c_str(), &file) != 0) return;
  files_.push_back({path, file.st_dev, file.st_ino});
  if (files_.size() < keep_) return;
  const File& oldest = files_.front();
  // Somebody may have put another file under its name.
  if (lstat(oldest.path.c_str(), &file) == 0 && file.st_dev == oldest.device && file.st_ino == oldest.inode)
    unlink(oldest.path.c_str());
  files_.pop_front();
}

}  // namespace culprit::record
