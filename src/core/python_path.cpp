#include "core/python_path.h"

namespace culprit {

std::string_view short_python_path(std::string_view path) {
  for (const std::string_view folder : {"/site-packages/", "/dist-packages/"})
    if (const auto at = path.rfind(folder); at != std::string_view::npos) return path.substr(at + folder.size());
  constexpr std::string_view kLibrary = "/lib/python3.";  // ".../lib/python3.12/json/decoder.py"
  if (const auto at = path.rfind(kLibrary); at != std::string_view::npos)
    if (const auto next = path.find('/', at + kLibrary.size()); next != std::string_view::npos)
      return path.substr(next + 1);
  if (path.starts_with('<')) return path;
  return path.substr(path.rfind('/') + 1);
}

}  // namespace culprit
