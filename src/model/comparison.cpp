#include "model/comparison.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <set>

namespace culprit::model {

namespace {

bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
bool is_letter(char c) { return is_upper(c) || (c >= 'a' && c <= 'z'); }

}  // namespace

std::size_t count_ranks(const std::vector<ProcessPair>& processes) {
  std::set<std::int32_t> ranks;
  for (const ProcessPair& process : processes) ranks.insert(process.rank);
  return ranks.size();
}

bool is_input(std::string_view function) {
  constexpr std::array<std::string_view, 19> kWords = {
      "dataloader",     "data_loader", "dataset",   "datapipe",   "data_iter",      "dataiter",   "batch_iter",
      "_next_data",     "fetch_data",  "load_data", "load_batch", "fetch_batch",    "read_batch", "get_batch",
      "input_pipeline", "input_fn",    "tfrecord",  "collate",    "iteratorgetnext"};
  const auto is_same = [](char a, char b) {
    return (a >= 'A' && a <= 'Z' ? static_cast<char>(a - 'A' + 'a') : a) == b;
  };
  const auto has = [&](std::string_view text, std::string_view word) {
    return !std::ranges::search(text, word, is_same).empty();
  };
  // This thread waits for the loader all the time, and the step does not wait for it.
  if (has(function, "pin_memory")) return false;
  if (has(function, "utils/data/")) return true;
  // The folder of a program is not what it does.
  const std::size_t folder = function.find_last_of('/');
  if (folder != function.npos) function.remove_prefix(folder + 1);
  return std::ranges::any_of(kWords, [&](std::string_view word) {
    const auto found = std::ranges::search(function, word, is_same);
    if (found.empty()) return false;
    // "load_data", not "upload_data".
    const bool begins =
        found.begin() == function.begin() || !is_letter(*std::prev(found.begin())) || is_upper(*found.begin());
    return begins;
  });
}

bool is_collector(std::string_view function) {
  return function.starts_with("gc generation") || function.find("function collect>") != function.npos ||
         function.find("gc.collect") != function.npos;
}

bool is_python_wait(std::string_view function) {
  constexpr std::array<std::string_view, 13> kWords = {"acquire",        "wait",   "wait_for", "poll",     "select",
                                                       "epoll_wait",     "sleep",  "recv",     "recvfrom", "recv_into",
                                                       "recv_multipart", "accept", "_recv"};
  // Functions of these names wait where they are the interpreter's own, or of what is there to wait.
  constexpr std::array<std::string_view, 10> kWhere = {"<built-in", "threading", "queue",      "selectors",
                                                       "socket",    "asyncio",   "subprocess", "multiprocessing",
                                                       "zmq",       "concurrent"};
  if (std::ranges::none_of(kWhere, [&](std::string_view where) { return function.find(where) != function.npos; }))
    return false;
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
