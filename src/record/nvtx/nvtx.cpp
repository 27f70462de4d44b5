#include "record/nvtx/nvtx.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "record/collector/file_end.h"
#include "record/collector/installed_library.h"
#include "record/nvtx/counter_clock.h"
#include "record/nvtx/process_ranges.h"
#include "record/nvtx/ring_folder.h"
#include "record/nvtx/ring_format.h"
#include "record/nvtx/ring_reader.h"
#include "record/nvtx/thread_ranges.h"

namespace culprit::record::nvtx {

namespace {

constexpr const char* kVariable = "NVTX_INJECTION64_PATH";
constexpr std::size_t kMostBytesPerPoll = std::size_t{16} << 20;
constexpr int kPatience = 40;  // polls that an unfinished ring, or its process, is waited for
constexpr int kStays = -1;
constexpr int kLastRounds = 256;          // of a program that goes on writing
constexpr Ns kTolerance = 1'000'000'000;  // times before the begin or after now by more than this are nonsense
constexpr std::size_t kMostThreadNames = 4096;

struct Ring {
  RingReader reader;
  ThreadRanges ranges;
  Ns last = 0;  // of a thread time never runs back
  std::uint64_t dropped_told = 0;
  bool is_last_round = false;  // nobody writes it any more
};

class NvtxCollector final : public Collector, public FileEnd {
 public:
  explicit NvtxCollector(const NvtxOptions& options);

  [[nodiscard]] std::string_view name() const override { return "nvtx"; }
  Status start(Session& session) override;
  [[nodiscard]] std::vector<Sight> sights() const override;
  [[nodiscard]] std::vector<std::string> environment() const override;
  void target_joined(const Target& target) override { known_[static_cast<std::int32_t>(target.pid)] = kStays; }
  void target_left(const Target& target) override;
  void poll(Session& session, Ns now) override;
  void file_ends(Session& session, Ns now) override;
  void stop(Session& session, Ns now) override;
  [[nodiscard]] CollectorStats stats() const override;

 private:
  Status prepare(const NvtxOptions& options);
  void open_new_rings(const Session& session);
  std::size_t read_rings(Session& session, Ns now);
  void open_ring(const Session& session, const std::string& file, RingReader reader);
  void close_ring(std::map<std::string, Ring>::iterator& ring);
  void take(Session& session, Ring& ring, const Event& event, Ns now);
  std::optional<Ns> time_of(const Ring& ring, const Event& event, Ns now) const;
  void name_thread(perfetto::Writer& writer, const RingName& by, const Event& event);
  ProcessRanges& process(std::int32_t pid) { return processes_.try_emplace(pid, pid).first->second; }

  std::string library_;
  std::optional<RingFolder> folder_;
  Error refusal_;
  bool is_refused_ = false;
  bool is_stopped_ = false;
  Ns begin_ = 0;
  CounterClock clock_;
  std::map<std::string, Ring> rings_;
  std::map<std::string, int> unfinished_;
  std::set<std::string> waiting_;  // for a descriptor: so many threads, or so few files may be open
  std::size_t most_rings_;
  std::map<std::int32_t, int> known_;  // processes of the recording; kStays, or polls until one that left is forgotten
  std::map<std::int32_t, ProcessRanges> processes_;
  std::size_t next_ = 0;  // the ring to begin with, when one poll cannot read them all
  std::size_t thread_names_ = 0;
  CollectorStats stats_;
  std::uint64_t malformed_ = 0;
  std::uint64_t unpaired_ = 0;
  std::uint64_t dropped_ = 0;  // of rings that are closed
};

NvtxCollector::NvtxCollector(const NvtxOptions& options) : library_(options.library), most_rings_(options.most_rings) {
  const Status prepared = prepare(options);
  is_refused_ = !prepared.ok();
  if (is_refused_) refusal_ = prepared.error();
}

Status NvtxCollector::prepare(const NvtxOptions& options) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nobody sets it
  if (const char* other = std::getenv(kVariable); other != nullptr && other[0] != 0)
    return environment_error(fmt::format("another tool has set {}", kVariable), other,
                             fmt::format("unset {} for the recording", kVariable));
  if (library_.empty()) {
    Result<std::string> found = installed_library("libculprit_nvtx.so");
    if (!found) return found.error();
    library_ = *found;
  }
  Result<RingFolder> folder = RingFolder::create(options.folder_parent);
  if (!folder) return folder.error();
  folder_.emplace(std::move(*folder));
  return {};
}

Status NvtxCollector::start(Session& session) {
  if (!session.starts_command && !is_refused_) {
    is_refused_ = true;
    refusal_ =
        environment_error("programs that run already have not loaded the library that sees them", "",
                          "start the program with `culprit record -- COMMAND`, or mark steps with culprit_annotate.h");
  }
  if (is_refused_) return refusal_;
  begin_ = monotonic_now();
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) == 0)
    most_rings_ = std::min<std::size_t>(most_rings_, std::max<std::size_t>(1, files.rlim_cur / 2));
  clock_.add(clock_point());
  session.writer.metadata("nvtx.source", "NVTX_INJECTION64_PATH");
  return {};
}

