#include "model/alternation.h"

namespace culprit::model {

std::string_view to_string(AlternationEnd end) {
  switch (end) {
    case AlternationEnd::found:
      return "found";
    case AlternationEnd::excluded:
      return "excluded";
    case AlternationEnd::budget:
      return "budget";
    case AlternationEnd::pairs:
      return "pairs";
    case AlternationEnd::interrupted:
      return "interrupted";
    case AlternationEnd::side_ended:
      return "side_ended";
  }
  return "budget";
}

std::string_view to_string(LengthFrom from) {
  switch (from) {
    case LengthFrom::given:
      return "given";
    case LengthFrom::usual:
      return "usual";
    case LengthFrom::steps:
      return "steps";
    case LengthFrom::noise:
      return "noise";
  }
  return "given";
}

std::string_view to_string(SpreadFrom from) {
  switch (from) {
    case SpreadFrom::none:
      return "none";
    case SpreadFrom::starts:
      return "starts";
    case SpreadFrom::step_time:
      return "step_time";
    case SpreadFrom::same:
      return "same";
  }
  return "none";
}

}  // namespace culprit::model
