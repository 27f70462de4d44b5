#include "deepdive/csv_names.h"

#include <algorithm>

#include "core/escape.h"
#include "formats/io/csv_rows.h"

namespace culprit::deepdive {

namespace {
constexpr std::string_view kFormula = "=+-@\t\r";
}

std::string_view unguard_name(std::string_view text) {
  if (text.size() > 1 && text[0] == '\'' && kFormula.find(text[1]) != std::string_view::npos) text.remove_prefix(1);
  return text;
}

void append_csv_name(std::string& out, std::string_view name) {
  const bool printable = std::all_of(name.begin(), name.end(), [](char c) { return c >= ' ' && c <= '~'; });
  const bool formula = !name.empty() && kFormula.find(name.front()) != std::string_view::npos;
  if (printable && !formula)
    formats::append_csv_field(out, name);
  else
    out += escape_csv(name);
}

}  // namespace culprit::deepdive
