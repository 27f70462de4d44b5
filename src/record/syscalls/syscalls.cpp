#include "record/syscalls/syscalls.h"

#include <asm/unistd.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "record/bpf/syscall_name.h"
#include "record/collector/file_end.h"
#include "record/syscalls/answers.h"
#include "record/syscalls/call_estimate.h"
#include "record/syscalls/call_windows.h"
#include "record/syscalls/counting_cost.h"
#include "record/syscalls/disk_names.h"
#include "record/syscalls/durations.h"
#include "record/syscalls/lanes.h"
#include "record/syscalls/page_faults.h"

namespace culprit::record::syscalls {

namespace {

constexpr Ns kTimesEvery = 1'000'000'000;
constexpr std::size_t kManyLeft = 16;  // processes, whose rows take the room of others

class Syscalls final : public Collector, public FileEnd, private bpf::Listener {
 public:
  Syscalls(std::shared_ptr<bpf::Probes> probes, const SyscallsOptions& options)
      : probes_(std::move(probes)), options_(options) {
    probes_->want((options_.calls ? bpf::kSyscalls : 0U) | (options_.answers ? bpf::kAnswers : 0U) |
                  (options_.block ? bpf::kBlock : 0U));
    if (options_.few) probes_->look_at_calls_in_windows();
    probes_->listen(*this);
  }
  ~Syscalls() override { probes_->unlisten(*this); }

  [[nodiscard]] std::string_view name() const override { return "syscalls"; }

  Status start(Session& session) override {
    if (const Status status = probes_->open(); !status) {
      error_ = status.error().what;
      remedy_ = status.error().remedy;
    } else {
      probes_open_ = true;
      const Ns now = started_ = monotonic_now();
      if (options_.calls && options_.few) windows_.emplace(now, static_cast<std::uint32_t>(now), *options_.few);
      if (windows_) turn_window(session, now);
      if (options_.answers && probes_->sees_answers()) answers_.emplace(*probes_, now, options_.few_answers);
      for (const Target& target : session.targets) probes_->add_target(target.pid);
    }
    writer_ = &session.writer;  // page faults need no privilege
    // From here on they count; they are written when the recording has begun.
    for (const Target& target : session.targets)
      if (const auto faults = read_page_faults(target.pid)) first_faults_.emplace_back(target.pid, *faults);
    return {};
  }

  [[nodiscard]] std::vector<Sight> sights() const override {
    std::vector<Sight> sights;
    if (options_.calls)
      sights.push_back({"system calls: count, total and longest per thread; single ones that take long", probes_open_,
                        error_, remedy_});
    if (options_.answers)
      sights.push_back(probes_open_ && !probes_->sees_answers()
                           ? Sight{"how long connections (TCP, Unix) wait for answers", false,
                                   "the kernel has no tracepoint sk_data_ready", "Linux 6.3 or newer"}
                           : Sight{"how long connections (TCP, Unix) wait for answers", probes_open_, error_, remedy_});
    if (options_.block) sights.push_back({"block I/O: latency and bytes by device", probes_open_, error_, remedy_});
    sights.push_back({"page faults, minor and major, per process", true, "", ""});
    return sights;
  }

  void target_joined(const Target& target) override { probes_->add_target(target.pid); }
  void command_ended(std::int64_t pid, Ns now) override {
    if (writer_ == nullptr) return;
    write_first_faults(now - 1);  // of one moment only one value is kept
    write_faults(pid, now);
  }
  void target_left(const Target& target) override {
    probes_->target_ended(target.pid);
    faults_.erase(target.pid);
    left_.insert(target.pid);
  }

  void poll(Session& session, Ns now) override {
    if (writer_ == nullptr) return;
    write_first_faults(now);
    probes_->consume();
    if (windows_) turn_window(session, now);
    if (answers_) answers_->turn(now);
    if (windows_ ? windows_->due(now) != CallWindows::Due::count : now < next_totals_) return;
    count(session, now);
    if (now < next_times_ && left_.size() < kManyLeft) return;
    write_times(now);
    write_shares(now);  // a recorder that is killed has said it
  }

