// What a culprit::Run holds; the program looks inside, users of the library do not.
#pragma once

#include <culprit/load.h>

#include <utility>

#include "trace/trace.h"

namespace culprit {

struct Run::Data {
  Trace trace;
};

}  // namespace culprit
