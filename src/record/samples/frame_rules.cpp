#include "record/samples/frame_rules.h"

#include <dwarf.h>
#include <elfutils/libdw.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>

namespace culprit::record::samples {

namespace {

constexpr std::size_t kMostRules = std::size_t{1} << 16;
constexpr int kBase = 6;  // as DWARF numbers registers
constexpr int kStack = 7;
constexpr int kReturnAddress = 16;

struct Free {
  void operator()(Dwarf_Frame* frame) const { std::free(frame); }
};

std::optional<std::int32_t> small(Dwarf_Word number) {
  const auto value = static_cast<std::int64_t>(number);
  if (value < std::numeric_limits<std::int32_t>::min() || value > std::numeric_limits<std::int32_t>::max())
    return std::nullopt;
  return static_cast<std::int32_t>(value);
}

/// Where a register of the caller lies.
struct Saved {
  enum class Kind : std::uint8_t { other, same, undefined, in_frame } kind = Kind::other;
  std::int32_t offset = 0;
};

Saved saved(Dwarf_Frame* frame, int number) {
  std::array<Dwarf_Op, 3> room{};
  Dwarf_Op* ops = nullptr;
  std::size_t count = 0;
  if (dwarf_frame_register(frame, number, room.data(), &ops, &count) != 0) return {};
  if (count == 0) return {ops == nullptr ? Saved::Kind::same : Saved::Kind::undefined, 0};
  if (count > 2 || ops[0].atom != DW_OP_call_frame_cfa) return {};
  if (count == 1) return {Saved::Kind::in_frame, 0};
  const auto offset = small(ops[1].number);
  if (ops[1].atom != DW_OP_plus_uconst || !offset) return {};
  return {Saved::Kind::in_frame, *offset};
}

/// The word at an address that lies in what was copied of the stack.
std::optional<std::uint64_t> word_at(std::uint64_t address, std::uint64_t begin, std::span<const std::uint8_t> stack) {
  std::uint64_t word = 0;
  const std::uint64_t offset = address - begin;
  if (stack.size() < sizeof word || offset > stack.size() - sizeof word) return std::nullopt;
  std::memcpy(&word, stack.data() + offset, sizeof word);
  return word;
}

}  // namespace

std::optional<FrameRules::Rule> FrameRules::read(Dwfl_Module* module, std::uint64_t address) {
  Dwarf_Addr bias = 0;
  Dwarf_CFI* table = dwfl_module_eh_cfi(module, &bias);
  Dwarf_Frame* made = nullptr;
  if (table == nullptr || dwarf_cfi_addrframe(table, address - bias, &made) != 0) return std::nullopt;
  const std::unique_ptr<Dwarf_Frame, Free> frame(made);
  Dwarf_Addr begin = 0;
  Dwarf_Addr end = 0;
  bool signal = false;
  if (dwarf_frame_info(made, &begin, &end, &signal) != kReturnAddress || signal) return std::nullopt;
  Dwarf_Op* ops = nullptr;
  std::size_t count = 0;
  if (dwarf_frame_cfa(made, &ops, &count) != 0 || count == 0 || count > 2) return std::nullopt;
  // Of functions that align their stack the place of the frame is kept below rbp.
  if (count == 2 && ops[1].atom != DW_OP_deref) return std::nullopt;
  const bool numbered = ops[0].atom == DW_OP_bregx;
  const auto number = numbered ? ops[0].number : ops[0].atom - Dwarf_Word{DW_OP_breg0};
  const auto offset = small(numbered ? ops[0].number2 : ops[0].number);
  if ((number != kStack && number != kBase) || !offset) return std::nullopt;
  Rule rule;
  rule.by_base = number == kBase;
  rule.in_memory = count == 2;
  rule.frame = *offset;
  const Saved back = saved(made, kReturnAddress);
  rule.outermost = back.kind == Saved::Kind::undefined;
  if (!rule.outermost && back.kind != Saved::Kind::in_frame) return std::nullopt;
  rule.return_address = back.offset;
  const Saved base = saved(made, kBase);
  if (base.kind == Saved::Kind::other) return std::nullopt;
  rule.keeps_base = base.kind != Saved::Kind::in_frame;
  rule.base = base.offset;
  return rule;
}

std::optional<std::vector<std::uint64_t>> FrameRules::follow(FrameRegisters registers,
                                                             std::span<const std::uint8_t> stack, std::size_t most,
                                                             const FindModule& find_module) {
  const std::uint64_t begin = registers.stack;
  std::vector<std::uint64_t> chain = {registers.instruction};
  while (chain.size() < most) {
    // A return address may already belong to the next function.
    const std::uint64_t address = chain.size() == 1 ? chain.back() : chain.back() - 1;
    auto known = rules_.find(address);
    if (known == rules_.end()) {
      Dwfl_Module* module = find_module(address);
      const auto rule = module != nullptr ? read(module, address) : std::nullopt;
      if (!rule) return std::nullopt;
      if (rules_.size() >= kMostRules) rules_.clear();
      known = rules_.emplace(address, *rule).first;
    }
    const Rule& rule = known->second;
    if (rule.outermost) break;
    const std::uint64_t place =
        (rule.by_base ? registers.base : registers.stack) + static_cast<std::uint64_t>(std::int64_t{rule.frame});
    const auto kept = rule.in_memory ? word_at(place, begin, stack) : place;
    if (!kept) break;
    const std::uint64_t frame = *kept;
    const auto back = word_at(frame + static_cast<std::uint64_t>(std::int64_t{rule.return_address}), begin, stack);
    if (!back || *back == 0 || frame <= registers.stack) break;
    if (!rule.keeps_base) {
      const auto base = word_at(frame + static_cast<std::uint64_t>(std::int64_t{rule.base}), begin, stack);
      if (!base) break;
      registers.base = *base;
    }
    registers.stack = frame;
    chain.push_back(*back);
  }
  return chain;
}

}  // namespace culprit::record::samples
