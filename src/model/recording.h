// What profiling one recording gives: all that a comparison needs to know of it. `profile` fills it, `compare` takes
// it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "model/collected.h"
#include "model/cycles.h"
#include "model/host_evidence.h"
#include "model/loss_count.h"
#include "model/profile.h"
#include "model/whole_run.h"
#include "model/work_units.h"

namespace culprit::model {

/// Facts of a run. Empty and -1: the recording does not say.
struct RunFacts {
  std::set<std::string> device_models;  ///< of the devices that worked
  std::int64_t world_size = -1;
  std::set<std::int64_t> ranks;        ///< numbers of the ranks that were recorded
  bool gpu_work = false;               ///< kernels, memcpy or memset were recorded
  std::set<std::string> programs{};    ///< of recordings: what was recorded
  std::set<std::string> presets{};     ///< and how
  std::set<std::string> collectors{};  ///< and by what
  std::set<std::string> functions{};   ///< kinds of the host's that were captured: "cpu_op", "python"
  std::set<std::string> options{};     ///< what a profiler was asked to record besides: "with_stack"
};

/// Every value that the files of a run give a fact about machine, libraries and limits.
using Environment = std::map<std::string, std::set<std::string>>;

/// One rank in the collectives of one whole cycle, ns.
struct StepCollectives {
  std::uint32_t number = 0;  ///< of the cycle
  std::uint64_t calls = 0;
  double elements = 0;  ///< that the calls sent; kNoNumber: not known of every call
  double wait_ns = 0;   ///< as below
  double transfer_ns = 0;
  double held_up_ns = 0;
};

/// One rank in the collectives that it shared with others, over whole cycles, ns.
struct RankCollectives {
  std::int32_t rank = -1;  ///< its number
  std::uint64_t cycles = 0;
  std::uint64_t calls = 0;
  double wait_ns = 0;                    ///< from its begins until the last rank had come
  double transfer_ns = 0;                ///< from then to the ends
  double held_up_ns = 0;                 ///< from the begin of the last but one to its own, where it was the last
  std::vector<StepCollectives> steps{};  ///< the same by number of a cycle, also of those without any
};

struct Recording {
  std::vector<std::string> files;
  std::uint64_t digest = 0;  ///< of their content; 0: not known. Equal ones are the same recording
  bool is_part = false;      ///< of a longer one of the same digest: a copy that was cut
  Cycles cycles;
  std::vector<std::int32_t> rank_numbers{};    ///< by Cycle::rank
  Profile profile;                             ///< over whole cycles
  std::vector<RankCollectives> collectives{};  ///< by rank; where several were recorded
  RunFacts facts;
  HostEvidence host;
  std::optional<WorkUnits> work;  ///< of recordings without cycles
  Collected collected;            ///< of recordings
  WholeRun whole;
  Environment environment;
  std::vector<LossCount> losses;
  std::uint64_t events = 0;       ///< that were kept
  std::uint64_t events_lost = 0;  ///< inside what was recorded
};

}  // namespace culprit::model
