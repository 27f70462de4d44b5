// The hardware description (`topo_component.csv`) that the reference tool's collector writes beside a trace.
#pragma once

#include <string>
#include <string_view>

#include "core/error.h"
#include "deepdive/hardware.h"

namespace culprit::deepdive {

/// Cores, clocks, memory sizes and the device of each process from `text`; `file` names it in messages. Rows without a
/// host and rows whose JSON cells are damaged are left out; the latter are counted. Error: a column is missing.
Result<Hardware> parse_hardware_csv(std::string_view text, std::string_view file);

/// The same from a file.
Result<Hardware> read_hardware_csv(const std::string& path);

}  // namespace culprit::deepdive
