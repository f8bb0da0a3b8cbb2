/// \file
/// Declares all options and commands to the parser: for reading a command line, and for the shell
/// completion, which lists them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/command.h"

namespace CLI {
class App;
}

namespace foreshard::cli {

struct Declared {
  CLI::App* app;
  std::unique_ptr<Command> command;
};

/// Declares the program's options and all commands.
/// \param configs  receives the folder of the catalogue when the command line is read.
std::vector<Declared> declare_all(CLI::App& app, std::string& configs);

}  // namespace foreshard::cli
