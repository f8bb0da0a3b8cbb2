/// \file
/// The interface of a command of `foreshard`. To add a command, write its .cc, its declaration in
/// commands.h, and one line in the table of commands.cc.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/declaration.h"
#include "cli/exit_code.h"

namespace foreshard::cli {

/// Context that every command gets.
struct Environment {
  std::vector<std::filesystem::path> catalogue;  ///< Folders, in the order in which to search them.
};

class Command {
 public:
  virtual ~Command() = default;
  virtual void declare(Declaration& declaration) = 0;
  /// Runs with the options that were read. Results go to stdout, everything else to stderr.
  virtual Result<ExitCode> run(const Environment& environment) = 0;
};

struct CommandInfo {
  std::string_view name;
  std::string_view summary;  ///< One line.
  std::string_view example;  ///< Shell commands, shown by --help.
  std::unique_ptr<Command> (*make)();
};

/// All commands, in the order in which --help lists them.
std::span<const CommandInfo> commands();

}  // namespace foreshard::cli
