// What the kernels of one device did, all together: whether they became slower alike, which shares the device, and
// whether those that are bound by arithmetic did and those bound by memory did not, which tells its clock from its
// memory where nobody recorded either.
//
// A kernel's time per call does not depend on who waits for it, so it tells of hidden causes, too. Kernels are weighed
// by their time; phases are told apart, since the same multiplication is bound by arithmetic for a prompt and by memory
// for one token.
#pragma once

#include <string_view>
#include <vector>

#include "diagnose/evidence.h"

namespace culprit::diagnose {

/// Time of the kernels of one kind per step of any phase, ns, on the other side; of those that take longer, surely or
/// as much as those that surely do; of those that were launched with more threads, which do more work.
struct KernelTime {
  double all = 0;
  double slower = 0;
  double larger = 0;
  double slower_and_larger = 0;
  [[nodiscard]] double share_slower() const { return all > 0 ? slower / all : 0; }
  [[nodiscard]] double share_larger() const { return all > 0 ? larger / all : 0; }
  /// Of the time of those that take longer.
  [[nodiscard]] double share_larger_of_slower() const { return slower > 0 ? slower_and_larger / slower : 0; }
};

struct DeviceKernels {
  Place place;
  KernelTime all;
  KernelTime arithmetic;             ///< bound by it, by phase and name
  KernelTime memory;                 ///< the same
  std::size_t kinds = 0;             ///< of functions that surely take longer, in each phase
  double ratio = 1;                  ///< geometric mean of time per call, with over without, of all
  double slower_ratio = 1;           ///< the same of those that surely take longer
  double spread = 0;                 ///< of the logarithms of these, standard deviation
  std::size_t arithmetic_names = 0;  ///< of those of them that are bound by arithmetic, without phases
  double arithmetic_ratio = 1;       ///< of these
  double arithmetic_spread = 0;
  double rise = 0;          ///< what all took more of a step of any phase, ns
  double largest_rise = 0;  ///< of a step of a phase, as a share of it
  double size_ratio = 1;    ///< geometric mean of threads per call, with over without, of those with more
};

/// Kernels that were launched with more threads, as a share of those of which they are most.
struct LargerKernels {
  double share = 0;
  std::string_view of;  ///< what they are a share of, as words behind "the time of GPU": "", " among those ..."
  bool slower = false;  ///< of those that surely take longer alone
};

/// Of all, of those that take longer, and of those that are bound by memory, where these take time that tells: how many
/// threads kernels of libraries are launched with often depends on the device alone.
LargerKernels larger_kernels_of(const DeviceKernels& kernels);

/// That share is a half or more, of kernels with 5 % more threads: more work, not slower work. What grows with the
/// model alone (the optimizer's kernels) takes as long as before.
bool does_more(const DeviceKernels& kernels);

/// By how much logarithms of times per call may differ of kernels that became slower alike by this ratio.
double spread_alike(double ratio);

/// Whether two other kernels or more of its device take longer by about as much as one another, and this one by no
/// more: that is what they share, and no fault of one.
bool is_one_of_many(const Evidence& evidence, const model::FunctionFinding& kernel);

/// Whether the calls of a function of a device surely last another time.
inline bool last_another_time(const model::FunctionFinding& finding) {
  constexpr double kDiscovery = 0.05;
  return finding.q_of_calls <= kDiscovery;
}

/// Kernels that compute, that both sides have, by device.
std::vector<DeviceKernels> kernels_of(const Evidence& evidence);

}  // namespace culprit::diagnose
