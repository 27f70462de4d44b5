// Resources of devices in two runs: each once per device, not once per function.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "model/comparison.h"
#include "model/recording.h"

namespace culprit::compare {

/// Sums over samples, by (metric, rank in the order of the files, device): adding recordings of one run pools them.
struct ResourceMean {
  double sum = 0;
  double samples = 0;
  model::Unit unit = model::Unit::plain;
};
using ResourceMeans = std::map<std::tuple<std::string, std::int32_t, std::string>, ResourceMean>;

/// Adds the series of devices: samples inside the profile's cycles; of device clocks those taken while the device was
/// busy. The only device of a rank is "GPU", whatever number it has on the machine.
void add_resources(const model::Profile& profile, ResourceMeans& means);

/// Those whose means differ by at least kLeastCounterShare (host_changes.h) of the larger, or that one side lacks;
/// `steady` gets the others.
std::vector<model::ResourceChange> resource_changes(const ResourceMeans& base, const ResourceMeans& candidate,
                                                    std::vector<model::ResourceChange>& steady);

}  // namespace culprit::compare
