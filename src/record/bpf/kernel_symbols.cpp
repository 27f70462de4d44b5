#include "record/bpf/kernel_symbols.h"

#include <charconv>

#include "core/file.h"
#include "core/text.h"

namespace culprit::record::bpf {

void KernelSymbols::read(const std::string& path) {
  functions_ = {};
  const auto text = read_beginning(path, std::size_t{128} << 20);
  if (!text) return;
  std::string_view rest = *text;
  while (!rest.empty()) {
    const std::string_view line = take_line(rest);
    std::uint64_t address = 0;
    const auto number = std::from_chars(line.data(), line.data() + line.size(), address, 16);
    const std::size_t at = static_cast<std::size_t>(number.ptr - line.data());
    // "ffffffff81000000 T _text", a module's name behind a tab.
    if (number.ec != std::errc() || address == 0 || line.size() < at + 4 || line[at] != ' ') continue;
    const char type = line[at + 1];
    if (type != 't' && type != 'T' && type != 'w' && type != 'W') continue;
    const std::string_view name = line.substr(at + 3);
    functions_.add(address, 0, name.substr(0, name.find('\t')));
  }
  functions_.sort();
}

}  // namespace culprit::record::bpf