std::vector<Sight> NvtxCollector::sights() const {
  Sight sight{.what = "NVTX ranges of started programs", .available = !is_refused_, .why = {}, .remedy = {}};
  if (is_refused_) {
    sight.why = refusal_.where.empty() ? refusal_.what : fmt::format("{}: {}", refusal_.what, refusal_.where);
    sight.remedy = refusal_.remedy;
  }
  return {sight};
}

std::vector<std::string> NvtxCollector::environment() const {
  if (is_refused_) return {};
  return {fmt::format("{}={}", kVariable, library_), fmt::format("{}={}", CULPRIT_NVTX_DIR_VARIABLE, folder_->path())};
}

/// Its rings may still hold something, and files of short-lived processes may not have been seen yet.
void NvtxCollector::target_left(const Target& target) {
  const auto pid = static_cast<std::int32_t>(target.pid);
  if (const auto found = known_.find(pid); found != known_.end()) found->second = kPatience;
  for (auto& [file, ring] : rings_)
    if (ring.reader.name().pid == pid) ring.is_last_round = true;
}

/// A file becomes a ring once the process that its name tells belongs to the recording; from then on it needs no name.
void NvtxCollector::open_new_rings(const Session& session) {
  for (const Target& target : session.targets) target_joined(target);
  for (auto it = known_.begin(); it != known_.end();)
    it = it->second != kStays && --it->second == 0 ? known_.erase(it) : std::next(it);
  for (const std::string& file : folder_->files()) {
    const std::optional<RingName> name = parse_ring_name(file);
    RingState state = RingState::refused;
    RingReader reader;
    if (name && !known_.contains(name->pid) && !waiting_.contains(file))
      state = RingState::unfinished;
    else if (name)
      state = rings_.size() < most_rings_ ? RingReader::open(folder_->fd(), file, reader) : RingState::no_descriptor;
    if (state == RingState::no_descriptor) {
      waiting_.insert(file);
      continue;
    }
    if (state == RingState::unfinished && ++unfinished_[file] < kPatience) continue;
    waiting_.erase(file);
    if (state == RingState::ready)
      open_ring(session, file, std::move(reader));
    else
      ++malformed_;
    unfinished_.erase(file);
    folder_->remove(file);
  }
}

void NvtxCollector::open_ring(const Session& session, const std::string& file, RingReader reader) {
  const RingName name = reader.name();
  std::string comm;
  std::ifstream in(fmt::format("/proc/{}/task/{}/comm", name.pid, name.tid));
  if (std::getline(in, comm)) session.writer.thread(name.pid, name.tid, comm);
  for (auto& [other_file, other] : rings_)  // the thread has executed another program
    if (other.reader.name().pid == name.pid && other.reader.name().tid == name.tid) other.is_last_round = true;
  Ring ring{std::move(reader), ThreadRanges(name.pid, name.tid)};
  const auto state = known_.find(name.pid);
  ring.is_last_round = state == known_.end() || state->second != kStays;
  rings_.emplace(file, std::move(ring));
}

/// Goes on to the next one.
void NvtxCollector::close_ring(std::map<std::string, Ring>::iterator& ring) {
  dropped_ += ring->second.reader.dropped();
  malformed_ += ring->second.reader.malformed();
  unpaired_ += ring->second.ranges.counts().unpaired;
  ring = rings_.erase(ring);
}

std::optional<Ns> NvtxCollector::time_of(const Ring& ring, const Event& event, Ns now) const {
  if (!ring.reader.counts_cycles() && event.time > static_cast<std::uint64_t>(now + kTolerance)) return std::nullopt;
  const Ns at = ring.reader.counts_cycles() ? clock_.at(event.time) : static_cast<Ns>(event.time);
  if (at < begin_ - kTolerance || at > now + kTolerance) return std::nullopt;
  return std::max(at, ring.last);
}

void NvtxCollector::name_thread(perfetto::Writer& writer, const RingName& by, const Event& event) {
  if (event.text.empty() || !event.value || ++thread_names_ > kMostThreadNames) return;
  struct stat status {};
  const bool is_own = *event.value == static_cast<std::uint64_t>(by.tid);
  if (!is_own && stat(fmt::format("/proc/{}/task/{}", by.pid, *event.value).c_str(), &status) != 0) return;
  writer.thread(by.pid, static_cast<std::int64_t>(*event.value), event.text);
}

