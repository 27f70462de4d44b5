// Processes on the command line: by id, or by the name that `ps` shows.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/error.h"

namespace culprit::cli {

/// What one word stands for.
struct Choice {
  std::string word;  ///< empty: it was an id
  std::vector<std::int64_t> pids;
};

/// Each word is an id, of a process that may not exist, or a name. Errors: nobody has the name, or processes that do
/// not belong together have it; they are listed.
Result<std::vector<Choice>> choose_processes(const std::vector<std::string>& words);

/// For verbs that take one process with its descendants. Error, beside those above: there are several.
Result<std::int64_t> choose_process(const std::string& word);

}  // namespace culprit::cli
