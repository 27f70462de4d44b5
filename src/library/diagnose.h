// What one run says of itself, for the verb `diagnose`.
#pragma once

#include <culprit/load.h>
#include <culprit/task.h>

#include <string>

#include "model/run_diagnosis.h"
#include "model/run_picture.h"

namespace culprit::library {

struct DiagnoseOptions {
  std::string anchor{};  ///< name of what begins a cycle; empty: found
  Task task{};
};

/// The run's verdicts, and from which step on it was another one, with the causes of that. Errors: as find_cycles(); a
/// run without steps whose scheduling was not recorded is an input error. `picture`: filled with what a page draws of
/// the run; a cycle of the most frequent phase is shown, of the first rank that a cause is found on.
Result<model::RunDiagnosis> diagnose(const Run& run, const DiagnoseOptions& options = {},
                                     model::RunPicture* picture = nullptr);

}  // namespace culprit::library
