#include "record/annotate/annotate.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "annotate.skel.h"
#include "bpf/annotate_records.h"
#include "record/annotate/marked_file.h"
#include "record/annotate/slow_close.h"
#include "record/collector/file_end.h"
#include "record/collector/mappings.h"
#include "record/collector/pid_namespace.h"
#include "record/collector/step_name.h"
#include "record/collector/target_file.h"

namespace culprit::record::annotate {

namespace {

constexpr std::size_t kMostThreads = 65536;
constexpr std::size_t kFewDescriptors = 8;  // of places: closed at once
constexpr Ns kLookAgain = 1'000'000'000;    // for files that a process maps later
constexpr Ns kLookOften = 3'000'000'000;    // a process that is that young is looked at when
constexpr Ns kLookAged = 8;                 // it has aged by this part since
constexpr Ns kLookShare = 1000;             // of the time until the next look at most this part is spent looking,
constexpr Ns kLookLatest = 10'000'000'000;  // which is then
constexpr Ns kMapsAgain = 60'000'000'000;   // at all that it executes from, though that has not grown or shrunk
constexpr Ns kMostLooking = 500'000;        // in one poll; where there are many processes their turn comes later

struct Thread {
  perfetto::TrackUuid track = 0;
  std::vector<std::uint32_t> open;  // depths of the steps that were written, growing
};

struct Process {
  Ns young_since = 0;
  Ns looked = 0;
  Ns look_took = 0;
  Ns read_maps = 0;
  std::optional<std::uint64_t> executable_kib = {};  // then

