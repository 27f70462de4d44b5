// What devices still do for a side that stands still: work that was queued goes on, into the other's turn.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/units.h"

namespace culprit::ab {

/// What devices do for a side, as the kernel shows it at one moment.
struct DeviceWork {
  std::uint64_t occupied = 0;  ///< compute units that are at work for it
  std::uint64_t worked = 0;    ///< time and cycles of engines so far: changes while one works for it
};

/// The devices of a side.
struct DeviceSight {
  bool hidden = false;                 ///< it has a device whose work nothing shows as it happens
  std::function<DeviceWork()> view{};  ///< empty: there is nothing to see
};

/// Whether behind every turn it can be seen that devices have nothing left to do: one side has some, none is hidden.
bool are_seen(const std::vector<DeviceSight>& sides);

/// The machine that is looked at; tests name another.
struct DeviceFiles {
  std::string root{};
  bool first_namespace = true;  ///< of processes, by whose numbers the AMD driver for compute calls them
};
/// That of this process.
DeviceFiles own_device_files();

/// The devices that these processes hold open: under /dev/dri the time of engines that their drivers tell in `fdinfo`;
/// of /dev/kfd (AMD, compute) the compute units that are at work (`cu_occupancy`), not copies. Of CUDA nothing is shown
/// as it happens.
DeviceSight device_sight(const std::vector<pid_t>& processes, const DeviceFiles& files = own_device_files());

struct Drained {
  bool late = false;  ///< the limit came before devices had nothing to do
  Ns waited = 0;
};

/// Waits until devices have nothing to do any more for a side that stands still, at most `limit`; not at all without a
/// view. `pause` waits for a moment between two looks; false: no longer.
Drained drain(const std::function<DeviceWork()>& view, Ns limit, const std::function<bool()>& pause);

}  // namespace culprit::ab
