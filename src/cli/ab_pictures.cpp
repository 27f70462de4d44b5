#include "cli/ab_pictures.h"

#include <culprit/load.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "ab/recorded_steps.h"
#include "compare/cycle_time.h"
#include "library/run_data.h"
#include "summary/run_picture.h"

namespace culprit::cli {

namespace {

/// A recording, and what was found in it.
struct Drawn {
  Run run;
  model::Recording recording;
};

Result<Drawn> drawn(const std::string& file, const std::vector<ab::Span>& turns) {
  auto run = load_run({file});
  if (!run) return run.error();
  auto recording = ab::recording_of(run->data().trace, file, turns);
  if (!recording) return recording.error();
  return Drawn{std::move(*run), std::move(*recording)};
}

}  // namespace

Result<std::array<model::RunPicture, 2>> pictures_of(const ab::Alternated& alternated,
                                                     const model::RunComparison& comparison, bool kept) {
  std::array<model::RunPicture, 2> pictures;
  if (alternated.recordings[0].empty() || alternated.recordings[1].empty()) return pictures;
  std::array<std::optional<Drawn>, 2> sides;
  for (std::size_t s = 0; s < sides.size(); ++s) {
    auto side = drawn(alternated.recordings[s].front(), alternated.turns[s]);
    if (!side) return side.error();
    sides[s].emplace(std::move(*side));
  }
  const model::Phase phase = summary::usual_phase(sides[0]->recording.cycles, sides[1]->recording.cycles);
  for (std::size_t s = 0; s < sides.size(); ++s) {
    const Drawn& side = *sides[s];
    pictures[s] = summary::run_picture(side.run.data().trace, side.recording, phase,
                                       compare::picture_steps(side.recording.cycles));
    summary::keep_what_matters(pictures[s], comparison, s);
    if (!kept) pictures[s].file = "a recording that is gone (--keep keeps it)";
  }
  return pictures;
}

}  // namespace culprit::cli
