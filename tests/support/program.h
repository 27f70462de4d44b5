// Runs the built program as a user would, for end-to-end tests.
#pragma once

#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <string>

namespace culprit::testing_support {

struct ProgramResult {
  int code = -1;
  std::string output;
};

/// Runs `arguments` of the shell (redirections and pipes allowed) behind the program's name; standard output comes
/// back.
inline ProgramResult run_program(const std::string& arguments) {
  ProgramResult result;
  const std::string command = std::string(CULPRIT_BINARY_DIR) + "/culprit " + arguments;
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return result;
  std::array<char, 4096> buffer{};
  for (std::size_t n = 0; (n = fread(buffer.data(), 1, buffer.size(), pipe)) > 0;)
    result.output.append(buffer.data(), n);
  const int status = pclose(pipe);
  result.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

}  // namespace culprit::testing_support
