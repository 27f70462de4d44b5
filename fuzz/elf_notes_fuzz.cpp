// Any bytes as an ELF file of a recorded program, whose build-id and marks are looked for. When the first byte is odd,
// the rest is the file; else it is the contents of the note section of a file that is right otherwise.
#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "check_trace.h"
#include "record/annotate/marked_file.h"
#include "record/collector/build_id.h"

namespace {

using namespace culprit;
using fuzz::require;

template <class T>
void append(std::string& to, const T& value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof value);
}

std::string file_with_notes(std::string_view notes) {
  constexpr std::string_view kNames("\0.note.stapsdt\0.shstrtab\0", 25);
  constexpr std::uint64_t kNotesAt = sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr);
  const std::uint64_t names_at = kNotesAt + notes.size();
  const std::uint64_t sections_at = (names_at + kNames.size() + 7) / 8 * 8;
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = ET_DYN;
  header.e_machine = EM_X86_64;
  header.e_version = EV_CURRENT;
  header.e_phoff = sizeof header;
  header.e_shoff = sections_at;
  header.e_ehsize = sizeof header;
  header.e_phentsize = sizeof(Elf64_Phdr);
  header.e_phnum = 1;
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = 3;
  header.e_shstrndx = 2;
  Elf64_Phdr segment{};
  segment.p_type = PT_NOTE;
  segment.p_offset = kNotesAt;
  segment.p_filesz = notes.size();
  Elf64_Shdr section{};
  section.sh_name = 1;
  section.sh_type = SHT_NOTE;
  section.sh_offset = kNotesAt;
  section.sh_size = notes.size();
  section.sh_addralign = 4;
  Elf64_Shdr names{};
  names.sh_name = 15;
  names.sh_type = SHT_STRTAB;
  names.sh_offset = names_at;
  names.sh_size = kNames.size();
  names.sh_addralign = 1;
  std::string out;
  append(out, header);
  append(out, segment);
  out += notes;
  out += kNames;
  out.resize(sections_at);
  append(out, Elf64_Shdr{});
  append(out, section);
  append(out, names);
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  std::string bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  if (data[0] % 2 == 0) bytes = file_with_notes(bytes);
  const int file = memfd_create("fuzz", MFD_CLOEXEC);
  require(file >= 0 && write(file, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
  const std::string path = "/proc/self/fd/" + std::to_string(file);
  const auto marks = record::annotate::marks_in(path);
  require(std::ranges::is_sorted(marks));
  for (const std::string& mark : marks) require(!mark.empty() && mark.find('\0') == std::string::npos);
  if (const auto id = record::read_build_id(path))
    require(id->find_first_not_of("0123456789abcdef") == std::string::npos && id->size() <= 128);
  close(file);
  return 0;
}
