#include "thread_pool.h"

#include <pthread.h>

#include <string>

namespace tinyserve {

namespace {

constexpr int kSpins = 2000;  // some ten microseconds: shorter than a wake-up

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

ThreadPool::ThreadPool(int threads) {
  for (int i = 1; i < threads; ++i) workers_.emplace_back([this, i] { work(i); });
}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    generation_.fetch_add(1);
  }
  begin_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::run_share(int index) {
  const long long n = count_;
  (*part_)(static_cast<int>(n * index / size()), static_cast<int>(n * (index + 1) / size()));
}

void ThreadPool::work(int index) {
  pthread_setname_np(pthread_self(), ("tiny-worker-" + std::to_string(index)).c_str());
  for (std::uint64_t seen = 0;;) {
    for (int i = 0; i < kSpins && generation_.load(std::memory_order_acquire) == seen; ++i) relax();
    if (generation_.load(std::memory_order_acquire) == seen) {
      std::unique_lock lock(mutex_);
      begin_.wait(lock, [&] { return generation_.load() != seen; });
    }
    ++seen;
    if (stop_) return;
    run_share(index);
    if (pending_.fetch_sub(1) == 1) {
      const std::lock_guard lock(mutex_);
      done_.notify_one();
    }
  }
}

void ThreadPool::split(int count, const std::function<void(int, int)>& part) {
  if (workers_.empty()) return part(0, count);
  part_ = &part;
  count_ = count;
  pending_ = static_cast<int>(workers_.size());
  {
    const std::lock_guard lock(mutex_);
    generation_.fetch_add(1);
  }
  begin_.notify_all();
  run_share(0);
  for (int i = 0; i < kSpins && pending_.load(std::memory_order_acquire) != 0; ++i) relax();
  if (pending_.load(std::memory_order_acquire) != 0) {
    std::unique_lock lock(mutex_);
    done_.wait(lock, [&] { return pending_.load() == 0; });
  }
}

}  // namespace tinyserve
