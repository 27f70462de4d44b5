#include "ab/alternate.h"

#include <fmt/format.h>

namespace culprit::ab {

std::string name_of(const Quantity& quantity) {
  using enum Quantity::Kind;
  switch (quantity.kind) {
    case automatic:
    case step:
      return "step time";
    case run:
      return "run time";
    case cpu:
      return "CPU time";
    case throughput:
      return "time from step to step";
    case function:
      return fmt::format("time in {} per step", quantity.pattern);
    case calls:
      return fmt::format("calls of {} per step", quantity.pattern);
    case bytes:
      return fmt::format("bytes of {} per step", quantity.pattern);
    case counter:
      return quantity.pattern;
  }
  return {};
}

std::string unit_of(const Quantity& quantity) {
  using enum Quantity::Kind;
  return quantity.kind == calls || quantity.kind == bytes || quantity.kind == counter ? "" : "ns";
}

}  // namespace culprit::ab
