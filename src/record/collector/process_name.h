// What a process is called now. A program's file name is not it: redis-server is a link to another program, and the
// processes of postgres, nginx or vLLM name themselves after they started.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace culprit::record {

struct ProcessNames {
  std::string comm;          ///< of the main thread; the kernel keeps 15 characters
  std::string title;         ///< where the arguments began: argv[0], or what setproctitle(3) wrote over all of them
  bool wrote_title = false;  ///< the title is one that the program wrote, not its first argument
  std::string program;       ///< name of the file that it executes; empty when that cannot be read
};

/// The title in the text of /proc/PID/cmdline; the other members stay as they are.
void parse_title(std::string_view cmdline, ProcessNames& names);
/// From /proc/PID/comm, cmdline and exe below `proc`. Empty when the process is gone; only comm when it is a zombie.
ProcessNames read_process_names(const std::string& proc, std::int64_t pid);

/// argv[0] without its folder.
std::string_view short_title(const ProcessNames& names);
/// comm; whole where the kernel cut it and argv[0] begins with it.
std::string whole_comm(const ProcessNames& names);
/// The name a recording shows: the title that the program wrote, up to the first word that is a path or an option
/// (nginx writes its command line there), else whole_comm().
std::string shown_name(const ProcessNames& names);

}  // namespace culprit::record
