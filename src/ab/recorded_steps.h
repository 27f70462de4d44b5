// What recordings say of single steps, and the recordings as a comparison takes them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ab/alternate.h"
#include "compare/workload.h"
#include "core/error.h"
#include "core/units.h"
#include "model/cycles.h"
#include "model/recording.h"
#include "trace/trace.h"

namespace culprit::ab {

/// One whole step, on the clock of the day (Unix time).
struct Step {
  Ns begin = 0;
  Ns end = 0;  ///< the next one begins
  model::Phase phase = model::Phase::other;
  compare::WorkClass work;
  double value = 0;  ///< what is compared: of the time of a step that without the time in which there was nothing to do
};

/// How sure it must be that a cycle is a step.
inline constexpr double kLeastConfidence = 0.8;

/// Units of work that were counted in a stretch of time.
struct Counted {
  Ns begin = 0;
  Ns end = 0;
  double count = 0;
};

/// In order of time; those that have nothing of a `quantity` are left out. Of a counter the stretches between two
/// samples, with the value that held. Empty where the recording has no steps, or it is doubtful that they are; then
/// `units`, where one thread does the work and each of its wake-ups is a unit, are the begins of these, and `counted`
/// is how many requests were answered, whoever does that. Error: the file cannot be read. One that still grows is read
/// as far as it goes.
struct StepsOf {
  std::vector<Step> steps{};
  std::vector<Ns> units{};
  std::string unit{};     ///< what they are
  std::string wait{};     ///< the call from which each wakes its thread
  std::string how{};      ///< they were found, or why not: a sentence
  std::string without{};  ///< why no step has any of the quantity, where there are steps
  std::string meant{};    ///< the counter that was taken, where the name that was given is only the begin of one
  std::vector<Counted> counted{};
  std::string counted_what{};  ///< "request"
  std::string counted_from{};  ///< the call that receives one, or model::kAnswers
};
Result<StepsOf> steps_of(const std::string& file, const Quantity& quantity = {});

/// Of a counter of which there is none, "host.cpu": what is used of it, "host.cpu.used".
inline constexpr const char* kUsed = ".used";

/// Of stretches of a counter the mean value, by time; 0: there are none.
double mean_value(const std::vector<Step>& stretches);

/// The recording with its profile; of `turns` (by time, not overlapping; none: all of it) only steps that lie wholly in
/// one of them count. The names of the programs are left out: which ones are compared the user has said.
Result<model::Recording> recording_of(const std::string& file, const std::vector<Span>& turns);
/// The same of a trace that was loaded from it.
Result<model::Recording> recording_of(const Trace& trace, const std::string& file, const std::vector<Span>& turns);

}  // namespace culprit::ab
