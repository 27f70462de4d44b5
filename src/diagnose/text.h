// Numbers of both sides inside of the sentences of a verdict.
#pragma once

#include <fmt/format.h>

#include <string>

#include "core/units.h"
#include "diagnose/evidence.h"

namespace culprit::diagnose {

/// "12.1ms instead of 3.4ms".
inline std::string instead(const Sides& ns) {
  return fmt::format("{} instead of {}", format_duration(ns.with), format_duration(ns.without));
}
/// "12.1ms instead of 3.4ms per request", of times of what the program repeats.
inline std::string instead_each(const Evidence& evidence, const Sides& ns) {
  return fmt::format("{} per {}", instead(ns), evidence.repeats());
}
inline std::string short_number(double value) { return fmt::format("{:.3g}", value); }
/// "0.97 instead of 0.02".
inline std::string instead_number(const Sides& sides) {
  return fmt::format("{} instead of {}", short_number(sides.with), short_number(sides.without));
}
/// "31 % instead of 2 %", of shares.
inline std::string instead_percent(const Sides& sides) {
  return fmt::format("{:.3g} % instead of {:.3g} %", sides.with * 100, sides.without * 100);
}

/// "stress-ng-cpu took 0.76 instead of 0 CPUs".
inline std::string took(const Beside& beside) {
  return beside.is_share ? fmt::format("{} took {} of the machine's CPUs", beside.name, instead_percent(beside.cpus))
                         : fmt::format("{} took {} CPUs", beside.name, instead_number(beside.cpus));
}

}  // namespace culprit::diagnose
