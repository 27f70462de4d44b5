// Which profile tables of a directory belong together: a normal and an abnormal run of the same case (rules of the
// reference).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "deepdive/comparison.h"
#include "deepdive/profile.h"

namespace culprit::deepdive {

/// Two tables of one case.
struct FilePair {
  std::filesystem::path base;
  std::filesystem::path candidate;
  std::string identifier;  ///< the case, relative to where the search began, with '/'
  std::string job;
  std::string suffix;  ///< "", "_prefill", "_decode", ...
};

struct FilePairs {
  std::vector<FilePair> pairs;
  std::vector<Unpaired> unpaired;
};

/// "result_decode_perf_data.csv" is job "result" and suffix "_decode".
struct JobName {
  std::string job;
  std::string suffix;
};
JobName split_job_name(std::string_view file_name);

/// Every `*_perf_data.csv` under `directory`, absolute, sorted; symbolic links to directories are not followed.
Result<std::vector<std::filesystem::path>> find_profile_tables(const std::filesystem::path& directory);

/// Pairs each file under a `normal_perf_data` with its partner in `abnormal_perf_data` of the same case. `files` are
/// absolute and sorted; identifiers are relative to `root`. Files without a partner are returned, too.
FilePairs pair_files(const std::vector<std::filesystem::path>& files, const std::filesystem::path& root);

/// Two processes to compare.
struct ProcessPair {
  Pairing pairing = Pairing::strict;
  std::int64_t base_pid = 0;
  std::int64_t candidate_pid = 0;
};

struct ProcessPairs {
  std::vector<ProcessPair> pairs;
  std::vector<std::int64_t> base_only;  ///< process ids without a partner
  std::vector<std::int64_t> candidate_only;
};

/// Equal process ids are compared strictly; when both sides also have ids of their own, each of one with each of the
/// other.
ProcessPairs pair_processes(const Profile& base, const Profile& candidate);

/// Name of the files of one comparison, without ending: everything outside [A-Za-z0-9_.-] becomes '_'.
std::string comparison_base_name(const FilePair& files, const ProcessPair& processes);

}  // namespace culprit::deepdive
