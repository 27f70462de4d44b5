#include "model/comparison.h"

#include <algorithm>
#include <array>

namespace culprit::model {

bool is_input(std::string_view function) {
  constexpr std::array<std::string_view, 20> kWords = {
      "dataloader",     "data_loader", "dataset",     "datapipe",   "data_iter",   "dataiter",       "batch_iter",
      "_next_data",     "fetch_data",  "load_data",   "load_batch", "fetch_batch", "read_batch",     "get_batch",
      "input_pipeline", "input_fn",    "utils/data/", "tfrecord",   "collate",     "iteratorgetnext"};
  const auto is_same = [](char a, char b) {
    return (a >= 'A' && a <= 'Z' ? static_cast<char>(a - 'A' + 'a') : a) == b;
  };
  return std::ranges::any_of(
      kWords, [&](std::string_view word) { return !std::ranges::search(function, word, is_same).empty(); });
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
