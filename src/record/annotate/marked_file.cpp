#include "record/annotate/marked_file.h"

#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string_view>

namespace culprit::record::annotate {

namespace {

constexpr GElf_Word kProbeNote = 3;
constexpr GElf_Xword kMostNotes = GElf_Xword{1} << 20;  // bytes; the file is the target's, and libelf reads all of it
constexpr GElf_Xword kMostNames = GElf_Xword{16} << 20;
constexpr std::size_t kAddresses = 3 * sizeof(std::uint64_t);  // of the place, the base and the semaphore

struct EndElf {
  void operator()(Elf* elf) const { elf_end(elf); }
};

/// The probe's name when the note is one of ours: provider, name and arguments stand behind the addresses.
std::string_view mark_name(std::string_view description) {
  constexpr std::string_view kProvider("culprit\0", 8);
  if (description.size() < kAddresses) return {};
  description.remove_prefix(kAddresses);
  if (!description.starts_with(kProvider)) return {};
  description.remove_prefix(kProvider.size());
  const std::size_t end = description.find('\0');
  return end == std::string_view::npos ? std::string_view() : description.substr(0, end);
}

void add_marks(Elf_Data* data, std::vector<std::string>& to) {
  GElf_Nhdr note;
  std::size_t name_at = 0;
  std::size_t description_at = 0;
  const std::string_view bytes(static_cast<const char*>(data->d_buf), data->d_size);
  for (std::size_t at = 0; (at = gelf_getnote(data, at, &note, &name_at, &description_at)) > 0;) {
    if (note.n_type != kProbeNote || bytes.substr(name_at, note.n_namesz) != std::string_view("stapsdt\0", 8)) continue;
    const std::string_view name = mark_name(bytes.substr(description_at, note.n_descsz));
    if (!name.empty()) to.emplace_back(name);
  }
}

/// The section that holds the names of the others is no larger than any compiler makes it.
bool has_few_names(Elf* elf, std::size_t names) {
  GElf_Shdr header;
  Elf_Scn* const section = elf_getscn(elf, names);
  return section != nullptr && gelf_getshdr(section, &header) != nullptr && header.sh_size <= kMostNames;
}

}  // namespace

std::vector<std::string> marks_in(const std::string& path) {
  std::vector<std::string> out;
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return out;
  elf_version(EV_CURRENT);
  {
    const std::unique_ptr<Elf, EndElf> elf(elf_begin(fd, ELF_C_READ, nullptr));
    std::size_t names = 0;
    if (elf && elf_kind(elf.get()) == ELF_K_ELF && elf_getshdrstrndx(elf.get(), &names) == 0 &&
        has_few_names(elf.get(), names))
      for (Elf_Scn* section = nullptr; (section = elf_nextscn(elf.get(), section)) != nullptr;) {
        GElf_Shdr header;
        if (gelf_getshdr(section, &header) == nullptr || header.sh_type != SHT_NOTE || header.sh_size > kMostNotes)
          continue;
        const char* name = elf_strptr(elf.get(), names, header.sh_name);
        if (name == nullptr || std::string_view(name) != ".note.stapsdt") continue;
        Elf_Data* data = elf_getdata(section, nullptr);
        if (data != nullptr && data->d_buf != nullptr) add_marks(data, out);
      }
  }
  close(fd);
  std::ranges::sort(out);
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

}  // namespace culprit::record::annotate
