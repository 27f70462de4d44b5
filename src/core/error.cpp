#include "core/error.h"

namespace culprit {

std::string to_string(const Error& error) {
  std::string text;
  if (!error.where.empty()) text += error.where + ": ";
  text += error.what;
  if (!error.remedy.empty()) text += " (" + error.remedy + ")";
  return text;
}

}  // namespace culprit
