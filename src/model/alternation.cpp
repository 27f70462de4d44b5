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

}  // namespace culprit::model
