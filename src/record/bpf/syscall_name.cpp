#include "record/bpf/syscall_name.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace culprit::record::bpf {

namespace {

constexpr std::pair<int, const char*> kNumbers[] = {
#include "syscall_numbers.inc"
};

}  // namespace

std::string syscall_name(int number) {
  const auto* found = std::ranges::find(kNumbers, number, [](const auto& row) { return row.first; });
  return found != std::end(kNumbers) ? found->second : fmt::format("syscall_{}", number);
}

}  // namespace culprit::record::bpf
