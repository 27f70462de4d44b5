// How much several families of rules ask for alike, and what is judged of two runs as of one by itself.
#pragma once

namespace culprit::diagnose {

inline constexpr double kLeastThrottled = 2e7;   // ns per second, by a CPU quota
inline constexpr double kMuchLess = 0.1;         // got done
inline constexpr double kLeastSwap = 1e6;        // bytes per second
inline constexpr double kLeastFaults = 20;       // major ones per second: pages that a disk was read for
inline constexpr double kLeastStalls = 1;        // per second: allocations that had to wait for memory
inline constexpr double kLeastLate = 0.02;       // of a step
inline constexpr double kTwiceAsLate = 2;        // as any other rank
inline constexpr double kHot = 85;               // degrees
inline constexpr double kHotter = 3;             // degrees more
inline constexpr double kBeyondClock = 1.1;      // of what a lower clock makes slower
inline constexpr double kLeastShareRise = 0.15;  // of the samples
inline constexpr double kLeastOfGrowth = 0.5;    // of what the step took more

}  // namespace culprit::diagnose