  [[nodiscard]] bool is_due(Ns now) const {
    const Ns age = now - young_since;
    if (age < kLookOften) return now - looked > age / kLookAged;
    return now - looked > std::clamp(kLookShare * look_took, kLookAgain, kLookLatest);
  }
};

/// What a young process executes from may still change much. Of one that runs for long when it joins nothing is
/// expected.
bool is_old(const Target& target) {
  timespec boot{};
  clock_gettime(CLOCK_BOOTTIME, &boot);
  const Ns start = target.start_ticks * (1'000'000'000 / std::max(sysconf(_SC_CLK_TCK), 1L));
  return start > 0 && Ns{boot.tv_sec} * 1'000'000'000 + boot.tv_nsec - start > kLookLatest;
}

class AnnotateCollector final : public Collector, public FileEnd {
 public:
  AnnotateCollector() = default;
  AnnotateCollector(const AnnotateCollector&) = delete;
  AnnotateCollector& operator=(const AnnotateCollector&) = delete;
  ~AnnotateCollector() override;

  [[nodiscard]] std::string_view name() const override { return "annotate"; }
  Status start(Session& session) override;
  [[nodiscard]] std::vector<Sight> sights() const override;
  void target_joined(const Target& target) override;
  void target_left(const Target& target) override;
  void poll(Session& session, Ns now) override;
  void file_ends(Session& session, Ns now) override;
  void stop(Session& session, Ns now) override;
  [[nodiscard]] CollectorStats stats() const override;

 private:
  Status load();
  void look_around(Ns now);
  void look_for_marks(std::int64_t pid, Ns now);
  void attach(const std::string& path, const std::vector<std::string>& marks, std::uint32_t file);
  void take(const culprit_annotation& record);
  void detach();

  annotate_bpf* skeleton_ = nullptr;
  ring_buffer* ring_ = nullptr;
  std::vector<bpf_link*> links_;
  std::vector<int> descriptors_;  ///< of the places, which belong to the links
  Session* session_ = nullptr;    // while poll() runs
  bool is_started_ = false;
  bool is_stopped_ = false;
  Error refusal_;
  std::map<std::int64_t, Process> processes_;
  std::int64_t last_looked_ = 0;
  std::set<std::string> known_files_;  ///< by identity
  std::uint32_t marked_files_ = 0;
  std::map<std::pair<std::int32_t, std::int32_t>, Thread> threads_;
  std::string attach_trouble_;
  CollectorStats stats_;
};

AnnotateCollector::~AnnotateCollector() {
  detach();
  ring_buffer__free(ring_);
  annotate_bpf__destroy(skeleton_);
}

Error no_privilege(const std::string& what, int code) {
  const std::string why = what + ": " + std::generic_category().message(code);
  if (code == EPERM || code == EACCES)
    return environment_error(why, "USDT probes",
                             "run as root, or once: sudo setcap cap_bpf,cap_perfmon+ep $(command -v culprit)");
  return environment_error(why, "USDT probes", "needs Linux 5.15 or newer with uprobes and CONFIG_DEBUG_INFO_BTF");
}

Status AnnotateCollector::load() {
  if (Status own = needs_first_pid_namespace(); !own) return own;
  libbpf_set_print(nullptr);
  skeleton_ = annotate_bpf__open();
  if (skeleton_ == nullptr) return no_privilege("cannot open the probes", errno);
  if (const int code = annotate_bpf__load(skeleton_); code != 0)
    return no_privilege("the kernel refuses the probes", -code);
  const auto record = [](void* self, void* data, std::size_t size) {
    if (size >= sizeof(culprit_annotation)) {
      culprit_annotation copy;
      std::memcpy(&copy, data, sizeof copy);
      static_cast<AnnotateCollector*>(self)->take(copy);
    }
    return 0;
  };
  ring_ = ring_buffer__new(bpf_map__fd(skeleton_->maps.annotate_ring), record, this, nullptr);
  if (ring_ == nullptr) return no_privilege("cannot map the ring buffer", errno);
  return {};
}

Status AnnotateCollector::start(Session& session) {
  if (Status loaded = load(); !loaded) {
    refusal_ = loaded.error();
    return loaded;
  }
  is_started_ = true;
  for (const Target& target : session.targets) target_joined(target);
  skeleton_->bss->enabled = 1;
  return {};
}

std::vector<Sight> AnnotateCollector::sights() const {
  Sight sight{.what = "steps marked with culprit_annotate.h", .available = is_started_, .why = {}, .remedy = {}};
  if (!is_started_) {
    sight.why = refusal_.what;
    sight.remedy = refusal_.remedy;
  }
  return {sight};
}

void AnnotateCollector::target_joined(const Target& target) {
  if (!is_started_ || processes_.contains(target.pid)) return;
  const auto pid = static_cast<std::int32_t>(target.pid);
  const std::uint8_t yes = 1;
  bpf_map_update_elem(bpf_map__fd(skeleton_->maps.annotate_targets), &pid, &yes, BPF_ANY);
  const Ns now = monotonic_now();
  processes_[target.pid].young_since = is_old(target) ? 0 : now;
  look_for_marks(target.pid,
                 now);  // at the same moment: however long this thread is kept from running, the next look is due
}

void AnnotateCollector::target_left(const Target& target) {
  if (!is_started_) return;
  const auto pid = static_cast<std::int32_t>(target.pid);
  bpf_map_delete_elem(bpf_map__fd(skeleton_->maps.annotate_targets), &pid);
  processes_.erase(target.pid);
  // What they marked last may still be in the ring; then they come again.
  std::erase_if(threads_, [&](const auto& entry) { return entry.first.first == pid; });
}

/// Looks at what the process executes from, each file once.
void AnnotateCollector::look_for_marks(std::int64_t pid, Ns now) {
  Process& process = processes_[pid];
  process.looked = now;
  const Ns begin = monotonic_now();
  const auto kib = executable_kib(pid);
  const bool is_same = kib && kib == process.executable_kib && process.looked - process.read_maps < kMapsAgain;
  if (!is_same) process.read_maps = process.looked;
  process.executable_kib = kib;
  const std::vector<Mapping> mappings = is_same ? std::vector<Mapping>() : executable_mappings(pid);
  process.look_took = monotonic_now() - begin;
  for (const Mapping& file : mappings) {
    if (!file.path.starts_with('/') || file.path.ends_with(" (deleted)")) continue;
    if (marked_files_ >= CULPRIT_ANNOTATE_FILES || known_files_.contains(file.identity)) continue;
    // It may live in a container.
    const TargetFile target = open_target_file(fmt::format("/proc/{}/root", pid), file.path);
    if (!target) continue;  // the process is gone; another one may have the file
    known_files_.insert(file.identity);
    const std::vector<std::string> marks = marks_in(target.path());
    if (marks.empty()) continue;
    attach(target.path(), marks, marked_files_++);
  }
}

/// In every process that has the file mapped, now or later: a forked or restarted one needs no second look.
void AnnotateCollector::attach(const std::string& path, const std::vector<std::string>& marks, std::uint32_t file) {
  bool is_whole = true;
  const bpf_usdt_opts options = {.sz = sizeof(bpf_usdt_opts), .usdt_cookie = file};
  const std::array<std::pair<const char*, bpf_program*>, 3> probes = {{{"step_begin", skeleton_->progs.on_step_begin},
                                                                       {"step_end", skeleton_->progs.on_step_end},
                                                                       {"mark", skeleton_->progs.on_mark}}};
  for (const auto& [name, program] : probes) {
    if (std::ranges::find(marks, name) == marks.end()) continue;
    const std::vector<int> before = open_descriptors();
    bpf_link* link = bpf_program__attach_usdt(program, -1, path.c_str(), "culprit", name, &options);
    std::ranges::set_difference(open_descriptors(), before, std::back_inserter(descriptors_));
    if (link != nullptr) {
      links_.push_back(link);
      continue;
    }
    // Without the ends, begins are worth nothing.
    is_whole = false;
    attach_trouble_ = fmt::format("{}: {}", name, std::generic_category().message(errno));
  }
  if (!is_whole) return;
  const std::uint8_t yes = 1;
  bpf_map_update_elem(bpf_map__fd(skeleton_->maps.annotate_complete_files), &file, &yes, BPF_ANY);
}

void AnnotateCollector::detach() {
  std::ranges::sort(descriptors_);
  const Holder holder(descriptors_.size() > kFewDescriptors ? descriptors_ : std::vector<int>());
  for (bpf_link* link : links_) bpf_link__destroy(link);
  links_.clear();
  descriptors_.clear();
}

void AnnotateCollector::take(const culprit_annotation& record) {
  if (session_ == nullptr || record.tgid <= 0 || record.tid <= 0) return;
  const auto key = std::pair(record.tgid, record.tid);
  if (!threads_.contains(key) && threads_.size() >= kMostThreads) {
    ++stats_.dropped;
    return;
  }
  perfetto::Writer& writer = session_->writer;
  const auto [found, is_new] = threads_.try_emplace(key);
  Thread& thread = found->second;
  if (is_new) thread.track = writer.thread_track(record.tgid, record.tid);
  ++stats_.events;
  const auto at = static_cast<Ns>(record.at);
  std::string name = "(unreadable)";
  if (record.text_bytes > 0)
    name.assign(record.text, strnlen(record.text, std::min<std::size_t>(static_cast<std::size_t>(record.text_bytes),
                                                                        sizeof record.text)));
  const auto end_from = [&](std::uint32_t depth) {  // the deeper ones' ends were lost
    for (; !thread.open.empty() && thread.open.back() >= depth; thread.open.pop_back())
      writer.slice_end(thread.track, at);
  };
  switch (record.kind) {
    case CULPRIT_STEP_BEGUN:
      end_from(record.depth);
      if (record.depth == 1 && !is_step_name(name)) name = "step: " + name;
      writer.slice_begin(thread.track, at, name, "annotate");
      thread.open.push_back(record.depth);
      return;
    case CULPRIT_STEP_ENDED: {
      end_from(record.depth + 1);
      const bool is_step = record.depth == 1 && !thread.open.empty();
      end_from(record.depth);
      if (is_step) ++session_->steps;
      return;
    }
    case CULPRIT_MARKED:
      writer.instant(thread.track, at, name, "annotate");
      return;
    default:
      ++stats_.dropped;
  }
}

void AnnotateCollector::poll(Session& session, Ns now) {
  if (!is_started_ || is_stopped_) return;
  session_ = &session;
  ring_buffer__consume(ring_);
  session_ = nullptr;
  look_around(now);
}

/// What is open stays so there, and is in no other file.
void AnnotateCollector::file_ends(Session& session, Ns now) {
  poll(session, now);
  for (auto& [key, thread] : threads_) thread.open.clear();
}

/// At the processes whose turn it is, beginning behind the one that was looked at last.
void AnnotateCollector::look_around(Ns now) {
  const Ns begin = monotonic_now();
  auto it = processes_.upper_bound(last_looked_);
  for (std::size_t left = processes_.size(); left > 0; --left, ++it) {
    if (it == processes_.end()) it = processes_.begin();
    const auto& [pid, process] = *it;
    if (!process.is_due(now)) continue;
    last_looked_ = pid;
    look_for_marks(pid, now);
    if (monotonic_now() - begin > kMostLooking) return;
  }
}

void AnnotateCollector::stop(Session& session, Ns now) {
  if (!is_started_ || is_stopped_) return;
  skeleton_->bss->enabled = 0;
  detach();
  poll(session, now);
  if (!attach_trouble_.empty()) session.writer.metadata("missing.annotate", attach_trouble_);
  stats_ = stats();
  is_stopped_ = true;
}

CollectorStats AnnotateCollector::stats() const {
  CollectorStats out = stats_;
  if (is_started_ && !is_stopped_) out.dropped += skeleton_->bss->dropped;
  return out;
}

}  // namespace

std::unique_ptr<Collector> make_annotate() { return std::make_unique<AnnotateCollector>(); }

}  // namespace culprit::record::annotate
