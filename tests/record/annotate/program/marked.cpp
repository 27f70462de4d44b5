// The same header in two files of one C++ program; with "cost", what a mark costs while nobody records, in ns.
#include "culprit_annotate.h"

#include <chrono>
#include <cstdio>
#include <cstring>

void second_file(int i);

int main(int argc, char** argv) {
  if (argc < 2 || std::strcmp(argv[1], "cost") != 0) {
    second_file(1);
    CULPRIT_MARK("first file");
    return 0;
  }
  constexpr int kRounds = 50'000'000;
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < kRounds; ++i) {
    CULPRIT_STEP_BEGIN("step");
    CULPRIT_STEP_END();
  }
  const std::chrono::duration<double, std::nano> spent = std::chrono::steady_clock::now() - begin;
  std::printf("%.3f\n", spent.count() / kRounds);
  return 0;
}
