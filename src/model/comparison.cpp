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
  if (function.starts_with("gc generation") || function.starts_with("GC Thread#") ||
      function.find("function collect>") != function.npos || function.find("gc.collect") != function.npos)
    return true;
  // Of CPython, with what compilers put behind a name: "visit_decref.lto_priv.0".
  constexpr std::array<std::string_view, 16> kPython = {
      "gc_collect_main", "gc_collect_generations", "gc_collect_young", "gc_collect_increment",
      "gc_collect_full", "gc_collect_region",      "gc_collect",       "deduce_unreachable",
      "subtract_refs",   "move_unreachable",       "visit_decref",     "visit_reachable",
      "untrack_tuples",  "dict_traverse",          "subtype_traverse", "tupletraverse"};
  if (std::ranges::find(kPython, function.substr(0, function.find('.'))) != kPython.end()) return true;
  // Of Go, whose goroutines help while they allocate.
  constexpr std::array<std::string_view, 8> kGo = {
      "runtime.gcBgMarkWorker", "runtime.gcDrain",    "runtime.scanobject", "runtime.scanblock",
      "runtime.gcAssistAlloc",  "runtime.greyobject", "runtime.markroot",   "runtime.bgsweep"};
  if (std::ranges::any_of(kGo, [&](std::string_view name) { return function.starts_with(name); })) return true;
  // Of Java, demangled or not: classes that only collectors use.
  constexpr std::array<std::string_view, 11> kJava = {"G1CMTask",
                                                      "G1ParScanThreadState",
                                                      "G1ConcurrentMark",
                                                      "G1FullGC",
                                                      "G1ParCopyHelper",
                                                      "G1RebuildRemSet",
                                                      "PSPromotionManager",
                                                      "ParCompactionManager",
                                                      "ShenandoahConcurrentMark",
                                                      "ZMark",
                                                      "ZRelocate"};
  const auto holds = [&](std::string_view word) {
    const std::size_t at = function.find(word);
    if (at == function.npos || (at > 0 && is_letter(function[at - 1]))) return false;
    const std::string_view behind = function.substr(at + word.size());
    return behind.empty() || is_upper(behind.front()) || !is_letter(behind.front());
  };
  return std::ranges::any_of(kJava, holds);
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

bool is_engine_step(std::string_view function) {
  return function.ends_with("EngineCore.step") || function.ends_with("EngineCore.step_with_batch_queue");
}

std::vector<CycleTimeOutcome> all_cycle_times(const RunComparison& comparison) {
  std::vector<CycleTimeOutcome> all = comparison.cycle_times;
  all.insert(all.end(), comparison.rank_times.begin(), comparison.rank_times.end());
  return all;
}

}  // namespace culprit::model