  void file_ends(Session& session, Ns now) override {
    poll(session, now);
    if (writer_ == nullptr) return;
    // Where calls are looked at in windows, those of the period that goes on are told in the next file.
    if (!windows_ || windows_->is_whole())
      count(session, now);
    else
      write_answers(now);
    write_times(now);
    write_shares(now);
    // The next file counts on from here.
    file_begin_ = now;
    if (answers_) answers_->file_begins(now);
    for (const Target& target : session.targets)
      if (const auto faults = read_page_faults(target.pid)) first_faults_.emplace_back(target.pid, *faults);
  }

  [[nodiscard]] Ns next_poll() const override {
    constexpr Ns kBetweenLooks = 2'000'000;
    if (writer_ == nullptr) return Collector::next_poll();
    const Ns next = !windows_ ? Collector::next_poll() : opening_ ? looked_ + kBetweenLooks : windows_->next();
    const std::optional<Ns> turn = answers_ ? answers_->next() : std::nullopt;
    return turn ? std::min(next, *turn) : next;
  }

  void stop(Session& session, Ns now) override {
    if (writer_ == nullptr) return;
    if (windows_ && windows_->is_open()) close_window(now);
    if (windows_) busy_.period_ended(now);
    window_counts_ = !windows_ || windows_->end_recording(now);
    probes_->detach();
    write_ended_threads();
    scale_is_known_ = true;
    tell_the_last_calls();
    if (!window_counts_) go_on_as_before(windows_->part(now), now);
    write_totals(session, now);
    if (windows_) windows_->end(now);
    write_times(now, true);
    const culprit_losses losses = probes_->losses();
    writer_->metadata("cost.syscalls.totals_missed", std::to_string(losses.totals_missed));
    write_shares(now);
    writer_->metadata("cost.syscalls.requests_missed", std::to_string(losses.requests_missed));
    writer_->metadata("cost.syscalls.times_missed", std::to_string(losses.times_missed));
    writer_ = nullptr;
  }

  [[nodiscard]] CollectorStats stats() const override {
    CollectorStats stats;
    stats.events = events_ + (answers_ ? answers_->events() : 0);
    const culprit_losses losses = probes_->losses();
    stats.dropped = lanes_full_ + losses.ring_full_syscalls;
    stats.uncounted = losses.totals_missed + losses.requests_missed + losses.times_missed;
    stats.kernel_cpu_ns = probes_->kernel_cpu().syscalls_ns;
    return stats;
  }

 private:
  /// Nothing is counted any more; what did not fit into the ring is told the next time.
  void tell_the_last_calls() {
    constexpr int kMostRounds = 64;
    bool told = true;
    for (int round = 0; round < kMostRounds && told; ++round) {
      probes_->ask_for_calls();
      for (told = false; probes_->consume() > 0; told = true) {
      }
    }
  }

  struct Written {
    std::uint64_t count = 0;
    std::uint64_t total_ns = 0;
    std::uint64_t bytes = 0;
  };
  using Call = std::pair<std::int32_t, std::int32_t>;  ///< thread, number
  /// What a thread told last of a call, and how long all of them took.
  struct Told {
    CallEstimate estimate;
    std::uint64_t max_ns = 0;
    std::int32_t tgid = 0;
    double of_period = 0;      ///< calls when it told last
    std::uint64_t period = 0;  ///< which that was
    Written written;
  };
  struct Row {
    Call call;
    culprit_total total;
    Ns at = 0;
  };
  struct FaultTracks {
    perfetto::TrackUuid minor, major;
  };

  void count(Session& session, Ns now) {
    if (windows_) {
      windows_->end_period(now);
      busy_.period_ended(now);
    }
    write_ended_threads();
    scale_is_known_ = true;
    probes_->ask_for_calls(windows_ && windows_->window_was() && !windows_->is_open() && windows_->timed());
    probes_->consume();
    write_totals(session, now);
    scale_is_known_ = false;
    next_totals_ = now + options_.totals_every;
    if (windows_) {
      windows_->counted(now, std::exchange(calls_of_period_, 0), std::exchange(doubt_of_period_, 0));
      busy_.period_begins(windows_->is_open());
    }
    ++period_;
    std::erase_if(ended_, [&](const auto& ended) { return ended.second.second.period + 1 < period_; });
  }

