// All recordings of a side as one: what they have in common, and their steps, functions and resources pooled.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "compare/assumed.h"
#include "compare/collectives.h"
#include "compare/cycle_time.h"
#include "compare/judge_phases.h"
#include "compare/resources.h"
#include "model/comparison.h"
#include "model/cycles.h"
#include "model/host_evidence.h"
#include "model/profile.h"
#include "model/recording.h"

namespace culprit::compare {

struct PooledSide {
  model::Profile profile;
  model::Cycles cycles;
  model::HostEvidence host;
  model::Environment environment;
  std::vector<StepTime> times;
  std::map<std::int32_t, std::vector<StepTime>> times_of_rank;  ///< by number
  std::vector<Ns> begins;                                       ///< of the recordings, since the epoch; 0: not known
  Ns lasting = 0;  ///< of all recordings together, from the first cycle to the end of the last
  ResourceMeans resources;
  CollectivesOfSide collectives;
  [[nodiscard]] Taken taken() const { return {begins, lasting}; }
  [[nodiscard]] StepsOfSide steps() const { return {times, &profile, taken()}; }
};

/// What any of the recordings has.
model::RunFacts facts_of(std::span<const model::Recording> recordings);

/// Of all of them, one after the other; as sure as the least sure of them.
model::Cycles cycles_of(std::span<const model::Recording> recordings);

/// What is told of a side beside its times.
model::ComparedSide describe(std::span<const model::Recording> recordings);

/// What its steps worked on, where only one side tells that.
void forget_work_of(model::Recording& recording);

/// Only where every recording tells what decode steps looked back at they are told apart by it: whether that is so.
bool align_cached_tokens(std::vector<model::Recording>& base, std::vector<model::Recording>& candidate,
                         const std::vector<const model::Recording*>& earlier);

/// One after the other, each step with the number of its recording.
PooledSide pool(std::vector<model::Recording> recordings);

}  // namespace culprit::compare
