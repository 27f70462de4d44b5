#include "formats/load.h"

#include <sys/stat.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "formats/load_files.h"
#include "trace/builder.h"
#include "trace/join.h"

namespace culprit::formats {

namespace {

using namespace model;

void append(KernelLog& log, KernelLog&& part) {
  std::vector<StringId> names(part.names.size());
  for (StringId i = 0; i < names.size(); ++i) names[i] = log.names.intern(part.names[i]);
  const auto process_base = static_cast<std::int32_t>(log.processes.size());
  const auto launch_base = static_cast<std::uint32_t>(log.launches.size());
  for (KernelLaunch launch : part.launches) {
    launch.name = names[launch.name];
    launch.short_name = names[launch.short_name];
    if (launch.process >= 0) launch.process += process_base;
    log.launches.push_back(launch);
  }
  for (KernelMetric metric : part.metrics)
    log.metrics.push_back({metric.launch + launch_base, names[metric.name], names[metric.unit], metric.value});
  std::ranges::move(part.processes, std::back_inserter(log.processes));
  std::ranges::move(part.notes, std::back_inserter(log.notes));
  std::ranges::move(part.inputs, std::back_inserter(log.inputs));
  log.names_cut = log.names_cut || part.names_cut;
}

void append(KernelSummaries& all, KernelSummaries&& part) {
  std::ranges::move(part.tables, std::back_inserter(all.tables));
  all.input.file += ", " + part.input.file;
  all.input.rows += part.input.rows;
  all.input.bad_rows += part.input.bad_rows;
  all.input.bad_cells += part.input.bad_cells;
  std::ranges::move(part.input.first, std::back_inserter(all.input.first));
}

/// The files as one run: ranks beside each other, recordings of the same seconds joined with them.
Result<Trace> merged(std::vector<KernelData>& files) {
  std::vector<Trace> traces;
  traces.reserve(files.size());
  for (KernelData& file : files) traces.push_back(std::move(std::get<Trace>(file)));
  const auto beside = std::ranges::stable_partition(traces, [](const Trace& trace) { return !is_recording(trace); });
  if (beside.empty() || beside.size() == traces.size()) return merge(std::move(traces));
  std::vector<Trace> recordings(std::make_move_iterator(beside.begin()), std::make_move_iterator(beside.end()));
  traces.erase(beside.begin(), beside.end());
  Trace run = merge(std::move(traces));
  for (Trace& recording : recordings) {
    if (Status status = belong_together(run, recording); !status) return status.error();
    run = join(std::move(run), std::move(recording));
  }
  return run;
}

}  // namespace

Result<Trace> load_run(const std::vector<std::string>& paths, const LoadOptions& options) {
  auto files = load_files(paths, Wanted::trace, options);
  if (!files) return files.error();
  return merged(*files);
}

Result<bool> copy_file(const std::string& from, const Writer& writer, const std::string& path, bool replace,
                       const LoadOptions& options) {
  struct stat status {};
  if (writer.copy == nullptr || ::stat(from.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return false;
  auto input = Input::open(from, options.stop);
  if (!input) return input.error();
  input->limit(Expansion(options.max_expansion));
  if (!writer.recognizes(input->peek(kDetectBytes), from)) return false;
  ReadOptions read{.max_expansion = options.max_expansion, .stop = options.stop};
  if (options.progress)
    read.progress = [&, total = static_cast<std::uint64_t>(status.st_size)](std::uint64_t bytes) {
      options.progress(bytes, total);
    };
  if (Status copied = writer.copy(std::move(*input), read, path, replace); !copied) return copied.error();
  return true;
}

Result<KernelData> load_kernel_data(const std::vector<std::string>& paths, const LoadOptions& options) {
  auto files = load_files(paths, Wanted::kernel_data, options);
  if (!files) return files.error();
  for (const KernelData& file : *files)
    if (file.index() != files->front().index())
      return input_error("files of different kinds cannot be one capture", paths.front(),
                         "give traces, launch logs or summary tables, not a mixture");
  if (std::holds_alternative<Trace>(files->front())) {
    auto run = merged(*files);
    if (!run) return run.error();
    return KernelData(std::move(*run));
  }
  KernelData all = std::move(files->front());
  for (std::size_t i = 1; i < files->size(); ++i) {
    if (auto* log = std::get_if<KernelLog>(&all))
      append(*log, std::move(std::get<KernelLog>((*files)[i])));
    else
      append(std::get<KernelSummaries>(all), std::move(std::get<KernelSummaries>((*files)[i])));
  }
  return all;
}

}  // namespace culprit::formats
