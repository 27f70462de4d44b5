// Folders, child processes and runs of the program for the tests of faults.
#pragma once

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace culprit::test {

/// A folder of its own under /var/tmp (a disk), removed at the end.
struct Folder {
  std::string path;
  Folder() {
    std::string name = "/var/tmp/culprit-test-XXXXXX";
    path = mkdtemp(name.data());
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { std::filesystem::remove_all(path); }
  std::string write(const std::string& name, const std::string& text) const {
    const std::string file = path + "/" + name;
    std::filesystem::create_directories(std::filesystem::path(file).parent_path());
    std::ofstream(file) << text;
    return file;
  }
  /// Entries that are there, by name.
  std::vector<std::string> entries(const std::string& below = "") const {
    std::vector<std::string> names;
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(path + below, ignored))
      names.push_back(entry.path().filename());
    return names;
  }
};

/// A child in a process group of its own that does `work` until it is killed, with its descendants, at the end.
struct Child {
  pid_t pid = -1;
  explicit Child(const std::function<void()>& work = [] { pause(); }) {
    pid = fork();
    if (pid == 0) {
      setpgid(0, 0);
      prctl(PR_SET_PDEATHSIG, SIGKILL);  // not kept by what it forks
      work();
      _exit(0);
    }
    setpgid(pid, pid);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() { end(); }
  void end() {
    if (pid <= 0) return;
    kill(-pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    pid = -1;
  }
};

/// Whether it becomes true within some seconds.
inline bool eventually(const std::function<bool()>& condition, int seconds = 15) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

}  // namespace culprit::test
