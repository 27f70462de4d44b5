// Joins the samplers' output to what a test looks at.
#pragma once

#include "core/units.h"
#include "record/host/tracks.h"
#include "support/fake_machine.h"

namespace culprit::test {

inline record::CounterOut out_to(Samples& samples) {
  return {[&samples](std::string_view name, std::string_view unit, std::int64_t pid) -> std::uint64_t {
            samples.ids.emplace_back(name, pid);
            samples.series[{std::string(name), pid}].unit = unit;
            return samples.ids.size() - 1;
          },
          [&samples](std::uint64_t track, Ns at, double value) {
            samples.series[samples.ids.at(track)].samples.push_back({at, value});
          },
          [&samples](std::int64_t pid, std::string_view name) { samples.processes[pid] = name; }};
}

}  // namespace culprit::test
