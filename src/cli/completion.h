// Completion for shells, made of what the command line says of itself: verbs, options, and values that are a fixed
// list; files, folders and process ids by the name that stands for the value in the help.
#pragma once

#include <string>

#include "cli/help.h"

namespace culprit::cli {

std::string bash_completion(const ProgramText& program);
std::string zsh_completion(const ProgramText& program);
std::string fish_completion(const ProgramText& program);

}  // namespace culprit::cli
