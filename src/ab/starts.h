// Two commands of servers, started anew as often as the budget allows: what two processes differ by, whatever they run,
// is no difference between the commands.
#pragma once

#include <cstddef>
#include <functional>

#include "ab/alternate.h"
#include "ab/servers.h"
#include "ab/turns.h"
#include "core/error.h"

namespace culprit::ab {

struct StartsPlan {
  Servers servers;
  TurnsPlan turns;       ///< its sides and clients are those of each start
  std::size_t most = 0;  ///< starts; 0: as many as the budget allows (with a number of pairs: one)
  std::function<void(std::size_t start)> starting{};  ///< told before each, from 1
};

/// Starts both servers, lets them run in turns as alternate() does, ends them, and again, until the effect is found,
/// excluded, or the budget is spent, of which every start but the first is a part. Errors: those of RunningServers and
/// alternate() in the first start; one of a later start ends it with what is known, a note and Alternated::failed.
Result<Alternated> alternate(const StartsPlan& plan, const Question& question, int stop_fd,
                             const ProgressSink& progress = {});

/// How long the turns of a start should last that took `starting` to come, with so much of the budget left; all of that
/// where no further one fits.
Ns length_of_start(Ns starting, Ns left);

}  // namespace culprit::ab
