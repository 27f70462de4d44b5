// What running two sides in turns found, as sentences and as JSON.
#pragma once

#include <string>
#include <vector>

#include "model/alternation.h"

namespace culprit {
class JsonWriter;
}

namespace culprit::report {

/// The answer first, what it rests on behind it.
std::vector<std::string> alternation_lines(const model::Alternation& alternation);

/// One line for people who wait: "+3.1 % (-2.0 to +8.4)". Empty without pairs.
std::string change_text(const model::PairedChange& change);

/// The member "alternation".
void write_alternation(JsonWriter& json, const model::Alternation& alternation);

}  // namespace culprit::report
