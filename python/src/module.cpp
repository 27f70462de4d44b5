// The module culprit._culprit: the calls of the library, tables by the Arrow interface. What people use is the Python
// package around it.
#include <culprit/compare.h>
#include <culprit/compare_tables.h>
#include <culprit/cycles.h>
#include <culprit/events.h>
#include <culprit/kernels.h>
#include <culprit/load.h>
#include <culprit/profile.h>
#include <culprit/top.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <pthread.h>

#include <array>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <future>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <set>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "arrow.h"

namespace nb = nanobind;

namespace {

using culprit::python::arrow_of;
using culprit::python::ArrowColumn;
using culprit::python::ArrowTable;
using culprit::python::Texts;
using TablePointer = std::shared_ptr<const ArrowTable>;

/// As Python has paths: bytes that are not UTF-8 come back as os.fsencode() gave them.
nb::object text(std::string_view bytes) {
  PyObject* made = PyUnicode_DecodeUTF8(bytes.data(), static_cast<Py_ssize_t>(bytes.size()), "surrogateescape");
  if (made == nullptr) throw nb::python_error();
  return nb::steal(made);
}

std::vector<std::string> paths_of(const std::vector<nb::bytes>& paths) {
  std::vector<std::string> all;
  for (const nb::bytes& path : paths) all.emplace_back(path.c_str(), path.size());
  return all;
}

[[noreturn]] void raise(const culprit::Error& error) {
  const std::string kind(culprit::to_string(error.kind));
  const nb::object type = nb::module_::import_("culprit._error").attr("Error");
  const nb::object value =
      type(text(culprit::to_string(error)), kind, text(error.what), text(error.where), text(error.remedy));
  PyErr_SetObject(type.ptr(), value.ptr());
  throw nb::python_error();
}

template <class T>
T taken(culprit::Result<T> result) {
  if (!result) raise(result.error());
  return std::move(*result);
}

/// Calls that work beside the interpreter. Whoever wants its lock while it ends is ended itself by some versions of
/// Python, in the middle of C++: so these calls are ended before, and only the thread that ends Python begins others.
class Calls {
 public:
  /// Those of this process, never destroyed: threads that nobody waits for use them to the last.
  static Calls& own() {
    static const int watched = [] {
      renew();
      return ::pthread_atfork(nullptr, nullptr, renew);
    }();
    static_cast<void>(watched);
    return *own_;
  }
  /// False: another thread ends Python.
  bool begin(std::stop_source& stop) {
    const std::scoped_lock lock(mutex_);
    if (ender_ != std::thread::id() && ender_ != std::this_thread::get_id()) return false;
    running_.insert(&stop);
    return true;
  }
  void end(std::stop_source& stop) {
    const std::scoped_lock lock(mutex_);
    running_.erase(&stop);
    changed_.notify_all();
  }
  /// Comes when Python ends, in the thread that ends it.
  void end_all() {
    constexpr std::chrono::seconds kMost(5);
    std::unique_lock lock(mutex_);
    ender_ = std::this_thread::get_id();
    for (std::stop_source* stop : running_) stop->request_stop();
    changed_.wait_for(lock, kMost, [&] { return running_.empty(); });
  }

 private:
  /// A child that is forked has no thread of its parent's but one; another may have held the lock.
  static void renew() { own_ = new Calls; }

