#include "library/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "compare/compare_runs.h"
#include "compare/cycle_time.h"
#include "diagnose/diagnose.h"
#include "library/run_data.h"
#include "library/same_content.h"
#include "library/shared_slices.h"
#include "profile/recording.h"
#include "summary/run_picture.h"
#include "trace/recording_id.h"

namespace culprit::library {

namespace {

/// One side: a single run is measured when it is known that it may be compared, several are at once.
struct SideOfRuns {
  std::vector<Run> runs;
  std::vector<std::uint64_t> digests;  ///< of `runs`
  std::vector<bool> are_parts;         ///< of `runs`: of a recording that is given, too
  std::uint64_t digest = 0;            ///< of all files
  std::optional<profile::Outline> outline;
  std::vector<model::Recording> recordings;
  std::optional<Error> error;
};

/// Runs both at the same time. What one throws, this throws when both have ended.
template <class Work>
void side_by_side(std::array<SideOfRuns, 2>& sides, const Work& work) {
  std::exception_ptr thrown;
  {
    std::jthread other([&] {
      try {
        work(sides[1]);
      } catch (...) {
        thrown = std::current_exception();
      }
    });
    work(sides[0]);
  }
  if (thrown) std::rethrow_exception(thrown);
}

void outline(SideOfRuns& side, const profile::RecordingOptions& options) {
  if (side.runs.size() == 1) {
    auto found = profile::outline_of(side.runs[0].data().trace, files_of(side.runs[0]), options);
    if (!found) {
      side.error = found.error();
      return;
    }
    found->recording.digest = side.digests[0];
    found->recording.is_part = side.are_parts[0];
    side.outline = std::move(*found);
    return;
  }
  std::vector<Run> runs = std::move(side.runs);
  for (std::size_t r = runs.size(); r-- > 0;) {
    auto recording = profile::recording_of(runs[r].data().trace, files_of(runs[r]), options);
    runs.pop_back();
    if (!recording) {
      side.error = recording.error();
      return;
    }
    recording->digest = side.digests[r];
    recording->is_part = side.are_parts[r];
    side.recordings.insert(side.recordings.begin(), std::move(*recording));
  }
}

/// Of a single run the recording, with its profile when `whole`.
void take(SideOfRuns& side, bool whole, const Task& task) {
  if (!side.outline) return;
  if (whole) {
    auto recording = profile::complete(side.runs[0].data().trace, std::move(*side.outline), task);
    if (recording)
      side.recordings.push_back(std::move(*recording));
    else
      side.error = recording.error();
  } else {
    side.recordings.push_back(std::move(side.outline->recording));
  }
  side.outline.reset();
  side.runs.clear();
}

std::span<const model::Recording> seen(const SideOfRuns& side) {
  return side.outline ? std::span<const model::Recording>(&side.outline->recording, 1)
                      : std::span<const model::Recording>(side.recordings);
}

std::set<std::string> devices_of(const SideOfRuns& side) {
  std::set<std::string> models;
  for (const model::Recording& recording : seen(side))
    models.insert(recording.facts.device_models.begin(), recording.facts.device_models.end());
  return models;
}

/// An earlier recording of the same, without its trace.
struct Before {
  model::Recording recording;
  std::vector<FileState> files;
  std::string id;  ///< of the recording, whatever it was exported to
  std::vector<ChosenSlice> slices;
};

Result<std::vector<Before>> outlines_of(const std::vector<Earlier>& earlier, const profile::RecordingOptions& options) {
  std::vector<Before> all;
  for (const Earlier& load : earlier) {
    const auto runs = load();
    if (!runs) return runs.error();
    for (const Run& run : *runs) {
      auto outline = profile::outline_of(run.data().trace, files_of(run), options);
      if (!outline) return outline.error();
      all.push_back({std::move(outline->recording), run.data().files, std::string(recording_id(run.data().trace)),
                     choose_slices(run.data().trace)});
    }
  }
  return all;
}

/// A run in a row of several, of whichever side.
struct Placed {
  const std::vector<ChosenSlice>* chosen = nullptr;
  std::size_t slices = 0;  ///< of the trace
  bool is_part = false;
};

/// Gives a copy that was cut the numbers of what it was cut from, and marks it.
void number_parts(std::vector<Placed>& places, std::vector<std::vector<std::uint64_t>>& numbers) {
  for (std::size_t i = 1; i < places.size(); ++i)
    for (std::size_t k = 0; k < i; ++k) {
      if (!are_of_one_recording(*places[k].chosen, *places[i].chosen)) continue;
      numbers[i] = numbers[k];
      if (places[i].slices != places[k].slices)
        (places[i].slices < places[k].slices ? places[i] : places[k]).is_part = true;
      break;
    }
}

void number_contents(std::array<SideOfRuns, 2>& sides, std::vector<Before>& earlier) {
  std::vector<std::vector<FileState>> lists;
  for (const SideOfRuns& side : sides)
    for (const Run& run : side.runs) lists.push_back(run.data().files);
  for (const Before& before : earlier) lists.push_back(before.files);
  auto numbers = content_numbers(lists);
  std::map<const Run::Data*, std::size_t> known;     // one run in two places, whatever it was read from
  std::map<std::string_view, std::size_t> recorded;  // and a recording beside what it was exported to
  std::vector<Placed> places;
  std::map<const Run::Data*, std::vector<ChosenSlice>> slices;
  std::size_t place = 0;
  for (const SideOfRuns& side : sides)
    for (const Run& run : side.runs) {
      const auto [it, fresh] = known.try_emplace(&run.data(), place);
      if (!fresh) numbers[place] = numbers[it->second];
      const std::string_view id = recording_id(run.data().trace);
      if (!id.empty()) numbers[place] = numbers[recorded.try_emplace(id, place).first->second];
      if (fresh) slices[&run.data()] = choose_slices(run.data().trace);
      places.push_back({&slices[&run.data()], run.data().trace.slices.size()});
      ++place;
    }
  for (const Before& before : earlier) {
    if (!before.id.empty()) numbers[place] = numbers[recorded.try_emplace(before.id, place).first->second];
    places.push_back({&before.slices, before.recording.events});
    ++place;
  }
  number_parts(places, numbers);
  std::size_t next = 0;
  for (SideOfRuns& side : sides) {
    std::vector<std::uint64_t> all;
    for (std::size_t r = 0; r < side.runs.size(); ++r, ++next) {
      side.digests.push_back(digest_of(numbers[next]));
      side.are_parts.push_back(places[next].is_part);
      all.insert(all.end(), numbers[next].begin(), numbers[next].end());
    }
    side.digest = digest_of(std::move(all));
  }
  for (Before& before : earlier) before.recording.digest = digest_of(numbers[next++]);
}

}  // namespace

Status check_tolerance(double tolerance) {
  if (tolerance > 0 && tolerance < 1) return {};
  return usage_error(fmt::format("tolerance {} is no share between 0 and 1", tolerance), "0.03 is 3 %");
}

Result<model::RunComparison> compare(std::vector<Run> baseline, std::vector<Run> candidate,
                                     const CompareOptions& options, const std::vector<Earlier>& earlier,
                                     std::array<model::RunPicture, 2>* pictures) {
  for (const auto* side : {&baseline, &candidate})
    if (side->empty()) return usage_error("a side has no recording", "give at least one on each side");
  if (Status status = check_tolerance(options.tolerance); !status) return status.error();
  std::array<SideOfRuns, 2> sides;
  sides[0].runs = std::move(baseline);
  sides[1].runs = std::move(candidate);
  compare::CompareOptions how;
  how.tolerance = options.tolerance;

  std::array<std::optional<Run>, 2> drawn;
  if (pictures != nullptr)
    for (std::size_t s = 0; s < drawn.size(); ++s) drawn[s] = sides[s].runs.front();

  std::mutex reporting;
  Task task = options.task;
  if (task.progress)
    task.progress = [&](std::string_view step, std::uint64_t done, std::uint64_t total) {
      const std::scoped_lock lock(reporting);
      options.task.report(step, done, total);
    };
  const profile::RecordingOptions recording{.anchor = options.anchor, .task = task};
  auto before = outlines_of(earlier, recording);
  if (!before) return before.error();
  number_contents(sides, *before);
  const auto failed = [&]() -> std::optional<Error> {
    if (task.stop.stop_requested()) return cancelled_error();
    return sides[0].error ? sides[0].error : sides[1].error;
  };

  if (sides[0].digest == sides[1].digest) {
    outline(sides[0], recording);
    if (const auto error = failed()) return *error;
    take(sides[0], false, task);
    sides[1].recordings.resize(sides[0].recordings.size());
    for (std::size_t i = 0; i < sides[1].recordings.size(); ++i) {
      sides[1].recordings[i].digest = sides[0].recordings[i].digest;
      sides[1].recordings[i].is_part = sides[1].are_parts[i];
    }
    return compare::compare_runs(std::move(sides[0].recordings), std::move(sides[1].recordings), how);
  }
  side_by_side(sides, [&](SideOfRuns& side) { outline(side, recording); });
  if (const auto error = failed()) return *error;
  // Of devices of one model the resources are compared whatever their steps are; of several recordings of a side some
  // may be left out, and the rest is compared.
  const std::set<std::string> devices = devices_of(sides[0]);
  const bool whole = std::ranges::any_of(sides, [](const SideOfRuns& side) { return seen(side).size() > 1; }) ||
                     (!devices.empty() && devices == devices_of(sides[1])) ||
                     compare::comparability_of(seen(sides[0]), seen(sides[1])).level != model::Comparable::no;
  side_by_side(sides, [&](SideOfRuns& side) { take(side, whole, task); });
  if (const auto error = failed()) return *error;
  if (pictures != nullptr) {
    const auto phase = summary::usual_phase(sides[0].recordings[0].cycles, sides[1].recordings[0].cycles);
    for (std::size_t s = 0; s < drawn.size(); ++s) {
      (*pictures)[s] = summary::run_picture(drawn[s]->data().trace, sides[s].recordings[0], phase,
                                            compare::picture_steps(sides[s].recordings[0].cycles));
      drawn[s].reset();
    }
  }
  std::vector<model::Recording> recordings;
  for (Before& one : *before) recordings.push_back(std::move(one.recording));
  if (task.stop.stop_requested()) return cancelled_error();
  auto compared =
      compare::compare_runs(std::move(sides[0].recordings), std::move(sides[1].recordings), how, recordings);
  if (!compared) return compared;
  if (task.stop.stop_requested()) return cancelled_error();
  compared->verdicts = diagnose::diagnose(*compared);
  if (pictures != nullptr)
    for (std::size_t s = 0; s < pictures->size(); ++s) summary::keep_what_matters((*pictures)[s], *compared, s);
  return compared;
}

}  // namespace culprit::library
