#include "model/comparison.h"

#include <algorithm>
#include <array>

namespace culprit::model {

bool is_input(std::string_view function) {
  constexpr std::array<std::string_view, 7> kWords = {"DataLoader", "dataloader",     "data_loader", "_next_data",
                                                      "load_batch", "input_pipeline", "fetch_data"};
  return std::ranges::any_of(kWords, [&](std::string_view word) { return function.find(word) != function.npos; });
}

bool is_collector(std::string_view function) {
  return function.starts_with("gc generation") || function.find("function collect>") != function.npos ||
         function.find("gc.collect") != function.npos;
}

bool is_python_wait(std::string_view function) {
  constexpr std::array<std::string_view, 13> kWords = {"acquire",        "wait",   "wait_for", "poll",     "select",
                                                       "epoll_wait",     "sleep",  "recv",     "recvfrom", "recv_into",
                                                       "recv_multipart", "accept", "_recv"};
  // The name is the last word, or that behind "method" of "<built-in method acquire of _thread.lock object>".
  constexpr std::string_view kMethod = "<built-in method ";
  if (const std::size_t at = function.find(kMethod); at != function.npos) {
    function.remove_prefix(at + kMethod.size());
    function = function.substr(0, function.find(' '));
  } else if (function.ends_with('>') && function.find("<built-in function ") != function.npos) {
    function.remove_suffix(1);
  }
  const std::size_t last = function.find_last_of(" .:");
  if (last != function.npos) function.remove_prefix(last + 1);
  return std::ranges::find(kWords, function) != kWords.end();
}

}  // namespace culprit::model
