// What a page draws of one run beside the numbers of a comparison: the periods of its cycles, resources over time, the
// time of functions over the cycles, and one cycle slice by slice. `summary` fills it, `report` writes it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/units.h"
#include "model/cycles.h"
#include "model/profile.h"

namespace culprit::model {

/// Whole cycles of one phase, evenly thinned where there are many.
struct PictureCycles {
  Phase phase = Phase::other;
  std::size_t all = 0;     ///< whole ones of the run
  std::vector<Ns> at;      ///< begins, from the first cycle or sample that is drawn on
  std::vector<Ns> period;  ///< as long
};

/// What one step took, as the outcome of a comparison counts it.
struct PictureStep {
  Phase phase = Phase::other;
  Ns begin = 0;  ///< on the trace's clock
  Ns time = 0;
};

/// One resource in stretches of equal length that hold samples.
struct PictureSeries {
  std::string metric;
  std::string device;
  Unit unit = Unit::plain;
  bool moved = false;  ///< the comparison says so
  std::vector<Ns> at;  ///< middles, on the clock of the cycles
  std::vector<double> mean;
  std::vector<double> low;
  std::vector<double> high;
};

/// One function of one process over the cycles of a phase.
struct PictureFunction {
  std::string function;
  std::int64_t pid = 0;
  Phase phase = Phase::other;
  bool device = false;      ///< its time on devices
  std::size_t finding = 0;  ///< row of RunComparison::functions, once that is known
  std::vector<double> ns;   ///< per cycle: means of as many neighbours as make few enough
};

/// What one thread, stream or scheduled thread did.
struct PictureLane {
  std::string name;
  std::string kind;  ///< "thread", "stream", "scheduling", "async"
  struct Slice {
    Ns begin = 0;  ///< from the begin of the stretch on
    Ns duration = 0;
    std::uint32_t name = 0;  ///< row of PictureStretch::names
  };
  std::vector<Slice> slices;  ///< by begin, the longer first
};

/// One cycle, and what devices did for it.
struct PictureStretch {
  Phase phase = Phase::other;
  std::uint32_t number = 0;
  Ns begin = 0;           ///< on the trace's clock
  std::int64_t unix = 0;  ///< of the begin, ns; 0: not known
  Ns length = 0;
  Ns period = 0;
  std::vector<std::string> names;
  std::vector<PictureLane> lanes;
  std::size_t left_out = 0;        ///< shortest slices
  std::size_t lanes_left_out = 0;  ///< that did least
  std::int32_t rank = -1;          ///< number of the one whose cycle it is; -1: there is only one
};

struct RunPicture {
  std::string file;        ///< of the recording that is drawn
  std::size_t others = 0;  ///< further recordings of the side
  std::vector<PictureCycles> cycles;
  std::vector<PictureCycles> steps;   ///< with what each took instead of its period
  std::vector<PictureSeries> series;  ///< those that moved first
  std::size_t series_left_out = 0;
  std::vector<PictureFunction> functions;
  std::optional<PictureStretch> stretch;
};

}  // namespace culprit::model
