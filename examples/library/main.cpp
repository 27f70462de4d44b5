// A program of somebody else: reads a trace, finds its steps, and prints where the GPU's time goes; with a second
// trace, whether it became slower and why.
#include <culprit/compare.h>
#include <culprit/cycles.h>
#include <culprit/kernels.h>
#include <culprit/load.h>
#include <culprit/table.h>

#include <cstdio>

namespace {

int fail(const culprit::Error& error) {
  std::fprintf(stderr, "%s\n", culprit::to_string(error).c_str());
  return static_cast<int>(error.kind);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2 && argc != 3) {
    std::fprintf(stderr, "usage: %s TRACE [CANDIDATE]\n", argv[0]);
    return 2;
  }
  const auto run = culprit::load_run({argv[1]});
  if (!run) return fail(run.error());
  if (const auto cycles = culprit::find_cycles(*run))
    std::printf("%zu cycles of '%s', %.0f%% sure\n", cycles->cycles.size(), cycles->anchor.c_str(),
                cycles->period_confidence * 100);
  std::fputs(culprit::to_text(culprit::function_times(*run)).c_str(), stdout);
  for (const culprit::Loss& loss : culprit::losses(*run))
    std::printf("%llu x %s\n", static_cast<unsigned long long>(loss.count), loss.meaning.c_str());
  if (argc == 2) return 0;

  const auto candidate = culprit::load_run({argv[2]});
  if (!candidate) return fail(candidate.error());
  const auto compared = culprit::compare_runs({*run}, {*candidate});
  if (!compared) return fail(compared.error());
  for (const culprit::CycleTime& time : compared->cycle_times)
    std::printf("%s: %+.1f%% (%+.1f%% to %+.1f%%)\n", time.phase.c_str(), time.change * 100, time.low * 100,
                time.high * 100);
  for (std::size_t i = 0; i < compared->findings.size() && i < 3; ++i)
    std::printf("%+10.3f ms  %s\n", compared->findings[i].impact_ns / 1e6, compared->findings[i].short_name.c_str());
  return compared->outcome == culprit::Outcome::regression ? 1 : 0;
}
