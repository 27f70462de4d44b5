// Call stacks added up: a tree of who called whom, with how often each was met. What folded text, flame graphs and the
// table of functions are made of.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/units.h"

namespace culprit::model {

struct StackTree {
  static constexpr std::uint32_t kRoot = 0;

  struct Node {
    std::uint32_t parent = kRoot;
    std::string name;    ///< of the process, of the thread, then of functions
    std::string module;  ///< of a function: the file of its code
    bool kernel = false;
    std::uint64_t samples = 0;  ///< that ended here
    std::uint64_t total_samples = 0;
    Ns time = 0;  ///< of the samples that ended here; 0 where it is unknown
    Ns total_time = 0;
    std::vector<std::uint32_t> children;  ///< by name
  };
  /// The first is the root, without a name; a node stands behind its parent.
  std::vector<Node> nodes{1};
  bool timed = true;                ///< every sample stands for a known time
  std::uint64_t without_stack = 0;  ///< of the samples
  std::uint64_t filtered = 0;       ///< samples that were left out
  Ns shortest = 0;                  ///< what a sample stands for at least, those left out too; 0: none has a known time
};

}  // namespace culprit::model
