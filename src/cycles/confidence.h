// Every number behind a stated confidence, with its reason: how much each kind of evidence is worth, and from where on
// something counts as evidence. Confidences are probabilities; tests/cycles/generated_test.cpp holds what follows from
// them against simulated runs whose steps are known, and fails when they promise too much.
#pragma once

#include <cstddef>

namespace culprit::cycles::confidence {

// Markers
// --------------------------------------------------------------------------------------------------------------

/// The profiler writes ProfilerStep#N itself, one per step() of its schedule: wrong only where a program calls that
/// elsewhere than once per step.
inline constexpr double kProfilerStep = 0.99;
/// What people call a step or an iteration is one, but for steps inside steps (a solver's, a sampler's).
inline constexpr double kStepWord = 0.95;
/// The optimizer runs once per step, unless gradients are accumulated.
inline constexpr double kOncePerStep = 0.85;
/// ... and it stands inside the step: a step begins somewhere between two of them.
inline constexpr double kOncePerStepPhase = 0.3;
/// ... most often at its end: what follows it there (a scheduler of rates, a log) is little.
inline constexpr double kOptimizerEnds = 0.6;
/// Any other range that repeats and covers the work may be a part of a step.
inline constexpr double kOtherMarker = 0.6;
/// Numbers that start again count within something larger.
inline constexpr double kNumbersStartAgain = 0.4;
/// Off where numbers are skipped: markers were lost or lie on several threads.
inline constexpr double kNumbersSkipped = 0.05;
/// Off for a single marker: nothing shows that it repeats.
inline constexpr double kAlone = 0.05;
/// At most, for where a step begins, from shadows of markers on the GPU: they begin with the first kernel, which is
/// later than the step.
inline constexpr double kShadowPhase = 0.8;
/// At most, for where a step begins, from any marker.
inline constexpr double kMarkerPhase = 0.99;

/// Share of the recorded work between the first and the last marker below which a marker of steps is that of something
/// rare (an evaluation, a checkpoint), and below which another range is.
inline constexpr double kCoversSome = 0.3;
inline constexpr double kCoversHalf = 0.5;
/// Share from which on a marker covers the work; preferred to one that does not.
inline constexpr double kCoversWork = 0.8;
/// Share of the work inside the ranges of the anchor below which a note says where the rest is.
inline constexpr double kHoldsWork = 0.9;

// A given anchor: how regularly it comes ------------------------------------------------------------------------------

inline constexpr double kGiven = 0.95;    ///< perfectly regular
inline constexpr double kGivenFew = 0.5;  ///< two at most: no regularity to look at
inline constexpr double kGivenPart =
    0.3;  ///< at least; and at most for a part of a model, since layers are regular, too

// Host functions
// -------------------------------------------------------------------------------------------------------

/// The outermost repeated Python function that holds most of the work is usually the step; half of the rest are loops
/// inside it.
inline constexpr double kFunction = 0.7;
/// The same where nothing shows what work it holds.
inline constexpr double kFunctionWithoutWork = 0.55;
/// An operator that holds nearly all of the work: models called inside a step look like this as well.
inline constexpr double kOperator = 0.5;
/// Named as a layer, a block, attention, ...
inline constexpr double kModelPart = 0.2;
/// At most, for where a step begins: input may be prepared before the function is called.
inline constexpr double kFunctionPhase = 0.6;
/// Share of the launches that a Python function and that an operator must hold.
inline constexpr double kFunctionHolds = 0.5;
inline constexpr double kOperatorHolds = 0.8;

// A second opinion
// -----------------------------------------------------------------------------------------------------

/// From here on a marker needs none, and a sequence overrules a function.
inline constexpr double kTrusted = 0.8;
/// Two independent ways that agree, one of them trusted.
inline constexpr double kConfirmed = 0.95;
inline constexpr double kConfirmedPhase = 0.8;
/// At most, for a function or another marker that nothing confirms: wrong more often than right.
inline constexpr double kUnconfirmed = 0.45;
/// From here on a sequence is a step when a marker inside the step (the optimizer's) comes as often: layers would come
/// more often.
inline constexpr double kWorthConfirming = 0.25;
/// Counts of two ways agree within this share (or one): the first and the last step may be cut off.
inline constexpr double kSameCount = 0.05;

// Numbered parts of a model
// ----------------------------------------------------------------------------------------------

/// A cycle that holds another layer than the one before is a step after all (models of one layer per step exist).
inline constexpr double kNumberedPart = 0.2;
/// A marker from here on is not doubted for the layers in it.
inline constexpr double kUndoubted = 0.9;
/// Where the numbers of layers start again a forward pass begins: nearly always once per step.
inline constexpr double kPasses = 0.7;
/// ... though a step usually begins before its first layer.
inline constexpr double kPassesPhase = 0.3;

// The sequence of operations
// ---------------------------------------------------------------------------------------------

/// Share of intervals in which a token must occur exactly once to alternate with another: one event in a hundred lost
/// breaks two intervals of every fifty.
inline constexpr double kAlternates = 0.88;
/// Weights of what a step does only once. An optimizer or sampling alone nearly tells a step; of the others it takes
/// two, unless sampling draws lots (Role::draw).
inline constexpr double kWeightDecisive = 3;
inline constexpr double kWeightTelling = 2;
inline constexpr double kTellsStep = 4;
/// The step-like things in a class, by their summed weight: four kinds, three kinds, two kinds.
inline constexpr double kManyKinds = 0.97;
inline constexpr double kManyKindsWeight = 8;
inline constexpr double kSomeKinds = 0.93;
inline constexpr double kSomeKindsWeight = 6;
inline constexpr double kFewKinds = 0.85;
/// A backward pass in a regular period that fills the recording is a training step whatever its operations are called.
inline constexpr double kBackwardFills = 0.85;
/// Sampling or an optimizer in the longest regular period, which fills the recording: routing in a layer may look like
/// sampling, but is repeated inside a longer period.
inline constexpr double kDecisiveFills = 0.85;
/// Share of the operations that a period must span to fill the recording, and to be considered at all.
inline constexpr double kFills = 0.9;
inline constexpr double kSpansMost = 0.6;
/// Periods that span more than that much overlap: another count is meant.
inline constexpr double kSpansTooMuch = 1.2;
/// Only copies to and from the host: offloaded layers do that, too.
inline constexpr double kMayBeLayer = 0.45;
/// Parts that alternate, put together, with nothing that a step does only once: longer than its parts, but an offloaded
/// layer alternates as well.
inline constexpr double kMergedParts = 0.6;
/// Something step-like, or a finer repetition inside: not the innermost one.
inline constexpr double kNotInnermost = 0.5;
inline constexpr double kOneKind = 0.35;
/// Nothing but repetition: a layer repeats likelier than a step, since there are more of them.
inline constexpr double kRepeats = 0.25;
/// Off for fewer than so many repetitions: chance repeats three times.
inline constexpr double kFew = 0.08;
inline constexpr std::size_t kFewRepetitions = 5;
/// Off (a factor) where the median deviation of the periods is more than half of the median period.
inline constexpr double kIrregular = 0.9;
inline constexpr double kIrregularSpread = 0.5;
/// The least and the most that a sequence alone is worth.
inline constexpr double kSequenceLeast = 0.05;
inline constexpr double kSequenceMost = 0.98;

/// Operators of the host repeat in every program. A sequence of them that is worth less than this and comes irregularly
/// is none.
inline constexpr double kNoMereRepetition = 0.3;

/// Where a step begins: input follows or output precedes; the recording holds whole steps; the gap is more than twice
/// the next one; none of these.
inline constexpr double kClearBegin = 0.9;
inline constexpr double kFitsRecording = 0.8;
inline constexpr double kClearGap = 0.5;
inline constexpr double kClearGapRatio = 2;
inline constexpr double kSomeGap = 0.3;
/// Off where another gap is as large.
inline constexpr double kAmbiguousGap = 0.15;
inline constexpr double kAmbiguousGapRatio = 1.2;
/// A recording fits whole steps by chance in about one of so many cases: their begin outweighs a gap by this factor.
inline constexpr double kWholeSteps = 50;

// Units of work of programs that mark no steps
// ------------------------------------------------------------------------------

/// A thread whose receives and sends are equally many answers what it receives.
inline constexpr double kReceivesAndSends = 0.9;
/// ... one that tries to receive again and finds nothing, or answers a connection in several parts, most probably does.
inline constexpr double kReceivesTwice = 0.8;
/// At most, where several processes hand messages on: which of them is a step is chosen by rule.
inline constexpr double kBetweenProcesses = 0.8;
/// Share of the answers of one size that come as each n-th one, and of all requests that such groups hold, from which
/// on n requests are a transaction; that they are.
inline constexpr double kRegular = 0.9;
inline constexpr double kTransactions = 0.8;
/// Processes that begin and end are what a build or a script does.
inline constexpr double kLifetimes = 0.8;
/// Of a program that never waits all that can change what it gets done in a time is how much of it it has a CPU, and
/// how fast that is.
inline constexpr double kNeverWaits = 0.8;
/// A wake-up may handle none, one or many of what the program counts.
inline constexpr double kWakeups = 0.4;

}  // namespace culprit::cycles::confidence
