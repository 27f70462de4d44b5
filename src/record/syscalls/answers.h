// How long connections of the targets waited for answers, in the recording: how many each process gave, how these times
// spread, and whether several requests in a row belong together. What the kernel counts is in bpf/answers.bpf.h.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "formats/perfetto/writer.h"
#include "record/bpf/probes.h"
#include "record/syscalls/answer_estimate.h"
#include "record/syscalls/answer_windows.h"

namespace culprit::record::syscalls {

class Answers {
 public:
  /// As long as the targets give fewer than `few` answers a second every request is looked at; nullopt: always.
  Answers(bpf::Probes& probes, Ns begin, std::optional<double> few);

  /// Opens or closes a window where that is due.
  void turn(Ns now);
  /// When it is; nullopt: not before the next count().
  [[nodiscard]] std::optional<Ns> next() const { return windows_.next(); }

  /// Reads what the kernel counted; about every AnswerWindows::kPeriod.
  void count(Ns now);
  /// How many answers each process gave since the begin, as count() saw it. `since`: when it did before.
  void write_counters(perfetto::Writer& writer, Ns now, Ns since);
  /// What is new since the last time, as count() saw it. Rows of processes that `is_gone` are taken out of the kernel.
  /// `is_last`: the recording ends.
  void write_times(perfetto::Writer& writer, Ns now, bool is_last,
                   const std::function<bool(std::int64_t pid)>& is_gone);
  /// In how much of the time requests were looked at, where that was not always.
  void write_share(perfetto::Writer& writer, Ns now) const;
  /// The next file goes on from here.
  void file_begins(Ns now);

  /// Written to files.
  [[nodiscard]] std::uint64_t events() const { return events_; }

 private:
  using Row = std::pair<std::int32_t, std::uint32_t>;  // process, port
  using AnsweredBy = std::pair<std::int32_t, bool>;    // process, whether over Unix sockets
  struct Times {
    AnswerEstimate estimate;
    double answers = 0;  // since the begin
    double unwritten = 0;
    culprit_times counted{};
    culprit_times written{};
  };
  struct Track {
    perfetto::TrackUuid track;
    std::uint64_t told = 0;
    std::optional<Ns> begin{};  // where it begins, or goes on in another file
  };
  struct Gap {
    std::uint64_t counted = 0;
    double unwritten = 0;
  };

  struct PortAnswers {
    double all = 0;
    double counted = 0;
  };

  void write_row(perfetto::Writer& writer, Ns now, const Row& row, const culprit_times& news, double& answers);
  void write_gaps(perfetto::Writer& writer, Ns now, const std::map<std::uint32_t, PortAnswers>& ports);

  bpf::Probes& probes_;
  AnswerWindows windows_;
  bool in_windows_ = false;  // requests were not looked at always
  std::map<Row, Times> times_;
  std::map<std::int32_t, culprit_sends> sends_;  // by slot, as count() saw them
  std::map<AnsweredBy, Track> tracks_;
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, Gap> gaps_;  // by port, bytes and gap
  std::uint64_t events_ = 0;
};

}  // namespace culprit::record::syscalls
