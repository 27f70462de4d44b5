// Records a program with one collector, as the recorder does, and reads back what was written.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "record/collector/collector.h"
#include "record/nvtx/recording.h"
#include "support/temp_file.h"

namespace culprit::test {

/// Starts `arguments` with `environment` added; its standard output goes nowhere.
inline pid_t start_program(const std::vector<std::string>& arguments, const std::vector<std::string>& environment) {
  const pid_t pid = fork();
  if (pid != 0) return pid;
  for (const std::string& variable : environment) putenv(const_cast<char*>(variable.c_str()));
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  execv(argv[0], argv.data());
  _exit(127);
}

class Recorded {
 public:
  explicit Recorded(std::unique_ptr<record::Collector> collector) : collector_(std::move(collector)) {
    Result<perfetto::Writer> writer = perfetto::Writer::create(folder_.path("run.pftrace"));
    EXPECT_TRUE(writer.ok());
    writer_ = std::make_unique<perfetto::Writer>(std::move(*writer));
    session_ = std::make_unique<record::Session>(
        record::Session{.writer = *writer_, .targets = targets_, .own_pid = getpid()});
  }

  record::Collector& collector() { return *collector_; }
  record::Session& session() { return *session_; }
  Status start() { return collector_->start(*session_); }

  void add(pid_t pid) {
    if (std::ranges::find(targets_, pid, &record::Target::pid) != targets_.end()) return;
    targets_.push_back({pid, 0});
    collector_->target_joined(targets_.back());
  }
  void poll() { collector_->poll(*session_, record::monotonic_now()); }

  /// Runs a program to its end, its children included; returns its wait status.
  int run(const std::vector<std::string>& arguments, std::chrono::milliseconds pause = std::chrono::milliseconds(5)) {
    const pid_t pid = start_program(arguments, collector_->environment());
    add(pid);
    int status = 0;
    while (waitpid(pid, &status, WNOHANG) == 0) {
      std::ifstream children("/proc/" + std::to_string(pid) + "/task/" + std::to_string(pid) + "/children");
      for (pid_t child = 0; children >> child;) add(child);
      poll();
      std::this_thread::sleep_for(pause);
    }
    for (const record::Target& target : targets_) collector_->target_left(target);
    poll();
    return status;
  }

  Recording finish() {
    collector_->stop(*session_, record::monotonic_now());
    collector_->stop(*session_, record::monotonic_now());  // may be called again
    EXPECT_TRUE(writer_->close().ok());
    return read_recording(folder_.path("run.pftrace"));
  }

 private:
  TempDir folder_;
  std::vector<record::Target> targets_;
  std::unique_ptr<perfetto::Writer> writer_;
  std::unique_ptr<record::Session> session_;
  std::unique_ptr<record::Collector> collector_;
};

}  // namespace culprit::test
