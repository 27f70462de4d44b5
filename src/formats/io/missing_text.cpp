#include "formats/io/missing_text.h"

#include <algorithm>
#include <array>

namespace culprit::formats {

bool is_missing_text(std::string_view text) {
  constexpr std::size_t kLongest = 8;
  static constexpr std::array<std::string_view, 18> kMarkers = {
      "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN",
      "<NA>", "N/A",      "NA",  "NULL",    "NaN",      "None", "n/a",  "nan",    "null"};
  if (text.empty()) return true;
  if (text.size() > kLongest) return false;
  return std::find(kMarkers.begin(), kMarkers.end(), text) != kMarkers.end();
}

}  // namespace culprit::formats
