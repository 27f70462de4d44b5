#include "deepdive/pairing.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <set>
#include <system_error>

namespace culprit::deepdive {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kTableEnd = "_perf_data.csv";
constexpr std::string_view kNormal = "normal_perf_data";
constexpr std::string_view kAbnormal = "abnormal_perf_data";

bool under_normal(const fs::path& file) {
  return std::any_of(file.begin(), file.end(), [](const fs::path& part) { return part == kNormal; });
}

/// File names that may be the partner, the best first.
std::vector<std::string> partner_names(const fs::path& file, const JobName& name) {
  const std::string same = file.filename().string();
  if (name.suffix == "_prefill") return {same};
  if (name.suffix.empty()) return {same, name.job + "_decode" + std::string(kTableEnd)};
  if (name.suffix == "_decode") return {same, name.job + std::string(kTableEnd)};
  return {};
}

std::vector<std::int64_t> process_ids(const Profile& profile) {
  std::vector<std::int64_t> ids;
  ids.reserve(profile.processes.size());
  for (const auto& process : profile.processes) ids.push_back(process.pid);
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

/// One '_' for every character that is not allowed; the bytes of one UTF-8 sequence are one character.
std::string sanitised(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool allowed =
        (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '-';
    const bool continuation = (static_cast<unsigned char>(c) & 0xC0u) == 0x80u;
    if (allowed)
      out += c;
    else if (!continuation)
      out += '_';
  }
  return out;
}

}  // namespace

JobName split_job_name(std::string_view file_name) {
  if (file_name.ends_with(kTableEnd)) file_name.remove_suffix(kTableEnd.size());
  std::string_view job = file_name;
  for (bool cut = true; cut;) {
    cut = false;
    for (const std::string_view phase : {"_prefill", "_decode", "_layer"}) {
      if (!job.ends_with(phase) || job.size() == phase.size()) continue;
      job.remove_suffix(phase.size());
      cut = true;
    }
  }
  return {std::string(job), std::string(file_name.substr(job.size()))};
}

Result<std::vector<fs::path>> find_profile_tables(const fs::path& directory) {
  std::error_code code;
  const fs::path root = fs::canonical(directory, code);
  if (code)
    return input_error(fmt::format("cannot be opened: {}", code.message()), directory.string(), "check the name");
  std::vector<fs::path> files;
  auto walk = fs::recursive_directory_iterator(root, fs::directory_options::skip_permission_denied, code);
  for (const auto end = fs::recursive_directory_iterator(); !code && walk != end; walk.increment(code)) {
    std::error_code ignored;
    if (walk->path().filename().string().ends_with(kTableEnd) && walk->is_regular_file(ignored))
      files.push_back(walk->path());
  }
  if (code)
    return input_error(fmt::format("cannot be searched: {}", code.message()), directory.string(),
                       "check its permissions");
  std::sort(files.begin(), files.end());
  return files;
}

FilePairs pair_files(const std::vector<fs::path>& files, const fs::path& root) {
  FilePairs result;
  const std::set<fs::path> known(files.begin(), files.end());
  std::set<fs::path> used;
  for (const fs::path& file : files) {
    if (!under_normal(file)) continue;
    const fs::path case_directory = file.parent_path().parent_path();
    const JobName name = split_job_name(file.filename().string());
    const auto candidates = partner_names(file, name);
    const auto found = std::find_if(candidates.begin(), candidates.end(), [&](const std::string& partner) {
      return known.contains(case_directory / kAbnormal / partner);
    });
    if (found == candidates.end()) {
      result.unpaired.push_back(
          {file.string(), std::nullopt,
           candidates.empty()
               ? fmt::format("tables ending in '{}{}' are never paired", name.suffix, kTableEnd)
               : fmt::format("no {} in {}", fmt::join(candidates, " or "), (case_directory / kAbnormal).string())});
      continue;
    }
    const fs::path partner = case_directory / kAbnormal / *found;
    result.pairs.push_back(
        {file, partner, case_directory.lexically_relative(root).generic_string(), name.job, name.suffix});
    used.insert(file);
    used.insert(partner);
  }
  for (const fs::path& file : files)
    if (!used.contains(file) && !under_normal(file))
      result.unpaired.push_back(
          {file.string(), std::nullopt,
           file.parent_path().filename() == kAbnormal
               ? fmt::format("no table in {} belongs to it", (file.parent_path().parent_path() / kNormal).string())
               : "it lies in no normal_perf_data or abnormal_perf_data"});
  return result;
}

ProcessPairs pair_processes(const Profile& base, const Profile& candidate) {
  const auto base_ids = process_ids(base);
  const auto candidate_ids = process_ids(candidate);
  ProcessPairs result;
  std::vector<std::int64_t> common;
  std::set_intersection(base_ids.begin(), base_ids.end(), candidate_ids.begin(), candidate_ids.end(),
                        std::back_inserter(common));
  for (const std::int64_t pid : common) result.pairs.push_back({Pairing::strict, pid, pid});
  std::set_difference(base_ids.begin(), base_ids.end(), common.begin(), common.end(),
                      std::back_inserter(result.base_only));
  std::set_difference(candidate_ids.begin(), candidate_ids.end(), common.begin(), common.end(),
                      std::back_inserter(result.candidate_only));
  if (result.base_only.empty() || result.candidate_only.empty()) return result;
  for (const std::int64_t a : result.base_only)
    for (const std::int64_t b : result.candidate_only) result.pairs.push_back({Pairing::cross, a, b});
  result.base_only.clear();
  result.candidate_only.clear();
  return result;
}

std::string comparison_base_name(const FilePair& files, const ProcessPair& processes) {
  const bool strict = processes.pairing == Pairing::strict;
  const std::string which = strict ? fmt::format("_pid{}", processes.base_pid)
                                   : fmt::format("_n_pid{}_vs_a_pid{}", processes.base_pid, processes.candidate_pid);
  return sanitised(files.identifier + files.suffix + which) + (strict ? "_strict_comparison" : "_cross_comparison");
}

}  // namespace culprit::deepdive
