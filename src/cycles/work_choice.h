// Which of the units of work that were found stands for the program.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cycles/work_threads.h"
#include "model/work_units.h"
#include "trace/trace.h"

namespace culprit::cycles {

/// What the programs of a whole machine took, on CPUs and on devices, ns. Most of them are bystanders.
struct ProgramTimes {
  std::map<std::string, double> time;  ///< threads that only poll or wake by time count nothing
  double most = 0;
  double all = 0;

  [[nodiscard]] double of(const std::string& program) const;
  /// It took less than a tenth of what the busiest one took.
  [[nodiscard]] bool is_beside(const std::string& program) const;
};
/// nullopt: the recording is not of a whole machine, and all of its processes were asked for.
std::optional<ProgramTimes> times_on_machine(const Trace& trace, const WorkThreads& work);

/// The process that faces whoever uses the program was there first, and what it handles most often comes closest to
/// what the program does step by step. Of a machine the program that took most comes first. `pids`: the lowest of each
/// program.
void order(std::vector<model::WorkUnit>& units, const std::map<std::string, std::int64_t>& pids,
           const ProgramTimes* machine);

/// Processes come first where they are the work. They are not where each answers many requests: then it served a
/// connection, or was a worker of a pool.
void add_processes(std::vector<model::WorkUnit>& found, model::WorkUnit unit);

/// Where calls were looked at in windows only, answers come first when they are what the calls tell of, or could be;
/// else when the calls tell of less than half of them.
void add_answers(std::vector<model::WorkUnit>& found, model::WorkUnit unit, bool estimates);

/// Takes out those of bystanders.
std::vector<model::WorkUnit> take_beside(std::vector<model::WorkUnit>& found, const ProgramTimes& machine);
/// Says in the reason of a unit which share of the machine's time its program took.
void tell_share(model::WorkUnit& unit, const ProgramTimes& machine);

}  // namespace culprit::cycles
