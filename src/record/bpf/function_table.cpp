#include "record/bpf/function_table.h"

#include <algorithm>

namespace culprit::record::bpf {

namespace {

constexpr std::size_t kMostNames = std::size_t{256} << 20;

}  // namespace

void FunctionTable::add(std::uint64_t address, std::uint64_t size, std::string_view name) {
  if (name.empty() || names_.size() + name.size() >= kMostNames) return;
  functions_.push_back({address, size, static_cast<std::uint32_t>(names_.size())});
  names_ += name;
  names_ += '\0';
}

void FunctionTable::sort() { std::ranges::stable_sort(functions_, {}, &Function::address); }

std::string_view FunctionTable::find(std::uint64_t address) const {
  auto next = std::ranges::upper_bound(functions_, address, {}, &Function::address);
  // Names of one address, and functions that hold others, stand before: look back a few.
  for (int tries = 0; tries < 8 && next != functions_.begin(); ++tries) {
    --next;
    if (address - next->address < std::max<std::uint64_t>(next->size, 1)) return &names_[next->name];
  }
  return {};
}

}  // namespace culprit::record::bpf
