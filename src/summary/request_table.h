// Requests of servers that told of each what it took (collector `python`): how long they waited, when their first token
// came, how long a token took.
#pragma once

#include <optional>

#include "core/units.h"
#include "model/table_rows.h"
#include "trace/trace.h"

namespace culprit::summary {

/// Count, rate, mean, quantiles, longest.
model::Table request_table(const Trace& trace, Ns duration);

/// In a line; nothing when no request was recorded.
std::optional<model::Fact> request_fact(const Trace& trace, Ns duration);

}  // namespace culprit::summary
