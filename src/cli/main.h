// The program without its main(), so that tests can link the verbs.
#pragma once

namespace culprit::cli {

/// Parses the command line, runs the verb, reports an error as one line on standard error. Returns the exit code.
int run(int argc, const char* const* argv);

}  // namespace culprit::cli
