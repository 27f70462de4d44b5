// An ELF file opened by libelf. Whoever uses it links libelf.
#pragma once

#include <fcntl.h>
#include <libelf.h>
#include <unistd.h>

#include <string>

namespace culprit::record {

/// A descriptor and libelf's handle of a file, closed in the right order; `elf` is nullptr when it cannot be read.
struct ElfFile {
  int fd = -1;
  Elf* elf = nullptr;

  explicit ElfFile(const std::string& path) : fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    elf_version(EV_CURRENT);
    if (fd >= 0) elf = elf_begin(fd, ELF_C_READ, nullptr);
  }
  ~ElfFile() {
    if (elf != nullptr) elf_end(elf);
    if (fd >= 0) close(fd);
  }
  ElfFile(const ElfFile&) = delete;
  ElfFile& operator=(const ElfFile&) = delete;
};

}  // namespace culprit::record
