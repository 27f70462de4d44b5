// A program of somebody else: reads a trace, finds its steps, and prints where the GPU's time goes.
#include <culprit/cycles.h>
#include <culprit/kernels.h>
#include <culprit/load.h>

#include <cstdio>

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s TRACE...\n", argv[0]);
    return 2;
  }
  const auto run = culprit::load_run({argv + 1, argv + argc});
  if (!run) {
    std::fprintf(stderr, "%s\n", culprit::to_string(run.error()).c_str());
    return static_cast<int>(run.error().kind);
  }
  if (const auto cycles = culprit::find_cycles(*run))
    std::printf("%zu cycles of '%s', %.0f%% sure\n", cycles->cycles.size(), cycles->anchor.c_str(),
                cycles->period_confidence * 100);
  const culprit::Table functions = culprit::function_times(*run);
  const auto& names = std::get<std::vector<std::string>>(functions.find("name")->values);
  const auto& totals = std::get<std::vector<std::int64_t>>(functions.find("total_ns")->values);
  for (std::size_t i = 0; i < functions.rows && i < 5; ++i)
    std::printf("%12.3f ms  %s\n", static_cast<double>(totals[i]) / 1e6, names[i].c_str());
  for (const culprit::Loss& loss : culprit::losses(*run))
    std::printf("%llu x %s\n", static_cast<unsigned long long>(loss.count), loss.meaning.c_str());
  return 0;
}
