// What the reference's table gets wrong when its shares come from traces, said row by row.
#pragma once

#include "deepdive/comparison.h"

namespace culprit::deepdive {

/// Marks the rows of a comparison of traces. A share that only fell because the cycle grew (or rose because it shrank)
/// while the function took the same time per cycle is marked and is no finding. A function that one side lacks is new
/// or gone. Rows that nothing can be said about (no score, because one cycle has no spread) are dropped. New and gone
/// functions follow the scored rows, largest share first. Findings are chosen again.
void judge_on_traces(Comparison& comparison);

}  // namespace culprit::deepdive
