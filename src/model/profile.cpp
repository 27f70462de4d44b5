#include "model/profile.h"

#include <array>

namespace culprit::model {

std::string_view unit_name(Unit unit) {
  constexpr std::array<std::string_view, 7> kNames = {"", "fraction", "Hz", "bytes", "bytes/s", "degC", "W"};
  return kNames[static_cast<std::size_t>(unit)];
}

}  // namespace culprit::model
