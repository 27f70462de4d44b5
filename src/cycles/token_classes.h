// Tokens of a launch sequence that alternate with each other, and which of these classes is the step.
//
// A token that occurs once per step alternates with every other such token. A step, a layer and "every fourth step" are
// three classes with different counts.
#pragma once

#include <cstddef>
#include <vector>

#include "cycles/confidence.h"
#include "cycles/tokens.h"

namespace culprit::cycles {

struct Member {
  std::size_t token = 0;
  double alternation = 0;
  double place = 0;  // median position between two occurrences of the leader, 0..1
};

struct TokenClass {
  std::size_t leader = 0;
  std::size_t count = 0;
  std::vector<Member> members;  // the leader too
  double roles = 0;             // weight of the kinds of step-like operations
  unsigned names = 0;           // members that are not pairs
  double alternation = 0;
  double extent = 0;      // share of the operations it spans
  bool ends = false;      // something that ends a step is among them
  bool firm = false;      // sampling, loss or an optimizer is: a layer may copy and look up, but does none of these
  bool decisive = false;  // sampling or an optimizer is
  bool draws = false;     // sampling that no layer does is, regularly and over the whole recording
  bool updates = false;   // an optimizer is
  bool embeds = false;    // an embedding or a lookup that looks like one is
  bool backward = false;  // something of a backward pass is
  bool regular = false;   // most occurrences of the leader are equally far apart
  bool nested = false;    // a finer class repeats inside it
  bool enclosed = false;  // a longer regular repetition holds it a fixed number of times
  std::size_t updates_every = 0;  // passes forward and backward in one that holds the optimizer, when several
  /// What a step does once is among them.
  [[nodiscard]] bool tells_step() const { return draws || roles >= confidence::kTellsStep; }
};

/// What the presence of such an operation tells about steps.
double weight_of(Role role);

/// The classes that span at least half of the first `operations` operations.
std::vector<TokenClass> find_classes(const std::vector<Token>& tokens, std::size_t operations);

/// The class that is the step; nullptr when nothing is: what holds operations that a step does only once, else a
/// training step by its backward pass, else the longest period that more than one thing repeats with. Where the
/// optimizer runs after several passes forward and backward, a pass.
const TokenClass* choose(const std::vector<TokenClass>& classes, const std::vector<Token>& tokens);

/// Notes in `step` whether a finer class repeats inside it (then it is no innermost repetition), and whether it repeats
/// a fixed number of times inside a longer one, and whether that is because gradients are accumulated.
void mark_nested(const std::vector<TokenClass>& classes, const std::vector<Token>& tokens, TokenClass& step);

}  // namespace culprit::cycles
