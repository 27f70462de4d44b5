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

}  // namespace culprit::model
