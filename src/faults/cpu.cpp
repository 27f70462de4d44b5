// Threads that do nothing but multiply and add in the widest vectors there are: they take CPU time from the target, and
// may lower the clock of all cores, as another tenant's work does.

#include <fmt/format.h>

#include <array>

#include "faults/catalog.h"
#include "faults/injector.h"
#include "faults/text.h"
#include "faults/workers.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace culprit::faults {

namespace {

#if defined(__x86_64__)
constexpr int kSums = 8;  // independent, so that the units never wait for a result
#endif
constexpr int kSteps = 2000;  // some microseconds, so that a stop is seen soon

/// Keeps the compiler from dropping arithmetic whose result nobody reads.
template <class Value>
void keep(const Value& value) {
  asm volatile("" : : "m"(value) : "memory");
}

void spin_scalar() {
  std::array<double, 8> sums = {1, 2, 3, 4, 5, 6, 7, 8};
  for (int i = 0; i < kSteps; ++i)
    for (double& sum : sums) sum = sum * 0.999 + 0.001;
  keep(sums);
}

#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) void spin_avx2() {
  __m256d sums[kSums];  // an array class would lose the alignment
  for (int i = 0; i < kSums; ++i) sums[i] = _mm256_set1_pd(static_cast<double>(i));
  const __m256d factor = _mm256_set1_pd(0.999);
  const __m256d add = _mm256_set1_pd(0.001);
  for (int i = 0; i < kSteps; ++i)
    for (__m256d& sum : sums) sum = _mm256_fmadd_pd(sum, factor, add);
  keep(sums);
}

__attribute__((target("avx512f"))) void spin_avx512() {
  __m512d sums[kSums];  // an array class would lose the alignment
  for (int i = 0; i < kSums; ++i) sums[i] = _mm512_set1_pd(static_cast<double>(i));
  const __m512d factor = _mm512_set1_pd(0.999);
  const __m512d add = _mm512_set1_pd(0.001);
  for (int i = 0; i < kSteps; ++i)
    for (__m512d& sum : sums) sum = _mm512_fmadd_pd(sum, factor, add);
  keep(sums);
}
#endif

struct Kernel {
  const char* name;
  void (*spin)();
};

Kernel widest_kernel() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return {"AVX-512", spin_avx512};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return {"AVX2", spin_avx2};
#endif
  return {"scalar", spin_scalar};
}

class Cpu final : public Injector {
 public:
  Cpu(std::vector<double> duties, std::vector<int> cpus) : duties_(std::move(duties)), cpus_(std::move(cpus)) {}

  [[nodiscard]] std::string what() const override {
    double share = 0;
    for (const double duty : duties_) share += duty;
    return fmt::format("{} thread{} spin{} {} code on CPU {}: {:.2f} CPUs' worth", duties_.size(),
                       duties_.size() == 1 ? "" : "s", duties_.size() == 1 ? "s" : "", kernel_.name, ranges_text(cpus_),
                       share);
  }
  Status prepare(const std::function<bool()>&) override { return {}; }
  Status begin(Guard&) override {
    return workers_.start(duties_, cpus_, [spin = kernel_.spin](std::size_t, WorkDone& done) {
      spin();
      done.rounds.fetch_add(1, std::memory_order_relaxed);
    });
  }
  Result<Ns> tick(Guard&, Ns now) override { return now + 1'000'000'000; }
  void end() override { workers_.stop(); }
  [[nodiscard]] std::vector<Figure> figures() const override {
    return {{"threads", static_cast<std::int64_t>(duties_.size())},
            {"code", std::string(kernel_.name)},
            {"spins", workers_.sum(&WorkDone::rounds)},
            {"cpu_ns", workers_.sum(&WorkDone::cpu_ns)}};
  }

 private:
  std::vector<double> duties_;
  std::vector<int> cpus_;
  Kernel kernel_ = widest_kernel();
  Workers workers_;
};

}  // namespace

Result<std::unique_ptr<Injector>> make_cpu(const Request& request, const ProcessHandle* target) {
  std::vector<int> cpus = allowed_cpus(target != nullptr ? target->id().pid : 0);
  if (cpus.empty()) return environment_error("the CPUs it may run on cannot be read", "target");
  auto duties = request.threads > 0 ? std::vector<double>(request.threads, request.severity)
                                    : duties_of_share(request.severity, cpus.size());
  if (duties.empty()) return usage_error("this severity is less than half a percent of one CPU", "raise --severity");
  return std::unique_ptr<Injector>(std::make_unique<Cpu>(std::move(duties), std::move(cpus)));
}

Status cpu_available() { return {}; }

}  // namespace culprit::faults
