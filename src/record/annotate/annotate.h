// Records the marks of culprit_annotate.h: in programs that run already and in started ones. Needs CAP_BPF and
// CAP_PERFMON (or root) and Linux 5.15.
#pragma once

#include <memory>

#include "record/collector/collector.h"

namespace culprit::record::annotate {

/// The collector "annotate".
std::unique_ptr<Collector> make_annotate();

}  // namespace culprit::record::annotate