  void write_shares(Ns now) {
    if (answers_) answers_->write_share(*writer_, now);
    if (!windows_ || !windows_->estimates()) return;
    writer_->metadata("syscalls.counted_share", fmt::format("{:.3f}", windows_->share(now)));
    writer_->metadata("syscalls.timed_share", fmt::format("{:.3f}", windows_->timed_share(now)));
    if (const auto error = windows_->error()) writer_->metadata("syscalls.count_error", fmt::format("{:.4f}", *error));
  }

  void on_syscall(const culprit_syscall& record) override {
    if (writer_ == nullptr) return;
    ++events_;
    std::array<perfetto::Argument, 1> error = {{{"errno", std::int64_t{record.error}}}};
    const Ns begin = std::max(static_cast<Ns>(record.begin), file_begin_);
    writer_->slice(writer_->named_track("system calls", record.tgid, record.tid), begin,
                   std::max(static_cast<Ns>(record.head.at), begin), call_name(record.nr), "syscall",
                   std::span(error).first(record.error != 0 ? 1 : 0));
  }

  void on_block(const culprit_block& record) override {
    if (writer_ == nullptr) return;
    ++events_;
    const Ns begin = std::max(static_cast<Ns>(record.begin), file_begin_);
    const auto end = std::max(static_cast<Ns>(record.head.at), begin);
    const auto lane = lanes_[record.device].place(begin, end);
    if (!lane) {
      ++lanes_full_;
      return;
    }
    std::vector<perfetto::Argument> arguments = {{"bytes", std::int64_t{record.bytes}},
                                                 {"sector", static_cast<std::int64_t>(record.sector)}};
    if (record.tgid != 0) {
      arguments.push_back({"pid", std::int64_t{record.tgid}});
      arguments.push_back({"tid", std::int64_t{record.tid}});
    }
    writer_->slice(writer_->named_track("disk " + disk(record.device), 0, 0, *lane), begin, end,
                   operation_name(record.operation), "block_io", arguments);
  }

  void on_calls(const culprit_calls& record) override {
    if (writer_ == nullptr) return;
    const culprit_call_total& seen = record.total;
    const culprit_total total = {seen.count, seen.total_ns, seen.max_ns, 0, seen.timed, record.tgid, 0};
    const auto at = static_cast<Ns>(record.head.at);
    if (!windows_) return write_call(told_[{record.tid, seen.nr}], {record.tid, seen.nr}, total, at, 1);
    if (!scale_is_known_) return ending_[record.tid].push_back({{record.tid, seen.nr}, total, at});
    // A thread tells all of its calls one after the other.
    if (!rows_.empty() && rows_.front().call.first != record.tid) write_rows();
    rows_.push_back({{record.tid, seen.nr}, total, at});
  }

  /// What one thread told of the last window, which counting made shorter for it.
  void write_rows() {
    if (rows_.empty()) return;
    double calls = 0;
    for (const Row& row : rows_)
      calls += static_cast<double>(row.total.count -
                                   std::min<std::uint64_t>(row.total.count, told_[row.call].estimate.count));
    const auto cost = probes_->counting_cost(windows_->timed());
    const Ns window = windows_->length();
    const double taken = cost ? taken_by_counting(calls, *cost, window) : 0;
    const BusyThreads::Thread thread(rows_.front().total.tgid, rows_.front().call.first);
    if (taken > 0) busy_.watch(thread);
    double scale = windows_->scale();
    if (const auto ran = busy_.ran(thread); ran || taken > 0) {
      // Who is not known yet ran all the time: who makes that many calls does little else.
      const Ran all = {window, std::llround(static_cast<double>(window) * (scale - 1))};
      const Unseen unseen = unseen_calls(taken, ran.value_or(all));
      scale = 1 + unseen.calls;
      doubt_of_period_ += unseen.doubt * calls;
    }
    for (const Row& row : rows_) write_call(told_[row.call], row.call, row.total, row.at, scale);
    rows_.clear();
  }

