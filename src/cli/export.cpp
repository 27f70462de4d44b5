#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <set>

#include "cli/cli.h"
#include "cli/output.h"
#include "core/output_file.h"
#include "formats/load.h"
#include "formats/registry.h"
#include "library/load.h"
#include "library/run_data.h"

namespace culprit::cli {

namespace {

struct ExportOptions {
  std::vector<std::string> files;
  LoadChoice load;
  std::string path;
  bool force = false;
};

/// One file per rank, "rank<N>.json.gz" in a directory; the position in the run where the rank is unknown or not
/// unique.
Result<int> export_ranks(const Trace& trace, const ExportOptions& options) {
  if (OutputFile::is_stream(options.path))
    return usage_error("several ranks do not fit one output", "name a directory with -o; every rank gets a file");
  std::error_code error;
  std::filesystem::create_directories(options.path, error);
  if (error || !std::filesystem::is_directory(options.path, error))
    return environment_error("cannot make this directory", options.path, "several ranks are written to a directory");
  std::set<std::int64_t> numbers;
  for (const Rank& rank : trace.ranks) numbers.insert(rank.rank);
  const bool by_number = numbers.size() == trace.ranks.size() && *numbers.begin() >= 0;
  std::vector<std::string> paths;
  for (std::size_t r = 0; r < trace.ranks.size(); ++r)
    paths.push_back(
        fmt::format("{}/rank{}.json.gz", options.path, by_number ? trace.ranks[r].rank : static_cast<std::int64_t>(r)));
  for (const std::string& path : paths)
    if (Status status = refuse_overwriting(path, options.files, options.force); !status) return status.error();
  for (std::size_t r = 0; r < paths.size(); ++r)
    if (Status status = formats::usual_writer().save(trace, static_cast<std::uint16_t>(r), paths[r], options.force);
        !status)
      return status.error();
  return kFine;
}

Result<int> run_export(const ExportOptions& options) {
  const bool stream = OutputFile::is_stream(options.path);
  std::error_code code;
  if (!std::filesystem::is_directory(options.path, code))
    if (Status status = refuse_overwriting(options.path, options.files, options.force); !status) return status.error();
  const formats::Writer* named = formats::writer_of(options.path);
  if (options.files.size() == 1 && !stream && named == nullptr)
    return usage_error(fmt::format("cannot tell the format from the name '{}'", options.path),
                       "end it in " + formats::written_names());
  if (named != nullptr && options.files.size() == 1) {
    Progress progress("copying", progress_sink_of_stderr());
    const LoadOptions load = load_options(options.load, progress);
    const auto copied =
        formats::copy_file(options.files.front(), *named, options.path, options.force, library::load_options(load));
    if (!copied) return copied.error();
    if (*copied) return kFine;
  }
  const auto run = load_with_progress(options.files, options.load);
  if (!run) return run.error();
  const Trace& trace = run->data().trace;
  const formats::Writer& writer = named != nullptr ? *named : formats::usual_writer();
  if (!writer.holds_ranks && trace.ranks.size() > 1) return export_ranks(trace, options);
  if (Status status = writer.save(trace, 0, options.path, options.force); !status) return status.error();
  return kFine;
}

}  // namespace

void add_export(CommandLine& app, Invocation& invocation) {
  auto* verb = app.add_subcommand("export", "write a trace as Chrome / Kineto JSON or as a Perfetto trace");
  auto options = std::make_shared<ExportOptions>();
  add_input_options(*verb, options->files, options->load);
  verb->add_option(
          "-o,--output", options->path,
          "OUT.json or OUT.json.gz, '-' for standard output; a directory when there are several ranks; "
          "OUT.perfetto-trace or OUT.pftrace for Perfetto, all ranks in one file (a Perfetto trace is copied as it "
          "is, but for damage)")
      ->required()
      ->type_name("PATH");
  add_force_option(*verb, options->force);
  verb->footer(help_footer("culprit export trace.json.zst -o trace.json.gz"));
  verb->callback([options, &invocation] { invocation.run = [options] { return run_export(*options); }; });
}

}  // namespace culprit::cli
