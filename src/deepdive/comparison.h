// What the reference's comparison of two profiles found.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/string_table.h"
#include "deepdive/profile.h"
#include "model/verdict.h"

namespace culprit::deepdive {

/// How the two processes of a comparison were matched.
enum class Pairing : std::uint8_t {
  strict,  ///< the same process id on both sides
  cross,   ///< a process that only the baseline has with one that only the candidate has
};

/// One side of a comparison: [0] is the baseline, [1] the candidate, everywhere.
struct ComparisonSide {
  std::string label;
  std::string file;
  std::int64_t pid = 0;
  std::vector<double> cycle_us;      ///< durations of the distinct (cycle, duration) pairs, longest first
  double mean_cycle_us = 0;          ///< over those
  std::vector<StringId> anchors;     ///< distinct, by text
  std::uint64_t rows = 0;            ///< rows of this process
  std::uint64_t rows_no_metric = 0;  ///< of these left out because no resource was measured
  std::uint64_t rows_no_name = 0;    ///< of these left out because the function has no name
};

/// One (function, metric, device) with the reference's statistics. Percent and the reference's scaled units, as printed
/// there.
struct SuspicionRow {
  StringId function = 0;
  StringId metric = 0;
  StringId device = 0;
  double score = 0;  ///< |delta_beta| (|z_beta| + |z_log_mu|)
  std::array<double, 2> beta{};
  double delta_beta = 0;
  double z_beta = 0;
  std::optional<double> p_beta;  ///< Welch; none when both sides are constant and equal
  std::optional<double> u_beta;  ///< Mann-Whitney
  std::array<double, 2> mu{};
  double delta_mu = 0;
  double z_mu = 0;
  double z_log_mu = 0;
  std::optional<double> p_mu;
  std::optional<double> u_mu;
};

/// A (function, device) with a high score, and the resources that moved with it: indices into Comparison::rows.
struct SuspicionFinding {
  std::size_t row = 0;
  std::vector<std::size_t> resources;
};

/// A (function, device) that is in the profiles but in no row, because none of its resources was measured.
struct UnscoredFunction {
  StringId function = 0;
  StringId device = 0;
  std::array<double, 2> beta{};  ///< mean percent per cycle, absent cycles as 0
};

struct Comparison {
  StringTable texts;
  Pairing pairing = Pairing::strict;
  std::string identifier;  ///< which case this is, for people
  std::string base_name;   ///< of the files written, without ending
  std::array<ComparisonSide, 2> sides;
  std::vector<SuspicionRow> rows;          ///< score descending, then function, metric, device
  std::vector<SuspicionFinding> findings;  ///< at most three, in the order of rows
  std::vector<UnscoredFunction> unscored;  ///< largest change of beta first
  bool anchors_differ = false;
  // What the reference does not say.
  std::string outcome;                   ///< of the cycle durations; empty: the anchors differ
  std::vector<model::Verdict> verdicts;  ///< causes
  std::vector<std::string> causes;       ///< the same as lines, indented
};

/// A process or file that has no partner.
struct Unpaired {
  std::string file;
  std::optional<std::int64_t> pid;  ///< none: the whole file
  std::string why;
};

/// All comparisons of one invocation, with what was left out.
struct ComparisonSet {
  std::vector<Comparison> comparisons;
  std::vector<Unpaired> unpaired;
  std::vector<InputReport> inputs;  ///< one per file read
  std::vector<std::string> notes;
};

/// Thresholds of the reference's conclusion.
inline constexpr double kSuspicionThreshold = 10.0;
inline constexpr double kSignificant = 0.05;

}  // namespace culprit::deepdive