  void on_exit(const culprit_task& record) override {
    if (windows_ && !scale_is_known_) {
      ended_threads_.emplace_back(record.tid, std::move(ending_[record.tid]));
      ending_.erase(record.tid);
    } else {
      write_rows();
      forget_calls(record.tid);
    }
    gone_.insert(record.tid);
    if (record.group_dead != 0) left_.insert(record.tgid);  // who saw it only in the kernel is never told
  }

  /// A thread tells its calls when it ends; for how many each of them stands is known when the period ends.
  void write_ended_threads() {
    for (auto& [tid, rows] : std::exchange(ended_threads_, {})) {
      rows_ = std::move(rows);
      write_rows();
      forget_calls(tid);
    }
    for (auto& [tid, rows] : std::exchange(ending_, {})) {
      rows_ = std::move(rows);
      write_rows();
    }
  }

  /// What it did was told before; a later thread of this number begins anew.
  void forget_calls(std::int32_t tid) {
    if (!window_counts_) return;  // the recording ends, and it went on as before
    const auto first = told_.lower_bound({tid, std::numeric_limits<std::int32_t>::min()});
    const auto last = told_.upper_bound({tid, std::numeric_limits<std::int32_t>::max()});
    for (auto it = first; windows_ && it != last; ++it) keep_ended(it->first, it->second);
    told_.erase(first, last);
  }

  /// A thread ended: others like it may do so where nobody looks.
  void keep_ended(const Call& call, const Told& told) {
    if (told.period != period_) return;
    auto& [last, sum] = ended_[{told.tgid, call.second}];
    if (sum.period != period_) sum = {};
    last = call;
    sum.period = period_;
    sum.tgid = told.tgid;
    sum.max_ns = std::max(sum.max_ns, told.max_ns);
    sum.of_period += told.of_period;
    if (told.estimate.calls > 0)
      sum.estimate.estimated_ns += told.estimate.estimated_ns / told.estimate.calls * told.of_period;
  }

  const std::string& call_name(int number) {
    auto [found, is_new] = call_names_.try_emplace(number);
    if (is_new) found->second = bpf::syscall_name(number);
    return found->second;
  }

  const std::string& disk(std::uint32_t device) {
    auto [found, is_new] = disks_.try_emplace(device);
    if (is_new) found->second = device_name(device);
    return found->second;
  }

  /// What was added to a total since it was last written; nothing when nothing was.
  void write_total(Written& written, const culprit_total& total, perfetto::TrackUuid track, Ns now,
                   std::string_view name, std::string_view category) {
    if (total.count == written.count && total.total_ns == written.total_ns) return;
    ++events_;
    const auto signed_of = [](std::uint64_t value) { return static_cast<std::int64_t>(value); };
    std::vector<perfetto::Argument> arguments = {{"count", signed_of(total.count - written.count)},
                                                 {"total_ns", signed_of(total.total_ns - written.total_ns)},
                                                 {"longest_so_far_ns", signed_of(total.max_ns)},
                                                 {"since_ns", totals_at_}};
    if (total.bytes > 0) arguments.push_back({"bytes", signed_of(total.bytes - written.bytes)});
    writer_->instant(track, now, name, category, arguments);
    written = {total.count, total.total_ns, total.bytes};
  }

  void write_call(Told& told, const Call& call, const culprit_total& total, Ns now, double scale) {
    if (!window_counts_) return;
    CallEstimate& estimate = told.estimate;
    if (total.count < estimate.count || total.timed < estimate.timed || total.total_ns < estimate.total_ns) return;
    told.of_period = estimate.add(total.count, total.timed, total.total_ns, scale);
    told.period = period_;
    told.max_ns = total.max_ns;
    told.tgid = total.tgid;
    calls_of_period_ += told.of_period;
    write_estimate(told, call, std::max(now, file_begin_));
  }

  void write_estimate(Told& told, const Call& call, Ns now) {
    const culprit_total total = {
        static_cast<__u64>(std::llround(told.estimate.calls)),
        // A thread is in one call at a time.
        static_cast<__u64>(std::llround(
            std::clamp<double>(told.estimate.estimated_ns, 0, static_cast<double>(std::max<Ns>(now - started_, 0))))),
        told.max_ns, 0, told.estimate.timed, told.tgid, 0};
    const auto [tid, nr] = call;
    write_total(told.written, total, writer_->named_track("system call totals", total.tgid, tid), now, call_name(nr),
                perfetto::kCallTotals);
  }

