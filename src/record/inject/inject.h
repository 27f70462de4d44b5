// Puts the agent (src/record/agent) into a process that runs already, so that it goes on as if nothing had happened,
// even when the recorder is killed at any instruction of it.
//
// One thread of the process is borrowed for a few milliseconds: at a point where it holds no lock that matters, it is
// made to call dlopen() and then to return to where it was. Where it was is known to the kernel from the first
// changed register on: below the thread's stack (and later on a stack of its own) lies a signal frame, and every
// address to which the borrowed thread may return is that of the C library's own `rt_sigreturn`, which restores all
// registers and the floating point state from it. The recorder normally puts them back itself, more exactly (an
// interrupted call goes on with its remaining time); if it dies, the frame does.
#pragma once

#include <cstdint>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "core/units.h"
#include "record/collector/elf_exports.h"

namespace culprit::record::inject {

/// The library to put in, and where its parameters lie.
struct Agent {
  std::vector<std::uint8_t> bytes;
  std::uint64_t parameters_at = 0;  ///< of culprit_agent_parameters in the file
  std::uint64_t begin_at = 0;       ///< of culprit_agent_begin, from where it is loaded
  std::vector<ElfExports::Segment> segments;
  std::string build_id;  ///< by which a resident one is known
  std::uint64_t build_id_at = 0;
};

/// Reads the library; the error says what is wrong with the installation.
Result<Agent> read_agent(const std::string& path);

/// The memory that the agent and the recorder share, mapped here; unmapped by the destructor.
class Shared {
 public:
  Shared() = default;
  Shared(void* at, std::size_t bytes) : at_(at), bytes_(bytes) {}
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;
  Shared(Shared&& other) noexcept;
  Shared& operator=(Shared&& other) noexcept;
  ~Shared();
  [[nodiscard]] void* data() const { return at_; }

 private:
  void* at_ = nullptr;
  std::size_t bytes_ = 0;
};

struct Injected {
  Shared shared;
  Ns stopped = 0;           ///< for how long the borrowed thread stood still or worked for the agent
  std::uint64_t stack = 0;  ///< where that of the process began then, see start_of_stack()
};

/// Puts the agent into process `pid` with `config` in the shared memory. Takes milliseconds; two seconds where no
/// thread comes to a safe point or others have the process, more than five where its threads get no CPU (see Pending).
/// When it is to be given up nothing is begun any more, and what is begun has two seconds to end. Errors (Environment):
/// the process is gone, static, of another architecture, restricted by seccomp, traced by another, running with another
/// user's privileges than its own, without a safe point, or ptrace is not permitted; the process is then unchanged,
/// unless a thread that was borrowed gets no CPU any more.
Result<Injected> inject(std::int64_t pid, const Agent& agent, std::string_view config,
                        const std::stop_token& given_up = {});

/// Why inject() would refuse the process; nothing when it would try. Changes nothing.
Status may_inject(std::int64_t pid);

}  // namespace culprit::record::inject
