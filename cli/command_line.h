/// \file
/// All that the program understands, declared to the parser: for those who read a command line, and
/// for the shell completion, which lists it.
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

/// The options of the program and all commands. `configs` becomes the folder of the catalogue.
std::vector<Declared> declare_all(CLI::App& app, std::string& configs);

}  // namespace foreshard::cli
