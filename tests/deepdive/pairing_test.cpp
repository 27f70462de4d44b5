#include "deepdive/pairing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

#include <unistd.h>

namespace culprit::deepdive {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> sorted(std::vector<fs::path> files) {
  std::sort(files.begin(), files.end());
  return files;
}

Profile with_pids(std::initializer_list<std::int64_t> pids) {
  Profile profile;
  for (const std::int64_t pid : pids) profile.processes.push_back({pid, 0});
  return profile;
}

TEST(SplitJobName, TheJobIsTheShortestPossible) {
  EXPECT_EQ(split_job_name("result_perf_data.csv").job, "result");
  EXPECT_EQ(split_job_name("result_perf_data.csv").suffix, "");
  EXPECT_EQ(split_job_name("a_b_decode_perf_data.csv").job, "a_b");
  EXPECT_EQ(split_job_name("a_b_decode_perf_data.csv").suffix, "_decode");
  EXPECT_EQ(split_job_name("a_prefill_layer_perf_data.csv").suffix, "_prefill_layer");
  EXPECT_EQ(split_job_name("a_decoder_perf_data.csv").suffix, "");
  EXPECT_EQ(split_job_name("_decode_perf_data.csv").job, "_decode");
}

TEST(PairFiles, SameNameIsPreferred) {
  const auto pairs =
      pair_files(sorted({"/r/c/normal_perf_data/x_perf_data.csv", "/r/c/abnormal_perf_data/x_perf_data.csv",
                         "/r/c/abnormal_perf_data/x_decode_perf_data.csv"}),
                 "/r");
  ASSERT_EQ(pairs.pairs.size(), 1u);
  EXPECT_EQ(pairs.pairs[0].candidate, "/r/c/abnormal_perf_data/x_perf_data.csv");
  EXPECT_EQ(pairs.pairs[0].identifier, "c");
  ASSERT_EQ(pairs.unpaired.size(), 1u);
  EXPECT_EQ(pairs.unpaired[0].file, "/r/c/abnormal_perf_data/x_decode_perf_data.csv");
}

TEST(PairFiles, UnsplitAndDecodeTablesMayStandForEachOther) {
  const auto a = pair_files(
      sorted({"/r/c/normal_perf_data/x_perf_data.csv", "/r/c/abnormal_perf_data/x_decode_perf_data.csv"}), "/r");
  ASSERT_EQ(a.pairs.size(), 1u);
  EXPECT_EQ(a.pairs[0].suffix, "");
  const auto b = pair_files(
      sorted({"/r/c/normal_perf_data/x_decode_perf_data.csv", "/r/c/abnormal_perf_data/x_perf_data.csv"}), "/r");
  ASSERT_EQ(b.pairs.size(), 1u);
  EXPECT_EQ(b.pairs[0].suffix, "_decode");
}

TEST(PairFiles, PrefillNeedsItsOwnNameAndLayersAreNeverPaired) {
  const auto pairs = pair_files(
      sorted({"/r/c/normal_perf_data/x_prefill_perf_data.csv", "/r/c/abnormal_perf_data/x_perf_data.csv",
              "/r/c/normal_perf_data/y_layer_perf_data.csv", "/r/c/abnormal_perf_data/y_layer_perf_data.csv"}),
      "/r");
  EXPECT_TRUE(pairs.pairs.empty());
  EXPECT_EQ(pairs.unpaired.size(), 4u);
}

TEST(PairFiles, CasesAreKeptApart) {
  const auto pairs = pair_files(
      sorted({"/r/a/k/normal_perf_data/x_perf_data.csv", "/r/b/k/abnormal_perf_data/x_perf_data.csv"}), "/r");
  EXPECT_TRUE(pairs.pairs.empty());
}

TEST(PairFiles, TablesElsewhereAreReported) {
  const auto pairs = pair_files({"/r/x_perf_data.csv"}, "/r");
  ASSERT_EQ(pairs.unpaired.size(), 1u);
  EXPECT_NE(pairs.unpaired[0].why.find("normal_perf_data"), std::string::npos);
}

TEST(FindProfileTables, SearchesDeeplyAndSorted) {
  const fs::path root = fs::temp_directory_path() / fs::path("culprit_pairing_" + std::to_string(::getpid()));
  fs::create_directories(root / "b" / "c");
  for (const fs::path& file :
       {root / "z_perf_data.csv", root / "b" / "c" / "y_perf_data.csv", root / "b" / "other.csv"})
    std::ofstream(file) << "x";
  const auto files = find_profile_tables(root);
  ASSERT_TRUE(files.ok());
  EXPECT_EQ(files->size(), 2u);
  EXPECT_TRUE(std::is_sorted(files->begin(), files->end()));
  fs::remove_all(root);
  EXPECT_FALSE(find_profile_tables(root).ok());
}

TEST(PairProcesses, EqualIdsAreStrict) {
  const auto pairs = pair_processes(with_pids({9, 5, 5}), with_pids({5, 9}));
  ASSERT_EQ(pairs.pairs.size(), 2u);
  EXPECT_EQ(pairs.pairs[0].base_pid, 5);
  EXPECT_EQ(pairs.pairs[0].pairing, Pairing::strict);
  EXPECT_TRUE(pairs.base_only.empty());
}

TEST(PairProcesses, RestsOnBothSidesAreCrossed) {
  const auto pairs = pair_processes(with_pids({1, 2, 5}), with_pids({5, 3, 4}));
  ASSERT_EQ(pairs.pairs.size(), 5u);
  EXPECT_EQ(pairs.pairs[1].pairing, Pairing::cross);
  EXPECT_EQ(pairs.pairs[1].base_pid, 1);
  EXPECT_EQ(pairs.pairs[1].candidate_pid, 3);
  EXPECT_EQ(pairs.pairs[4].base_pid, 2);
  EXPECT_EQ(pairs.pairs[4].candidate_pid, 4);
}

TEST(PairProcesses, ARestOnOneSideIsReported) {
  const auto pairs = pair_processes(with_pids({1, 2}), with_pids({1}));
  EXPECT_EQ(pairs.pairs.size(), 1u);
  EXPECT_EQ(pairs.base_only, std::vector<std::int64_t>{2});
  EXPECT_TRUE(pair_processes(with_pids({1}), with_pids({})).pairs.empty());
}

TEST(BaseName, IsSafeForFileSystems) {
  const FilePair files{"", "", "Pro cess:ed\\vLLM/gpu ünstable", "result", "_decode"};
  EXPECT_EQ(comparison_base_name(files, {Pairing::strict, 7, 7}),
            "Pro_cess_ed_vLLM_gpu__nstable_decode_pid7_strict_comparison");
  EXPECT_EQ(comparison_base_name(files, {Pairing::cross, 7, 8}),
            "Pro_cess_ed_vLLM_gpu__nstable_decode_n_pid7_vs_a_pid8_cross_comparison");
}

}  // namespace
}  // namespace culprit::deepdive