  void close_window(Ns now) {
    busy_.window_closed(now);
    windows_->closed(probes_->close_window());
  }

  void turn_window(Session& session, Ns now) {
    const auto due = windows_->due(now);
    if (due == CallWindows::Due::close) close_window(now);
    if (due != CallWindows::Due::open) return;
    looked_ = now;
    opening_ = opening_ || probes_->begin_window(windows_->timed());
    if (opening_) {
      // The first one begins with the recording.
      const auto opened = probes_->window_opened(writer_ == nullptr);
      if (!opened) return;
      opening_ = false;
      if (*opened) {
        busy_.window_opened(**opened);
        return windows_->opened(**opened);
      }
    }
    session.writer.metadata("missing.syscalls.calls", "system calls: the kernel refuses the programs that it has had");
    write_rows();
    write_ended_threads();
    windows_.reset();
  }

  /// The recording ended before the window of the last period: threads made calls as in the one before.
  void go_on_as_before(double part, Ns now) {
    for (auto* all : {&told_, &calls_})
      for (auto& [call, told] : *all) {
        CallEstimate& estimate = told.estimate;
        if (told.period + 1 != period_ || estimate.calls <= 0) continue;
        const double more = part * told.of_period;
        estimate.estimated_ns += estimate.estimated_ns / estimate.calls * more;
        estimate.calls += more;
        write_estimate(told, call, now);
      }
    for (auto& [key, ended] : ended_) {
      auto& [call, told] = ended;
      if (told.period + 1 != period_) continue;
      told.estimate.calls = part * told.of_period;
      told.estimate.estimated_ns *= part;
      write_estimate(told, call, now);
    }
  }

  void write_totals(Session& session, Ns now) {
    write_rows();
    for (const bpf::SyscallTotal& row : probes_->syscall_totals()) {
      const Call call(row.key.tid, row.key.nr);
      Told& told = calls_[call];
      if (told.tgid != row.total.tgid) told = {};  // the number was another thread's
      write_call(told, call, row.total, now, windows_ ? windows_->scale() : 1);
      if (gone_.contains(row.key.tid)) {
        probes_->forget_syscalls(row.key);
        calls_.erase(call);
      }
    }
    gone_.clear();
    for (const bpf::BlockTotal& row : probes_->block_totals()) write_block(row, now);
    for (const Target& target : session.targets) write_faults(target.pid, now);
    write_answers(now);
    totals_at_ = now;
  }

  void write_block(const bpf::BlockTotal& row, Ns now) {
    write_total(
        blocks_[{row.key.device, row.key.operation, row.key.tgid}], row.total,
        writer_->named_track(fmt::format("{}{} totals", perfetto::kDiskTrack, disk(row.key.device)), row.key.tgid), now,
        operation_name(row.key.operation), perfetto::kDiskTotals);
  }

  void write_first_faults(Ns now) {
    for (const auto& [pid, faults] : std::exchange(first_faults_, {})) write_faults(pid, faults, now);
  }

  void write_faults(std::int64_t pid, Ns now) {
    if (const auto faults = read_page_faults(pid)) write_faults(pid, *faults, now);
  }

  void write_faults(std::int64_t pid, const PageFaults& faults, Ns now) {
    const auto [found, is_new] = faults_.try_emplace(pid);
    if (is_new)
      found->second = {writer_->counter_track("page_faults.minor", "count", pid),
                       writer_->counter_track("page_faults.major", "count", pid)};
    writer_->counter(found->second.minor, now, static_cast<double>(faults.minor));
    writer_->counter(found->second.major, now, static_cast<double>(faults.major));
    events_ += 2;
  }

  void write_answers(Ns now) {
    if (!answers_) return;
    answers_->count(now);
    // They are known always, system calls perhaps not.
    if (options_.few) answers_->write_counters(*writer_, now, std::max(totals_at_, started_));
  }

