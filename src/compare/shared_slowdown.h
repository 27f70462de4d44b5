// A machine of which others have a part is slower for minutes than it was, and nothing on it tells: no clock, no
// counter, nobody beside the program. What is slower by that is everything alike, on its CPUs.
#pragma once

#include <string>

#include "model/comparison.h"

namespace culprit::compare {

/// Of two recordings of a host that are called different without it being measured how much two of the same differ: a
/// sentence where that may be the machine's doing alone. All functions of the host share what a step takes longer, or
/// half of it where the rest is not decided (of every phase that is called so; not of what was decided by how late
/// steps come); it took that on its CPUs, less than twice as long (four times, where its memory was slower, too, or the
/// recordings are far apart in time), for as many calls; nobody took CPUs from it, its clock did not move, and no
/// option, variable or version differs. Recordings of one server two minutes apart were seen to differ so by x1.77, and
/// hours apart by x2.3 (docs/accuracy.md). Empty where any of this is not so, or not known.
std::string why_shared(const model::RunComparison& result, bool far_apart = false);

/// The same of units of work of two recordings that are far apart in time: each took longer on its CPUs by as much as
/// it took longer in all (seven tenths, in logarithms), less than four times, while the machine's memory was slower;
/// nobody took CPUs from it, its clock did not move, and no setting differs. Units of postgres hours apart took x1.9
/// so.
std::string why_units_shared(const model::RunComparison& result);

}  // namespace culprit::compare
