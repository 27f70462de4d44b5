// Small traces for tests of the library: training steps with a marker, two kernels each.
#pragma once

#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>

namespace culprit::test {

/// A file that goes away with the object: `steps` steps of 1 ms with a "gemm" of `gemm_us` and a "softmax" of 50 us.
class StepsFile {
 public:
  StepsFile(int steps, int gemm_us, int rank = -1) {
    static std::atomic<int> number{0};
    path_ = std::filesystem::temp_directory_path() /
            ("culprit_steps_" + std::to_string(getpid()) + "_" + std::to_string(number++) + ".json");
    write(steps, gemm_us, rank);
  }
  ~StepsFile() { std::filesystem::remove(path_); }
  StepsFile(const StepsFile&) = delete;
  StepsFile& operator=(const StepsFile&) = delete;

  void write(int steps, int gemm_us, int rank = -1) const {
    std::ofstream out(path_);
    out << R"({"schemaVersion": 1,)";
    if (rank >= 0) out << R"("distributedInfo": {"rank": )" << rank << R"(, "world_size": 2},)";
    out << R"("traceEvents": [)";
    int begin = 0;
    for (int step = 0; step < steps; ++step) {
      // Steps differ a little, as they do everywhere; what the kernel takes longer, the step takes longer.
      const int period = 900 + gemm_us + step * 7 % 11;
      out << (step == 0 ? "" : ",") << R"({"ph":"X","cat":"user_annotation","name":"ProfilerStep#)" << step
          << R"(","pid":1,"tid":1,"ts":)" << begin << R"(,"dur":)" << period - 5 << "}";
      for (int k = 0; k < 2; ++k) {
        const int id = step * 2 + k + 1;
        out << R"(,{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":)"
            << begin + 10 + k * 20 << R"(,"dur":5,"args":{"correlation":)" << id
            << R"(}},{"ph":"X","cat":"kernel","name":")" << (k == 0 ? "gemm" : "softmax")
            << R"(","pid":0,"tid":7,"ts":)" << begin + 100 + k * (gemm_us + 100) << R"(,"dur":)"
            << (k == 0 ? gemm_us : 50) << R"(,"args":{"device":0,"stream":7,"correlation":)" << id << "}}";
      }
      begin += period;
    }
    out << "]}";
  }
  [[nodiscard]] std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace culprit::test
