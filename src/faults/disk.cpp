// A storm of large writes past the page cache, each followed by fsync: others on the same device wait behind them, and
// on the same file system for its journal. Past the cache because copying would take CPUs, which is another fault.

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <vector>

#include "core/escape.h"
#include "core/hash.h"
#include "faults/catalog.h"
#include "faults/injector.h"
#include "faults/text.h"
#include "faults/workers.h"

namespace culprit::faults {

namespace {

constexpr std::size_t kWriters = 4;  // with 16 MiB each
constexpr std::int64_t kFileBytes = 16 << 20;
constexpr std::size_t kWriteBytes = 4U << 20U;

struct alignas(4096) Page {
  std::array<std::uint64_t, 512> words;
};

class Disk final : public Injector {
 public:
  Disk(std::string folder, double severity)
      : folder_(std::move(folder)),
        severity_(severity),
        own_(fmt::format("{}/culprit-fault-{}", folder_, unique_text())) {}
  ~Disk() override { end(); }

  [[nodiscard]] std::string what() const override {
    return fmt::format("{} threads write 4 MiB and fsync, {:.0f} % of the time, in {} (at most 64 MiB)", kWriters,
                       100 * severity_, escape_terminal(own_));
  }
  Status prepare(const std::function<bool()>&) override { return {}; }

  Status begin(Guard& guard) override {
    if (Status status = guard.add({Undo::Kind::remove_directory, {own_}}); !status) return status;
    if (mkdir(own_.c_str(), 0700) != 0) return failed("the folder cannot be created", own_);
    for (std::size_t i = 0; i < kWriters; ++i) {
      const std::string file = fmt::format("{}/{}", own_, i);
      if (Status status = guard.add({Undo::Kind::remove_file, {file}}); !status) return status;
      files_[i] = open(file.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
      if (files_[i] < 0) return failed("cannot be created", file);
      // What cannot be written past the cache is written through it.
      fcntl(files_[i], F_SETFL, O_DIRECT);
      blocks_[i] = block(i);
    }
    return workers_.start(std::vector<double>(kWriters, severity_), {},
                          [this](std::size_t index, WorkDone& done) { write_once(index, done); });
  }

  Result<Ns> tick(Guard&, Ns now) override {
    if (const int error = error_.load(); error != 0)
      return environment_error(fmt::format("writing failed: {}", errno_text(error)), own_);
    return now + 200'000'000;
  }

  void end() override {
    workers_.stop();
    for (int& file : files_) {
      if (file >= 0) close(file);
      file = -1;
    }
  }

  [[nodiscard]] std::vector<Figure> figures() const override {
    const std::int64_t fsyncs = workers_.sum(&WorkDone::rounds);
    return {{"folder", folder_},
            {"threads", static_cast<std::int64_t>(kWriters)},
            {"fsyncs", fsyncs},
            {"bytes", workers_.sum(&WorkDone::bytes)},
            {"fsync_mean_ns", workers_.sum(&WorkDone::busy_ns) / std::max<std::int64_t>(1, fsyncs)},
            {"fsync_longest_ns", workers_.longest_ns()}};
  }

 private:
  static Status failed(std::string_view what, const std::string& where) {
    return environment_error(fmt::format("{}: {}", what, errno_text(errno)), where, "choose another folder by --path");
  }

  /// What no file system can compress away.
  static std::vector<Page> block(std::size_t index) {
    std::vector<Page> pages(kWriteBytes / sizeof(Page));
    std::uint64_t value = hash_parts(0, index);
    for (Page& page : pages)
      for (std::uint64_t& word : page.words) word = value = value * 6364136223846793005U + 1442695040888963407U;
    return pages;
  }

  void write_once(std::size_t index, WorkDone& done) {
    const std::int64_t round = done.rounds.load(std::memory_order_relaxed);
    // Each page differs from round to round, so that none can be skipped.
    for (Page& page : blocks_[index]) ++page.words[0];
    const std::int64_t offset = (round * static_cast<std::int64_t>(kWriteBytes)) % kFileBytes;
    const ssize_t put = pwrite(files_[index], blocks_[index].data(), kWriteBytes, offset);
    if (put < 0 || fsync(files_[index]) != 0) {
      error_.store(errno);
      usleep(10'000);
      return;
    }
    done.rounds.fetch_add(1, std::memory_order_relaxed);
    done.bytes.fetch_add(put, std::memory_order_relaxed);
  }

  std::string folder_;
  double severity_;
  std::string own_;
  std::array<int, kWriters> files_ = {-1, -1, -1, -1};
  std::array<std::vector<Page>, kWriters> blocks_;
  std::atomic<int> error_{0};
  Workers workers_;
};

bool writable_folder(const std::string& path) {
  struct stat facts {};
  return stat(path.c_str(), &facts) == 0 && S_ISDIR(facts.st_mode) && access(path.c_str(), W_OK | X_OK) == 0;
}

/// Memory file systems have no device to wait for.
bool in_memory(const struct statfs& facts) {
  constexpr std::array<std::uint64_t, 2> kMemory = {0x01021994, 0x858458f6};  // tmpfs, ramfs
  return std::ranges::find(kMemory, static_cast<std::uint64_t>(facts.f_type)) != kMemory.end();
}

}  // namespace

Result<std::unique_ptr<Injector>> make_disk(const Request& request, const ProcessHandle* target) {
  std::string folder = request.path;
  if (folder.empty() && target != nullptr) {
    std::array<char, 4096> link{};
    const std::string cwd = fmt::format("/proc/{}/cwd", target->id().pid);
    const ssize_t size = readlink(cwd.c_str(), link.data(), link.size() - 1);
    struct statfs facts {};
    if (size > 0) {
      const std::string candidate(link.data(), static_cast<std::size_t>(size));
      if (writable_folder(candidate) && statfs(candidate.c_str(), &facts) == 0 && !in_memory(facts)) folder = candidate;
    }
  }
  if (folder.empty()) folder = "/var/tmp";
  if (!folder.starts_with('/')) {
    std::array<char, 4096> absolute{};
    if (realpath(folder.c_str(), absolute.data()) != nullptr) folder = absolute.data();
  }
  if (!writable_folder(folder))
    return environment_error("is no folder that can be written to", folder, "choose another one by --path");
  struct statfs facts {};
  if (statfs(folder.c_str(), &facts) != 0)
    return environment_error(fmt::format("its file system cannot be asked: {}", errno_text(errno)), folder);
  if (in_memory(facts))
    return environment_error("lies in memory, where fsync waits for nothing", folder, "choose a disk by --path");
  const double free = static_cast<double>(facts.f_bavail) * static_cast<double>(facts.f_bsize);
  constexpr double kNeeded = 4.0 * kWriters * static_cast<double>(kFileBytes);
  if (free < kNeeded)
    return environment_error(fmt::format("has only {} free", format_bytes(free)), folder,
                             fmt::format("{} must be free; choose another one by --path", format_bytes(kNeeded)));
  return std::unique_ptr<Injector>(std::make_unique<Disk>(std::move(folder), request.severity));
}

Status disk_available() { return {}; }

}  // namespace culprit::faults
