// Two servers that are started for a comparison, each with its clients, and ended behind it.
#pragma once

#include <sys/types.h>

#include <array>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "core/units.h"
#include "faults/process.h"

namespace culprit::ab {

struct Servers {
  std::array<std::vector<std::string>, 2> commands;  ///< "{port}" becomes the port that was chosen for the side
  std::string ready;              ///< URL, with {port}, that answers 2xx when the server may be used; empty: connects
  bool serve = true;              ///< else they need no port: nothing is waited for but `warm_up`
  std::vector<std::string> load;  ///< command of the clients, with {port}; empty: the user sees to load
  Ns patience = 600'000'000'000;  ///< with what a server needs until it is ready
  Ns warm_up = 10'000'000'000;    ///< that clients, or what does not serve, have before anything is measured
  std::string folder;             ///< gets what they print
  std::function<void(const std::string& lines)> printed{};  ///< gets the last lines of one that failed
  std::function<void(const std::string& line)> told{};      ///< gets what the user has to know meanwhile
};

/// The words of a command as a shell splits them: blanks, '...', "..." and \; nothing is replaced. Error: a quote is
/// not closed, there is no word.
Result<std::vector<std::string>> split_command(std::string_view text);

/// "{port}" in each word becomes the number.
std::vector<std::string> with_port(std::vector<std::string> words, int port);

class RunningServers {
 public:
  /// Starts both servers, waits until both are ready, then starts their clients and
  /// gives them time to warm up. A readable `stop_fd` ends that.
  /// Errors: one cannot be started, ends before anything is measured (with the end of what it printed), or is not ready
  /// in time.
  static Result<RunningServers> start(const Servers& servers, int stop_fd);
  RunningServers(RunningServers&& other) noexcept;
  RunningServers& operator=(RunningServers&&) = delete;
  /// Asks clients and servers, with all that they started, to end, and kills what still runs after kGrace.
  ~RunningServers();

  [[nodiscard]] pid_t server(std::size_t side) const { return programs_[side].front(); }
  [[nodiscard]] std::vector<pid_t> clients(std::size_t side) const {
    return {programs_[side].begin() + 1, programs_[side].end()};
  }
  /// Error: a server or its clients ended with another code than 0 (with the end of what it printed). Waits a moment
  /// for one that is about to.
  [[nodiscard]] Status failure(const Servers& servers) const;
  static constexpr Ns kGrace = 20'000'000'000;

 private:
  RunningServers() = default;
  Status start_side(const Servers& servers, std::size_t side);
  Status wait_until_ready(const Servers& servers, std::size_t side, int stop_fd);
  Status warm_up(const Servers& servers, int stop_fd) const;
  Result<pid_t> spawn(const std::vector<std::string>& words, const std::string& text);

  std::array<int, 2> ports_{};
  std::array<std::vector<pid_t>, 2> programs_;  // the server first
};

}  // namespace culprit::ab
