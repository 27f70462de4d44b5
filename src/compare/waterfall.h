// Where the difference of two runs' cycles comes from, line by line of their ledgers.
#pragma once

#include <vector>

#include "core/string_table.h"
#include "model/comparison.h"
#include "model/profile.h"

namespace culprit::compare {

/// One for every phase of which both sides have windows of one kind: of the device that idles least (of each rank), the
/// same one on both sides where these use the same ones, else of the thread that runs the cycles. Means per cycle;
/// where both sides know what their cycles worked on, kinds of work that both have count with the mean of their shares,
/// so that another mix of work is no line. Lines of one state and function are one line; what lies between functions is
/// divided by what samples of both sides found there. By rule the change of a line is (n1 - n0) t0 by calls and
/// n1 (t1 - t0) by their time, with n calls of a mean time t: what both do together counts as time. O(lines log lines).
std::vector<model::Waterfall> waterfalls_of(const model::Profile& base, const model::Profile& candidate,
                                            const std::vector<model::Phase>& phases, StringTable& texts);

/// Those of the threads that run the cycles, of the phases of which `all` has that of a device, which waits for its
/// host half of the time or more on both sides: what such steps call takes the host's time, and hides that of the
/// device.
std::vector<model::Waterfall> late_hosts_of(const model::Profile& base, const model::Profile& candidate,
                                            const std::vector<model::Waterfall>& all, StringTable& texts);

/// Gives the lines of the baseline's ledger the names that the candidate has for them (FunctionFinding::was), where all
/// processes that have them agree.
void use_new_names(model::Profile& base, const std::vector<model::FunctionFinding>& findings, const StringTable& texts);

}  // namespace culprit::compare
