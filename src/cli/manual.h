// Manual pages, made of what the command line says of itself.
#pragma once

#include <string>

#include "cli/help.h"

namespace culprit::cli {

/// culprit(1), in the macros of man(7).
std::string man_page(const ProgramText& program);
/// culprit-VERB(1).
std::string man_page(const ProgramText& program, const VerbText& verb);

}  // namespace culprit::cli
