/// \file
/// Runs the program as a shell would, and returns its exit code and output.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/base/temporary_folder.h"

namespace foreshard::cli {

struct Outcome {
  int code = -1;  ///< 128 + n for signal n, as in a shell.
  std::string out;
  std::string err;
};

inline std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

/// `arguments` are those of a shell, which may redirect stdin. The catalogue is the source tree's.
inline Outcome foreshard(const std::string& arguments) {
  const TemporaryFolder folder;
  const std::string out = (folder.path() / "out").string();
  const std::string err = (folder.path() / "err").string();
  const std::string command = std::string("cd '") + FORESHARD_SOURCE_DIR + "' && '" +
                              FORESHARD_PROGRAM + "' </dev/null " + arguments + " >'" + out +
                              "' 2>'" + err + "'";
  const int status = std::system(command.c_str());
  Outcome outcome;
  outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  outcome.out = text_of(out);
  outcome.err = text_of(err);
  return outcome;
}

}  // namespace foreshard::cli
