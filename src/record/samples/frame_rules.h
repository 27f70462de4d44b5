// How to get from a frame to its caller's, for the rules that compilers make nearly everywhere on x86-64: the frame
// lies at rsp or rbp plus a number, the return address and the caller's rbp lie in it. Each rule is asked of libdw once
// and kept; following it is a few additions, where libdw takes microseconds for each frame. Whatever is not of this
// form is left to libdw.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include <elfutils/libdwfl.h>

namespace culprit::record::samples {

/// The registers that the rules speak of.
struct FrameRegisters {
  std::uint64_t instruction = 0;
  std::uint64_t stack = 0;
  std::uint64_t base = 0;  ///< rbp
};

class FrameRules {
 public:
  /// Gives the module that holds an address; nullptr: none is known.
  using FindModule = std::function<Dwfl_Module*(std::uint64_t)>;

  /// The chain as Unwinder::chain gives it: addresses, innermost first. `stack` holds what lies at registers.stack.
  /// Nothing: some frame has another rule, or none.
  std::optional<std::vector<std::uint64_t>> follow(FrameRegisters registers, std::span<const std::uint8_t> stack,
                                                   std::size_t most, const FindModule& find_module);

 private:
  struct Rule {
    bool in_memory = false;           ///< the frame's place is in the word there
    bool by_base = false;             ///< the frame is found by rbp, not rsp
    bool outermost = false;           ///< there is no caller
    bool keeps_base = true;           ///< rbp is the caller's
    std::int32_t frame = 0;           ///< offset of the frame from that register
    std::int32_t return_address = 0;  ///< offset in the frame, as the next
    std::int32_t base = 0;
  };
  static std::optional<Rule> read(Dwfl_Module* module, std::uint64_t address);

  std::unordered_map<std::uint64_t, Rule> rules_;  // by address
};

}  // namespace culprit::record::samples
