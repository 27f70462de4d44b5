// One process with an agent in it: what its ring tells becomes slices of its threads.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "record/collector/collector.h"
#include "record/inject/inject.h"
#include "record/python/agent_ring.h"
#include "record/python/function_spec.h"
#include "record/python/requests.h"

namespace culprit::record::python {

class Watched {
 public:
  /// `functions` are those of its configuration.
  Watched(std::int64_t pid, inject::Injected injected, const std::vector<FunctionSpec>& functions);

  /// Writes what waits; true when there was something. `now`: a time that has been, of CLOCK_MONOTONIC; of calls that
  /// began before `since` or after `until` nothing is written.
  bool read(perfetto::Writer& writer, Ns now, Ns since = 0, Ns until = kNotBegun);
  /// The last read() found its ring nearly empty: 32 times as much would have had room.
  [[nodiscard]] bool is_quiet() const { return waited_ <= CULPRIT_AGENT_CAPACITY / 32; }
  /// What is open ends where its thread was seen last: nobody is watching any more.
  void give_up(perfetto::Writer& writer) { close_all(writer); }
  /// What is open now ends in no file, and is no step of any: that in which it began is complete.
  void cut();
  AgentRing& ring() { return ring_; }
  [[nodiscard]] const AgentRing& ring() const { return ring_; }
  [[nodiscard]] std::int64_t pid() const { return pid_; }
  /// Whether it executes another program than when it was made, in which there is no agent.
  [[nodiscard]] bool has_executed_another() const;
  [[nodiscard]] std::uint64_t calls() const { return calls_; }
  /// That ended since it was asked last.
  std::uint64_t new_steps() { return std::exchange(steps_, 0); }
  /// Requests that had begun before it was watched, of which nothing was written.
  [[nodiscard]] std::uint64_t requests_begun_before() const { return requests_.begun_before(); }
  [[nodiscard]] std::uint64_t requests_unwritten() const { return requests_.unwritten(); }
  [[nodiscard]] std::uint64_t malformed() const { return malformed_; }
  /// Calls of which nothing is written: too deep, of too many threads, or of a function whose name was lost.
  [[nodiscard]] std::uint64_t uncounted() const { return uncounted_; }
  /// By the agent, since the recording began.
  [[nodiscard]] std::uint64_t dropped() const { return ring_.dropped() - dropped_before_; }
  [[nodiscard]] Ns stopped() const { return stopped_; }
  /// What the agent said: of the whole process, of functions that are not there (yet).
  [[nodiscard]] const std::string& trouble() const { return trouble_; }
  [[nodiscard]] const std::set<std::string>& found() const { return found_; }
  /// Functions that their modules, which are there, do not have.
  [[nodiscard]] const std::set<std::string>& absent() const { return absent_; }
  [[nodiscard]] const std::map<std::string, std::string>& unusable() const { return unusable_; }

 private:
  struct Function {
    std::string name;
    const FunctionSpec* spec = nullptr;
  };
  struct Open {
    std::uint32_t function = 0;  ///< kCollection: of garbage
    bool named = false;          ///< a range lies around it
    bool written = false;
    bool step = false;  ///< that range is one
  };
  struct Thread {
    perfetto::TrackUuid track = 0;
    std::vector<Open> open;
    std::uint64_t deeper = 0;  ///< calls within these, that are not kept
    Ns last = 0;               ///< time of a thread does not go back
  };

  void take(perfetto::Writer& writer, const AgentRecord& record, Ns now);
  void begin(perfetto::Writer& writer, Thread& thread, const AgentRecord& record, Ns at);
  void end(perfetto::Writer& writer, Thread& thread, std::uint32_t function, Ns at);
  static void close(perfetto::Writer& writer, const Thread& thread, Ns at);
  /// Records were lost: nobody knows when what is open ended, but that it had begun.
  void close_all(perfetto::Writer& writer);
  static void close_all(perfetto::Writer& writer, Thread& thread);
  bool is_too_deep(Thread& thread);
  void forget_idle(perfetto::Writer& writer, Ns now);
  perfetto::TrackUuid track_of(perfetto::Writer& writer, std::int32_t tid);
  /// What is there of its threads, looked at once in each read().
  const std::unordered_map<std::int32_t, std::int32_t>& threads_there();
  /// What was asked for by that text; null: nothing was.
  [[nodiscard]] const FunctionSpec* spec_of(std::string_view text) const;
  void take_function(const AgentRecord& record);
  void take_message(std::string_view text);
  Thread* thread_of(perfetto::Writer& writer, std::int32_t tid, Ns now);

  std::int64_t pid_ = 0;
  inject::Shared shared_;
  AgentRing ring_;
  const std::vector<FunctionSpec>& specs_;
  std::vector<Function> functions_;
  std::unordered_map<std::int32_t, Thread> threads_;
  std::unordered_set<std::int32_t> tracks_;  ///< threads that have one, which stays when they have ended
  Requests requests_;
  bool own_namespace_ = false;
  std::uint64_t stack_ = 0;
  std::unordered_map<std::int32_t, std::int32_t> here_;  ///< ids of its threads, in its namespace and in ours
  bool has_looked_ = false;                              ///< at these, in this read()
  std::uint64_t waited_ = CULPRIT_AGENT_CAPACITY;        ///< bytes, by the last read()
  Ns forgot_ = 0;
  Ns begun_ = 0;
  Ns since_ = 0;
  Ns until_ = kNotBegun;
  std::uint64_t dropped_before_ = 0;
  Ns stopped_ = 0;
  std::uint64_t calls_ = 0;
  std::uint64_t steps_ = 0;
  std::uint64_t lost_ = 0;  // by the agent and here, when it was looked at last
  std::uint64_t malformed_ = 0;
  std::uint64_t uncounted_ = 0;
  std::string trouble_;
  std::set<std::string> found_;
  std::set<std::string> absent_;
  std::map<std::string, std::string> unusable_;
};

}  // namespace culprit::record::python
