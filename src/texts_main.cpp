// culprit-texts DIR: writes the manual pages and the completions of shells below DIR, as they are installed. Part of
// the build; the program itself does not need it.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "cli/cli.h"
#include "cli/completion.h"
#include "cli/manual.h"

namespace {

bool write(const std::filesystem::path& path, const std::string& text) {
  std::error_code code;
  std::filesystem::create_directories(path.parent_path(), code);
  std::ofstream out(path, std::ios::binary);
  out << text;
  out.close();
  if (!out) static_cast<void>(std::fprintf(stderr, "culprit-texts: %s: cannot be written\n", path.c_str()));
  return static_cast<bool>(out);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    static_cast<void>(std::fprintf(stderr, "usage: %s DIR\n", argv[0]));
    return 2;
  }
  using namespace culprit::cli;
  const std::filesystem::path root = argv[1];
  CommandLine command_line;
  Invocation invocation;
  const ProgramText program = declare(command_line, invocation);
  bool good = write(root / "man/man1/culprit.1", man_page(program));
  for (const VerbText& verb : program.verbs)
    good = write(root / ("man/man1/culprit-" + verb.name + ".1"), man_page(program, verb)) && good;
  good = write(root / "bash-completion/completions/culprit", bash_completion(program)) && good;
  good = write(root / "zsh/vendor-completions/_culprit", zsh_completion(program)) && good;
  good = write(root / "fish/vendor_completions.d/culprit.fish", fish_completion(program)) && good;
  return good ? 0 : 1;
}
