#include "record/bpf/syscall_name.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

namespace culprit::record::bpf {

namespace {

constexpr std::pair<int, const char*> kNumbers[] = {
#include "syscall_numbers.inc"
};

}  // namespace

std::string syscall_name(int number) {
  static const std::vector<const char*> names = [] {
    std::vector<const char*> all(1 + static_cast<std::size_t>(std::ranges::max(kNumbers).first));
    for (const auto& [known, name] : kNumbers) all[static_cast<std::size_t>(known)] = name;
    return all;
  }();
  const auto place = static_cast<std::size_t>(number);
  return place < names.size() && names[place] != nullptr ? names[place] : fmt::format("syscall_{}", number);
}

}  // namespace culprit::record::bpf
