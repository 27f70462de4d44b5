// The eBPF side of the collector: records of the kernel's programs to events of the file.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "record/bpf/probes.h"
#include "record/collector/collector.h"
#include "record/collector/file_end.h"
#include "record/sched/blocked.h"
#include "record/sched/queued.h"
#include "record/sched/sched.h"
#include "record/sched/stopped.h"
#include "record/sched/unseen.h"

namespace culprit::record::sched {

class KernelSched final : public Collector, public FileEnd, private bpf::Listener {
 public:
  KernelSched(std::shared_ptr<bpf::Probes> probes, const SchedOptions& options);
  ~KernelSched() override;

  [[nodiscard]] std::string_view name() const override { return "sched"; }
  Status start(Session& session) override;
  [[nodiscard]] std::vector<Sight> sights() const override;
  void target_joined(const Target& target) override;
  void target_left(const Target& target) override;
  void poll(Session& session, Ns now) override;
  void file_ends(Session& session, Ns now) override;
  void stop(Session& session, Ns now) override;
  [[nodiscard]] CollectorStats stats() const override;

 private:
  struct StackKey {
    std::int32_t tgid;
    std::int32_t stack;
    std::uint32_t python;
    bool operator==(const StackKey&) const = default;
  };
  struct StackHash {
    std::size_t operator()(const StackKey& key) const;
  };

  struct NamedThread {
    std::int32_t tid = 0;
    std::array<char, CULPRIT_COMM> name{};
  };
  /// As last written.
  struct Cpu {
    std::optional<std::int32_t> thread;  ///< 0: idle
    Ns switched = 0;
  };

  /// Where a thread blocked.
  struct Stack {
    bpf::CodeStack code;  ///< until it is named
    std::shared_ptr<const interpreter::PythonStack> python;
    std::string text;
    bool named = false;
  };
  struct Waiting {
    Blocked blocked;
    std::shared_ptr<Stack> stack;
  };

  void on_switch(const culprit_switch& record) override;
  void on_waking(const culprit_waking& record) override;
  void on_fork(const culprit_task& record) override;
  void on_exec(const culprit_task& record) override;
  void on_exit(const culprit_task& record) override;
  Cpu& cpu(std::uint32_t number);
  void name_thread(std::int32_t tgid, std::int32_t tid, const char (&comm)[CULPRIT_COMM]);
  /// As if the switch had been told.
  void enter_unseen(const UnseenRun& run);
  /// As if it had stopped now.
  void enter_stopped(const StoppedThread& thread, Ns now);
  /// Of those that waited for a CPU since the file began, and that nothing else tells of.
  void write_queued();
  void take_blocked(const Blocked& blocked);
  void write_blocked(const Blocked& blocked, std::string_view stack);
  std::shared_ptr<Stack> stack_of(const Blocked& blocked);
  /// Writes what waits for its stack; those of functions that have no name yet go on waiting.
  void write_named();
  void forget_stacks(std::int64_t tgid);

  std::shared_ptr<bpf::Probes> probes_;
  SchedOptions options_;
  BlockedIntervals intervals_;
  perfetto::Writer* writer_ = nullptr;  // from start() to stop(): other collectors of the same programs also consume
  std::int64_t own_pid_ = 0;
  Ns shortest_blocked_ = 0;
  bool started_ = false;
  bool stopped_ = false;
  bool ran_ = false;  ///< any thread of a target
  std::string error_;
  std::string remedy_;
  std::uint64_t events_ = 0;
  std::uint64_t unseen_ = 0;                                                // switches that the kernel did not tell
  std::unordered_map<std::int32_t, std::array<char, CULPRIT_COMM>> names_;  // as last written
  std::array<NamedThread, 1024> lately_named_{};                            // by the last bits of tid
  std::vector<Cpu> cpus_;
  UnseenRuns unseen_runs_;
  std::vector<QueuedThread> queued_;  // when the recording began
  Ns file_begin_ = 0;
  std::unordered_map<StackKey, std::shared_ptr<Stack>, StackHash> stacks_;
  std::vector<Waiting> waiting_;  // for names
};

}  // namespace culprit::record::sched
