#include "model/comparison.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <set>

#include "core/text.h"

namespace culprit::model {

namespace {

bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
bool is_letter(char c) { return is_upper(c) || (c >= 'a' && c <= 'z'); }
bool is_of_name(char c) { return is_letter(c) || (c >= '0' && c <= '9') || c == '_'; }

}  // namespace

std::size_t count_ranks(const std::vector<ProcessPair>& processes) {
  std::set<std::int32_t> ranks;
  for (const ProcessPair& process : processes) ranks.insert(process.rank);
  return ranks.size();
}

bool is_input(std::string_view function) {
  constexpr std::array<std::string_view, 25> kWords = {
      "dataloader",     "data_loader",     "dataset",        "datapipe",        "data_iter",
      "dataiter",       "batch_iter",      "_next_data",     "fetch_data",      "load_data",
      "load_batch",     "fetch_batch",     "read_batch",     "get_batch",       "input_fn",
      "input_pipeline", "tfrecord",        "collate",        "daligeneric",     "iteratorgetnext",
      "dali_iter",      "data_prefetcher", "dataprefetcher", "batch_generator", "batchgenerator"};
  // Where more follows they are something else: "get_next_batch_to_run".
  constexpr std::array<std::string_view, 12> kWhole = {"next_batch",         "next_train_batch",  "get_train_batch",
                                                       "get_training_batch", "get_eval_batch",    "get_val_batch",
                                                       "get_test_batch",     "fetch_train_batch", "load_train_batch",
                                                       "read_sample",        "read_samples",      "load_sample"};
  // Libraries of loaders, and what a loop calls of theirs.
  constexpr std::array<std::string_view, 3> kFolders = {"dali/", "datasets/", "dataset/"};
  constexpr std::array<std::string_view, 4> kItems = {"__next__", "__iter__", "__getitem__", "__getitems__"};
  const auto is_same = [](char a, char b) { return (a == '-' ? '_' : to_lower(a)) == b; };
  const auto find = [&](std::string_view text, std::string_view word) {
    const auto* at = std::search(text.begin(), text.end(), word.begin(), word.end(), is_same);
    return text.substr(static_cast<std::size_t>(at - text.begin()), at == text.end() ? 0 : word.size());
  };
  const auto has = [&](std::string_view text, std::string_view word) { return !find(text, word).empty(); };
  // "load_data", not "upload_data".
  const auto begins = [](std::string_view text, const auto& found) {
    return found.begin() == text.begin() || !is_letter(*std::prev(found.begin())) || is_upper(*found.begin());
  };
  // This thread waits for the loader all the time, and the step does not wait for it.
  if (has(function, "pin_memory")) return false;
  if (has(function, "utils/data/")) return true;
  if (std::ranges::any_of(kItems, [&](std::string_view item) { return function.ends_with(item); }) &&
      std::ranges::any_of(kFolders, [&](std::string_view folder) {
        const auto found = find(function, folder);
        return !found.empty() && begins(function, found);
      }))
    return true;
  // The folder of a program is not what it does.
  const std::size_t folder = function.find_last_of('/');
  if (folder != function.npos) function.remove_prefix(folder + 1);
  // What a server runs next is nothing that it waits for.
  if (has(function, "schedul")) return false;
  const auto holds = [&](std::string_view word) {
    const auto found = find(function, word);
    return !found.empty() && begins(function, found);
  };
  const auto holds_whole = [&](std::string_view word) {
    const auto found = find(function, word);
    return holds(word) && (found.end() == function.end() || !is_of_name(*found.end()));
  };
  return std::ranges::any_of(kWords, holds) || std::ranges::any_of(kWhole, holds_whole);
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

std::vector<CycleTimeOutcome> all_cycle_times(const RunComparison& comparison) {
  std::vector<CycleTimeOutcome> all = comparison.cycle_times;
  all.insert(all.end(), comparison.rank_times.begin(), comparison.rank_times.end());
  return all;
}

}  // namespace culprit::model