void NvtxCollector::take(Session& session, Ring& ring, const Event& event, Ns now) {
  ProcessRanges& of_process = process(ring.reader.name().pid);
  switch (event.type) {
    case EventType::domain_name:
      return ring.ranges.name_domain(event.domain, event.text);
    case EventType::category_name:
      return of_process.name_category(event.domain, event.value.value_or(0), event.text);
    case EventType::thread_name:
      return name_thread(session.writer, ring.reader.name(), event);
    default:
      break;
  }
  const std::optional<Ns> time = time_of(ring, event, now);
  if (!time) {
    ++malformed_;
    return;
  }
  const Ns at = ring.last = *time;
  ++stats_.events;

  std::vector<perfetto::Argument> arguments;
  std::string category;
  std::string domain;
  const bool is_range = event.type == EventType::range_start || event.type == EventType::range_end;
  if (event.value && !is_range) {
    category = of_process.category(event.domain, *event.value);
    arguments.push_back({"category", std::string_view(category)});
  }
  if (const auto* value = std::get_if<std::int64_t>(&event.payload)) arguments.push_back({"payload", *value});
  if (const auto* value = std::get_if<double>(&event.payload)) arguments.push_back({"payload", *value});
  if (const auto* value = std::get_if<std::uint64_t>(&event.payload)) {
    if (*value <= static_cast<std::uint64_t>(INT64_MAX))
      arguments.push_back({"payload", static_cast<std::int64_t>(*value)});
    else
      arguments.push_back({"payload", static_cast<double>(*value)});
  }
  if (event.truncated) arguments.push_back({"truncated", std::int64_t{1}});

  const std::uint64_t steps = ring.ranges.counts().steps;
  switch (event.type) {
    case EventType::push:
      ring.ranges.push(session.writer, event, at, arguments);
      break;
    case EventType::pop:
      ring.ranges.pop(session.writer, event, at);
      break;
    case EventType::mark:
      ring.ranges.mark(session.writer, event, at, arguments);
      break;
    case EventType::range_start:
      if (event.domain != 0) {
        domain = ring.ranges.domain_name(event.domain);
        arguments.push_back({"domain", std::string_view(domain)});
      }
      of_process.start(session.writer, event.value.value_or(0), at, event.text.empty() ? "(unnamed)" : event.text,
                       arguments);
      break;
    case EventType::range_end:
      of_process.end(session.writer, event.value.value_or(0), at);
      break;
    default:
      break;
  }
  session.steps += ring.ranges.counts().steps - steps;
}

void NvtxCollector::poll(Session& session, Ns now) {
  if (is_refused_ || is_stopped_) return;
  clock_.add(clock_point());
  open_new_rings(session);
  if (!clock_.ready() || rings_.empty()) return;
  read_rings(session, std::max(now, monotonic_now()));
}

/// Bytes.
std::size_t NvtxCollector::read_rings(Session& session, Ns now) {
  std::size_t bytes = 0;
  if (rings_.empty()) return bytes;
  const std::size_t count = rings_.size();
  auto it = rings_.begin();
  std::advance(it, static_cast<std::ptrdiff_t>(next_ % count));
  for (std::size_t i = 0; i < count && !rings_.empty() && bytes < kMostBytesPerPoll; ++i) {
    Ring& ring = it->second;
    bytes += ring.reader.drain([&](const Event& event) { take(session, ring, event, now); });
    if (ring.reader.dropped() > ring.dropped_told) {
      const perfetto::Argument lost{
          "records", static_cast<std::int64_t>(
                         std::min<std::uint64_t>(ring.reader.dropped() - ring.dropped_told, std::uint64_t{INT64_MAX}))};
      ring.dropped_told = ring.reader.dropped();
      session.writer.instant(session.writer.thread_track(ring.reader.name().pid, ring.reader.name().tid), ring.last,
                             "NVTX records lost", "loss", std::span(&lost, 1));
    }
    ++next_;
    if (ring.reader.finished() || ring.is_last_round)
      close_ring(it);
    else
      ++it;
    if (it == rings_.end()) it = rings_.begin();
  }
  for (auto& [pid, ranges] : processes_) ranges.settle();
  return bytes;
}

void NvtxCollector::file_ends(Session& session, Ns now) {
  poll(session, now);
  for (auto& [file, ring] : rings_) ring.ranges.cut();
  for (auto& [pid, ranges] : processes_) ranges.cut();
}

void NvtxCollector::stop(Session& session, Ns now) {
  if (is_refused_ || is_stopped_) return;
  poll(session, now);
  // Those that one round did not come to, and those that waited for a descriptor.
  for (int round = 0; round < kLastRounds && clock_.ready(); ++round) {
    if (read_rings(session, monotonic_now()) > 0) continue;
    if (waiting_.empty()) break;
    for (auto ring = rings_.begin(); ring != rings_.end();) close_ring(ring);
    open_new_rings(session);
  }
  stats_ = stats();
  is_stopped_ = true;
  std::uint64_t unpaired = unpaired_;
  for (const auto& [file, ring] : rings_) unpaired += ring.ranges.counts().unpaired;
  for (const auto& [pid, ranges] : processes_) unpaired += ranges.lost();
  session.writer.metadata("cost.nvtx.unpaired", std::to_string(unpaired));
  rings_.clear();
  folder_.reset();
}

CollectorStats NvtxCollector::stats() const {
  CollectorStats out = stats_;
  if (is_stopped_) return out;
  out.dropped = dropped_ + malformed_;
  for (const auto& [file, ring] : rings_) out.dropped += ring.reader.dropped() + ring.reader.malformed();
  return out;
}

}  // namespace

std::unique_ptr<Collector> make_nvtx(const NvtxOptions& options) { return std::make_unique<NvtxCollector>(options); }

}  // namespace culprit::record::nvtx
