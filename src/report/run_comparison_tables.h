// A comparison of two runs as sentences and tables, before anyone decides how they look.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "model/comparison.h"
#include "model/table.h"

namespace culprit::report {

std::string_view to_string(model::Outcome outcome);
std::string_view to_string(model::FunctionStatus status);
/// "against_others", as in JSON.
std::string_view to_string(model::RestsOn basis);
std::string_view to_string(model::Comparable level);

/// Sentences. Between the two stand the causes, so that they are among the first lines of a report.
struct OutcomeText {
  std::vector<std::string> answer;   ///< the outcome and by how much; first what limits it
  std::vector<std::string> details;  ///< who else ran, each phase or unit with its interval, what that rests on
};
OutcomeText outcome_text(const model::RunComparison& comparison);

/// Why the steps of a phase are not judged: none of the sides' are of like work.
std::string other_work_text(const model::CycleTimeOutcome& o);

/// " Measured: 8 earlier recordings of the same differ by 3.1 % (standard deviation)."
std::string earlier_text(double between, std::size_t recordings);

/// What would take the place of an assumption. `measured`: how much recordings of a side differ is, and only what the
/// sides differ by beyond that is assumed.
std::string_view what_would_measure(bool measured);

/// Impact of a function by what the cycle of its phase changed by; no number where it is not decided that it did.
double share_of_change(const model::RunComparison& comparison, const model::FunctionFinding& finding);

/// What a reader has to know beside the numbers: what differs, where cycles begin, losses.
std::vector<std::string> note_lines(const model::RunComparison& comparison);

/// Functions that changed, are new or gone, one table per phase with at most `most_rows` (0: all); a sentence how many
/// did not change or could not be decided is a note of the last.
std::vector<model::Table> changed_functions(const model::RunComparison& comparison, std::size_t most_rows);

/// Every function, for programs.
model::Table all_functions(const model::RunComparison& comparison);

/// What threads did, counters and resources that moved, facts of the environment that differ (at most `most_facts`, 0:
/// all); none that would be empty.
std::vector<model::Table> evidence_tables(const model::RunComparison& comparison, std::size_t most_facts);

}  // namespace culprit::report
