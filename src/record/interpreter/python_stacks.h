// The stacks of Python of a recording: which targets execute it, what the kernel's programs must know of them, and the
// names of the functions in the stacks that they hand over.
//
// Nothing is put into the program and it is never stopped: the programs follow the interpreter's frames where a thread
// blocks or a clock asks what it does (bpf/python.bpf.h).
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "record/bpf/probes.h"
#include "record/collector/collector.h"
#include "record/interpreter/merge.h"
#include "record/interpreter/process.h"

namespace culprit::record::interpreter {

/// One for all collectors of the same probes, each of which tells it what it hears.
class PythonStacks final : private bpf::Listener {
 public:
  explicit PythonStacks(std::shared_ptr<bpf::Probes> probes);
  ~PythonStacks() override;
  PythonStacks(const PythonStacks&) = delete;
  PythonStacks& operator=(const PythonStacks&) = delete;

  /// Again when the process is known, or begins another program: it is looked at anew.
  void target_joined(std::int64_t pid);
  void target_left(std::int64_t pid);
  /// Looks at processes that may execute Python by now, and sees to what all that costs.
  void poll(Ns now);

  /// The stack of a process with a number, which outlives the process; nullptr: not known.
  [[nodiscard]] std::shared_ptr<const PythonStack> find(std::int32_t tgid, std::uint32_t id) const;

  /// Versions that targets execute and whose layout is not known.
  [[nodiscard]] const std::vector<std::string>& unknown_versions() const { return unknown_; }

 private:
  using Stacks = std::unordered_map<std::uint32_t, std::shared_ptr<const PythonStack>>;
  struct Process {
    Interpreter interpreter;
    Ns joined_at = 0;
    Ns look_at = 0;  ///< again then; 0: it is known what it is
    std::unique_ptr<CodeNames> names;
    Ns told_at = 0;  ///< the present generation of stacks
    std::size_t frames = 0;
    Stacks stacks;
    /// Those of earlier generations, and their frames: what is in the ring names them, and who waits since then.
    std::deque<std::pair<Stacks, std::size_t>> older;
    std::size_t older_frames = 0;
  };

  void on_python_stack(const culprit_python_stack& record) override;
  void on_exec(const culprit_task& record) override;
  void look(std::int64_t pid, Process& process, Ns now);
  void tell(std::int64_t pid, Process& process, Ns now);

  std::shared_ptr<bpf::Probes> probes_;
  std::map<std::int64_t, Process> processes_;
  std::vector<std::string> unknown_;
  std::uint64_t generation_ = 0;
  std::uint64_t asked_ = 0;  // switches, at the last poll()
  Ns asked_at_ = 0;
};

}  // namespace culprit::record::interpreter