  /// How long calls and requests took since they were last written.
  void write_times(Ns now, bool is_last = false) {
    next_times_ = now + kTimesEvery;
    for (const bpf::Times& row : probes_->times()) {
      const auto key = std::tuple(row.key.tgid, row.key.device, row.key.nr);
      const culprit_times before = std::exchange(times_[key], row.total);
      std::string text;
      for (std::size_t i = 0; i < CULPRIT_TIME_BUCKETS; ++i)
        // Of a process with a number that was another's the counts begin anew.
        if (const auto news = row.total.counts[i] - std::min(before.counts[i], row.total.counts[i]); news > 0)
          text += fmt::format("{}{}:{}", text.empty() ? "" : " ", i, news);
      const std::uint32_t unended = row.total.unended - std::min(before.unended, row.total.unended);
      if (!text.empty() || unended > 0) {
        const bool call = row.key.device == 0;
        write_durations(*writer_,
                        call ? std::string("system call times")
                             : fmt::format("{}{} times", perfetto::kDiskTrack, disk(row.key.device)),
                        row.key.tgid, now,
                        call ? call_name(row.key.nr) : operation_name(static_cast<std::uint32_t>(row.key.nr)), text,
                        {"unended", std::int64_t{unended}});
        ++events_;
      }
      if (row.key.tgid != 0 && left_.contains(row.key.tgid)) {
        probes_->forget_times(row.key);
        times_.erase(key);
      }
    }
    if (!left_.empty())
      for (const bpf::BlockTotal& row : probes_->block_totals())
        if (row.key.tgid != 0 && left_.contains(row.key.tgid)) {
          write_block(row, now);
          probes_->forget_block(row.key);
          blocks_.erase({row.key.device, row.key.operation, row.key.tgid});
        }
    if (answers_) answers_->write_times(*writer_, now, is_last, [&](std::int64_t pid) { return left_.contains(pid); });
    left_.clear();
  }

  std::shared_ptr<bpf::Probes> probes_;
  SyscallsOptions options_;
  perfetto::Writer* writer_ = nullptr;  // from start() to stop()
  bool probes_open_ = false;
  std::string error_;
  std::string remedy_;
  Ns next_totals_ = 0;
  std::optional<CallWindows> windows_;  ///< where calls are not looked at always
  bool opening_ = false;                ///< one is about to begin
  Ns looked_ = 0;                       ///< whether it has
  bool window_counts_ = true;           ///< false: the last one is none
  std::uint64_t period_ = 0;
  double calls_of_period_ = 0;
  double doubt_of_period_ = 0;
  std::vector<Row> rows_;                            ///< of one thread, not written yet
  bool scale_is_known_ = false;                      ///< for how many a call of this period stands
  std::map<std::int32_t, std::vector<Row>> ending_;  ///< what threads told before, most of which are about to end
  std::vector<std::pair<std::int32_t, std::vector<Row>>> ended_threads_;
  BusyThreads busy_;
  Ns started_ = 0;
  Ns file_begin_ = 0;
  Ns totals_at_ = 0;
  std::uint64_t events_ = 0;
  std::uint64_t lanes_full_ = 0;
  std::map<Call, Told> told_;   ///< of calls with a place in their thread
  std::map<Call, Told> calls_;  ///< of the others
  /// What threads made that ended in a period, by process and number, and one of them.
  std::map<std::pair<std::int32_t, std::int32_t>, std::pair<Call, Told>> ended_;
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::int32_t>, Written> blocks_;
  std::map<std::tuple<std::int32_t, std::uint32_t, std::int32_t>, culprit_times> times_;  ///< as written last
  std::set<std::int64_t> left_;                                                           ///< processes
  Ns next_times_ = 0;
  std::set<std::int32_t> gone_;
  std::unordered_map<int, std::string> call_names_;
  std::unordered_map<std::uint32_t, std::string> disks_;
  std::unordered_map<std::uint32_t, Lanes> lanes_;
  std::map<std::int64_t, FaultTracks> faults_;
  std::vector<std::pair<std::int64_t, PageFaults>> first_faults_;  ///< of the first targets, until they are written
  std::optional<Answers> answers_;
};

}  // namespace

std::unique_ptr<Collector> make_syscalls(std::shared_ptr<bpf::Probes> probes, const SyscallsOptions& options) {
  return std::make_unique<Syscalls>(std::move(probes), options);
}

}  // namespace culprit::record::syscalls
