// The units of the profile table's columns. The table calls everything "percent": a clock is 100 x MHz, a link 100 x
// bytes/s, a utilisation a fraction. Inside Culprit these are Hz, bytes/s and fractions.
#pragma once

#include <string_view>

#include "model/profile.h"

namespace culprit::deepdive {

/// si = reported * times / over; both are whole powers of ten, so that small numbers keep their digits.
struct Scale {
  model::Unit unit = model::Unit::plain;
  double times = 1;
  double over = 1;

  [[nodiscard]] double to_si(double reported) const { return reported * times / over; }
};

/// Scale of mu and sigma of `metric` in a profile table. CPU frequency and GPU memory are percent of a maximum when
/// that was known, else 100 x MHz or 100 x bytes: `reported_mu` tells which (a percent value is below 1000, the other
/// never).
Scale profile_scale(std::string_view metric, double reported_mu);

}  // namespace culprit::deepdive
