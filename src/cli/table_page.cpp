#include "cli/table_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/cli.h"
#include "deepdive/comparison_report.h"
#include "deepdive/comparison_text.h"
#include "report/html.h"

namespace culprit::cli {

namespace {

constexpr std::size_t kMostCycles = 4000;
constexpr std::size_t kMostFindings = 100;
constexpr std::size_t kMostPoints = 100;
constexpr double kNsPerUs = 1e3;
constexpr std::string_view kHost = "Host";
constexpr std::string_view kOnlyDevice = "GPU";

/// Means of as many neighbours as make few enough.
std::vector<double> thinned(const std::vector<double>& values) {
  const std::size_t of = (values.size() + kMostPoints - 1) / kMostPoints;
  std::vector<double> means;
  for (std::size_t begin = 0; begin < values.size(); begin += of) {
    const std::size_t end = std::min(begin + of, values.size());
    double sum = 0;
    for (std::size_t i = begin; i < end; ++i) sum += values[i];
    means.push_back(sum / static_cast<double>(end - begin));
  }
  return means;
}

/// Those with rows of the process and a duration, by their begins; those of unknown begins by their numbers.
std::vector<std::uint32_t> cycles_of(const deepdive::Profile& profile, std::int64_t pid) {
  std::vector<bool> seen(profile.cycles.size());
  std::vector<std::uint32_t> cycles;
  for (const deepdive::FunctionUse& use : profile.functions) {
    if (profile.processes[use.process].pid != pid || seen[use.cycle]) continue;
    seen[use.cycle] = true;
    if (profile.cycles[use.cycle].duration_us > 0) cycles.push_back(use.cycle);
  }
  const auto is_known = [&](std::uint32_t c) { return std::isfinite(profile.cycles[c].begin_us); };
  if (std::ranges::all_of(cycles, is_known))
    std::ranges::stable_sort(cycles, {}, [&](std::uint32_t c) { return profile.cycles[c].begin_us; });
  else
    std::ranges::stable_sort(cycles, {}, [&](std::uint32_t c) { return profile.cycles[c].number; });
  return cycles;
}

model::PictureCycles drawn_cycles(const deepdive::Profile& profile, const std::vector<std::uint32_t>& cycles) {
  model::PictureCycles drawn;
  drawn.all = cycles.size();
  const std::size_t count = std::min(cycles.size(), kMostCycles);
  double behind = 0;  // where no begin is known they follow each other
  for (std::size_t i = 0; i < count; ++i) {
    const deepdive::ProfileCycle& cycle = profile.cycles[cycles[i * cycles.size() / count]];
    const double since = cycle.begin_us - profile.cycles[cycles.front()].begin_us;
    drawn.at.push_back(static_cast<Ns>(std::llround((std::isfinite(since) ? since : behind) * kNsPerUs)));
    drawn.period.push_back(static_cast<Ns>(std::llround(cycle.duration_us * kNsPerUs)));
    behind += cycle.duration_us;
  }
  return drawn;
}

/// The only device of each side is "GPU" in a comparison, whatever its number.
bool has_one_device(const model::RunComparison& compared) {
  return std::ranges::any_of(compared.functions,
                             [&](const model::FunctionFinding& f) { return compared.texts[f.device] == kOnlyDevice; });
}

model::RunPicture picture_of(const deepdive::Profile& profile, std::int64_t pid, const model::RunComparison& compared) {
  model::RunPicture picture;
  picture.file = profile.input.file;
  const std::vector<std::uint32_t> cycles = cycles_of(profile, pid);
  if (cycles.empty()) return picture;
  picture.cycles.push_back(drawn_cycles(profile, cycles));
  picture.steps = picture.cycles;
  std::vector<std::size_t> place(profile.cycles.size(), cycles.size());
  for (std::size_t i = 0; i < cycles.size(); ++i) place[cycles[i]] = i;
  std::map<std::pair<std::string_view, std::string_view>, std::vector<double>> times;
  const std::size_t findings = std::min(compared.functions.size(), kMostFindings);
  for (std::size_t i = 0; i < findings; ++i) {
    const model::FunctionFinding& f = compared.functions[i];
    times[{compared.texts[f.function], compared.texts[f.device]}].resize(cycles.size());
  }
  const bool only = has_one_device(compared);
  for (const deepdive::FunctionUse& use : profile.functions) {
    if (profile.processes[use.process].pid != pid || place[use.cycle] == cycles.size() || !(use.duration_us >= 0))
      continue;
    const std::string_view device = profile.texts[use.device];
    const auto found = times.find({profile.texts[use.function], only && device != kHost ? kOnlyDevice : device});
    if (found != times.end()) found->second[place[use.cycle]] += use.duration_us * kNsPerUs;
  }
  for (std::size_t i = 0; i < findings; ++i) {
    const model::FunctionFinding& f = compared.functions[i];
    const std::string_view device = compared.texts[f.device];
    picture.functions.push_back({.function = std::string(compared.texts[f.function]),
                                 .pid = pid,
                                 .device = device != kHost,
                                 .finding = i,
                                 .ns = thinned(times.at({compared.texts[f.function], device}))});
  }
  return picture;
}

}  // namespace

std::array<model::RunPicture, 2> pictures_of_tables(const deepdive::Profile& base, const deepdive::Profile& candidate,
                                                    const deepdive::ProcessPair& processes,
                                                    const model::RunComparison& compared) {
  return {picture_of(base, processes.base_pid, compared), picture_of(candidate, processes.candidate_pid, compared)};
}

Result<std::string> table_page(const deepdive::Comparison& comparison, const deepdive::ComparisonSet& set,
                               const model::RunComparison& compared, const std::array<model::RunPicture, 2>& pictures) {
  const deepdive::NameStyle style{[&](StringId id) { return std::string(comparison.texts[id]); },
                                  [](std::string_view text) { return std::string(text); }};
  report::HtmlPage page{"diff", CULPRIT_VERSION, {}};
  for (const deepdive::ComparisonSide& side : comparison.sides)
    page.files.push_back(fmt::format("{} (process {})", side.file, side.pid));
  page.tables.push_back(deepdive::comparison_table(comparison));
  for (std::string& note : deepdive::comparison_notes(comparison, set, style))
    page.tables.back().notes.push_back(std::move(note));
  return report::comparison_html(page, compared, pictures);
}

}  // namespace culprit::cli
