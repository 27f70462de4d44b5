// From what single pairs of runs or turns measured to an answer. The two of a pair are neighbours in time and their
// order was drawn by lot, so what the machine does hits both alike, and the differences of pairs are symmetric about
// the true one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "compare/workload.h"
#include "model/alternation.h"
#include "stats/signed_rank.h"

namespace culprit::ab {

/// One step, or one run.
struct Value {
  std::uint32_t pair = 0;
  std::uint8_t side = 0;  ///< 0: baseline
  model::Phase phase = model::Phase::other;
  compare::WorkClass work;
  double value = 0;  ///< positive; others are left out
};

/// What all pairs say of one phase before it is asked how sure that is.
struct Differences {
  model::PairedChange change;
  std::vector<double> logs;                   ///< one per pair, in order: candidate over baseline, of like work
  std::vector<std::array<double, 2>> sums{};  ///< one per pair: arithmetic means of both sides, of like work
};

/// By phase, that with the most time first. Inside of a pair values of like work are held against each other: the
/// difference of their mean logarithms, kinds of work weighted by their counts, n_a n_b / (n_a + n_b). Pairs without
/// like work on both sides have no difference. `values` by pair. Of more than kMostDifferences neighbours are averaged,
/// because an interval takes the square of their number.
std::vector<Differences> differences_of(std::span<const Value> values);

/// What one start of both sides says alone, in logarithms.
struct Start {
  double change = 0;
  double error = 0;   ///< standard error, memory between pairs paid
  bool same = false;  ///< all of its pairs had this change
};

/// How much starts of the same program differ: a process keeps for life where its memory came to lie, which turns do
/// not average out. As a standard deviation of the logarithm of candidate over baseline, known as well as from so many
/// starts; of none: these very processes are asked for, or each value is of a start of its own.
struct StartSpread {
  double spread = 0;
  double starts = 0;
};

/// Of starts together, each weighed by its error and the spread between them, which those given tell, too.
struct Together {
  double change = 0;
  double error = 0;
  double spread = 0;   ///< between starts
  double freedom = 0;  ///< degrees of freedom of the error
};
Together together(std::span<const Start> starts, const StartSpread& assumed);

/// What is assumed of starts of the same program before those of this run say anything.
struct Assumed {
  StartSpread usual{};
  StartSpread same{};  ///< of what all pairs have the same; of no starts: as of everything
};

/// What an interval took starts of the same to differ by.
struct Between {
  double spread = 0;
  StartSpread assumed{};
  double told = 0;    ///< by this run's starts, as much as so many tell that have no error
  bool same = false;  ///< Assumed::same was taken
};

/// How much error is allowed in all.
struct Allowed {
  double decision = 0.02;  ///< that equal sides are called different
  double interval = 0.05;  ///< that the shown interval misses the truth
};

inline constexpr std::size_t kMostDifferences = 2000;
using model::kFewestPairs;
using model::kFewestTurns;
/// The first look comes at this share of the budget at the earliest.
inline constexpr double kFirstLook = 1.0 / 32;

/// Looks while the pairs still come. Each look may err by the share of the budget that was spent since the look before
/// it, so that all looks together err by no more than is allowed (the sum of the errors bounds that of their union,
/// whatever they have in common). Late looks, which know most, are allowed most.
class Looks {
 public:
  /// `detect`: relative change that is asked for. Fewer pairs than `fewest` have no interval of their own.
  Looks(double detect, Allowed allowed, Assumed assumed = {}, std::size_t fewest = kFewestPairs)
      : detect_(detect), allowed_(allowed), assumed_(assumed), fewest_(fewest) {}

  /// Whether a look at this share of the budget, when `pairs` pairs came, is due: at halves of the budget, of halves of
  /// it and so on, from kFirstLook on.
  [[nodiscard]] bool is_due(double share, std::size_t pairs) const;
  /// Fills the intervals of `first`, the phase that decides, of all starts together, and gives the outcome: no_change
  /// when the 95 % interval lies within the effect asked for, regression or improvement when no change is excluded,
  /// else inconclusive; so also where the arithmetic mean says otherwise than the typical pair: an improvement whose
  /// mean is longer, surely or by that effect, a regression whose mean is surely shorter, no change whose mean surely
  /// moved by that effect. `share` is that of the budget, 1 at the last look, which is allowed half of all error if
  /// there were others before it.
  model::Outcome look(Differences& first, double share);
  /// The intervals alone, as of the last look: of a phase that decides nothing.
  void fill(Differences& other) const;
  /// The phase that decided in the first start comes first.
  void put_first(std::vector<Differences>& all) const;
  /// What follows is of other processes: all of this start is known, the phase that decides first.
  void end_start(std::span<const Differences> all);
  [[nodiscard]] std::size_t looks() const { return looks_; }
  /// Between starts, as the last look of the phase that decides had it.
  [[nodiscard]] const Between& between() const { return between_; }

 private:
  Between fill_interval(Differences& of, double error) const;
  [[nodiscard]] bool counts_starts() const { return assumed_.usual.starts > 0; }
  [[nodiscard]] bool all_same(const Differences& of) const;
  [[nodiscard]] const StartSpread& assumed_of(bool same) const { return same ? assumed_.same : assumed_.usual; }
  [[nodiscard]] double memory_of(const Differences& of) const;
  [[nodiscard]] std::optional<Start> start_of(const Differences& of) const;
  [[nodiscard]] std::optional<Start> start_of_total(const Differences& of) const;
  void fill_total(Differences& of) const;
  [[nodiscard]] stats::SignedRankInterval interval_of(const Differences& of, double error, Between& between) const;

  double detect_;
  Allowed allowed_;
  Assumed assumed_;
  std::size_t fewest_;
  std::map<model::Phase, std::vector<Start>> before_;
  std::map<model::Phase, std::vector<Start>> totals_before_;  // of the arithmetic means
  std::optional<model::Phase> first_;
  Between between_;
  double spent_ = 0;
  double last_ = 1;  ///< share of the error that the last look had
  std::size_t looks_ = 0;
};

}  // namespace culprit::ab
