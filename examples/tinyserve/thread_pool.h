// A fixed set of threads that run one function together, as the CPU back ends of inference engines do: the caller takes
// part, waiting is a short spin and then sleep.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace tinyserve {

class ThreadPool {
 public:
  /// `threads` counts the caller, so that 1 starts none.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  [[nodiscard]] int size() const { return static_cast<int>(workers_.size()) + 1; }

  /// Runs part(begin, end) on every thread with its share of [0, count) and returns when all are done.
  void split(int count, const std::function<void(int, int)>& part);

 private:
  void work(int index);
  void run_share(int index);

  std::vector<std::thread> workers_;
  const std::function<void(int, int)>* part_ = nullptr;
  int count_ = 0;
  std::atomic<std::uint64_t> generation_ = 0;
  std::atomic<int> pending_ = 0;
  std::atomic<bool> stop_ = false;
  std::mutex mutex_;
  std::condition_variable begin_;
  std::condition_variable done_;
};

}  // namespace tinyserve