  static inline Calls* own_ = nullptr;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::set<std::stop_source*> running_;
  std::thread::id ender_;  ///< that of no thread: Python does not end
};

/// What the work gave; that there was no room for it is an error like the others.
template <class Future>
auto result_of(Future& future) {
  try {
    return taken(future.get());
  } catch (const std::bad_alloc&) {
    raise({culprit::ErrorKind::environment, "out of memory", {}, "use a machine with more memory, or fewer files"});
  } catch (const std::length_error& error) {
    raise({culprit::ErrorKind::input, std::string("too large: ") + error.what(), {}, "use fewer files"});
  }
}

/// Does the work beside the interpreter, without its lock; Ctrl-C ends it.
template <class Work>
auto interruptible(Work work) {
  struct Call {
    std::stop_source stop;
    const bool begun = Calls::own().begin(stop);
    ~Call() { Calls::own().end(stop); }
  } call;
  std::stop_source& stop = call.stop;
  if (!call.begun) raise({culprit::ErrorKind::cancelled, "Python ends", {}, {}});
  culprit::Task task;
  task.stop = stop.get_token();
  auto future = std::async(std::launch::async, [&] { return work(task); });
  const auto wait = [&](std::chrono::milliseconds time) {
    const nb::gil_scoped_release release;
    return future.wait_for(time) == std::future_status::ready;
  };
  while (!wait(std::chrono::milliseconds(50)))
    if (PyErr_CheckSignals() != 0) {
      stop.request_stop();
      while (!wait(std::chrono::milliseconds(1000))) {
      }
      throw nb::python_error();
    }
  return result_of(future);
}

TablePointer shared(ArrowTable table) { return std::make_shared<const ArrowTable>(std::move(table)); }
TablePointer shared(culprit::Table table) { return shared(arrow_of(std::move(table))); }
TablePointer shared(culprit::Frame frame) { return shared(arrow_of(std::move(frame))); }

/// Tables as readers take them, made beside the interpreter, too; a stop that is requested meanwhile ends it.
template <class... Made>
culprit::Result<std::array<TablePointer, sizeof...(Made)>> shared_all(const culprit::Task& task, Made... made) {
  std::array<TablePointer, sizeof...(Made)> tables;
  std::size_t next = 0;
  const auto add = [&](auto table) {
    if (!task.stop.stop_requested()) tables[next++] = shared(std::move(table));
  };
  (add(std::move(made)), ...);
  if (next < tables.size()) return culprit::Error{culprit::ErrorKind::cancelled, "cancelled", {}, {}};
  return tables;
}

template <class Made>
culprit::Result<TablePointer> shared_one(const culprit::Task& task, culprit::Result<Made> made) {
  if (!made) return made.error();
  auto tables = shared_all(task, std::move(*made));
  if (!tables) return tables.error();
  return std::move((*tables)[0]);
}

template <std::size_t N>
nb::list list_of(std::array<TablePointer, N> tables) {
  nb::list list;
  for (TablePointer& table : tables) list.append(std::move(table));
  return list;
}

nb::object cell(const ArrowColumn& column, std::size_t row) {
  if (!column.is_known(row)) return nb::none();
  if (const auto* whole = std::get_if<std::vector<std::int64_t>>(&column.values)) return nb::int_((*whole)[row]);
  if (const auto* numbers = std::get_if<std::vector<double>>(&column.values)) return nb::float_((*numbers)[row]);
  const auto& texts = std::get<Texts>(column.values);
  const std::string_view text = texts.at(static_cast<std::size_t>(texts.codes[row]));
  return nb::str(text.data(), text.size());
}

nb::list values(const ArrowTable& table, std::size_t c) {
  if (c >= table.columns.size()) throw nb::index_error("no such column");
  const ArrowColumn& column = table.columns[c];
  const auto* texts = std::get_if<Texts>(&column.values);
  std::vector<nb::object> made(texts == nullptr ? 0 : texts->size());  // of each text one, however many rows have it
  nb::list list;
  for (std::size_t r = 0; r < table.rows; ++r) {
    if (texts == nullptr || !column.is_known(r)) {
      list.append(cell(column, r));
      continue;
    }
    nb::object& value = made[static_cast<std::size_t>(texts->codes[r])];
    if (!value.is_valid()) value = cell(column, r);
    list.append(value);
  }
  return list;
}

void end_stream(PyObject* capsule) noexcept {
  auto* stream = static_cast<ArrowArrayStream*>(PyCapsule_GetPointer(capsule, "arrow_array_stream"));
  if (stream == nullptr) return;
  if (stream->release != nullptr) stream->release(stream);
  delete stream;
}

nb::object stream_of(const TablePointer& table) {
  auto stream = std::make_unique<ArrowArrayStream>();
  culprit::python::export_stream(table, stream.get());
  PyObject* capsule = PyCapsule_New(stream.get(), "arrow_array_stream", end_stream);
  if (capsule == nullptr) {
    stream->release(stream.get());
    throw nb::python_error();
  }
  static_cast<void>(stream.release());
  return nb::steal(capsule);
}

/// From lists of Python: (key, values, "text", "whole" or "number"). Where that is empty, a column of texts where one
/// is a text, of whole numbers where all are, else of numbers.
TablePointer table_of_lists(std::string key, std::string title, const nb::list& columns) {
  culprit::Table table;
  table.key = std::move(key);
  table.title = std::move(title);
  for (const nb::handle item : columns) {
    const auto triple = nb::cast<nb::tuple>(item);
    const auto list = nb::cast<nb::list>(triple[1]);
    auto kind = nb::cast<std::string>(triple[2]);
    culprit::Column& column = table.columns.emplace_back();
    column.key = column.title = nb::cast<std::string>(triple[0]);
    table.rows = list.size();
    bool is_text = false;
    bool whole = true;
    for (const nb::handle value : list) {
      column.known.push_back(!value.is_none());
      if (value.is_none()) continue;
      is_text = is_text || nb::isinstance<nb::str>(value);
      whole = whole && PyLong_Check(value.ptr());
    }
    if (kind.empty()) kind = is_text ? "text" : whole ? "whole" : "number";
    if (kind == "text") {
      std::vector<std::string> texts;
      for (const nb::handle value : list)
        texts.push_back(value.is_none() ? std::string() : nb::cast<std::string>(nb::str(value)));
      column.values = std::move(texts);
    } else if (kind == "whole") {
      std::vector<std::int64_t> numbers;
      for (const nb::handle value : list) numbers.push_back(value.is_none() ? 0 : nb::cast<std::int64_t>(value));
      column.values = std::move(numbers);
    } else {
      std::vector<double> numbers;
      for (const nb::handle value : list) numbers.push_back(value.is_none() ? 0 : nb::cast<double>(value));
      column.values = std::move(numbers);
    }
  }
  for (const culprit::Column& column : table.columns)
    if (column.known.size() != table.rows) throw nb::value_error("the columns differ in length");
  return shared(std::move(table));
}

ArrowTable cycle_table(const culprit::Cycles& cycles) {
  culprit::Frame frame{"cycles", {}, cycles.cycles.size()};
  std::vector<std::int64_t> number, rank, batch, tokens, begin, period, no_work, whole, partial, warm_up;
  culprit::Categories phase;
  for (const culprit::Cycle& cycle : cycles.cycles) {
    number.push_back(cycle.number);
    rank.push_back(cycle.rank);
    batch.push_back(cycle.batch);
    tokens.push_back(cycle.tokens);
    begin.push_back(cycle.begin);
    period.push_back(cycle.period);
    no_work.push_back(cycle.no_work);
    whole.push_back(cycle.whole ? 1 : 0);
    partial.push_back(cycle.partial ? 1 : 0);
    warm_up.push_back(cycle.warm_up ? 1 : 0);
    phase.codes.push_back(static_cast<std::int32_t>(phase.texts.size()));
    phase.texts.push_back(cycle.phase);
  }
  frame.columns = {
      {"cycle", std::move(number)},      {"rank", std::move(rank)},           {"phase", std::move(phase)},
      {"batch", std::move(batch), true}, {"tokens", std::move(tokens), true}, {"begin_ns", std::move(begin)},
      {"period_ns", std::move(period)},  {"no_work_ns", std::move(no_work)},  {"whole", std::move(whole)},
      {"partial", std::move(partial)},   {"warm_up", std::move(warm_up)}};
  ArrowTable table = arrow_of(std::move(frame));
  table.notes = {cycles.reason};
  if (!cycles.cycles.empty()) {
    const auto percent = [](double share) { return std::to_string(std::lround(share * 100)) + "%"; };
    table.notes.push_back(percent(cycles.period_confidence) + " that a cycle is one step, " +
                          percent(cycles.phase_confidence) + " that a step begins where the cycle does");
  }
  table.notes.insert(table.notes.end(), cycles.notes.begin(), cycles.notes.end());
  return table;
}

/// As JSON, text and Markdown.
using Forms = std::array<std::string, 3>;

Forms forms_of(const culprit::Comparison& comparison) {
  return {culprit::to_json(comparison), culprit::to_text(comparison), culprit::to_markdown(comparison)};
}

nb::tuple tuple_of(const Forms& forms) { return nb::make_tuple(text(forms[0]), text(forms[1]), text(forms[2])); }

culprit::CycleOptions cycle_options(const std::string& anchor, const std::string& phase, unsigned skip,
                                    const culprit::Task& task) {
  culprit::CycleOptions options;
  options.anchor = anchor;
  options.phase = phase;
  options.skip = skip;
  options.task = task;
  return options;
}

}  // namespace

NB_MODULE(_culprit, module) {
  nb::set_leak_warnings(false);  // threads that nobody waits for hold what they have when Python ends
  module.doc() = "Traces of GPU workloads: what the package culprit stands on.";

  nb::class_<TablePointer>(module, "Table")
      .def_prop_ro("key", [](const TablePointer& t) { return text(t->key); })
      .def_prop_ro("title", [](const TablePointer& t) { return text(t->title); })
      .def_prop_ro("notes",
                   [](const TablePointer& t) {
                     nb::list notes;
                     for (const std::string& note : t->notes) notes.append(text(note));
                     return notes;
                   })
      .def_prop_ro("columns",
                   [](const TablePointer& t) {
                     std::vector<std::string> keys;
                     for (const ArrowColumn& column : t->columns) keys.push_back(column.key);
                     return keys;
                   })
      .def("values", [](const TablePointer& t, std::size_t column) { return values(*t, column); })
      .def("cell",
           [](const TablePointer& t, std::size_t column, std::size_t row) {
             if (column >= t->columns.size() || row >= t->rows) throw nb::index_error("no such cell");
             return cell(t->columns[column], row);
           })
      .def("stream", &stream_of)
      .def("__len__", [](const TablePointer& t) { return t->rows; });
  module.def("table_of_lists", &table_of_lists);
  module.def("end_calls", [] {
    const nb::gil_scoped_release release;
    Calls::own().end_all();
  });
  nb::module_::import_("atexit").attr("register")(module.attr("end_calls"));

  nb::class_<culprit::Run>(module, "Run")
      .def("slices",
           [](const culprit::Run& run) {
             return interruptible([&](const culprit::Task& task) {
               return shared_one(task, culprit::Result<culprit::Frame>(culprit::slices(run, task)));
             });
           })
      .def("counters",
           [](const culprit::Run& run) {
             return interruptible([&](const culprit::Task& task) {
               return shared_one(task, culprit::Result<culprit::Frame>(culprit::counters(run, task)));
             });
           })
      .def("markers",
           [](const culprit::Run& run) {
             return interruptible([&](const culprit::Task& task) {
               return shared_one(task, culprit::Result<culprit::Frame>(culprit::markers(run, task)));
             });
           })
      .def("devices",
           [](const culprit::Run& run) {
             return interruptible([&](const culprit::Task& task) {
               return shared_one(task, culprit::Result<culprit::Frame>(culprit::devices(run)));
             });
           })
      .def("extent",
           [](const culprit::Run& run) {
             const culprit::Extent extent = culprit::extent_of(run);
             nb::list files;
             for (const std::string& file : extent.files) files.append(text(file));
             return nb::make_tuple(files, extent.ranks, extent.slices, extent.on_devices, extent.duration_ns);
           })
      .def("losses",
           [](const culprit::Run& run) {
             nb::list list;
             for (const culprit::Loss& loss : culprit::losses(run)) {
               nb::dict entry;
               entry["reason"] = loss.reason;
               entry["severity"] = loss.severity;
               entry["meaning"] = loss.meaning;
               entry["remedy"] = loss.remedy;
               entry["first_seen"] = text(loss.first_seen);
               entry["count"] = loss.count;
               list.append(entry);
             }
             return list;
           })
      .def("cycles",
           [](const culprit::Run& run, const std::string& anchor, const std::string& phase, unsigned skip) {
             return interruptible([&](const culprit::Task& task) -> culprit::Result<TablePointer> {
               const auto cycles = culprit::find_cycles(run, cycle_options(anchor, phase, skip, task));
               if (!cycles) return cycles.error();
               return shared(cycle_table(*cycles));
             });
           })
      .def("profile",
           [](const culprit::Run& run, const std::string& anchor, const std::string& phase, unsigned skip) {
             return list_of(
                 interruptible([&](const culprit::Task& task) -> culprit::Result<std::array<TablePointer, 5>> {
                   auto profile = culprit::profile_run(run, cycle_options(anchor, phase, skip, task));
                   if (!profile) return profile.error();
                   return shared_all(task, std::move(profile->cycles), std::move(profile->functions),
                                     std::move(profile->resources), std::move(profile->counters),
                                     std::move(profile->ledger));
                 }));
           })
      .def("top",
           [](const culprit::Run& run, const std::string& by, const std::vector<std::string>& classes,
              const std::string& filter, const std::string& sort, bool reverse, std::size_t limit,
              const std::string& anchor) {
             return interruptible([&](const culprit::Task& task) {
               return shared_one(task, culprit::top(run, {by, classes, filter, sort, reverse, limit, anchor, task}));
             });
           })
      .def("kernels",
           [](const culprit::Run& run) {
             return list_of(
                 interruptible([&](const culprit::Task& task) -> culprit::Result<std::array<TablePointer, 3>> {
                   auto kernels = culprit::kernels_of(run, task);
                   if (!kernels) return kernels.error();
                   return shared_all(task, std::move(kernels->launches), std::move(kernels->names),
                                     std::move(kernels->classes));
                 }));
           })
      .def("kernel_blocks",
           [](const culprit::Run& run) {
             return interruptible(
                 [&](const culprit::Task& task) { return shared_one(task, culprit::kernel_blocks(run, task)); });
           })
      .def("fusion", [](const culprit::Run& run) {
        return interruptible(
            [&](const culprit::Task& task) { return shared_one(task, culprit::fusion_candidates(run, task)); });
      });

  const auto load_options = [](unsigned threads, std::uint64_t max_expansion, const culprit::Task& task) {
    culprit::LoadOptions options;
    options.threads = threads;
    options.max_expansion = max_expansion;
    options.task = task;
    return options;
  };
  module.def("load_run",
             [load_options](const std::vector<nb::bytes>& given, unsigned threads, std::uint64_t expansion) {
               const std::vector<std::string> paths = paths_of(given);
               return interruptible([&](const culprit::Task& task) {
                 return culprit::load_run(paths, load_options(threads, expansion, task));
               });
             });
  module.def("load_recordings",
             [load_options](const std::vector<nb::bytes>& given, unsigned threads, std::uint64_t expansion) {
               const std::vector<std::string> paths = paths_of(given);
               return interruptible([&](const culprit::Task& task) {
                 return culprit::load_recordings(paths, load_options(threads, expansion, task));
               });
             });
  module.def("compare", [](const std::vector<culprit::Run>& baseline, const std::vector<culprit::Run>& candidate,
                           const std::string& anchor, double tolerance, const std::vector<culprit::Run>& earlier) {
    return tuple_of(interruptible([&](const culprit::Task& task) -> culprit::Result<Forms> {
      culprit::CompareOptions options;
      options.anchor = anchor;
      options.tolerance = tolerance;
      options.task = task;
      const auto comparison = culprit::compare_runs(baseline, candidate, options, earlier);
      if (!comparison) return comparison.error();
      return forms_of(*comparison);
    }));
  });
  module.def("are_profile_tables", [](const std::vector<nb::bytes>& baseline, const std::vector<nb::bytes>& candidate) {
    return taken(culprit::are_profile_tables(paths_of(baseline), paths_of(candidate)));
  });
  module.def("compare_tables", [](const nb::bytes& baseline, const nb::bytes& candidate, const std::string& anchor,
                                  double tolerance, unsigned threads, std::uint64_t expansion, bool history) {
    const std::vector<std::string> paths = paths_of({baseline, candidate});
    using Named = std::vector<std::pair<std::string, Forms>>;
    const Named all = interruptible([&](const culprit::Task& task) -> culprit::Result<Named> {
      culprit::TableOptions options;
      options.tolerance = tolerance;
      options.task = task;
      options.anchor = anchor;
      options.threads = threads;
      options.max_expansion = expansion;
      options.history = history;
      const auto compared = culprit::compare_tables(paths[0], paths[1], options);
      if (!compared) return compared.error();
      Named named;
      for (const culprit::ProcessComparison& one : *compared) {
        if (task.stop.stop_requested()) return culprit::Error{culprit::ErrorKind::cancelled, "cancelled", {}, {}};
        named.emplace_back(one.name, forms_of(one.comparison));
      }
      return named;
    });
    nb::list list;
    for (const auto& [name, forms] : all) list.append(nb::make_tuple(text(name), tuple_of(forms)));
    return list;
  });
}
